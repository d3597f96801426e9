"""Renders all components of an application with their traits, in order.

For each reference, `RenderingSources` finds the resolved version and its engine.
`ApplicationContext` builds the context of each template; its fields have the names that KubeVela
uses. The engine returns objects. Such an object is a `Made` while later traits may patch it. At the
end, objects without a name or a namespace get defaults, and an object that is rendered twice is an
error.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from polyver.core import PolyverError, listed
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.names import PUBLISH_VERSION
from polyver.definitions.publishing import known_revision
from polyver.definitions.rendering._engines import (
    Engines,
    TemplateDocument,
    TemplateEngine,
    TemplateInput,
    TemplateOutput,
    UnfitParameters,
)
from polyver.definitions.support import unsupported
from polyver.kube.objects import digest

__all__ = [
    "Rendered",
    "RenderedObject",
    "RenderingObserver",
    "Revisions",
    "cluster_version",
    "render",
    "revisions_of",
]

Revisions = Mapping[tuple[str, str], ReadOnlyObject]
"""DefinitionRevisions, by namespace and name."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The result of a rendering. If there are errors, the caller must not apply the objects."""

    outputs: tuple[RenderedObject, ...] = ()
    """The objects, in the order of components and traits."""
    errors: tuple[PolyverError, ...] = ()
    """All problems, each with its path in the application."""


class RenderingObserver(Protocol):
    """Is called at each step of a rendering, in the same thread.

    With these calls, a caller can find out after a timeout which template was slow.
    """

    def component(self, at: str) -> None:
        """Observe that rendering the component at this path begins."""

    def template(self, resolution: ReadOnlyObject) -> None:
        """Observe that rendering the template of this resolution begins."""


class _Unobserved:
    def component(self, at: str) -> None:
        pass

    def template(self, resolution: ReadOnlyObject) -> None:
        pass


def revisions_of(resolutions: Iterable[ReadOnlyObject]) -> set[tuple[str, str]]:
    """Return the namespace and name of each DefinitionRevision that is needed for rendering.

    These are the revisions of components and traits.
    """
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
    """Render the objects of an application with its resolved versions.

    `resolutions` are entries of `status.resolutions` (see `resolution_data`). `app_revision` is the
    name of the ApplicationRevision, which templates may use. `context` has further fields for the
    context of templates, such as `clusterVersion`. `progress` is called during the rendering.

    An application with unsupported fields is not rendered: all errors of the result are then
    `Unsupported`. This function blocks while an engine blocks.
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
                # If the component failed, most errors of its traits are only consequences of this
                # failure.
                if is_made or isinstance(error, UnfitParameters):
                    self._note(error)
        for each in made:
            try:
                self.outputs.append(each.placed(self._surroundings.namespace))
            except PolyverError as error:
                self._note(error)

    def _with_trait(
        self, made: list[Made], trait: ReadOnlyObject, context: ReadOnlyObject, at: str
    ) -> list[Made]:
        """Render a trait of a component whose objects are `made`.

        Return the objects of the component, with the patches of the trait, and the trait's own
        objects.
        """
        source = self._sources.source(at)
        self._progress.template(source.resolution)
        output = next((each.document.object for each in made if each.main), None)
        outputs = {each.document.name: each.document.object for each in made if each.document.name}
        seen = self._surroundings.of_trait(context, source.resolution, output, outputs)
        found = source.render(trait.get("properties"), seen)
        changed = [each.patched(found.patched) for each in made]
        return [*changed, *made_by(source, context["name"], found)]

    def _note(self, error: PolyverError) -> None:
        self.errors += error.errors if isinstance(error, UnfitParameters) else [error]


# The resolved version of a reference, and its engine.


@dataclass(frozen=True, slots=True)
class RenderingSource:
    """The resolved version of a reference, and the engine that renders it."""

    at: str
    resolution: ReadOnlyObject
    name: str
    """Name of the definition."""
    engine: TemplateEngine
    block: ReadOnlyObject
    """The value of the engine's field in `schematic`."""

    @property
    def label(self) -> str:
        """The definition and its version, for messages: `webservice 1.2.3`."""
        return f"{self.name} {self.resolution['version']}"

    @property
    def is_trait(self) -> bool:
        return bool(self.resolution["kind"] == "Trait")

    def render(self, properties: object, context: ReadOnlyObject) -> TemplateOutput:
        if properties is not None and not isinstance(properties, Mapping):
            raise PolyverError("properties is not a mapping", at=f"{self.at}.properties")
        return self.engine.render(
            self.block, TemplateInput(properties or {}, context, self.at, self.label)
        )


