"""Read types and maximum sizes from a schema, for the type checker and the cost estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from polyver.core.plain import Schema
from polyver.languages.cel import _types as types
from polyver.languages.cel._names import escape
from polyver.languages.cel._types import CelType

__all__ = ["MOST_BYTES", "DeclaredType", "declared", "structs_of", "with_metadata"]

MOST_BYTES: Final = 3 * 1024 * 1024
"""The maximum size of a request body in bytes."""
_LONGEST_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """The type that a schema declares, with the maximum and minimum sizes of its values.

    `least_bytes` is the minimum size of a value in a request body.
    """

    type: CelType
    most: int = 0
    least_bytes: int = 2
    fields: Mapping[str, DeclaredType] = field(default_factory=dict)
    """The fields of an object.

    The keys are their names in expressions, where some names are escaped.
    """
    inside: DeclaredType | None = None


_SCALARS = {
    "boolean": DeclaredType(types.BOOL, least_bytes=4),
    "number": DeclaredType(types.DOUBLE, least_bytes=1),
    "integer": DeclaredType(types.INT, least_bytes=1),
}
_TEXTS = {
    "duration": DeclaredType(types.DURATION, 32, 3),
    "date": DeclaredType(types.TIMESTAMP, 12, 12),
    "date-time": DeclaredType(types.TIMESTAMP, 32, 21),
}


def with_metadata(schema: Schema) -> Schema:
    """Add apiVersion, kind and metadata, which every object has, to the schema of an object."""
    fields = schema.get("properties") or {}
    named = (fields.get("metadata") or {}).get("properties") or {}
    metadata = {
        "type": "object",
        "properties": {
            "name": _capped(named.get("name"), _LONGEST_NAME),
            "generateName": _capped(named.get("generateName"), _LONGEST_NAME - 1),
        },
    }
    text = {"type": "string"}
    always = {"kind": text, "apiVersion": text, "metadata": metadata}
    return {**schema, "properties": {**fields, **always}}


def _capped(schema: Schema | None, most: int) -> Schema:
    given = (schema or {}).get("maxLength")
    return {"type": "string", "maxLength": most if given is None else min(given, most)}


def declared(schema: Schema, name: str, *, root: bool = False) -> DeclaredType | None:
    """Convert a schema to its declared type; return None if the schema has no known type.

    `name` is the name of the type if the schema describes an object.
    """
    if schema.get("x-kubernetes-int-or-string"):
        most = schema.get("maxLength")
        return DeclaredType(types.DYN, MOST_BYTES - 2 if most is None else max(most, 0) * 4, 1)
    if root or schema.get("x-kubernetes-embedded-resource"):
        schema = with_metadata(schema)
    match schema.get("type"):
        case "array":
            return _list(schema, name)
        case "object":
            return _object(schema, name)
        case "string":
            return _text(schema)
        case kind:
            return _SCALARS.get(kind or "")


def _list(schema: Schema, name: str) -> DeclaredType | None:
    items = schema.get("items")
    inside = declared(items, f"{name}.@idx") if isinstance(items, Mapping) else None
    if inside is None:
        return None
    most = schema.get("maxItems")
    if most is None:
        most = (MOST_BYTES - 2) // (inside.least_bytes + 1)
    return DeclaredType(types.list_of(inside.type), max(most, 0), inside=inside)


def _object(schema: Schema, name: str) -> DeclaredType | None:
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        return _map(schema, others, name)
    fields: dict[str, DeclaredType] = {}
    required = schema.get("required") or ()
    size = 2
    for field_name, each in (schema.get("properties") or {}).items():
        escaped = escape(field_name)
        found = declared(each, f"{name}.{escaped}")
        if found is None:
            continue
        if escaped is not None:
            fields[escaped] = found
        if field_name in required and each.get("default") is None:
            size += len(field_name.encode()) + found.least_bytes + 4
    return DeclaredType(types.struct(name), least_bytes=size, fields=fields)


def _map(schema: Schema, others: Schema, name: str) -> DeclaredType | None:
    inside = declared(others, f"{name}.@elem")
    if inside is None:
        return None
    most = schema.get("maxProperties")
    if most is None:
        most = (MOST_BYTES - 2) // (inside.least_bytes + 6)
    return DeclaredType(types.map_of(types.STRING, inside.type), max(most, 0), inside=inside)


def _text(schema: Schema) -> DeclaredType:
    known = _TEXTS.get(schema.get("format") or "")
    if known is not None:
        return known
    most, is_bytes = schema.get("maxLength"), schema.get("format") == "byte"
    kind = types.BYTES if is_bytes else types.STRING
    if most is not None:
        return DeclaredType(kind, max(most, 0) * (1 if is_bytes else 4))
    words = schema.get("enum") or ()
    if words and not is_bytes:
        return DeclaredType(
            kind, max((len(word.encode()) for word in words if isinstance(word, str)), default=0)
        )
    return DeclaredType(kind, MOST_BYTES - 2)


def structs_of(declared_type: DeclaredType) -> dict[str, dict[str, CelType]]:
    """Return all object types in a declared type by name, each with the types of its fields."""
    found: dict[str, dict[str, CelType]] = {}
    if declared_type.type.kind == "struct":
        found[declared_type.type.name] = {
            name: each.type for name, each in declared_type.fields.items()
        }
    inside = [
        *declared_type.fields.values(),
        *([declared_type.inside] if declared_type.inside else []),
    ]
    for each in inside:
        found |= structs_of(each)
    return found
