"""The schema and the Python type of one field, while its declaration is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

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
from polyver.apis.definition import InvalidKind

__all__ = ["PRESERVE", "FieldSchema", "apply", "described"]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
_RULES = "x-kubernetes-validations"


@dataclass(slots=True)
class FieldSchema:
    """A field, built step by step from its type and the markers on it."""

    schema: dict[str, Any]
    python: Any
    """The Python type in objects."""
    at: str
    """Its path in the declaration: `CronTabV1.Spec.replicas`."""
    optional: bool = False
    name: str = ""
    default: Any = ABSENT

    @property
    def takes_null(self) -> bool:
        """True if null is a value of this field, and differs from a missing field."""
        return bool(self.schema.get("nullable")) or self.python is Any

    def wrong(self, fact: str, hint: str = "") -> InvalidKind:
        return InvalidKind(fact, at=self.at, hint=hint)


def described(schema: dict[str, Any], text: str) -> dict[str, Any]:
    """Return a schema that begins with a description, if there is one."""
    if not text:
        return schema
    return {"description": text, **{k: v for k, v in schema.items() if k != "description"}}


def apply(place: FieldSchema, mark: object) -> None:
    """Add a marker of a type to its schema; unknown markers are ignored."""
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
    """Yield the limits in a marker's attributes, such as `ge` or `max_length`."""
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
