"""Paths in a schema, and their notation: `spec.ports[].name`, `spec.env{}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from polyver.apis.conversion.paths import show_path
from polyver.apis.conversion.schemas import child, items, knows
from polyver.core.plain import Schema
from polyver.kube.objects.schema.structure import META_FIELDS, StructuralSchema

__all__ = ["ITEM", "VALUE", "Inside", "Place", "has", "named_in", "places", "schema_at", "show"]


class Inside(Enum):
    """A path element that stands for all items of a list, or for all values of a map."""

    ITEM = "[]"
    VALUE = "{}"


ITEM, VALUE = Inside.ITEM, Inside.VALUE
Place = tuple[str | Inside, ...]


def show(place: Sequence[str | Inside]) -> str:
    """Format a path as text.

    >>> show(("spec", "ports", ITEM, "name")), show(("spec", "env", VALUE))
    ('spec.ports[].name', 'spec.env{}')
    """
    text, names = "", []
    for step in (*place, None):
        if isinstance(step, str):
            names.append(step)
            continue
        inside = show_path(tuple(names))
        text += f".{inside}" if text and inside and inside[0] != "[" else inside
        names = []
        text += step.value if step is not None else ""
    return text


def places(schema: Schema, *, leaves: bool = False) -> Iterator[Place]:
    """Yield every path that a schema names, except paths in metadata.

    With `leaves`, yield only the innermost paths: those for which the schema names no further
    fields.
    """
    known = schema.get("properties") or {}
    for name, each in known.items():
        if name not in META_FIELDS:
            yield from _within((name,), each, leaves=leaves)


def _within(place: Place, schema: Schema, *, leaves: bool) -> Iterator[Place]:
    fields = schema.get("properties") or {}
    inside = [((*place, name), each) for name, each in fields.items()]
    others, found = schema.get("additionalProperties"), schema.get("items")
    for step, each in ((VALUE, others), (ITEM, found)):
        if isinstance(each, Mapping) and any(map(each.get, _DEEPER)):
            inside.append(((*place, step), each))
    if not leaves or not inside:
        yield place
    for name, each in inside:
        yield from _within(name, each, leaves=leaves)


_DEEPER = ("properties", "items", "additionalProperties")


def schema_at(schema: Schema | None, place: Sequence[str | Inside]) -> Schema | None:
    """Return the schema at a path; return None if no schema covers the path."""
    for step in place:
        if schema is None:
            return None
        others: Any = schema.get("additionalProperties")
        if step is ITEM:
            others = schema.get("items")
        elif isinstance(step, str):
            others = (schema.get("properties") or {}).get(step, others)
        schema = others if isinstance(others, Mapping) else None
    return schema


def named_in(schema: Schema) -> Iterator[Place]:
    """Yield the paths of all fields that a schema names.

    >>> list(map(show, named_in({"items": {"properties": {"a": {"properties": {"b": {}}}}}})))
    ['[].a', '[].a.b']
    """
    for name, inside in schema.get("properties", {}).items():
        yield (name,)
        yield from ((name, *path) for path in named_in(inside))
    if "items" in schema:
        yield from ((ITEM, *path) for path in named_in(schema["items"]))


def has(place: StructuralSchema | None, path: Sequence[str | Inside]) -> bool:
    """Report whether a schema allows a value at a path. Without a schema, every path is allowed."""
    for step in path:
        if step is ITEM:
            place = items(place)
            continue
        name = step if isinstance(step, str) else ""
        if not knows(place, name):
            return False
        place = child(place, name)
    return True
