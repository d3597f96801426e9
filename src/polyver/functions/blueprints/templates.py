"""Checks that the templates of a blueprint read only values that will exist.

The check runs before an action runs. Each part of an action has a shape: the names that templates
in this part can read. It is an error if a template reads any other name.

Some names, such as those of options, come from an ActionSet, so they are unknown when a blueprint
is validated. When an ActionSet starts, polyver checks the templates again with the names in this
ActionSet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from polyver.core import listed
from polyver.functions.registering.function import Function
from polyver.languages.gotemplate import ANYTHING, TEXT, DataShape, FieldAccess, InvalidTemplate
from polyver.languages.gotemplate import inspect_template as inspect

__all__ = ["NO_PROFILES", "WORKLOADS", "ProvidedNames", "TemplateProblem", "template_problems"]

Path = tuple[str | int, ...]
Names = frozenset[str]
NO_PROFILES = "Profiles are not supported; use options, configMaps or secrets"
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "DeploymentConfig")
"""Kinds of workloads. Templates can read the names of their pods and containers."""
_WORKLOAD = DataShape(
    {
        "Name": TEXT,
        "Namespace": TEXT,
        "Pods": ANYTHING,
        "Containers": ANYTHING,
        "PersistentVolumeClaims": ANYTHING,
    }
)
_OBJECTS = {
    **dict.fromkeys(WORKLOADS, _WORKLOAD),
    "PVC": DataShape({"Name": TEXT, "Namespace": TEXT}),
    "Namespace": DataShape({"Name": TEXT}),
    "Object": ANYTHING,
}
_ABOUT = {"Name": TEXT, "Namespace": TEXT, "Labels": ANYTHING, "Annotations": ANYTHING}
_DATA = DataShape({**_ABOUT, "ObjectMeta": DataShape(_ABOUT), "Data": ANYTHING, "Type": TEXT})
_ARTIFACT = DataShape({"KeyValue": ANYTHING, "KopiaSnapshot": TEXT})


@dataclass(frozen=True, slots=True)
class ProvidedNames:
    """The names that an ActionSet provides to the templates of an action."""

    options: Names
    artifacts: Names
    config_maps: Names
    secrets: Names
    objects: Names
    """Names under which templates read the action's object: `Object`, `Deployment`, …"""


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """A value that a template reads, and that is missing or may be missing."""

    fact: str
    path: Path
    """Path of the template, relative to the action: `("phases", 0, "args", "command")`."""
    hint: str = ""
    is_unknown: bool = False


@dataclass(frozen=True, slots=True)
class _Spot:
    """A value that may contain templates, its path, and the names that these templates can read."""

    value: object
    path: Path
    shape: DataShape
    place: int
    """Number of phases that have run before the templates in this value are rendered."""


def template_problems(
    action: Mapping[str, Any],
    functions: Sequence[Function | None],
    given: ProvidedNames | None = None,
) -> Iterator[TemplateProblem]:
    """Yield a problem for each value that a template reads and that is missing or may be missing.

    `functions` has the function of each phase, with the deferred phase last. An unknown function is
    None. `given` has the names from the ActionSet; it is None if there is no ActionSet yet.
    """
    world = _World(action, functions, given)
    for spot in world.spots():
        for path, text in _texts(spot.value, spot.path):
            yield from world.problems(text, path, spot)


