"""ApplySchema: the rules of ownership for server-side apply, and checks that a value fits them.

A Shape describes the allowed values of a kind. An ApplySchema has only the parts of a Shape that
decide who owns which field. For a value that the Shape does not describe, the rules are those that
kube-apiserver deduces from the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from polyver.core import PolyverError
from polyver.kube.objects.apply._fields import element_text, json_text
from polyver.kube.objects.type_shapes import Shape

__all__ = [
    "DEDUCED",
    "ApplySchema",
    "Form",
    "Mistyped",
    "element_of",
    "form_of",
    "misfits",
    "type_of",
]

Scalar = Literal["", "numeric", "string", "boolean", "untyped"]
Form = Literal["", "map", "scalar", "list"]


class Mistyped(PolyverError):
    """Raised if a value has a type that its schema does not allow."""


@dataclass(slots=True, eq=False)
class ApplySchema:
    """The rules of ownership for one value.

    The value may be a mapping, a list (`sequence`) or a scalar; a schema may allow several of them.
    """

    scalar: Scalar = ""
    mapping: bool = False
    fields: Mapping[str, ApplySchema] = field(default_factory=dict)
    values: ApplySchema | None = None
    """The schema of the values under undeclared keys; None if such keys are not allowed."""
    atomic: bool = False
    """True if a mapping is owned only as a whole, not by its fields."""
    sequence: bool = False
    items: ApplySchema | None = None
    associative: bool = False
    """True if each item of a list has its own owners. If False, the list is owned as a whole."""
    keys: tuple[str, ...] = ()
    """The fields that identify an item of a list.

    Empty for a set, whose items are their own keys.
    """
    defaults: Mapping[str, object] = field(default_factory=dict)
    """The default values of the fields in `keys`, for items without these fields."""

    def within(self, key: str) -> ApplySchema:
        """Return the schema of the value under a key; raise `Mistyped` if there is none."""
        inner = self.fields.get(key) or self.values
        if inner is None:
            raise Mistyped(f".{key}: field not declared in schema")
        return inner


_WHOLE = ApplySchema("untyped", mapping=True, atomic=True, sequence=True)
_WHOLE.values = _WHOLE.items = _WHOLE
DEDUCED = ApplySchema("untyped", mapping=True, sequence=True, items=_WHOLE)
"""The schema of values that no Shape describes.

