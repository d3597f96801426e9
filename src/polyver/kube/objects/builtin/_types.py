"""Shapes of built-in types, built from types.json when they are first used.

tests/kube/facts.py writes types.json; do not edit it by hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from polyver.kube.objects.type_shapes import Shape, Type

__all__ = ["shape_named", "type_names"]


class _Field(msgspec.Struct):
    """A field of a struct in types.json.

    A field without a name is an inlined struct: its fields are fields of the outer struct.
    """

    type: str
    name: str = ""
    number: int = 0
    omit: str = ""
    required: bool = False
    atomic: bool = False
    list: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()
    merges: bool = False
    merge_key: str = ""
    retains: bool = False
    replaces: bool = False
    default: object = None


class _Named(msgspec.Struct):
    """A named type in types.json: a struct with fields, or a new name for the type in `is`."""

    fields: list[_Field] = []
    is_: str = msgspec.field(name="is", default="")
    atomic: bool = False


_all = msgspec.json.Decoder(dict[str, msgspec.Raw])
_one = msgspec.json.Decoder(_Named)


_SCALARS: Mapping[str, tuple[Type, str]] = {
    "string": ("string", ""),
    "bool": ("boolean", ""),
    "int32": ("integer", "int32"),
    "int64": ("integer", "int64"),
    "float64": ("number", "double"),
    "[]uint8": ("string", "byte"),
}
_STORED_AS_JSON = "apiextensions/v1."
_SCHEMA = "apiextensions/v1.JSONSchemaProps"
_ZERO: Mapping[Type, object] = {"string": "", "boolean": False, "integer": 0, "number": 0}
_PACKAGE = re.compile(r"[a-z0-9]+/(?=[a-z0-9]+\.)")
_MAP = re.compile(r"map\[([^]]+)\](.*)")


@cache
def _encoded_types() -> dict[str, msgspec.Raw]:
    text = files(__package__).joinpath("types.json").read_bytes()
    return _all.decode(text)


@cache
def type_names() -> frozenset[str]:
    """Return the names of all types, such as `apps/v1.Deployment`."""
    return frozenset(_encoded_types())


@cache
def _named(name: str) -> _Named:
    return _one.decode(_encoded_types()[name])


_shapes: dict[str, Shape] = {}


def shape_named(text: str) -> Shape:
    """Return the shape of a type, whose name is in Go's syntax, such as `[]core/v1.Container`.

    The name contains only the last two parts of the path of the Go package.
    """
    if (found := _shapes.get(text)) is None:
        # A type may contain itself, so the shape is stored before it is complete.
        found = _shapes[text] = Shape(name=_PACKAGE.sub("", text))
        _complete(found, text)
    return found


def _complete(shape: Shape, text: str) -> None:
    if text.startswith("[]") and text not in _SCALARS:
        shape.type, shape.items = "array", shape_named(text[2:].removeprefix("*"))
    elif found := _MAP.fullmatch(text):
        shape.type, shape.values = "object", shape_named(found[2].removeprefix("*"))
    elif text in _SCALARS:
        shape.type, shape.format = _SCALARS[text]
    elif text in _CUSTOM:
        _complete_custom(shape, *_CUSTOM[text])
    elif (named := _named(text)).is_ in ("", "empty"):
        _Struct(shape).complete(named)
        shape.keeps_empty = text.startswith(_STORED_AS_JSON)
    else:
        _complete(shape, named.is_)
        if text.endswith((".ExtraValue", ".AttestationValue")):
            shape.format = "strings"


_CUSTOM: Mapping[str, tuple[Type, str, str]] = {
    "meta/v1.Time": ("string", "date-time", ""),
    "meta/v1.MicroTime": ("string", "microtime", ""),
    "api/resource.Quantity": ("string", "quantity", ""),
    "util/intstr.IntOrString": ("any", "int-or-string", ""),
    "pkg/runtime.RawExtension": ("any", "raw", ""),
    "meta/v1.FieldsV1": ("object", "fields", ""),
    "apiextensions/v1.JSON": ("any", "json", ""),
    "apiextensions/v1.JSONSchemaPropsOrBool": ("any", "schema-or-bool", _SCHEMA),
    "apiextensions/v1.JSONSchemaPropsOrArray": ("any", "schema-or-array", _SCHEMA),
    "apiextensions/v1.JSONSchemaPropsOrStringArray": ("any", "schema-or-strings", _SCHEMA),
}
"""The types that encode themselves as JSON, by their names.

