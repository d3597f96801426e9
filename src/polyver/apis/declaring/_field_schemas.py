"""Build the structural schema and the Python type of a field from its type hint and markers.

When polyver reads an object into a declared class, it checks only types. An API server checks the
rest of the schema at each write. So polyver can still read an object that was stored under an older
schema.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Any, Literal, Protocol, Union, get_args, get_origin

import msgspec

from polyver.apis.declaring._markers import (
    ABSENT,
    Atomic,
    FieldOptions,
    Granular,
    ListMap,
    ListSet,
    NullMarker,
    Preserve,
    ResourceMarker,
    Rule,
)
from polyver.apis.declaring._objects import Time
from polyver.apis.definition import InvalidKind

__all__ = ["PRESERVE", "Classes", "FieldSchema", "apply", "described", "read_hint"]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
_RULES = "x-kubernetes-validations"


@dataclass(slots=True)
class FieldSchema:
    """The schema and Python type of a field while they are built from its hint and markers."""

    schema: dict[str, Any]
    python: Any
    """The Python type of the field's values in objects of the declared class."""
    at: str
    """The place where the field is declared, for errors: `CronTabV1.Spec.replicas`."""
    optional: bool = False
    name: str = ""
    default: Any = ABSENT

    @property
    def takes_null(self) -> bool:
        """True if this field may be null, and null means something else than a missing field."""
        return bool(self.schema.get("nullable")) or self.python is Any

    def wrong(self, fact: str, hint: str = "") -> InvalidKind:
        return InvalidKind(fact, at=self.at, hint=hint)


def described(schema: dict[str, Any], text: str) -> dict[str, Any]:
    """Return a schema with the description `text` as its first key, unless `text` is empty."""
    if not text:
        return schema
    return {"description": text, **{k: v for k, v in schema.items() if k != "description"}}


def apply(place: FieldSchema, mark: object) -> None:
    """Add a marker to the schema of a field, such as a limit; ignore an unknown marker."""
    if getattr(mark, "__is_annotated_types_grouped_metadata__", False):
        assert hasattr(mark, "__iter__")
        for each in mark:
            apply(place, each)
        return
    known = _OURS.get(type(mark))
    if known is not None:
        known(place, mark)
        return
    for name, value in _limits(mark):
        _limit(place, name, value)


def _field(place: FieldSchema, mark: FieldOptions) -> None:
    place.name = mark.name or place.name
    if mark.default is not ABSENT:
        place.default = mark.default
    place.schema = described(place.schema | dict(mark.schema), mark.description)


def _rule(place: FieldSchema, mark: Rule) -> None:
    place.schema[_RULES] = [*place.schema.get(_RULES, ()), mark.schema]


def _nullable(place: FieldSchema, _: NullMarker) -> None:
    place.schema["nullable"] = True
    place.optional = False


def _resource(place: FieldSchema, _: ResourceMarker) -> None:
    place.schema["x-kubernetes-embedded-resource"] = True


def _list_set(place: FieldSchema, mark: ListSet) -> None:
    _of_type(place, mark, "array")
    place.schema["x-kubernetes-list-type"] = "set"


def _list_map(place: FieldSchema, mark: ListMap) -> None:
    _of_type(place, mark, "array")
    if not mark.keys:
        raise place.wrong("a ListMap needs the names of its keys")
    place.schema["x-kubernetes-list-type"] = "map"
    place.schema["x-kubernetes-list-map-keys"] = list(mark.keys)


def _owned(place: FieldSchema, mark: Atomic | Granular) -> None:
    atomic = isinstance(mark, Atomic)
    _of_type(place, mark, *(("array", "object") if atomic else ("object",)))
    kind = "list" if place.schema["type"] == "array" else "map"
    place.schema[f"x-kubernetes-{kind}-type"] = "atomic" if atomic else "granular"


def _preserve(place: FieldSchema, mark: Preserve) -> None:
    _of_type(place, mark, "object")
    place.schema[PRESERVE] = True


def _of_type(place: FieldSchema, mark: object, *types: str) -> None:
    found = place.schema.get("type", "")
    if found not in types:
        wanted = " or ".join(_PLURALS[each] for each in types)
        raise place.wrong(f"{mark!r} applies to {wanted}, but this is {_WORDS[found]}")