Each field of a mapping has its own owners, and a list is owned as a whole.
"""
DEDUCED.values = DEDUCED

_TEXT = Shape("string")
_WHEN = Shape("string", format="date-time")
_TEXTS = Shape("object", values=_TEXT)
_OWNER = Shape("object", values=Shape(), atomic=True)
METADATA = Shape(
    "object",
    fields={
        "annotations": _TEXTS,
        "creationTimestamp": _WHEN,
        "deletionGracePeriodSeconds": Shape("integer"),
        "deletionTimestamp": _WHEN,
        "finalizers": Shape("array", items=_TEXT, list_type="set"),
        "generateName": _TEXT,
        "generation": Shape("integer"),
        "labels": _TEXTS,
        "managedFields": Shape("array", items=Shape("object")),
        "name": _TEXT,
        "namespace": _TEXT,
        "ownerReferences": Shape(
            "array", items=_OWNER, list_type="map", keys=("uid",), key_defaults={"uid": ""}
        ),
        "resourceVersion": _TEXT,
        "selfLink": _TEXT,
        "uid": _TEXT,
    },
)


@lru_cache(maxsize=1024)
def type_of(shape: Shape) -> ApplySchema:
    """Build the ApplySchema for the shape of an object; equal shapes have the same ApplySchema."""
    return _Reader().whole(shape)


class _Reader:
    def __init__(self) -> None:
        self._read: dict[tuple[int, bool], ApplySchema] = {}

    def whole(self, shape: Shape) -> ApplySchema:
        """Build the schema of a whole object, with metadata even if the shape declares none."""
        found = self.read(shape)
        return self._with_identity(shape, found, loose=shape.preserves)

    def read(self, shape: Shape, *, loose: bool = False) -> ApplySchema:
        """Build the ApplySchema of a shape.

        `loose` is True if the object around this value keeps unknown fields.
        """
        loose = shape.preserves or (loose and not shape.name)
        known = self._read.get((id(shape), loose))
        if known is None:
            known = self._read[id(shape), loose] = ApplySchema()
            self._fill(known, shape, loose)
        return known

    def _fill(self, found: ApplySchema, shape: Shape, loose: bool) -> None:
        match shape.type:
            case _ if shape.format == "raw":
                found.scalar, found.mapping, found.sequence = "untyped", True, True
                found.atomic, found.values, found.items = True, _WHOLE, _WHOLE
            case _ if shape.format.startswith("schema-or-"):
                found.scalar, found.mapping, found.sequence = "untyped", True, True
                found.values, found.items = DEDUCED, _WHOLE
            case _ if shape.format == "quantity":
                found.scalar = "untyped"
            case "object":
                self._as_mapping(found, shape, loose)
            case "array":
                self._as_list(found, shape, loose)
            case "any":
                found.scalar = "untyped"
                self._as_mapping(found, shape, loose)
                self._as_list(found, shape, loose)
            case "integer" | "number":
                found.scalar = "numeric"
            case "boolean":
                found.scalar = "boolean"
            case "string":
                found.scalar = "string" if shape.format in ("", "byte") else "untyped"

    def _as_mapping(self, found: ApplySchema, shape: Shape, loose: bool) -> None:
        found.mapping, found.atomic = True, shape.atomic
        found.fields = {key: self.read(each, loose=loose) for key, each in shape.fields.items()}
        if shape.values is not None:
            found.values = self.read(shape.values, loose=loose)
        elif loose or not (shape.fields or shape.embedded or shape.closed):
            found.values = DEDUCED
        if shape.embedded:
            found.fields = self._with_identity(shape, found, loose=loose).fields

    def _as_list(self, found: ApplySchema, shape: Shape, loose: bool) -> None:
        found.sequence, found.associative = True, shape.list_type != "atomic"
        found.items = _WHOLE if shape.items is None else self.read(shape.items, loose=loose)
        if shape.list_type != "map":
            return
        found.keys = shape.keys
        # Built-in types show an unset key field as its zero value, so an item without the field is
        # the same as an item with the zero value.
        always = shape.items.absent if shape.items is not None else {}
        known = {key: always[key] for key in shape.keys if always.get(key) is not None}
        found.defaults = {**known, **shape.key_defaults}

    def _with_identity(self, shape: Shape, found: ApplySchema, *, loose: bool) -> ApplySchema:
        described = shape.fields.get("metadata")
        metadata = described if described is not None and described.fields else METADATA
        text = self.read(_TEXT)
        fields = {"apiVersion": text, "kind": text, "metadata": self.read(metadata)}
        # An object with declared fields allows no other fields. Here metadata becomes a declared
        # field, even if the schema declares no fields.
        values = found.values if loose or shape.fields or shape.values is not None else None
        return ApplySchema(
            mapping=True, fields={**found.fields, **fields}, values=values, atomic=found.atomic
        )


def form_of(value: object, schema: ApplySchema) -> Form:
    """Return the form of a value: `map`, `list`, `scalar`, or "" for null.

    Raise `Mistyped` if the schema forbids a value of this form.
    """
    kind = type(value)
    if value is None:
        return ""
    if kind is dict and schema.mapping:
        return "map"
    if kind is list and schema.sequence:
        return "list"
    if schema.scalar and kind is not dict and kind is not list:
        return "scalar"
    raise Mistyped(f"{kind.__name__} is not allowed here")


def element_of(item: object, schema: ApplySchema) -> str:
    """Build the path element that names an item of an associative list by its key fields.

    >>> ports = ApplySchema(sequence=True, associative=True, keys=("name",))
    >>> element_of({"name": "http", "port": 80}, ports)
    'k:{"name":"http"}'
    """
    if not schema.keys:
        match item:
            case dict():
                raise Mistyped("associative list without keys has an element that's a map type")
            case list():
                raise Mistyped("not supported: associative list with lists as elements")
            case None:
                what = "an element that's an explicit null"
                raise Mistyped(f"associative list without keys has {what}")
        return f"v:{json_text(item)}"
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise Mistyped(f"associative list with keys may not have {what}")
    pairs = [_pair(key, item[key]) for key in schema.keys if key in item]
    if len(pairs) < len(schema.keys):
        missing = [key for key in schema.keys if key in schema.defaults and key not in item]
        pairs += [_pair(key, schema.defaults[key]) for key in missing]
    if not pairs:
        names = " ".join(f'"{key}"' for key in schema.keys)
        raise Mistyped(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return f"k:{{{','.join(sorted(pairs))}}}"


def _pair(key: str, value: object) -> str:
    return f'"{key}":{json_text(value)}'


def misfits(value: object, schema: ApplySchema) -> str:
    """Return the errors of a value that does not fit its schema, in one string; empty if it fits.

    >>> misfits({"size": "big"}, ApplySchema(mapping=True, fields={"size": ApplySchema("numeric")}))
    '.size: expected numeric (int or float), got string'
    """
    found = [f"{where}: {what}" if where else what for where, what in _misfits(value, schema)]
    if len(found) < 2:
        return "".join(found)
    return "\n  ".join(["errors:", *found])


_Misfit = tuple[str, str]


def _misfits(value: Any, schema: ApplySchema) -> Iterator[_Misfit]:
    if value is None:
        return
    if isinstance(value, dict) and schema.mapping:
        for key in sorted(value):
            within = schema.fields.get(key) or schema.values
            if within is None:
                yield f".{key}", "field not declared in schema"
                return
            for where, what in _misfits(value[key], within):
                yield f".{key}{where}", what
    elif isinstance(value, list) and schema.sequence:
        yield from _in_list(value, schema)
    elif schema.mapping and (isinstance(value, dict | list) or not schema.scalar):
        yield "", f"expected map, got &{{{_printed(value)}}}"
    elif schema.scalar:
        problem = _scalar_misfit(value, schema.scalar)
        if problem:
            yield "", problem
    else:
        yield "", f"expected list, got &{{{_printed(value)}}}"


def _in_list(items: list[Any], schema: ApplySchema) -> Iterator[_Misfit]:
    seen = set()
    for number, item in enumerate(items):
        name = f"i:{number}"
        if schema.associative:
            try:
                name = element_of(item, schema)
            except Mistyped as error:
                yield "", f"element {number}: {error}"
                return
        if name in seen:
            yield "", f"duplicate entries for key {element_text(name)}"
        seen.add(name)
        if schema.items is not None:
            for where, what in _misfits(item, schema.items):
                yield f"{element_text(name)}{where}", what


def _scalar_misfit(value: object, scalar: str) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "numeric" and not number:
        return f"expected numeric (int or float), got {_go_type(value)}"
    if scalar == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{_literal(value)}}}"
    if scalar == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got &{{{_printed(value)}}}"
    if scalar == "untyped" and isinstance(value, dict | list):
        return f"expected any scalar, got &{{{_printed(value)}}}"
    return ""


def _go_type(value: object) -> str:
    match value:
        case dict():
            return "map[string]interface {}"
        case list():
            return "[]interface {}"
        case bool():
            return "bool"
        case str():
            return "string"
    return "float64"


def _printed(value: object) -> str:
    """Write a value as Go prints it with `%v`."""
    match value:
        case dict():
            return f"map[{' '.join(f'{key}:{_printed(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(_printed, value))}]"
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
    return str(value)


def _literal(value: object) -> str:
    """Write a value as Go prints it with `%#v`."""
    match value:
        case dict():
            pairs = ", ".join(f'"{key}":{_literal(value[key])}' for key in sorted(value))
            return f"{_go_type(value)}{{{pairs}}}"
        case list():
            return f"{_go_type(value)}{{{', '.join(map(_literal, value))}}}"
        case None:
            return "interface {}(nil)"
        case str():
            return f'"{value}"'
    return _printed(value)
