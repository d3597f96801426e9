"""Functions for lists; they return new lists."""

from __future__ import annotations

from typing import Any

from polyver.languages.gotemplate._budget import RenderBudget
from polyver.languages.gotemplate._data import equal, is_empty
from polyver.languages.gotemplate._functions import FunctionTable
from polyver.languages.gotemplate._math import to_whole
from polyver.languages.gotemplate._values import Lists, NilList, TemplateFailure, kind_of

__all__ = ["LISTS"]

LISTS = FunctionTable("lists")
LISTS.put("list tuple", "any...", lambda *values: list(values))


def _items(value: object, verb: str) -> list[Any]:
    if isinstance(value, list):
        return value
    if value is None:
        raise TemplateFailure("runtime error: invalid memory address or nil pointer dereference")
    raise TemplateFailure(f"Cannot {verb} type {kind_of(value)}")


@LISTS.add("append push mustAppend mustPush", "any any")
def _append(values: object, value: object) -> list[object]:
    return [*_items(values, "push on"), value]


@LISTS.add("prepend mustPrepend", "any any")
def _prepend(values: object, value: object) -> list[object]:
    return [value, *_items(values, "prepend on")]


@LISTS.add("first mustFirst", "any")
def _first(values: object) -> object:
    found = _items(values, "find first on")
    return found[0] if found else None


@LISTS.add("last mustLast", "any")
def _last(values: object) -> object:
    found = _items(values, "find last on")
    return found[-1] if found else None


@LISTS.add("rest mustRest", "any")
def _rest(values: object) -> list[object]:
    found = _items(values, "find rest on")
    return list(found[1:]) if found else NilList()


@LISTS.add("initial mustInitial", "any")
def _initial(values: object) -> list[object]:
    found = _items(values, "find initial on")
    return list(found[:-1]) if found else NilList()


@LISTS.add("reverse mustReverse", "any")
def _reverse(values: object) -> list[object]:
    return list(reversed(_items(values, "find reverse on")))


@LISTS.add("compact mustCompact", "any")
def _compact(values: object) -> list[object]:
    return [value for value in _items(values, "compact on") if not is_empty(value)]


@LISTS.add("uniq mustUniq", "any", budgeted=True)
def _uniq(budget: RenderBudget, values: object) -> list[object]:
    found: list[object] = []
    seen: set[object] = set()
    for value in _items(values, "find uniq on"):
        if isinstance(value, list | dict):
            is_new = not _is_in(budget, found, value)
        else:
            is_new = (type(value), value) not in seen
            seen.add((type(value), value))
        if is_new:
            found.append(value)
    return found


def _is_in(budget: RenderBudget, values: list[Any], wanted: object) -> bool:
    return any(equal(budget, wanted, value) for value in values)


@LISTS.add("without mustWithout", "any any...", budgeted=True)
def _without(budget: RenderBudget, values: object, *gone: object) -> list[object]:
    found = _items(values, "find without on")
    return [value for value in found if not _is_in(budget, list(gone), value)]


@LISTS.add("has mustHas", "any any", budgeted=True)
def _has(budget: RenderBudget, wanted: object, values: object) -> bool:
    return values is not None and _is_in(budget, _items(values, "find has on"), wanted)


@LISTS.add("slice mustSlice", "any any...")
def _slice(values: object, *places: object) -> object:
    found = _items(values, "slice")
    if not found:
        return None
    start = to_whole(places[0]) if places else 0
    end = to_whole(places[1]) if len(places) > 1 else len(found)
    if not 0 <= start <= end <= len(found):
        raise TemplateFailure("reflect.Value.Slice: slice index out of bounds")
    return type(found)(found[start:end])


@LISTS.add("concat", "any...", budgeted=True)
def _concat(budget: RenderBudget, *lists: object) -> list[object]:
    joined: list[object] = []
    for each in lists:
        found = _items(each, "concat")
        budget.spend(len(found) // 8)
        joined += found
    return joined or NilList()


@LISTS.add("chunk mustChunk", "int any")
def _chunk(size: int, values: object) -> Lists:
    found = _items(values, "chunk")
    if size <= 0:
        raise TemplateFailure("runtime error: makeslice: len out of range")
    return Lists(found[at : at + size] for at in range(0, len(found), size))
