"""All components of an application with their traits, rendered in the order in which they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from polyver.capabilities.definitions.publishing import known_revision
from polyver.capabilities.definitions.rendering._context import Surroundings
from polyver.capabilities.definitions.rendering._engines import (
    Document,
    Documents,
    Engine,
    Engines,
    Given,
    UnfitParameters,
)
from polyver.core import PolyverError, listed

__all__ = ["Output", "Rendered", "Revisions", "render", "revisions_of"]

Object = Mapping[str, Any]
Revisions = Mapping[tuple[str, str], Object]
"""DefinitionRevisions, by their namespaces and names."""


@dataclass(frozen=True, slots=True)
class Output:
    """An object that an application means, and what it comes from."""

    object: dict[str, Any]
    """With a name, and in the application's namespace unless it names one: what knows which kinds
    have no namespaces has to leave it out for those. Labels and owners are not put on here."""
    component: str
    at: str
    """`spec.components[0]`, or the trait's place."""
    definition: str
    """The name of the definition that made it."""
    trait: bool = False
    """Whether that is a trait."""
    name: str = ""
    """The key under `outputs`; empty for a component's main object, and for what has none."""
    main: bool = False
    """Whether it is the main object of its component."""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The apiVersion, kind, namespace and name."""
        metadata = self.object["metadata"]
        obj = self.object
        return obj["apiVersion"], obj["kind"], metadata.get("namespace", ""), metadata["name"]


@dataclass(frozen=True, slots=True)
class Rendered:
    """What became of an application; with errors it is not to be applied."""

    outputs: tuple[Output, ...] = ()
    """In the order in which they are to be applied."""
    errors: tuple[PolyverError, ...] = ()
    """Everything that is wrong, each with its place in the application."""


def revisions_of(resolutions: Iterable[Object]) -> set[tuple[str, str]]:
    """The namespaces and names of the DefinitionRevisions that `render` needs."""
    found = set()
    for each in resolutions:
        if each["kind"] in ("Component", "Trait"):
            found.add((each["definition"].rpartition("/")[0], each["revision"]))
    return found


def render(
    application: Object,
    resolutions: Iterable[Object],
    revisions: Revisions,
    engines: Engines,
    *,
    app_revision: str = "",
    context: Object | None = None,
) -> Rendered:
    """The objects that an application means, with the versions that were chosen for it.

    `resolutions` are as `resolution_data` makes them, and as the status and the ApplicationRevision
    have them. `app_revision` is the name of the ApplicationRevision, which templates may use;
    `context` adds to what they see, such as `clusterVersion`. Policies and the steps of a workflow
    are not executed, and make no objects. It may block where an engine does.
    """
    run = _Run(
        {each["at"]: each for each in resolutions},
        revisions,
        engines,
        Surroundings(application, app_revision, context or {}),
    )
    spec: Object = application.get("spec") or {}
    for number, component in enumerate(spec.get("components") or ()):
        run.component(component, f"spec.components[{number}]")
    errors = [*run.errors, *_doubled(run.outputs)]
    return Rendered(tuple(run.outputs), tuple(errors))


class _Run:
    """Renders the components of one application, one after the other."""

    def __init__(
        self,
        resolutions: Mapping[str, Object],
        revisions: Revisions,
        engines: Engines,
        surroundings: Surroundings,
    ) -> None:
        self._resolutions = resolutions
        self._revisions = revisions
        self._engines = engines
        self._surroundings = surroundings
        self.outputs: list[Output] = []
        self.errors: list[PolyverError] = []

    def component(self, component: Object, at: str) -> None:
        mine: list[Output] = []
        context: Object = {}
        made = True
        try:
            used = self._used(at)
            context = self._surroundings.of_component(component, used.resolution)
            found = used.render(component.get("properties"), context, at)
            mine += self._outputs(found, used, component["name"], at, trait=False)
        except PolyverError as error:
            self._note(error)
            made = False
        for number, trait in enumerate(component.get("traits") or ()):
            place = f"{at}.traits[{number}]"
            try:
                mine = self._with_trait(mine, trait, {**context, "name": component["name"]}, place)
            except UnfitParameters as error:
                self._note(error)
            except PolyverError as error:
                # What is wrong because there is no component would only distract.
                if made:
                    self._note(error)
        self.outputs += mine

    def _with_trait(
        self, mine: list[Output], trait: Object, context: Object, at: str
    ) -> list[Output]:
        """The objects of a component with those of a trait, and as it changes them."""
        used = self._used(at)
        output = next((each.object for each in mine if each.main), None)
        outputs = {each.name: each.object for each in mine if each.name}
        seen = self._surroundings.of_trait(context, used.resolution, output, outputs)
        found = used.render(trait.get("properties"), seen, at)
        changed = [_patched(each, found.patched) for each in mine]
        return [*changed, *self._outputs(found, used, context["name"], at, trait=True)]

    def _note(self, error: PolyverError) -> None:
        self.errors += error.errors if isinstance(error, UnfitParameters) else [error]

    def _used(self, at: str) -> _Used:
        """The version that is used in a place, and what renders it."""
        resolution = self._resolutions.get(f"{at}.type")
        if resolution is None:
            raise PolyverError("no version was chosen for it", at=f"{at}.type")
        namespace, _, name = resolution["definition"].rpartition("/")
        content = self._content(resolution, namespace, f"{at}.type")
        label = f"{name} {resolution['version']}"
        schematic: Object = content.get("schematic") or {}
        engine, block = self._engine(schematic, label, f"{at}.type")
        return _Used(resolution, name, label, engine, block)

    def _content(self, resolution: Object, namespace: str, at: str) -> Object:
        """The definition as it was when the version was published."""
        name = resolution["revision"]
        found = self._revisions.get((namespace, name))
        known = known_revision(found) if found is not None else None
        if known is None:
            raise PolyverError(f"there is no DefinitionRevision {namespace}/{name}", at=at)
        if known.digest != resolution["digest"]:
            fact = f"DefinitionRevision {namespace}/{name} has the digest {known.digest}"
            hint = f"the application uses {resolution['digest']}"
            raise PolyverError(fact, at=at, hint=hint)
        return known.content

    def _engine(self, schematic: Object, label: str, at: str) -> tuple[Engine, Object]:
        there = [name for name, block in schematic.items() if block is not None]
        known = f"there are engines for {listed(sorted(self._engines))}"
        if len(there) != 1:
            what = f"{len(there)} schematics: {listed(there)}" if there else "no schematic"
            raise PolyverError(f"{label} has {what}", at=at, hint=f"it needs one; {known}")
        engine, block = self._engines.get(there[0]), schematic[there[0]]
        if engine is None:
            fact = f"{label} is written for {there[0]}, and nothing here renders that"
            raise PolyverError(fact, at=at, hint=known)
        if not isinstance(block, Mapping):
            raise PolyverError(f"schematic.{there[0]} of {label} is no mapping", at=at)
        return engine, block

    def _outputs(
        self, found: Documents, used: _Used, component: str, at: str, *, trait: bool
    ) -> Iterator[Output]:
        made = [found.output] if found.output is not None else []
        for each in [*made, *found.outputs]:
            is_main = each is found.output and not trait
            name = _default_name(each, used, component, is_main=is_main)
            obj = self._placed(each, used, at, name)
            yield Output(obj, component, at, used.name, trait=trait, name=each.name, main=is_main)

    def _placed(self, document: Document, used: _Used, at: str, name: str) -> dict[str, Any]:
        """A document with a name, in the application's namespace unless it names one."""
        obj, where = document.object, f"{at}, {document.at} of {used.label}"
        for field in ("apiVersion", "kind"):
            if not isinstance(obj.get(field), str) or not obj[field]:
                raise PolyverError(f"an object without {field} was rendered", at=where)
        metadata = obj.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise PolyverError("metadata is no mapping", at=where)
        said = {"name": name, "namespace": self._surroundings.namespace}
        said |= {field: metadata[field] for field in said if metadata.get(field)}
        for field, text in said.items():
            if not isinstance(text, str):
                raise PolyverError(f"metadata.{field} is no text", at=where)
        return {**obj, "metadata": {**metadata, **said}}


