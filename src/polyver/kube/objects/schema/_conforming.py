"""Pruning and defaulting of custom resources; the given object is changed.

Pruning drops unknown fields and lists their paths. Defaulting, on every write and every read, gives
absent fields their defaults. If the schema does not allow a null, defaulting replaces the null by
the default, or drops the field if there is no default.
"""

from __future__ import annotations

import copy
from typing import Any

from polyver.kube.objects.schema.structure import META_FIELDS, StructuralSchema

__all__ = ["complete", "fill_in", "prune"]

_CONTAINERS = frozenset([dict, list])


def prune(value: Any, schema: StructuralSchema | None, path: str, dropped: list[str]) -> None:
    """Drop unknown fields from `value` itself, and add their paths to `dropped`."""
    if type(value) is list:
        items = schema.items if schema is not None else None
        if schema is not None and schema.preserves:
            _spare_items(value, items, path, dropped)
            return
        for number, item in enumerate(value):
            if type(item) in _CONTAINERS:
                prune(item, items, f"{path}[{number}]", dropped)
    elif type(value) is not dict:
        return
    elif schema is None:
        dropped += [_inside(path, key) for key in value]
        value.clear()
    else:
        _prune_fields(value, schema, path, dropped)


def _spare_items(
    value: list[Any], items: StructuralSchema | None, path: str, dropped: list[str]
) -> None:
    """Prune the items of a list whose schema preserves unknown fields.

    The unknown fields of each item stay, but unknown fields on deeper levels are dropped.
    """
    if items is None:
        return
    for number, item in enumerate(value):
        if type(item) is dict:
            _prune_fields(item, items, f"{path}[{number}]", dropped, spare=True)
        elif type(item) is list:
            _spare_items(item, items.items, f"{path}[{number}]", dropped)


def _prune_fields(
    value: dict[str, Any],
    schema: StructuralSchema,
    path: str,
    dropped: list[str],
    *,
    spare: bool = False,
) -> None:
    fields = schema.fields
    unknown: list[str] = []
    for key, inside in value.items():
        if key in fields:
            inner: StructuralSchema | None = fields[key]
        elif schema.takes_any_key:
            inner = schema.values
        else:
            unknown.append(key)
            continue
        if type(inside) in _CONTAINERS and not (schema.embedded and key in META_FIELDS):
            prune(inside, inner, _inside(path, key), dropped)
    if schema.preserves or spare:
        return
    for key in unknown:
        if not schema.embedded or key not in META_FIELDS:
            dropped.append(_inside(path, key))
            del value[key]


def _inside(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


_FILLED = frozenset([dict, list, type(None)])


def fill_in(value: Any, schema: StructuralSchema, *, drop: bool = True) -> None:
    """Give missing fields in `value` their defaults.

    A null that the schema does not allow is replaced by the default. If there is no default, it is
    dropped if `drop` is True.
    """
    if type(value) is dict:
        _fill_in_fields(value, schema, drop=drop)
    elif type(value) is list and schema.items is not None:
        items = schema.items
        for number, item in enumerate(value):
            inside = item
            if inside is None and not items.nullable and items.default is not None:
                value[number] = inside = _copied(items.default)
            if type(inside) in _FILLED:
                fill_in(inside, items, drop=drop)


def complete(value: Any, schema: StructuralSchema) -> None:
    """Give missing fields in `value` their defaults. Every null stays."""
    if type(value) is list and schema.items is not None and schema.items.has_defaults:
        for item in value:
            complete(item, schema.items)
    if type(value) is not dict:
        return
    for name, child in schema.defaults:
        if name not in value:
            value[name] = _copied(child.default)
    for name, child in schema.fields.items():
        if child.has_defaults and name in value:
            complete(value[name], child)
    if schema.values is not None and schema.values.has_defaults:
        others = [inside for name, inside in value.items() if name not in schema.fields]
        for inside in others:
            complete(inside, schema.values)


def _fill_in_fields(value: dict[str, Any], schema: StructuralSchema, *, drop: bool) -> None:
    for name, child in schema.defaults:
        if name not in value:
            value[name] = _copied(child.default)
    gone: list[str] = []
    fields, values = schema.fields, schema.values
    for key, inside in value.items():
        if type(inside) not in _FILLED:
            continue
        inner = fields.get(key, values)
        if inner is None:
            continue
        if inside is not None:
            fill_in(inside, inner, drop=drop)
        elif inner.default is not None and not inner.nullable:
            value[key] = filled = _copied(inner.default)
            fill_in(filled, inner, drop=drop)
        elif drop and not inner.nullable:
            gone.append(key)
    for key in gone:
        del value[key]


def _copied(default: Any) -> Any:
    return copy.deepcopy(default) if isinstance(default, dict | list) else default