@dataclass(frozen=True, slots=True)
class RenderingSources:
    """The resolutions of an application, with their revisions and engines."""

    resolutions: Mapping[str, ReadOnlyObject]
    """Resolutions, by the paths of the references."""
    revisions: Revisions
    engines: Engines

    def source(self, at: str) -> RenderingSource:
        """Find the resolved version and the engine of the component or trait at a path."""
        place = f"{at}.type"
        resolution = self.resolutions.get(place)
        if resolution is None:
            raise PolyverError("no version was chosen for it", at=place)
        namespace, _, name = resolution["definition"].rpartition("/")
        revision = f"{namespace}/{resolution['revision']}"
        found = self.revisions.get((namespace, resolution["revision"]))
        known = known_revision(found) if found is not None else None
        if known is None:
            raise PolyverError(f"there is no DefinitionRevision {revision}", at=place)
        if known.digest != resolution["digest"]:
            fact = f"DefinitionRevision {revision} has the digest {known.digest}"
            hint = f"the application uses {resolution['digest']}"
            raise PolyverError(fact, at=place, hint=hint)
        label = f"{name} {resolution['version']}"
        schematic = known.content.get("schematic") or {}
        if not isinstance(schematic, Mapping):
            raise PolyverError(f"the schematic of {label} is not a mapping", at=place)
        there = [field for field, block in schematic.items() if block is not None]
        hint = f"there are engines for {listed(sorted(self.engines))}"
        if len(there) != 1:
            what = f"{len(there)} schematics: {listed(there)}" if there else "no schematic"
            raise PolyverError(f"{label} has {what}", at=place, hint=f"it needs one; {hint}")
        engine, block = self.engines.get(there[0]), schematic[there[0]]
        if engine is None:
            fact = f"{label} needs the engine {there[0]}, which is not available"
            raise PolyverError(fact, at=place, hint=hint)
        if not isinstance(block, Mapping):
            raise PolyverError(f"schematic.{there[0]} of {label} is not a mapping", at=place)
        return RenderingSource(at, resolution, name, engine, block)


# The context of templates.

_SHOWN: Final = 10


def cluster_version(release: ReadOnlyObject) -> dict[str, Any]:
    """Convert the version of an API server to the value of `context.clusterVersion` in templates.

    >>> cluster_version({"major": "1", "minor": "30+", "gitVersion": "v1.30.2-a"})["minor"]
    30
    """
    minor = "".join(itertools.takewhile(str.isdecimal, str(release.get("minor") or "")))
    told = {name: str(release.get(name) or "") for name in ("major", "gitVersion", "platform")}
    return {**told, "minor": int(minor or 0)}


class ApplicationContext:
    """Builds the context of the templates of one application."""

    def __init__(
        self, application: ReadOnlyObject, app_revision: str, more: ReadOnlyObject
    ) -> None:
        metadata: ReadOnlyObject = application["metadata"]
        annotations: ReadOnlyObject = metadata.get("annotations") or {}
        number = app_revision.rpartition("-v")[2]
        self._common: dict[str, Any] = {
            "cluster": "local",
            "replicaKey": "",
            "workflowName": "",
            **more,
            "appName": metadata["name"],
            "namespace": metadata.get("namespace", ""),
            "appRevision": app_revision,
            "appRevisionNum": int(number) if number.isdecimal() else 0,
            "appLabels": metadata.get("labels") or {},
            "appAnnotations": annotations,
            "publishVersion": annotations.get(PUBLISH_VERSION, ""),
        }

    @property
    def namespace(self) -> str:
        found: str = self._common["namespace"]
        return found

    def of_component(self, component: ReadOnlyObject, resolution: ReadOnlyObject) -> dict[str, Any]:
        """Build the context for the template of a component."""
        name = component["name"]
        # The revision is different for each component, and for each version of its definition.
        content = digest([component, resolution["digest"]]).rpartition(":")[2][:_SHOWN]
        mine = {"name": name, "revision": f"{name}-{content}", "version": resolution["version"]}
        return self._common | mine

    @staticmethod
    def of_trait(
        component: ReadOnlyObject,
        resolution: ReadOnlyObject,
        output: ReadOnlyObject | None,
        outputs: ReadOnlyObject,
    ) -> dict[str, Any]:
        """Build the context for the template of a trait.

        It has the fields of the component's context (`component`), and the objects of the
        component.
        """
        made = {"output": output} if output is not None else {}
        return {**component, "version": resolution["version"], **made, "outputs": outputs}


