"""Warnings about definitions that are accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from polyver.kube.server.definitions._versions import schemas_of
from polyver.languages.values.formats import text_format
from polyver.languages.values.strings import quoted

__all__ = ["has_defaults", "warnings_of"]

Schema = Mapping[str, Any]
_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}


def warnings_of(spec: Schema, old: Schema | None) -> Iterator[str]:
    """Yield warnings that are new in a definition: unchecked formats, unsupported sets."""
    known = {*_oddities(old)} if old else set()
    yield from (text for text in _oddities(spec) if text not in known)


def _oddities(spec: Schema) -> Iterator[str]:
    for schema in schemas_of(spec):
        for each in _walk(schema):
            if each.get("format") and not _is_checked(each["format"], each.get("type") or ""):
                yield f"unrecognized format {quoted(each['format'])}"
    kinds = {_set_of(each) for schema in schemas_of(spec) for each in _walk(schema)}
    for kind in sorted(kinds & {"object", "array"}):
        text = "is not supported by server-side apply or CEL validation rules"
        yield f'x-kubernetes-list-type: set for items of type "{kind}" {text}'


def _set_of(schema: Schema) -> str:
    """Return the type of the items if a schema is a set, otherwise an empty string."""
    items = schema.get("items")
    if schema.get("x-kubernetes-list-type") == "set" and isinstance(items, Mapping):
        return items.get("type") or ""
    return ""


def _is_checked(name: str, kind: str) -> bool:
    if kind in ("", "string"):
        return text_format(name) is not None
    return name in _NUMBERS.get(kind, ())


def _walk(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and all schemas inside it."""
    yield schema
    for name in ("allOf", "anyOf", "oneOf"):
        for each in schema.get(name) or ():
            yield from _walk(each)
    for name in ("items", "not", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            yield from _walk(schema[name])
    fields = schema.get("properties") or {}
    for name in sorted(fields):
        yield from _walk(fields[name])


def has_defaults(spec: Schema) -> bool:
    """Report whether any schema has a default."""
    return any(
        each.get("default") is not None for schema in schemas_of(spec) for each in _walk(schema)
    )