def _texts(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield each string with a template inside of a value, with the path of the string.

    The keys of mappings may contain templates too.
    """
    if isinstance(value, str) and "{{" in value:
        yield path, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(str(key), (*path, str(key)))
            yield from _texts(each, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _texts(each, (*path, number))


class _World:
    """An action, with the shapes of all data that its templates may read."""

    def __init__(
        self,
        action: Mapping[str, Any],
        functions: Sequence[Function | None],
        given: ProvidedNames | None,
    ) -> None:
        self._action = action
        self._functions = functions
        self._given = given
        self._phases: Sequence[Mapping[str, Any]] = action.get("phases") or ()
        self._names = [str(each.get("name") or "") for each in self._phases]

    # Positions of templates.

    def spots(self) -> Iterator[_Spot]:
        # Templates under `objects` are rendered first, so they can read only these names.
        early = DataShape({"Options": self._options(), **self._objects()})
        for number, phase in enumerate(self._phases):
            path: Path = ("phases", number)
            yield _Spot(phase.get("objects"), (*path, "objects"), early, number)
            yield from self._arguments(phase, path, number)
        if deferred := self._action.get("deferPhase"):
            yield from self._arguments(deferred, ("deferPhase",), len(self._phases))
        last = self._shape(len(self._phases), is_end=True)
        artifacts = self._action.get("outputArtifacts")
        yield _Spot(artifacts, ("outputArtifacts",), last, len(self._phases))

    def _arguments(self, phase: Mapping[str, Any], path: Path, number: int) -> Iterator[_Spot]:
        shape = self._shape(number)
        function = self._functions[number] if number < len(self._functions) else None
        fields = {each.name: each for each in function.arguments.fields} if function else {}
        for name, value in (phase.get("args") or {}).items():
            field, inside = fields.get(name), (*path, "args", name)
            yield _Spot(name, inside, shape, number)
            if field is None or not field.unrendered:
                yield _Spot(value, inside, shape, number)
            elif field.renders is None:
                yield _Spot(value, inside, ANYTHING, number)
            else:
                yield from _rendered_by_function(value, inside, shape, number, field.renders)

    # Data shapes.

    def _shape(self, place: int, *, is_end: bool = False) -> DataShape:
        given, action = self._given, self._action
        texts = {"PodOverride": ANYTHING, "PodLabels": ANYTHING, "PodAnnotations": ANYTHING}
        found = {
            "Time": TEXT,
            "Options": self._options(),
            "ArtifactsIn": self._named(
                _ARTIFACT, "inputArtifactNames", given.artifacts if given else None
            ),
            "ArtifactsOut": DataShape(dict.fromkeys(self._artifacts_out(), _ARTIFACT)),
            "ConfigMaps": self._named(
                _DATA, "configMapNames", given.config_maps if given else None
            ),
            "Secrets": self._named(_DATA, "secretNames", given.secrets if given else None),
            "Phases": DataShape(
                {name: self._phase(n, place) for n, name in enumerate(self._names)}
            ),
            **texts,
            **self._objects(),
        }
        if is_end and action.get("deferPhase"):
            found["DeferPhase"] = DataShape({"Output": self._output(len(self._phases))})
        return DataShape(found)

    def _options(self) -> DataShape:
        if self._given is None:
            return ANYTHING
        return DataShape(dict.fromkeys(self._given.options, TEXT))

    def _objects(self) -> dict[str, DataShape]:
        if self._given is None:
            return {name: replace(shape, maybe=True) for name, shape in _OBJECTS.items()}
        return {name: _OBJECTS[name] for name in self._given.objects if name in _OBJECTS}

    def _named(self, shape: DataShape, field: str, given: Names | None) -> DataShape:
        names = self._action.get(field) or () if given is None else given
        return DataShape(dict.fromkeys(names, shape))

    def _artifacts_out(self) -> Iterator[str]:
        """Yield the names of the output artifacts that do not need outputs of phases.

        The templates of all phases can read these artifacts.
        """
        for name, artifact in (self._action.get("outputArtifacts") or {}).items():
            texts = [text for _, text in _texts(artifact, ())]
            if not any(".Phases" in text or ".DeferPhase" in text for text in texts):
                yield name

    def _phase(self, number: int, place: int) -> DataShape:
        objects: Mapping[str, Any] = self._phases[number].get("objects") or {}
        kinds = {name: str(each.get("kind") or "").lower() for name, each in objects.items()}
        found = {
            plural: DataShape({name: _DATA for name, kind in kinds.items() if kind == wanted})
            for plural, wanted in (("Secrets", "secret"), ("ConfigMaps", "configmap"))
        }
        return DataShape(found | ({"Output": self._output(number)} if number < place else {}))

    def _output(self, number: int) -> DataShape:
        function = self._functions[number] if number < len(self._functions) else None
        if function is None or function.outputs is None:
            return ANYTHING
        names = function.outputs.names
        return DataShape(dict.fromkeys(names, ANYTHING), others=function.outputs.others)

    # Error messages.

    def problems(self, text: str, path: Path, spot: _Spot) -> Iterator[TemplateProblem]:
        try:
            found = inspect(text, spot.shape)
        except InvalidTemplate as error:
            # The check of arguments reports their invalid templates.
            if "args" not in path:
                yield TemplateProblem(error.fact, path, error.hint or error.at)
            return
        for access in found:
            shown = f".{'.'.join(access.path)}"
            if not access.missing:
                if self._given is None:
                    yield TemplateProblem(shown, path, is_unknown=True)
            elif self._given is None or access.certain:
                fact, hint = self._words(access, spot)
                yield TemplateProblem(f"{shown}: {fact}", path, hint)

    def _words(self, access: FieldAccess, spot: _Spot) -> tuple[str, str]:
        match access.path:
            case ("Profile", *_):
                return "there is no Profile", NO_PROFILES
            case ("Phases", name):
                return f"there is no phase {name}", _advice(name, self._names)
            case ("Phases", name, "Output") if name in self._names:
                is_own = spot.path[:2] == ("phases", self._names.index(name))
                fact = "it is the output of this phase" if is_own else f"phase {name} runs later"
                return fact, "read it in a later phase"
            case ("Phases", name, "Output", key):
                function = self._functions[self._names.index(name)]
                label = function.label if function else f"phase {name}"
                return f"{label} does not return {key}", _advice(key, access.known)
            case ("Phases", name, kind, key) if kind in ("Secrets", "ConfigMaps"):
                fact = f"phase {name} names no {kind.removesuffix('s')} {key} in its objects"
                return fact, _advice(key, access.known)
        return self._other_words(access)

    def _other_words(self, access: FieldAccess) -> tuple[str, str]:
        *before, name = access.path
        if len(before) == 1 and before[0] in _DECLARED:
            return self._undeclared(before[0], name, access.known)
        if before:
            return f".{'.'.join(before)} has no {name}", _advice(name, access.known)
        return f"{name} is not available to templates", _advice(name, access.known)

    def _undeclared(self, root: str, name: str, known: Sequence[str]) -> tuple[str, str]:
        what, field, given = _DECLARED[root]
        advice = _advice(name, known)
        if root == "Options" or (self._given is not None and field):
            return f"{what} {name} is not given", f"set it in {given} of the ActionSet"
        if not field:
            is_declared = name in (self._action.get("outputArtifacts") or {})
            fact = "is made from outputs of phases, and does not exist before the end"
            return f"{what} {name} {fact if is_declared else 'is not declared'}", advice
        return f"{what} {name} is not declared", f"name it in {field}; {advice}"


def _rendered_by_function(
    value: object, path: Path, shape: DataShape, place: int, others: Names
) -> Iterator[_Spot]:
    """Yield each value that may contain templates, in an argument that the function renders itself.

    Only the function knows which data the templates under the keys in `others` read, so any name is
    allowed in them.
    """
    if isinstance(value, Mapping):
        for key, each in value.items():
            seen = ANYTHING if key in others else shape
            yield from _rendered_by_function(each, (*path, str(key)), seen, place, others)
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _rendered_by_function(each, (*path, number), shape, place, others)
    else:
        yield _Spot(value, path, shape, place)


_DECLARED = {
    "ArtifactsIn": ("artifact", "inputArtifactNames", "artifacts"),
    "ArtifactsOut": ("artifact", "", ""),
    "ConfigMaps": ("config map", "configMapNames", "configMaps"),
    "Secrets": ("secret", "secretNames", "secrets"),
    "Options": ("option", "", "options"),
}
"""For each root name in templates, three strings that error messages use.

They are a noun, the field of a blueprint's action that declares the names, and the field of an
ActionSet's action that has the values. A string is empty if there is no such field.
"""


def _advice(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"known: {listed(sorted(filter(None, known)))}" if known else "there is none"
