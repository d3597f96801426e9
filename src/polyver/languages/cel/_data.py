"""Convert plain data to CEL values; the values have only the fields that a schema describes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from polyver.languages.cel._moments import read_date, read_date_time, read_duration
from polyver.languages.cel._names import escape, unescape
from polyver.languages.cel._values import (
    CelDuration,
    CelEvaluationError,
    List,
    Map,
    Timestamp,
    equal,
    no_overload,
)
from polyver.languages.values.strings import fits_int64, same

__all__ = ["CelSchema", "MapItems", "SetItems", "to_value"]

_META = {
    "kind": {"type": "string"},
    "apiVersion": {"type": "string"},
    "metadata": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
    },
}


class CelSchema:
    """The parts of a JSON schema that are needed to convert data to CEL values."""

    def __init__(self, schema: Mapping[str, Any], *, root: bool = False) -> None:
        self._schema = schema
        self._root = root or bool(schema.get("x-kubernetes-embedded-resource"))
        self.type: str = schema.get("type") or ""
        self.format: str = schema.get("format") or ""
        self.nullable = bool(schema.get("nullable"))
        self.int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
        self.preserves = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.list_type: str = schema.get("x-kubernetes-list-type") or ""
        self.keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())

    @cached_property
    def fields(self) -> dict[str, CelSchema] | None:
        """The schemas of the fields; None if the schema declares no properties."""
        known = self._schema.get("properties")
        if self._root:
            known = {**(known or {}), **_META}
        if known is None:
            return None
        return {name: CelSchema(each) for name, each in known.items()}

    @cached_property
    def values(self) -> CelSchema | None:
        others = self._schema.get("additionalProperties")
        return CelSchema(others) if isinstance(others, Mapping) else None

    @cached_property
    def items(self) -> CelSchema | None:
        items = self._schema.get("items")
        return CelSchema(items) if isinstance(items, Mapping) else None

    def inside(self, key: str) -> CelSchema | None:
        """Return the schema of the value under a key; None if no schema describes this value."""
        return self.fields.get(key) if self.fields is not None else self.values


def to_value(data: Any, schema: CelSchema) -> Any:
    """Convert data to the CEL value that its schema describes."""
    if data is None:
        if schema.nullable:
            return None
        raise CelEvaluationError("invalid data, got null for schema with nullable=false")
    if schema.int_or_string:
        return _int_or_string(data)
    known = _READ.get(schema.type)
    if known is not None:
        return known(data, schema)
    if schema.preserves:
        return Unknown(data)
    raise CelEvaluationError(f"{_NO_TYPE}, got {schema.type}")


_NO_TYPE = (
    "invalid type, expected object, array, number, integer, boolean or string, or no type with "
    "x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true"
)


def _int_or_string(data: Any) -> int | str:
    if isinstance(data, str) or (type(data) is int and fits_int64(data)):
        return data
    raise CelEvaluationError(
        "invalid data, expected XIntOrString value to be either a string or integer"
    )


def _object(data: Any, schema: CelSchema) -> Map:
    if not isinstance(data, dict):
        raise CelEvaluationError(
            "invalid data, expected a map for the provided schema with type=object"
        )
    return _ObjectMap(data, schema)


def _array(data: Any, schema: CelSchema) -> List:
    if not isinstance(data, list):
        raise CelEvaluationError(
            "invalid data, expected an array for the provided schema with type=array"
        )
    if schema.items is None:
        raise CelEvaluationError("invalid array type, expected Items with a non-empty Schema")
    kinds = {"set": SetItems, "map": MapItems}
    return kinds.get(schema.list_type, Items)(data, schema)


def _text(data: Any, schema: CelSchema) -> str | bytes | CelDuration | Timestamp:
    if not isinstance(data, str):
        raise CelEvaluationError(f"invalid data, expected string, got {_go_type(data)}")
    match schema.format:
        case "duration":
            return read_duration(data)
        case "date":
            return read_date(data)
        case "date-time":
            return read_date_time(data)
        case "byte":
            return _decoded(data)
    return data


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, UnicodeEncodeError) as problem:
        raise CelEvaluationError(f"Invalid byte formatted string {text}: {problem}") from problem


def _scalar(data: Any, schema: CelSchema) -> int | float | bool:
    kind = schema.type
    if kind == "boolean" and isinstance(data, bool):
        return data
    if not isinstance(data, bool):
        if kind == "integer" and isinstance(data, int):
            return data
        if kind == "number" and isinstance(data, int | float):
            return float(data)
    wanted = {"boolean": "bool", "integer": "int", "number": "float"}[kind]
    raise CelEvaluationError(f"invalid data, expected {wanted}, got {_go_type(data)}")


_READ: dict[str, Callable[[Any, CelSchema], Any]] = {
    "object": _object,
    "array": _array,
    "string": _text,
    "integer": _scalar,
    "number": _scalar,
    "boolean": _scalar,
}


def _go_type(data: Any) -> str:
    match data:
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
    return "map[string]interface {}" if isinstance(data, dict) else "[]interface {}"


class Unknown:
    """A CEL value for data without a schema; an expression can only compare it as a whole."""

    __slots__ = ("data",)

    def __init__(self, data: Any) -> None:
        self.data = data

    def equals(self, other: Any) -> bool:
        return isinstance(other, Unknown) and same(self.data, other.data)


class Items(List):
    """A CEL list for a list in the validated object; its items are converted when first used."""

    __slots__ = ("_data", "_known", "_schema", "_weight")

    def __init__(self, data: list[Any], schema: CelSchema) -> None:
        self._data = data
        self._schema = schema
        self._known: list[Any] | None = None
        self._weight = -1

    @property
    def items(self) -> Sequence[Any]:
        if self._known is None:
            assert self._schema.items is not None
            inside = self._schema.items
            self._known = [to_value(each, inside) for each in self._data]
        return self._known

    def __len__(self) -> int:
        return len(self._data)

    @property
    def weight(self) -> int:
        if self._weight < 0:
            self._weight = _weighed(self._data)
        return self._weight

    def equals(self, other: Any) -> bool:
        if not isinstance(other, List):
            raise no_overload()
        return super().equals(other)


def _weighed(data: Any) -> int:
    inside = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return 1 + sum(map(_weighed, inside))


def _hashable(value: Any) -> Any:
    if isinstance(value, List | Map):
        raise CelEvaluationError("listSet operations are only supported on lists of scalar values")
    return (type(value), value)


class SetItems(Items):
    """A list whose schema has the list type `set`: comparisons ignore the order of its items."""

    __slots__ = ()

    def equals(self, other: Any) -> bool:
        if not isinstance(other, List):
            raise no_overload()
        if len(self) != len(other):
            return False
        return {*map(_hashable, self.items)} == {*map(_hashable, other.items)}

    def plus(self, other: Any) -> List:
        if not isinstance(other, List):
            raise no_overload()
        known = {_hashable(each): each for each in self.items}
        more = {_hashable(each): each for each in other.items}
        return List([*self.items, *(each for key, each in more.items() if key not in known)])


class MapItems(Items):
    """A list whose schema has the list type `map`: comparisons ignore the order of its items.

    The key fields of an item identify the item.
    """

    __slots__ = ()

    def _key(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, Map):
            raise no_overload()
        found = (value.find(escape(key) or key) for key in self._schema.keys)
        return tuple((type(each), each) if there else None for each, there in found)

    def equals(self, other: Any) -> bool:
        if not isinstance(other, List):
            raise no_overload()
        if len(self) != len(other):
            return False
        known = {self._key(each): each for each in self.items}
        seen = {self._key(each): each for each in other.items}
        return known.keys() == seen.keys() and all(equal(known[key], seen[key]) for key in known)

    def plus(self, other: Any) -> List:
        if not isinstance(other, List):
            raise no_overload()
        merged = {self._key(each): each for each in self.items}
        return List([*(merged | {self._key(each): each for each in other.items}).values()])


class _ObjectMap(Map):
    """A CEL map for an object: a whole Kubernetes object, or an object in one of its fields."""

    __slots__ = ("_data", "_known", "_schema", "_weight")

    def __init__(self, data: dict[str, Any], schema: CelSchema) -> None:
        self._data = data
        self._schema = schema
        self._known: dict[str, tuple[Any, bool]] = {}
        self._weight = -1

    def find(self, key: Any) -> tuple[Any, bool]:
        if not isinstance(key, str):
            raise no_overload()
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._find(key)
        return known

    def _find(self, key: str) -> tuple[Any, bool]:
        name = unescape(key) if self._schema.fields is not None else key
        if name is None or name not in self._data:
            return None, False
        data, schema = self._data[name], self._schema.inside(name)
        if schema is None or (data is None and self._schema.fields is not None):
            return None, False
        return to_value(data, schema), True

    def __iter__(self) -> Iterator[Any]:
        for name in self._data:
            if self._schema.inside(name) is not None:
                escaped = escape(name) if self._schema.fields is not None else None
                yield escaped or name

    def __len__(self) -> int:
        return len(self._data)

    @property
    def weight(self) -> int:
        if self._weight < 0:
            self._weight = _weighed(self._data)
        return self._weight

    def equals(self, other: Any) -> bool:
        if not isinstance(other, Map):
            raise no_overload()
        if len(self) != len(other):
            return False
        return all(self._same(name, other) for name in self._data)

    def _same(self, name: str, other: Map) -> bool:
        if self._schema.inside(name) is None:
            if not isinstance(other, _ObjectMap):
                raise no_overload()
            return name not in other._data or same(self._data[name], other._data[name])
        # As in kube-apiserver, names from the data are looked up without being escaped.
        (one, there), (two, also) = self.find(name), other.find(name)
        return there is also and (not there or equal(one, two))
