"""Defaulting, on every write and every read; nulls that are not allowed are replaced or dropped."""

from __future__ import annotations

import copy
from typing import Any

from polyver.kube.objects.schema.structure import StructuralSchema

__all__ = ["complete", "fill_in"]

_FILLED = frozenset([dict, list, type(None)])


def fill_in(value: Any, place: StructuralSchema, *, drop: bool = True) -> None:
    """Add missing defaults, in place; replace or drop nulls that are not allowed."""
    if type(value) is dict:
        _fill_in_fields(value, place, drop=drop)
    elif type(value) is list and place.items is not None:
        _fill_in_items(value, place.items, drop=drop)


def complete(value: Any, place: StructuralSchema) -> None:
    """Add missing defaults, in place, to a value in which every null is allowed."""
    if type(value) is dict:
        _complete_fields(value, place)
    elif type(value) is list and place.items is not None and place.items.has_defaults:
        for item in value:
            complete(item, place.items)


def _complete_fields(value: dict[str, Any], place: StructuralSchema) -> None:
    for name, child in place.defaults:
        if name not in value:
            value[name] = _copied(child.default)
    for name, child in place.fields.items():
        if child.has_defaults and name in value:
            complete(value[name], child)
    if place.values is not None and place.values.has_defaults:
        for name, inside in value.items():
            if name not in place.fields:
                complete(inside, place.values)


def _fill_in_fields(value: dict[str, Any], place: StructuralSchema, *, drop: bool) -> None:
    for name, child in place.defaults:
        if name not in value:
            value[name] = _copied(child.default)
    gone: list[str] = []
    fields, values = place.fields, place.values
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


def _fill_in_items(value: list[Any], items: StructuralSchema, *, drop: bool) -> None:
    for number, item in enumerate(value):
        inside = item
        if inside is None and not items.nullable and items.default is not None:
            value[number] = inside = _copied(items.default)
        if type(inside) in _FILLED:
            fill_in(inside, items, drop=drop)


def _copied(default: Any) -> Any:
    return copy.deepcopy(default) if isinstance(default, dict | list) else default
