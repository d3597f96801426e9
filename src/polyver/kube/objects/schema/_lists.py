"""Lists that are sets or maps hold nothing twice; the schema's own keywords do not say so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polyver.kube.objects.schema.structure import StructuralSchema
from polyver.kube.objects.status import Cause
from polyver.languages.values.strings import as_number, shown

__all__ = ["check_lists"]


def check_lists(value: Any, place: StructuralSchema | None, path: str) -> list[Cause]:
    """What is there twice in the sets and maps among the lists of a value."""
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
    """Whether a quick look suffices: if not, some may still differ, such as 1 and true."""
    try:
        return len(set(items)) == len(items)
    except TypeError:
        return False


def _repeated(items: Iterable[Any]) -> list[int]:
    """Where an item stands for the second time; the third is not told of."""
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