_OURS: dict[type, Callable[[FieldSchema, Any], None]] = {
    FieldOptions: _field,
    Rule: _rule,
    NullMarker: _nullable,
    ResourceMarker: _resource,
    ListSet: _list_set,
    ListMap: _list_map,
    Atomic: _owned,
    Granular: _owned,
    Preserve: _preserve,
}

_WORDS = {
    "": "of several types",
    "array": "a list",
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "object": "a map",
    "string": "a string",
}
_PLURALS = {
    "array": "lists",
    "object": "maps and classes",
    "string": "strings",
    "number": "numbers",
}


# Limits, of any class with the usual attribute names.

_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}
_BOUNDS = {"ge": "minimum", "gt": "minimum", "le": "maximum", "lt": "maximum"}
_TEXTS = {"pattern": "pattern", "format": "format", "description": "description", "title": "title"}
_NUMBERS = (*_BOUNDS, "multiple_of")


def _limits(mark: object) -> Iterator[tuple[str, Any]]:
    """Yield the schema keywords and values for the attributes of a marker, such as `ge`."""
    for name in (*_NUMBERS, "min_length", "max_length"):
        value = getattr(mark, name, None)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value
    if isinstance(mark, str | bytes):
        return  # a comment, and strings have methods with these names
    for name in _TEXTS:
        value = getattr(mark, name, None)
        if isinstance(value, str):
            yield name, value


def _limit(place: FieldSchema, name: str, value: Any) -> None:
    if name in _TEXTS:
        _text(place, name, value)
    elif not math.isfinite(value):
        raise place.wrong(f"{name} is {value}, which JSON cannot express")
    elif name in _NUMBERS:
        if place.schema.get("type") not in ("integer", "number"):
            raise _misplaced(place, name, "numbers")
        keyword = _BOUNDS.get(name, "multipleOf")
        _set(place, keyword, value)
        if name in ("gt", "lt"):
            place.schema[f"exclusive{keyword.capitalize()}"] = True
    elif value > 0 or name == "max_length":  # a minimum of 0 is no limit
        length = _LENGTHS.get(place.schema.get("type", ""))
        if length is None:
            raise _misplaced(place, name, "strings, lists and maps")
        _set(place, f"{name[:3]}{length}", value)


def _text(place: FieldSchema, name: str, value: str) -> None:
    if name == "description":
        place.schema = described(place.schema, value)
        return
    is_text = place.schema.get("type") == "string" or "x-kubernetes-int-or-string" in place.schema
    if name == "pattern" and not is_text:
        raise _misplaced(place, name, "strings")
    _set(place, name, value)


def _set(place: FieldSchema, keyword: str, value: Any) -> None:
    if place.schema.get(keyword, value) != value:
        raise place.wrong(f"{keyword} is both {place.schema[keyword]} and {value}")
    place.schema[keyword] = value


def _misplaced(place: FieldSchema, name: str, wanted: str) -> InvalidKind:
    found = _WORDS[place.schema.get("type", "")]
    return place.wrong(f"{name} applies to {wanted}, but this is {found}")


# Type hints.


_INT_OR_STRING = "x-kubernetes-int-or-string"
_NONE = (types.NoneType, msgspec.UnsetType)
_SCALARS: dict[Any, tuple[dict[str, Any], Any]] = {
    str: ({"type": "string"}, str),
    int: ({"type": "integer"}, int),
    # Accept int and float, so that a number is written as it was read: 1 does not become 1.0.
    float: ({"type": "number"}, int | float),
    bool: ({"type": "boolean"}, bool),
    datetime: ({"type": "string", "format": "date-time"}, Time),
    date: ({"type": "string", "format": "date"}, date),
    dict: ({"type": "object", PRESERVE: True}, dict[str, Any]),
    Any: ({PRESERVE: True}, Any),
    object: ({PRESERVE: True}, Any),
}
_INSTEAD = {
    bytes: 'write Annotated[str, apis.Format("byte")]',
    list: "write list[Any] if its items may be anything",
    set: "write Annotated[list[…], apis.ListSet()]",
    frozenset: "write Annotated[list[…], apis.ListSet()]",
    tuple: "write list[…]",
}


class Classes(Protocol):
    """Builds schemas for the classes that type hints name."""

    def read(self, cls: type, at: str) -> FieldSchema: ...


