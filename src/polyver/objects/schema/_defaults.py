"""Defaults are filled in on every write and every read; nulls that mean nothing go first."""

from __future__ import annotations

import copy
from typing import Any

from polyver.objects.schema._structure import Structure

__all__ = ["fill_in"]


def fill_in(value: Any, place: Structure) -> None:
    """Replace nulls that may not be by their default, or drop them; add what is missing."""
    if type(value) is dict:
        _fill_in_fields(value, place)
    elif type(value) is list and place.items is not None:
        _fill_in_items(value, place.items)


def _fill_in_fields(value: dict[str, Any], place: Structure) -> None:
    for name, child in place.defaults:
        if name not in value:
            value[name] = _copied(child.default)
    gone: list[str] = []
    fields, values = place.fields, place.values
    for key, inside in value.items():
        inner = fields.get(key, values)
        if inner is None:
            continue
        if inside is None:
            if inner.nullable:
                continue
            if inner.default is None:
                gone.append(key)
                continue
            value[key] = filled = _copied(inner.default)
            fill_in(filled, inner)
        elif type(inside) is dict or type(inside) is list:
            fill_in(inside, inner)
    for key in gone:
        del value[key]


def _fill_in_items(value: list[Any], items: Structure) -> None:
    for number, item in enumerate(value):
        inside = item
        if inside is None and not items.nullable and items.default is not None:
            value[number] = inside = _copied(items.default)
        if type(inside) is dict or type(inside) is list:
            fill_in(inside, items)


def _copied(default: Any) -> Any:
    return copy.deepcopy(default) if isinstance(default, dict | list) else default
