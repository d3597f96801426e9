"""Checks that lists of type set or map have no duplicates, which no schema keyword expresses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polyver.kube.objects.schema.structure import StructuralSchema
from polyver.kube.objects.status import Cause
from polyver.languages.values.strings import as_number, shown

__all__ = ["check_lists"]


def check_lists(value: Any, place: StructuralSchema | None, path: str) -> list[Cause]:
    """Return an error for each duplicate in the set and map lists of a value."""
    if place is None or not place.has_lists:
        return []
    if type(value) is dict:
        return _check_fields(value, place, path)
    return _check_list(value, place, path) if type(value) is list else []


def _check_fields(value: dict[str, Any], place: StructuralSchema, path: str) -> list[Cause]:
    causes: list[Cause] = []
    for key, inner in place.listed:
        if key in value:
            causes += check_lists(value[key], inner, f"{path}.{key}" if path else key)
    if place.values is not None and place.values.has_lists:
        for key, inside in value.items():
            causes += check_lists(inside, place.values, f"{path}[{key}]")
    return causes


def _check_list(value: list[Any], place: StructuralSchema, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if place.list_type == "set" and not _all_differ(value):
        causes += [_twice(path, number, value[number]) for number in _repeated(value)]
    elif place.list_type == "map":
        causes += _check_keys(value, place.keys, path)
    if place.items is not None and place.items.has_lists:
        for number, item in enumerate(value):
            causes += check_lists(item, place.items, f"{path}[{number}]")
    return causes


def _check_keys(value: list[Any], keys: tuple[str, ...], path: str) -> list[Cause]:
    for number, item in enumerate(value):
        if item is not None and type(item) is not dict:
            text = "must be an object for an array of list-type map"
            return [Cause(f"{path}[{number}]", f"Invalid value: {shown(item)}: {text}")]
    if _all_differ([tuple(map((item or {}).get, keys)) for item in value]):
        return []
    found = [{key: item[key] for key in keys if key in item} if item else {} for item in value]
    return [_twice(path, number, found[number]) for number in _repeated(found)]


def _twice(path: str, number: int, value: Any) -> Cause:
    return Cause(f"{path}[{number}]", f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def _all_differ(items: list[Any]) -> bool:
    """Report whether all items certainly differ; values such as 1 and true need a closer look."""
    try:
        return len(set(items)) == len(items)
    except TypeError:
        return False


def _repeated(items: Iterable[Any]) -> list[int]:
    """Return the positions where an item occurs for the second time, not for the third."""
    times: dict[object, int] = {}
    repeated: list[int] = []
    for number, item in enumerate(items):
        key = _identity(item)
        times[key] = times.get(key, 0) + 1
        if times[key] == 2:
            repeated.append(number)
    return repeated


def _identity(item: Any) -> object:
    if isinstance(item, dict):
        return frozenset((key, _identity(value)) for key, value in item.items())
    if isinstance(item, list):
        return tuple(map(_identity, item))
    if isinstance(item, int | float) and not isinstance(item, bool):
        item = as_number(item)
    return (type(item), item)
