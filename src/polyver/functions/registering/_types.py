"""Composite argument types: choices, lists, mappings and models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from polyver.core import PolyverError, listed
from polyver.functions.registering.arguments import (
    ANYTHING,
    UNKNOWN,
    ArgumentReader,
    ArgumentType,
    Path,
    found_words,
)
from polyver.kube.objects import InvalidManifest, load_manifests

__all__ = ["ArgumentField", "ChoiceType", "ListOf", "MapOf", "OneOf", "Record", "read_fields"]


@dataclass(frozen=True, slots=True)
class ChoiceType:
    """One of several allowed values. `made` maps each to the value that the function gets."""

    made: Mapping[Any, Any]

    @property
    def words(self) -> str:
        return f"one of {listed([str(each) for each in self.made])}"

    @property
    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.made)}

    def fits(self, value: object) -> bool:
        return any(type(value) is type(each) and value == each for each in self.made)

    def read(self, value: object, path: Path, reading: ArgumentReader) -> object:
        if reading.may_be_anything(value):
            return UNKNOWN
        for each, made in self.made.items():
            if (type(value) is type(each) and value == each) or value == str(each):
                return made
        hint = ""
        if isinstance(value, str):
            close = get_close_matches(value, [each for each in self.made if type(each) is str], n=1)
            hint = f"did you mean {close[0]}?" if close else ""
        return reading.refuse(path, f"expected {self.words}, found {found_words(value)}", hint)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list. All of its items have the same type."""

    item: ArgumentType

    @property
    def words(self) -> str:
        return "list" if self.item is ANYTHING else f"list of {_plural(self.item)}"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.item.schema}

    def fits(self, value: object) -> bool:
        return isinstance(value, list | tuple)

    def read(self, value: object, path: Path, reading: ArgumentReader) -> object:
        if reading.may_be_anything(value):
            return UNKNOWN
        items = _written_as(value, list)
        if not isinstance(items, list | tuple):
            fact = f"expected {self.words}, found {found_words(value)}"
            return reading.refuse(
                path, fact, "write the list in [ ], or as lines that begin with -"
            )
        return [self.item.read(each, (*path, i), reading) for i, each in enumerate(items)]


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping. It may have any keys; all of its values have the same type."""

    value: ArgumentType

    @property
    def words(self) -> str:
        return "mapping" if self.value is ANYTHING else f"mapping of {_plural(self.value)}"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.value.schema or True}

    def fits(self, value: object) -> bool:
        return isinstance(value, dict)

    def read(self, value: object, path: Path, reading: ArgumentReader) -> object:
        if reading.may_be_anything(value):
            return UNKNOWN
        fields = _written_as(value, dict)
        if not isinstance(fields, dict):
            return reading.refuse(path, f"expected {self.words}, found {found_words(value)}")
        return {
            name: self.value.read(each, (*path, name), reading) for name, each in fields.items()
        }


def _plural(kind: ArgumentType) -> str:
    words = kind.words
    return f"{words}s" if words.isalpha() else f"({words})"


def _written_as(value: object, kind: type) -> object:
    """Parse a string that contains a list or a mapping in YAML or JSON; `kind` is list or dict.

    Return any other value unchanged.
    """
    if not isinstance(value, str):
        return value
    try:
        documents = load_manifests(value, "")
    except InvalidManifest:
        return value
    held = [document.value for document in documents]
    return held[0] if len(held) == 1 and isinstance(held[0], kind) else value


@dataclass(frozen=True, slots=True)
class OneOf:
    """A union of types.

    If a value has one of these types, it keeps this type. Any other value is converted to the first
    type for which this is possible.
    """

    members: tuple[ArgumentType, ...]

    @property
    def words(self) -> str:
        return " or ".join(each.words for each in self.members)

    @property
    def schema(self) -> dict[str, Any]:
        return {"anyOf": [each.schema for each in self.members]}

    def fits(self, value: object) -> bool:
        return any(each.fits(value) for each in self.members)

    def read(self, value: object, path: Path, reading: ArgumentReader) -> object:
        if reading.may_be_anything(value):
            return UNKNOWN
        fitting = [each for each in self.members if each.fits(value)]
        for member in fitting or self.members:
            attempt = ArgumentReader(reading.before_rendering)
            found = member.read(value, path, attempt)
            if not attempt.wrong:
                return found
        if len(fitting) == 1:  # the intended type is known: report its problem
            return fitting[0].read(value, path, reading)
        return reading.refuse(path, f"expected {self.words}, found {found_words(value)}")


@dataclass(frozen=True, slots=True)
class ArgumentField:
    """An argument of a function, or a field of a model."""

    name: str
    """The name of the argument in blueprints."""
    python: str
    """The name of the argument in Python."""
    type: ArgumentType
    required: bool
    default: object = None
    description: str = ""
    nullable: bool = False
    unrendered: bool = False
    """True if the function itself, instead of polyver, renders the templates in the argument."""
    renders: frozenset[str] | None = None
    """The keys of the argument under which polyver cannot check templates before the call, because
    these templates read other data than `ctx.params`. None if polyver can check no template of the
    argument. The field is used only if `unrendered` is True.
    """


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping with known keys: the fields of a dataclass, a Struct or a TypedDict."""

    name: str
    fields: tuple[ArgumentField, ...]
    make: Callable[[dict[str, object]], object]

    @property
    def words(self) -> str:
        return "mapping"

    @property
    def schema(self) -> dict[str, Any]:
        properties = {each.name: each.type.schema for each in self.fields}
        needed = [each.name for each in self.fields if each.required]
        found: dict[str, Any] = {"type": "object", "properties": properties}
        return found | ({"required": needed} if needed else {}) | {"additionalProperties": False}

    def fits(self, value: object) -> bool:
        return isinstance(value, dict)

    def read(self, value: object, path: Path, reading: ArgumentReader) -> object:
        if reading.may_be_anything(value):
            return UNKNOWN
        fields = _written_as(value, dict)
        if not isinstance(fields, dict):
            return reading.refuse(path, f"expected {self.words}, found {found_words(value)}")
        before = len(reading.wrong)
        found = read_fields(self.fields, fields, path, reading, what="field")
        if reading.before_rendering or len(reading.wrong) > before:
            return UNKNOWN
        try:
            return self.make(found)
        except (TypeError, ValueError, PolyverError) as error:
            return reading.refuse(path, f"{self.name} rejects it: {error}")


def read_fields(
    fields: Sequence[ArgumentField],
    given: Mapping[str, object],
    path: Path,
    reading: ArgumentReader,
    *,
    what: str,
    further: ArgumentType | None = None,
) -> dict[str, object]:
    """Convert the values in `given` to the types of the fields.

    Return the converted values, by the Python names of the fields. The value null counts as a
    missing value. `further` is the type of values that belong to no field; if it is None, such
    values are refused. `what` is the word for a field in messages.
    """
    known = {each.name: each for each in fields}
    found: dict[str, object] = {}
    for name, value in given.items():
        if name in known or further is None:
            continue
        found[name] = further.read(value, (*path, name), reading)
    for name in given.keys() - known.keys() if further is None else ():
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {listed(list(known))}"
        reading.refuse(
            (*path, name), f"there is no {what} {name}", hint if known else "it takes none"
        )
    for each in fields:
        value = given.get(each.name)
        if value is not None:
            found[each.python] = each.type.read(value, (*path, each.name), reading)
        elif each.required:
            reading.refuse(
                path, f"the {what} {each.name} is missing", f"expected {each.type.words}"
            )
        else:
            found[each.python] = each.default
    return found