For each of them: the type and the format of its shape, and the name of the type of the values
inside, such as of a schema; "" if there are none.
"""


def _complete_custom(shape: Shape, kind: Type, form: str, inside: str) -> None:
    shape.type, shape.format = kind, form
    shape.int_or_string = form == "int-or-string"
    shape.preserves = form in ("raw", "fields", "json")
    shape.embedded = form == "raw"
    shape.values = shape_named(inside) if inside else None


class _Struct:
    """Builds the shape of a struct from its fields, one field after the other."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._fields: dict[str, Shape] = {}
        self._numbers: dict[int, str] = {}
        self._inlined: dict[int, Shape] = {}
        self._absent: dict[str, object] = {}
        self._omits: set[str] = set()
        self._required: list[str] = []
        self._retained: set[str] = set()

    def complete(self, named: _Named) -> None:
        shape = self._shape
        shape.type, shape.atomic = "object", named.atomic
        shape.fields, shape.numbers, shape.inlined = self._fields, self._numbers, self._inlined
        shape.absent = self._absent
        for each in named.fields:
            if each.name:
                self._add(each)
            else:
                self._inline(each)
        shape.required, shape.omits = tuple(self._required), frozenset(self._omits)
        shape.retained = frozenset(self._retained)

    def _add(self, field: _Field) -> None:
        self._fields[field.name] = _shape_of(field)
        self._note_emptiness(field)
        if field.number:
            self._numbers[field.number] = field.name
        if field.required:
            self._required.append(field.name)
        if field.retains:
            self._retained.add(field.name)

    def _inline(self, field: _Field) -> None:
        part = shape_named(field.type)
        if field.number:
            self._inlined[field.number] = part
        self._fields |= part.fields
        self._absent |= part.absent
        self._omits |= part.omits
        self._required += part.required
        self._retained |= part.retained

    def _note_emptiness(self, field: _Field) -> None:
        """Record what responses contain if the field is not set: an empty value, or nothing."""
        shape = self._fields[field.name]
        is_struct = shape.type == "object" and shape.values is None
        if field.type.startswith("*"):
            if not field.omit:
                self._absent[field.name] = None
        elif "zero" in field.omit or ("empty" in field.omit and _can_be_empty(shape)):
            self._omits.add(field.name)
        elif is_struct and shape.format != "fields":
            self._absent[field.name] = shape.absent
        elif shape.format:
            self._absent[field.name] = _ZERO_BY_FORMAT.get(shape.format, 0)
        else:
            self._absent[field.name] = _ZERO.get(shape.type)


_ZERO_BY_FORMAT: Mapping[str, object] = {
    "date-time": None,
    "microtime": None,
    "quantity": "0",
    "raw": None,
    "fields": None,
    "json": None,
    "byte": None,
    "strings": None,
    "schema-or-bool": False,
    "schema-or-array": None,
    "schema-or-strings": None,
}
_STRUCTS = {"date-time", "microtime", "quantity", "int-or-string", "raw", "fields", "json"}
_STRUCTS |= {"schema-or-bool", "schema-or-array", "schema-or-strings"}


def _can_be_empty(shape: Shape) -> bool:
    """Report whether Go's `omitempty` can leave out a value of a type.

    A struct is never left out.
    """
    if shape.format in _STRUCTS:
        return False
    return shape.type != "object" or shape.values is not None


def _shape_of(field: _Field) -> Shape:
    """Return the shape of a field's type, with the options of the field, such as its list type."""
    shape = shape_named(field.type.removeprefix("*"))
    if shape.type == "array":
        return replace(
            shape,
            list_type=field.list,
            keys=field.keys,
            key_defaults=_key_defaults(field),
            merges=field.merges,
            merge_key=field.merge_key,
        )
    if field.atomic or field.replaces:
        return replace(shape, atomic=field.atomic or shape.atomic, replaces=field.replaces)
    return shape


def _key_defaults(field: _Field) -> dict[str, object]:
    if not field.keys:
        return {}
    items = _named(field.type.removeprefix("[]"))
    known = {each.name: each.default for each in items.fields}
    return {key: known[key] for key in field.keys if known.get(key) is not None}