def read_hint(hint: Any, at: str, classes: Classes) -> FieldSchema:
    """Build the schema and the Python type of a field from its type hint `hint`."""
    if isinstance(hint, type) and hint in _SCALARS:
        schema, python = _SCALARS[hint]
        return FieldSchema(dict(schema), python, at)
    same = getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)
    if same is not None and not isinstance(hint, type):
        return read_hint(same, at, classes)  # NewType and `type X = …`
    read = _FORMS.get(get_origin(hint))
    if read is not None:
        return read(hint, at, classes)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice([member.value for member in hint], hint, at)
    known = get_origin(hint) or hint
    if isinstance(known, type) and known not in _INSTEAD:
        return classes.read(known, at)
    instead = _INSTEAD.get(known, "")
    raise InvalidKind(f"{_shown(hint)} is not a type for a field", at=at, hint=instead)


def _annotated(hint: Any, at: str, classes: Classes) -> FieldSchema:
    place = read_hint(hint.__origin__, at, classes)
    for mark in hint.__metadata__:
        apply(place, mark)
    return place


def _wrapped(hint: Any, at: str, classes: Classes) -> FieldSchema:
    """Build the field for a hint inside of Required[…], NotRequired[…] or Final[…]."""
    return read_hint(get_args(hint)[0], at, classes)


def _union(hint: Any, at: str, classes: Classes) -> FieldSchema:
    given = get_args(hint)
    members = [each for each in given if each not in _NONE]
    if {*members} == {int, str}:
        schema = {_INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
        place = FieldSchema(schema, int | str, at)
    elif {*members} == {int, float}:
        place = read_hint(float, at, classes)
    elif len(members) == 1:
        place = read_hint(members[0], at, classes)
    else:
        fact = f"{_shown(hint)} has several types"
        raise InvalidKind(fact, at=at, hint="only int | str is allowed, or apis.Anything")
    place.optional = place.optional or len(members) < len(given)
    return place


def _literal(hint: Any, at: str, _: Classes) -> FieldSchema:
    values = list(get_args(hint))
    # Accept any string: an object may have a value that was later removed from the Literal, and
    # must still be readable.
    place = _choice(values, None, at)
    place.python = type(values[0])
    return place


def _choice(values: Sequence[Any], python: Any, at: str) -> FieldSchema:
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or not kinds <= {str, int, bool}:
        fact = "the values to choose from must all be strings, or all integers"
        raise InvalidKind(fact, at=at)
    schema = {**_SCALARS[kinds.pop()][0], "enum": list(values)}
    return FieldSchema(schema, python, at)


def _list(hint: Any, at: str, classes: Classes) -> FieldSchema:
    inside = _inside(get_args(hint)[0], f"{at}[]", classes)
    return FieldSchema(
        {"type": "array", "items": inside.schema}, types.GenericAlias(list, (_held(inside),)), at
    )


def _map(hint: Any, at: str, classes: Classes) -> FieldSchema:
    key, value = get_args(hint)
    if key is not str:
        raise InvalidKind(f"the keys of {_shown(hint)} are not strings", at=at)
    if value is Any:
        return read_hint(dict, at, classes)
    inside = _inside(value, f"{at}{{}}", classes)
    schema = {"type": "object", "additionalProperties": inside.schema}
    return FieldSchema(schema, types.GenericAlias(dict, (str, _held(inside))), at)


def _inside(hint: Any, at: str, classes: Classes) -> FieldSchema:
    place = read_hint(hint, at, classes)
    if place.optional:
        raise place.wrong("an item of a list or map cannot be absent", "write apis.Nullable[…]")
    if place.name or place.default is not ABSENT:
        raise place.wrong("only a field has a name and a default")
    return place


def _held(place: FieldSchema) -> Any:
    return place.python | None if place.takes_null and place.python is not Any else place.python


_FORMS: Mapping[Any, Callable[[Any, str, Classes], FieldSchema]] = {
    typing.Annotated: _annotated,
    typing.Required: _wrapped,
    typing.NotRequired: _wrapped,
    typing.Final: _wrapped,
    Union: _union,
    types.UnionType: _union,
    Literal: _literal,
    list: _list,
    Sequence: _list,
    dict: _map,
    Mapping: _map,
}


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
