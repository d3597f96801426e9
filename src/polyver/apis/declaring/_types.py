"""Turn a type hint into a structural schema, and into the Python type of objects.

Reading an object checks only types: an API server enforces the rest of a schema, and an object
that was stored before must still be readable.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from enum import Enum
from typing import Any, Literal, Protocol, Union, get_args, get_origin

import msgspec

from polyver.apis.declaring._field_schemas import PRESERVE, FieldSchema, apply
from polyver.apis.declaring._markers import ABSENT
from polyver.apis.declaring._objects import Time
from polyver.apis.definition import InvalidKind

__all__ = ["Classes", "read_hint"]

_INT_OR_STRING = "x-kubernetes-int-or-string"
_NONE = (types.NoneType, msgspec.UnsetType)
_SCALARS: dict[Any, tuple[dict[str, Any], Any]] = {
    str: ({"type": "string"}, str),
    int: ({"type": "integer"}, int),
    # JSON has 1 and 1.0, and an object is written as it was read.
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
    """Reads the classes that hints name."""

    def read(self, cls: type, at: str) -> FieldSchema: ...


def read_hint(hint: Any, at: str, classes: Classes) -> FieldSchema:
    """Return the field that a type hint describes."""
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
    """Read Required[…], NotRequired[…] and Final[…], which do not change the type."""
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
    # Any string is read, so that objects with a value that was removed can still be read.
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
