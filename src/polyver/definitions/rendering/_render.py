"""All components of an application with their traits, rendered in the order in which they stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from polyver.core import PolyverError
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.rendering._context import ApplicationContext
from polyver.definitions.rendering._engines import Engines, UnfitParameters
from polyver.definitions.rendering._outputs import Made, RenderedObject, doubled, made_by
from polyver.definitions.rendering._sources import RenderingSources, Revisions
from polyver.definitions.support import unsupported

__all__ = ["Rendered", "RenderingObserver", "render", "revisions_of"]


@dataclass(frozen=True, slots=True)
class Rendered:
    """What became of an application; with errors it is not to be applied."""

    outputs: tuple[RenderedObject, ...] = ()
    """In the order in which they are to be applied."""
    errors: tuple[PolyverError, ...] = ()
    """Everything that is wrong, each with its place in the application."""


class RenderingObserver(Protocol):
    """Observes a rendering from its thread, so that a slow template can be named."""

    def component(self, at: str) -> None:
        """The component at this place of the application is next."""

    def template(self, resolution: ReadOnlyObject) -> None:
        """The template of this resolution is next."""


class _Unobserved:
    def component(self, at: str) -> None:
        pass

    def template(self, resolution: ReadOnlyObject) -> None:
        pass


def revisions_of(resolutions: Iterable[ReadOnlyObject]) -> set[tuple[str, str]]:
    """The namespaces and names of the DefinitionRevisions that `render` needs."""
    return {
        (each["definition"].rpartition("/")[0], each["revision"])
        for each in resolutions
        if each["kind"] in ("Component", "Trait")
    }


def render(
    application: ReadOnlyObject,
    resolutions: Sequence[ReadOnlyObject],
    revisions: Revisions,
    engines: Engines,
    *,
    app_revision: str = "",
    context: ReadOnlyObject | None = None,
    progress: RenderingObserver | None = None,
) -> Rendered:
    """The objects that an application means, with the versions that were chosen for it.

    `resolutions` are as `resolution_data` makes them, and as the status and the ApplicationRevision
    have them. `app_revision` is the name of the ApplicationRevision, which templates may use;
    `context` adds to what they see, such as `clusterVersion`. An application that uses fields which
    are not executed is not rendered at all: the errors are `Unsupported` then. It may block where
    an engine does. `progress` observes it.
    """
    if refused := unsupported(application, resolutions, revisions):
        return Rendered(errors=tuple(refused))
    run = _Run(
        RenderingSources({each["at"]: each for each in resolutions}, revisions, engines),
        ApplicationContext(application, app_revision, context or {}),
        progress or _Unobserved(),
    )
    spec: ReadOnlyObject = application.get("spec") or {}
    for number, component in enumerate(spec.get("components") or ()):
        run.component(component, f"spec.components[{number}]")
    errors = [*run.errors, *doubled(run.outputs)]
    return Rendered(tuple(run.outputs), tuple(errors))


class _Run:
    """Renders the components of one application, one after the other."""

    def __init__(
        self,
        sources: RenderingSources,
        surroundings: ApplicationContext,
        progress: RenderingObserver,
    ) -> None:
        self._sources = sources
        self._surroundings = surroundings
        self._progress = progress
        self.outputs: list[RenderedObject] = []
        self.errors: list[PolyverError] = []

    def component(self, component: ReadOnlyObject, at: str) -> None:
        context: ReadOnlyObject = {"name": component["name"]}
        made: list[Made] = []
        is_made = True
        self._progress.component(at)
        try:
            source = self._sources.source(at)
            self._progress.template(source.resolution)
            context = self._surroundings.of_component(component, source.resolution)
            found = source.render(component.get("properties"), context)
            made += made_by(source, component["name"], found)
        except PolyverError as error:
            self._note(error)
            is_made = False
        for number, trait in enumerate(component.get("traits") or ()):
            try:
                made = self._with_trait(made, trait, context, f"{at}.traits[{number}]")
            except PolyverError as error:
                # What is wrong because there is no component would only distract.
                if is_made or isinstance(error, UnfitParameters):
                    self._note(error)
        self._place(made)

    def _with_trait(
        self, made: list[Made], trait: ReadOnlyObject, context: ReadOnlyObject, at: str
    ) -> list[Made]:
        """The objects of a component with those of a trait, and as it changes them."""
        source = self._sources.source(at)
        self._progress.template(source.resolution)
        output = next((each.document.object for each in made if each.main), None)
        outputs = {each.document.name: each.document.object for each in made if each.document.name}
        seen = self._surroundings.of_trait(context, source.resolution, output, outputs)
        found = source.render(trait.get("properties"), seen)
        changed = [each.patched(found.patched) for each in made]
        return [*changed, *made_by(source, context["name"], found)]

    def _place(self, made: Iterable[Made]) -> None:
        for each in made:
            try:
                self.outputs.append(each.placed(self._surroundings.namespace))
            except PolyverError as error:
                self._note(error)

    def _note(self, error: PolyverError) -> None:
        self.errors += error.errors if isinstance(error, UnfitParameters) else [error]
