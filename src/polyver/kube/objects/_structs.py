"""Decodes values by the types of built-in kinds, with the results and errors of kube-apiserver.

kube-apiserver decodes JSON into Go structs. This module does the same; a Shape describes the
struct.
"""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from polyver.kube.objects.type_shapes import Shape
from polyver.languages.values.canonical_values import (
    InvalidValue,
    base64_problem,
    micro_time,
    quantity,
    time,
)
from polyver.languages.values.json_values import Number, Pairs, plain, plain_number, quoted, written

__all__ = ["DecodingStopped", "Walk", "what_is"]

_LEAST_OF_RESOURCES = Decimal("1e-3")


def what_is(value: Any) -> str:
    """Return the name of a value's type in Go's error messages."""
    match value:
        case Pairs() | dict():
            return "object"
        case list():
            return "array"
        case bool():
            return "bool"
        case str():
            return "string"
    return "number"


class DecodingStopped(Exception):
    """Raised for an error at which kube-apiserver stops decoding the body."""


_OBJECT = (dict, Pairs)
_Step = tuple[Shape | None, str | int]


class Walk:
    """Decodes one value by its shape. After an error it continues; `error` has the first error."""

    def __init__(self, within: Walk | None = None) -> None:
        self.error = ""
        self.problems: dict[str, None] = {}
        self._steps: list[_Step] = [*within._steps] if within else []
        """The path to the current value.

        A step is a field name with the shape of its struct, a map key or an index.
        """
        self._pinned = len(self._steps)
        """The number of steps in the path that come from the outer decoder `within`; 0 without one.

        With an outer decoder, error messages name the last struct in these steps.
        """

    def value(self, value: Any, shape: Shape, before: Any = None) -> Any:
        """Decode a value that is not null.

        `before` is the decoded value of an earlier field with the same name. As in Go, the value of
        a duplicate field is decoded into the earlier value.
        """
        if shape.format in _CUSTOM:
            return self._custom(value, shape)
        if shape.type == "object":
            if not isinstance(value, _OBJECT):
                self._mismatch(value, shape)
                return before or {}
            if shape.values is None:
                return self._object(value, shape, before or {})
            return self._map(value, shape, shape.values, before or {})
        if shape.type == "array":
            return self._list(value, shape, before or [])
        return self._scalar(value, shape)

    def _object(self, value: Any, shape: Shape, before: dict[str, Any]) -> dict[str, Any]:
        """Decode a struct: drop empty fields, and add the fields that responses always have."""
        found = dict(before)
        for key, inner in self._pairs(value, shape):
            if key not in shape.fields:
                self._problem("unknown")
            elif inner is not None:
                found[key] = self.value(inner, shape.fields[key], found.get(key))
            elif not _ignores_null(shape, key):
                found[key] = None
        shown = {
            key: inner
            for key, inner in found.items()
            if not (
                inner is None
                or (inner == [] and not shape.keeps_empty)
                or (key in shape.omits and inner in _NOTHING)
            )
        }
        for key, absent in shape.absent.items():
            if key not in shown:
                shown[key] = copy.deepcopy(absent)
        return shown

    def _map(
        self, value: Any, shape: Shape, values: Shape, before: dict[str, Any]
    ) -> dict[str, Any]:
        found = dict(before)
        for key, inner in self._pairs(value):
            found[key] = self._item(inner, values)
        if shape.name == "v1.ResourceList":
            return {
                key: quantity(amount, least=_LEAST_OF_RESOURCES) for key, amount in found.items()
            }
        return found

    def _pairs(self, value: Any, shape: Shape | None = None) -> Iterator[tuple[str, Any]]:
        """Yield the keys and values of an object.

        While the caller processes a pair, its key is the last step of the path.
        """
        if isinstance(value, dict):
            for key, inner in value.items():
                self._steps.append((shape, key))
                yield key, inner
                self._steps.pop()
            return
        seen: set[str] = set()
        for key, inner in value:
            self._steps.append((shape, key))
            if key in seen and (shape is None or key in shape.fields):
                self._problem("duplicate")
            seen.add(key)
            yield key, inner
            self._steps.pop()

    def _list(self, value: Any, shape: Shape, before: list[Any]) -> list[Any]:
        if not isinstance(value, list) or isinstance(value, Pairs):
            self._mismatch(value, shape)
            return before
        assert shape.items is not None
        found = []
        for at, inner in enumerate(value):
            self._steps.append((None, at))
            found.append(self._item(inner, shape.items, before[at] if at < len(before) else None))
            self._steps.pop()
        return found

    def _item(self, value: Any, shape: Shape, before: Any = None) -> Any:
        """Decode an item of a list or map.

        A null keeps the earlier value `before`. Without an earlier value, it becomes the zero value
        of the item's type, such as "" or 0.
        """
        if value is not None:
            return self.value(value, shape, before)
        return _zero(shape) if before is None else before

    def _scalar(self, value: Any, shape: Shape) -> Any:
        match shape.type, value:
            case "string", str():
                return value
            case "boolean", bool():
                return value
            case "integer", int() | float() if not isinstance(value, bool):
                return self._integer(value, shape.name, _BITS[shape.format])
            case "number", int() | float() if not isinstance(value, bool):
                return plain_number(value, self._target(shape.name))
        self._mismatch(value, shape)
        return _zero(shape)

    def _integer(self, value: float, name: str, most: int) -> int:
        if isinstance(value, int) and -most - 1 <= value <= most:
            return value
        self._wrong(f"number {written(value)}", name)
        return 0

    def _custom(self, value: Any, shape: Shape) -> Any:
        match shape.format:
            case "raw" | "fields":
                return _as_written(value)
            case "json":
                return plain(value, "", {})
            case "byte":
                return self._bytes(value, shape)
            case "int-or-string":
                return self._int_or_string(value)
            case form if parse := _PARSERS.get(form):
                return self._parsed(value, parse)
        assert shape.values is not None
        return self._schema(value, shape.values, shape.format)

    def _parsed(self, value: Any, parse: Callable[[str], str | None]) -> str | None:
        if parse is not quantity and not isinstance(value, str):
            raise DecodingStopped(self._text(what_is(value), "string"))
        # If the value is no string, kube-apiserver parses the JSON text of the value.
        if isinstance(value, str):
            text = value
        elif isinstance(value, float):
            text = written(value)
        else:
            text = msgspec.json.encode(_as_written(value)).decode()
        try:
            return parse(text)
        except InvalidValue as error:
            raise DecodingStopped(str(error)) from None

    def _bytes(self, value: Any, shape: Shape) -> str:
        if isinstance(value, list) and not isinstance(value, Pairs):
            return base64.b64encode(bytes(self._byte(each) for each in value)).decode()
        if not isinstance(value, str):
            self._mismatch(value, shape)
            return ""
        if problem := base64_problem(value):
            self.error = self.error or problem
            return ""
        return base64.b64encode(base64.b64decode(value)).decode()

    def _byte(self, value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 256:
            return value
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None:
            self._wrong(f"number {written(value)}" if number else what_is(value), "uint8")
        return 0

    def _int_or_string(self, value: Any) -> int | str:
        if isinstance(value, str):
            return value
        inner = Walk(self)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        found = inner._integer(value, "int32", _BITS["int32"]) if number else 0
        if not number:
            inner._wrong(what_is(value), "int32")
        if inner.error:
            raise DecodingStopped(inner.error)
        return found

    def _schema(self, value: Any, schema: Shape, form: str) -> Any:
        """Decode a JSON schema, or the boolean or list that a field allows instead of a schema.

        Unknown and duplicate fields in the schema are not reported.
        """
        if form == "schema-or-bool" and not isinstance(value, _OBJECT):
            if not isinstance(value, bool):
                raise DecodingStopped("boolean or JSON schema expected")
            return value
        inner, found = Walk(self), None
        if isinstance(value, _OBJECT):
            found = inner.value(value, schema)
        elif isinstance(value, list):
            schemas = Shape(type="array", name="[]v1.JSONSchemaProps", items=schema)
            found = inner.value(value, _STRINGS if form == "schema-or-strings" else schemas)
        if inner.error:
            raise DecodingStopped(inner.error)
        return None if found == [] else found

    def _problem(self, what: str) -> None:
        if not self._pinned:
            steps = (
                f"[{step}]" if isinstance(step, int) else f".{step}" for _, step in self._steps
            )
            self.problems[f"{what} field {quoted(''.join(steps)[1:])}"] = None

    def _mismatch(self, value: Any, shape: Shape) -> None:
        self._wrong(what_is(value), shape.name)

    def _wrong(self, what: str, name: str) -> None:
        self.error = self.error or self._text(what, name)

    def _text(self, what: str, name: str) -> str:
        return f"json: cannot unmarshal {what} into {self._target(name)}"

    def _target(self, name: str) -> str:
        fields = [(shape, str(step)) for shape, step in self._steps if shape is not None]
        if not fields:
            return f"Go value of type {name}"
        path = ".".join(part for shape, key in fields for part in (*_embedded(shape, key), key))
        own = self._steps[: self._pinned or None]
        struct = [shape for shape, _ in own if shape is not None][-1].name.rpartition(".")[2]
        return f"Go struct field {struct}.{path} of type {name}"


_CUSTOM = frozenset(
    "raw fields json byte int-or-string quantity date-time microtime"
    " schema-or-bool schema-or-array schema-or-strings".split()
)
_PARSERS: Mapping[str, Callable[[str], str | None]] = {
    "quantity": quantity,
    "date-time": time,
    "microtime": micro_time,
}
_BITS = {"int32": (1 << 31) - 1, "int64": (1 << 63) - 1}
_STRINGS = Shape(type="array", name="[]string", items=Shape(type="string", name="string"))


def _as_written(value: Any) -> Any:
    """Convert a parsed value to plain data; a number without a point or exponent becomes an int."""
    match value:
        case Pairs() | dict():
            pairs = value.items() if isinstance(value, dict) else value
            return {key: _as_written(inner) for key, inner in pairs}
        case list():
            return [_as_written(inner) for inner in value]
        case Number():
            return int(value.text) if _INTEGER.fullmatch(value.text) else float(value)
    return value


_INTEGER = re.compile("-?[0-9]{1,400}")


def _embedded(shape: Shape, key: str) -> list[str]:
    """Return the name of the inlined struct that declares the field, as a list.

    The list is empty if the outer struct declares the field itself.
    """
    for part in shape.inlined.values():
        if key in part.fields:
            return [part.name.rpartition(".")[2]]
    return []


def _ignores_null(shape: Shape, key: str) -> bool:
    """Report whether a null for this field leaves the old value of the field unchanged.

    If the field is a pointer, a list or a map, a null clears it instead.
    """
    if key in shape.omits:
        return shape.fields[key].type not in ("object", "array")
    return shape.absent.get(key) is not None


_NOTHING: tuple[object, ...] = ("", 0, [], {}, None)


def _zero(shape: Shape) -> Any:
    """Return the zero value of a type, such as "" or 0.

    The zero value of a struct has the fields that responses always have.
    """
    if shape.type == "object" and shape.values is None and not shape.format:
        return copy.deepcopy(dict(shape.absent))
    if shape.format in _ZEROES:
        return _ZEROES[shape.format]
    return _ZEROES.get(shape.type)


_ZEROES: Mapping[str, object] = {
    "quantity": "0",
    "int-or-string": 0,
    "date-time": None,
    "microtime": None,
    "schema-or-bool": False,
    "integer": 0,
    "number": 0,
    "boolean": False,
    "string": "",
}
