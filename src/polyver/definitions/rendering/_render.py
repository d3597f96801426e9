"""Rendering of all components of an application with their traits, in order."""

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
    """The result of a rendering; with errors it must not be applied."""

    outputs: tuple[RenderedObject, ...] = ()
    """Objects in the order in which they are applied."""
    errors: tuple[PolyverError, ...] = ()
    """All problems, each with its path in the application."""


class RenderingObserver(Protocol):
    """Observes a rendering from its thread, so that a slow template can be named."""

    def component(self, at: str) -> None:
        """Called before the component at this path is rendered."""

    def template(self, resolution: ReadOnlyObject) -> None:
        """Called before the template of this resolution is rendered."""


class _Unobserved:
    def component(self, at: str) -> None:
        pass

    def template(self, resolution: ReadOnlyObject) -> None:
        pass


def revisions_of(resolutions: Iterable[ReadOnlyObject]) -> set[tuple[str, str]]:
    """Return the namespaces and names of the DefinitionRevisions that `render` needs."""
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
    """Render an application with its resolved versions.

    `resolutions` are as made by `resolution_data`, and as in the status and the
    ApplicationRevision. `app_revision` is the name of the ApplicationRevision, which templates may
    use; `context` extends the context of templates, such as with `clusterVersion`. An application
    with unsupported fields is not rendered: all errors of the result are then `Unsupported`. This
    function blocks while an engine blocks. `progress` observes the rendering.
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
                # Errors that only follow from the missing component would distract.
                if is_made or isinstance(error, UnfitParameters):
                    self._note(error)
        self._place(made)

    def _with_trait(
        self, made: list[Made], trait: ReadOnlyObject, context: ReadOnlyObject, at: str
    ) -> list[Made]:
        """Return the objects of a component, patched by a trait, with those of the trait."""
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