def _default_name(document: Document, used: _Used, component: str, *, is_main: bool) -> str:
    """What an object is called whose template does not say it."""
    parts = [component, *([] if is_main else [used.trait, document.name])]
    return "-".join(each.lower().replace("_", "-") for each in parts if each)


@dataclass(frozen=True, slots=True)
class _Used:
    """A version of a definition, and what renders it."""

    resolution: Object
    name: str
    label: str
    """What messages call it."""
    engine: Engine
    block: Object

    @property
    def trait(self) -> str:
        """The name of the definition, if it is one of a trait."""
        return self.name if self.resolution["kind"] == "Trait" else ""

    def render(self, properties: Any, context: Object, at: str) -> Documents:
        if properties is not None and not isinstance(properties, Mapping):
            raise PolyverError("properties are no mapping", at=f"{at}.properties")
        return self.engine.render(self.block, Given(properties or {}, context, at, self.label))


def _patched(output: Output, changes: Mapping[str, dict[str, Any]]) -> Output:
    key = "" if output.main else output.name
    if key not in changes or not (output.main or output.name):
        return output
    return replace(output, object=changes[key])


def _doubled(outputs: Iterable[Output]) -> Iterator[PolyverError]:
    """The same object from two places."""
    seen: dict[tuple[str, str, str, str], Output] = {}
    for each in outputs:
        first = seen.setdefault(each.identity, each)
        if first is not each:
            version, kind, namespace, name = each.identity
            fact = f"{kind} {namespace}/{name} ({version}) is rendered twice"
            hint = f"{first.at} makes it as well; give one of them another name"
            yield PolyverError(fact, at=each.at, hint=hint)
