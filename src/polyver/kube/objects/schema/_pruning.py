"""Drops unknown fields from custom resources and lists their paths."""

from __future__ import annotations

from typing import Any

from polyver.kube.objects.schema.structure import META_FIELDS, StructuralSchema

__all__ = ["prune"]

_CONTAINERS = frozenset([dict, list])


def prune(value: Any, place: StructuralSchema | None, path: str, dropped: list[str]) -> None:
    """Drop fields that the schema does not know from a value, in place."""
    if type(value) is list:
        _prune_list(value, place, path, dropped)
    elif type(value) is not dict:
        return
    elif place is None:
        dropped += [_inside(path, key) for key in value]
        value.clear()
    else:
        _prune_fields(value, place, path, dropped)


def _prune_list(
    value: list[Any], place: StructuralSchema | None, path: str, dropped: list[str]
) -> None:
    items = place.items if place is not None else None
    if place is not None and place.preserves:
        _spare_items(value, items, path, dropped)
        return
    for number, item in enumerate(value):
        if type(item) in _CONTAINERS:
            prune(item, items, f"{path}[{number}]", dropped)


def _spare_items(
    value: list[Any], items: StructuralSchema | None, path: str, dropped: list[str]
) -> None:
    """Prune a list that preserves unknown fields: its items preserve theirs, too."""
    if items is None:
        return
    for number, item in enumerate(value):
        if type(item) is dict:
            _prune_fields(item, items, f"{path}[{number}]", dropped, spare=True)
        elif type(item) is list:
            _spare_items(item, items.items, f"{path}[{number}]", dropped)


def _prune_fields(
    value: dict[str, Any],
    place: StructuralSchema,
    path: str,
    dropped: list[str],
    *,
    spare: bool = False,
) -> None:
    fields = place.fields
    unknown: list[str] = []
    for key, inside in value.items():
        if key in fields:
            inner: StructuralSchema | None = fields[key]
        elif place.takes_any_key:
            inner = place.values
        else:
            unknown.append(key)
            continue
        if type(inside) in _CONTAINERS and not (place.embedded and key in META_FIELDS):
            prune(inside, inner, f"{path}.{key}" if path else key, dropped)
    if unknown and not (place.preserves or spare):
        _drop(value, unknown, place, path, dropped)


def _drop(
    value: dict[str, Any],
    unknown: list[str],
    place: StructuralSchema,
    path: str,
    dropped: list[str],
) -> None:
    for key in unknown:
        if not place.embedded or key not in META_FIELDS:
            dropped.append(_inside(path, key))
            del value[key]


def _inside(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