# The objects that templates make.


@dataclass(frozen=True, slots=True)
class RenderedObject:
    """A rendered object of an application, and the component or trait that made it."""

    object: dict[str, Any]
    """The object, with a name and a namespace. The caller removes the namespace of an object whose
    kind is cluster-scoped, and adds labels and owners.
    """
    component: str
    at: str
    """Path of the component or trait: `spec.components[0]`."""
    definition: str
    """Name of the definition whose template made the object."""
    trait: bool = False
    """True if a trait made the object."""
    name: str = ""
    """The key under `outputs`. Empty for a main object, and for an object without a key."""
    main: bool = False
    """True if the object is the main object of its component."""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The apiVersion, kind, namespace and name of the object."""
        obj, metadata = self.object, self.object["metadata"]
        return obj["apiVersion"], obj["kind"], metadata["namespace"], metadata["name"]


@dataclass(frozen=True, slots=True)
class Made:
    """An object that a template has made; later traits may patch it."""

    document: TemplateDocument
    source: RenderingSource
    component: str
    main: bool

    def patched(self, changes: Mapping[str, dict[str, Any]]) -> Made:
        """Return the object after the patches of a trait.

        `changes` has the patched objects by name; the name of the main object is empty.
        """
        name = self.document.name
        if (not name and not self.main) or name not in changes:
            return self
        return replace(self, document=replace(self.document, object=changes[name]))

    def placed(self, namespace: str) -> RenderedObject:
        """Validate the object, and add a default name and namespace if they are missing."""
        obj, source = self.document.object, self.source
        where = f"{source.at}, {self.document.at} of {source.label}"
        for field in ("apiVersion", "kind"):
            if not isinstance(obj.get(field), str) or not obj[field]:
                raise PolyverError(f"an object without {field} was rendered", at=where)
        metadata = obj.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise PolyverError("metadata is not a mapping", at=where)
        trait = source.name if source.is_trait else ""
        parts = [self.component, *([] if self.main else [trait, self.document.name])]
        default_name = "-".join(each.lower().replace("_", "-") for each in parts if each)
        said = {"name": default_name, "namespace": namespace}
        said |= {field: metadata[field] for field in said if metadata.get(field)}
        for field, text in said.items():
            if not isinstance(text, str):
                raise PolyverError(f"metadata.{field} is not a string", at=where)
        whole = {**obj, "metadata": {**metadata, **said}}
        return RenderedObject(
            *(whole, self.component, source.at, source.name),
            trait=source.is_trait,
            name=self.document.name,
            main=self.main,
        )


def made_by(source: RenderingSource, component: str, found: TemplateOutput) -> Iterator[Made]:
    """Yield all objects of one template. Only the template of a component has a main object."""
    if found.output is not None:
        yield Made(found.output, source, component, main=not source.is_trait)
    for each in found.outputs:
        yield Made(each, source, component, main=False)


def doubled(outputs: Iterable[RenderedObject]) -> Iterator[PolyverError]:
    """Yield an error for each object that is rendered twice.

    Two objects that differ only in the version of their API group are the same object.
    """
    seen: dict[tuple[str, ...], RenderedObject] = {}
    for each in outputs:
        version, *rest = each.identity
        group = version.rpartition("/")[0]
        first = seen.setdefault((group, *rest), each)
        if first is not each:
            kind, namespace, name = rest
            fact = f"{kind} {namespace}/{name} is rendered twice"
            hint = f"{first.at} also renders it; give one of them another name"
            yield PolyverError(fact, at=each.at, hint=hint)
