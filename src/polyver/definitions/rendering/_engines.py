"""Template engines: their interface, and the built-in engine for Go templates.

The built-in engine validates the parameters against the schema in the definition, adds defaults,
and refuses unknown parameters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Protocol

import msgspec

from polyver.core import PolyverError, listed
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.publishing import parameters_of, read_parameters, wrapped
from polyver.kube.objects import InvalidManifest, encode_json, load_manifests
from polyver.kube.objects.schema import compile_schema
from polyver.kube.objects.status import Cause
from polyver.languages.gotemplate import InvalidData, Template, TemplateError, compile_template
from polyver.languages.values.manifests import dotted

__all__ = [
    "Engines",
    "GoTemplates",
    "TemplateDocument",
    "TemplateEngine",
    "TemplateInput",
    "TemplateOutput",
    "UnfitParameters",
]


@dataclass(frozen=True, slots=True)
class TemplateInput:
    """The input with which an engine renders a template."""

    parameters: ReadOnlyObject
    """The properties as the user wrote them in the application.

    The engine validates them and adds defaults.
    """
    context: ReadOnlyObject
    """The data that the template reads as `context`, such as the name of the application."""
    at: str
    """Path of the component or trait: `spec.components[0]`, `spec.components[0].traits[1]`."""
    template: str
    """Name of the template in messages: `webservice 1.2.3`."""

    @property
    def properties(self) -> str:
        """Path of the parameters in the application."""
        return f"{self.at}.properties"


@dataclass(frozen=True, slots=True)
class TemplateDocument:
    """An object that a template made."""

    object: dict[str, Any]
    at: str
    """Position of the object in the output of the template: `document 2`, `outputs.service`."""
    name: str = ""
    """The key under `outputs`; empty for the main object, and for objects without a key."""


@dataclass(frozen=True, slots=True)
class TemplateOutput:
    """The objects that a template makes."""

    output: TemplateDocument | None = None
    """The main object, such as the workload of a component. None if there is none."""
    outputs: Sequence[TemplateDocument] = ()
    """All other objects."""
    patched: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """The objects of the component that a trait has patched, as they are after the patch.

    The keys are their keys under `outputs`; the key of the main object is empty.
    """


class UnfitParameters(PolyverError):
    """The parameters do not fit their schema. `errors` has all problems."""

    def __init__(self, errors: Sequence[PolyverError]) -> None:
        first = errors[0]
        super().__init__(first.fact, at=first.at, hint=first.hint)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "; ".join(map(str, self.errors))


class TemplateEngine(Protocol):
    """Renders the templates of one language. An engine that may block must have its own timeout."""

    def render(self, schematic: ReadOnlyObject, given: TemplateInput) -> TemplateOutput:
        """Render a template.

        `schematic` is the value of the engine's field in the version, such as
        `schematic.gotemplate`. Raise `UnfitParameters` with all problems of the parameters, each
        with its path in the application. Raise another `PolyverError` for any other problem.
        """
        ...


Engines = Mapping[str, TemplateEngine]
"""Engines, by the field of `schematic` that each engine renders."""


# The engine for Go templates.

_KEPT: Final = 1024
"""Maximum number of compiled templates in the cache."""
_NEEDED: Final = (("apiVersion",), ("kind",), ("metadata", "name"))
"""Fields that each rendered object must have."""


class GoTemplates:
    """Renders `schematic.gotemplate` to YAML documents; the first one is the main object."""

    def render(self, schematic: ReadOnlyObject, given: TemplateInput) -> TemplateOutput:
        parameters, template = _read(schematic, given)
        data = {"parameter": parameters.fit(given), "context": given.context}
        try:
            text = template.render(data)
        except InvalidData as error:
            raise PolyverError(error.fact, at=f"{given.at}, {error.at}", hint=error.hint) from None
        except TemplateError as error:
            raise _misplaced(error, given, parameters.known) from None
        try:
            found = load_manifests(text, f"output of {given.template}")
        except InvalidManifest as error:
            raise PolyverError(error.fact, at=f"{given.at}, {error.at}", hint=error.hint) from None
        made = []
        for number, document in enumerate(found, 1):
            if not isinstance(document.value, dict):
                fact = f"document {number} is not an object"
                raise PolyverError(fact, at=f"{given.at}, {document.place()}")
            for path in _NEEDED:
                if not _text_at(document.value, path):
                    fact = f"document {number} has no {dotted(path)}"
                    raise PolyverError(fact, at=f"{given.at}, {document.place(*path)}")
            made.append(TemplateDocument(document.value, f"document {number}"))
        return TemplateOutput(made[0], made[1:]) if made else TemplateOutput()


def _read(schematic: ReadOnlyObject, given: TemplateInput) -> tuple[Parameters, Template]:
    """Compile the template and the schema of its parameters.

    Equal inputs are compiled only once.
    """
    kinds = (("template", str, "string"), ("parameters", Mapping | None, "mapping"))
    for name, kind, word in kinds:
        if not isinstance(schematic.get(name), kind):
            fact = f"schematic.gotemplate.{name} of {given.template} is not a {word}"
            raise PolyverError(fact, at=given.at)
    try:
        return _compiled(encode_json(schematic), given.template)
    except TemplateError as error:
        raise _misplaced(error, given) from None
    except InvalidParameters as error:
        at = f"{given.at}, {error.at} of {given.template}"
        raise PolyverError(error.fact, at=at, hint=error.hint) from None


def _misplaced(
    error: TemplateError, given: TemplateInput, known: Collection[str] = ()
) -> PolyverError:
    absent = _ABSENT.match(error.fact)
    hint = error.hint
    if absent and absent[1] in known:
        asking = f'test it with `hasKey .parameter "{absent[1]}"`'
        hint = f"{absent[1]} is not set: {asking}, or give it a default"
    return PolyverError(error.fact, at=f"{given.at}, template of {error.at}", hint=hint)


_ABSENT: Final = re.compile(r'^\.parameter has no entry for key "(.*)"$')


@lru_cache(maxsize=_KEPT)
def _compiled(schematic: bytes, name: str) -> tuple[Parameters, Template]:
    block = msgspec.json.decode(schematic)
    schema = parameters_of({"schematic": {"gotemplate": block}})
    assert schema is not None
    return Parameters(schema), compile_template(block["template"], name=name)


def _text_at(value: object, path: tuple[str, ...]) -> str:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


# Parameters.

_WRAPPER = "parameter"


class InvalidParameters(PolyverError):
    """The schema of the parameters is invalid."""


class Parameters:
    """A compiled schema of parameters."""

    def __init__(self, schema: ReadOnlyObject) -> None:
        read, problems = read_parameters(schema)
        for place, fact in problems:
            raise InvalidParameters(fact, at=f"parameters{place}")
        self.known = sorted(read.get("properties") or ())
        self._schema = compile_schema(wrapped(read))

    def fit(self, given: TemplateInput) -> dict[str, Any]:
        """Return the parameters with defaults added. Raise UnfitParameters with all problems."""
        found: dict[str, Any] = _copied(given.parameters)
        obj = {_WRAPPER: found}
        errors = [self._unknown(path, given) for path in self._schema.prune(obj)]
        self._schema.default(obj)
        errors += _wrong(self._schema.validate(obj), given)
        if errors:
            # The names are sorted, so that the message does not depend on the order of the
            # parameters.
            raise UnfitParameters(sorted(errors, key=lambda error: (error.at, error.fact)))
        return found

    def _unknown(self, path: str, given: TemplateInput) -> PolyverError:
        name = path.removeprefix(f"{_WRAPPER}.")
        known = f"known: {listed(self.known)}" if self.known else "there are none"
        hint = known if "." not in name else "see the schema of its parameters"
        fact = f"{given.template} has no parameter {name}"
        return PolyverError(fact, at=f"{given.properties}.{name}", hint=hint)


def _wrong(causes: list[Cause], given: TemplateInput) -> Iterator[PolyverError]:
    for cause in causes:
        name = cause.field.removeprefix(_WRAPPER).removeprefix(".")
        text = cause.message.replace(f"{cause.field} in body ", "")
        if not cause.field.startswith(_WRAPPER):  # a CEL rule could not be evaluated
            yield PolyverError(text, at=given.properties)
        elif not name:
            yield PolyverError(f"the parameters: {text}", at=given.properties)
        else:
            at = f"{given.properties}{'' if name.startswith('[') else '.'}{name}"
            yield PolyverError(f"parameter {name}: {text}", at=at)


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(each) for each in value]
    return value
