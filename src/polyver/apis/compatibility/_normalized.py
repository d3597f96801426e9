"""Normal forms of schemas for comparison: types, paths, and schemas without documentation."""

from __future__ import annotations

import re
from typing import Any, Final

from polyver.apis.compatibility._findings import Schema

__all__ = [
    "ALTERNATIVES",
    "EMBEDDED",
    "INT_OR_STRING",
    "PRESERVE",
    "bare",
    "may_be",
    "path_to",
    "type_name",
    "types_of",
]

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
ALTERNATIVES: Final = ("anyOf", "oneOf", "allOf", "not")
_SAID_TO_PEOPLE = frozenset(["description", "title", "example", "externalDocs"])
_PLAIN_NAME = re.compile(r"[\w-]+")


def types_of(schema: Schema) -> frozenset[str]:
    """Return the types that a value may have; empty if it may have any."""
    if schema.get(INT_OR_STRING):
        return frozenset(["integer", "string"])
    return frozenset([schema["type"]] if schema.get("type") else [])


def type_name(schema: Schema) -> str:
    """Return the name of a schema's type for messages."""
    return "int-or-string" if schema.get(INT_OR_STRING) else schema.get("type") or "any type"


def may_be(schema: Schema, kind: str) -> bool:
    """Report whether a value may have a type."""
    types = types_of(schema)
    return not types or kind in types


def path_to(path: str, name: str) -> str:
    """Return the path of a field; a name that is not plain is quoted.

    >>> path_to("spec", "size"), path_to("spec", "a.b")
    ('spec.size', 'spec["a.b"]')
    """
    if not _PLAIN_NAME.fullmatch(name):
        return f'{path}["{name}"]'
    return f"{path}.{name}" if path else name


def bare(schema: Any) -> Any:
    """Return a schema without its documentation, such as descriptions."""
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: _bare_inside(keyword, value)
        for keyword, value in schema.items()
        if keyword not in _SAID_TO_PEOPLE and value is not None
    }


def _bare_inside(keyword: str, value: Any) -> Any:
    match keyword:
        case "properties":
            return {name: bare(each) for name, each in value.items()}
        case "anyOf" | "oneOf" | "allOf":
            return [bare(each) for each in value]
        case "items" | "additionalProperties" | "not":
            return bare(value)
        case _:
            return value
