"""Template functions for lists and mappings.

Functions for lists return new lists. The functions `set` and `unset` and the merge functions change
their first argument.
"""

from __future__ import annotations

from typing import Any

from polyver.languages.gotemplate._budget import RenderBudget
from polyver.languages.gotemplate._data import equal, is_empty
from polyver.languages.gotemplate._functions import FunctionTable
from polyver.languages.gotemplate._math import to_integer
from polyver.languages.gotemplate._strings import to_text
from polyver.languages.gotemplate._values import (
    Lists,
    NilDict,
    NilList,
    Strings,
    TemplateFailure,
    encoded,
    kind_of,
    type_of,
)

__all__ = ["DICTS", "LISTS"]

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
def _slice(values: object, *bounds: object) -> object:
    found = _items(values, "slice")
    if not found:
        return None
    start = to_integer(bounds[0]) if bounds else 0
    end = to_integer(bounds[1]) if len(bounds) > 1 else len(found)
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


DICTS = FunctionTable("mappings")
Dict = dict[str, Any]


@DICTS.add("dict", "any...", budgeted=True)
def _dict(budget: RenderBudget, *values: object) -> Dict:
    keys = [to_text(budget, key) for key in values[::2]]
    given = [*values[1::2], ""] if len(values) % 2 else values[1::2]
    return dict(zip(keys, given, strict=True))


DICTS.put("get", "dict string", lambda values, key: values.get(key, ""))
DICTS.put("hasKey", "dict string", lambda values, key: key in values)


@DICTS.add("set", "dict string any")
def _set(values: Dict, key: str, value: object) -> Dict:
    if isinstance(values, NilDict):
        raise TemplateFailure("assignment to entry in nil map")
    values[key] = value
    return values


@DICTS.add("unset", "dict string")
def _unset(values: Dict, key: str) -> Dict:
    values.pop(key, None)
    return values


@DICTS.add("pluck", "string dict...")
def _pluck(key: str, *dicts: Dict) -> list[object]:
    return [each[key] for each in dicts if key in each]


@DICTS.add("keys", "dict...", budgeted=True)
def _keys(budget: RenderBudget, *dicts: Dict) -> Strings:
    """Return the keys of each mapping, sorted. In Go, the order is random."""
    budget.spend(sum(map(len, dicts)) // 8)
    return Strings(key for each in dicts for key in sorted(each, key=encoded))


@DICTS.add("values", "dict")
def _values(values: Dict) -> list[object]:
    return [values[key] for key in sorted(values, key=encoded)]


@DICTS.add("pick", "dict string...")
def _pick(values: Dict, *keys: str) -> Dict:
    return {key: values[key] for key in keys if key in values}


@DICTS.add("omit", "dict string...")
def _omit(values: Dict, *keys: str) -> Dict:
    return {key: value for key, value in values.items() if key not in keys}


@DICTS.add("dig", "any...")
def _dig(*given: object) -> object:
    if len(given) < 3:
        raise TemplateFailure("dig needs at least three arguments")
    *keys, otherwise, found = given
    for key in keys:
        if not isinstance(key, str):
            raise TemplateFailure(f"a key is of type {type_of(key)}, not string")
        if type(found) is not dict:
            raise TemplateFailure(f"a value of type {type_of(found)} has no keys")
        if key not in found:
            return otherwise
        found = found[key]
    return found


# Merging


@DICTS.add("merge mustMerge", "dict dict...", budgeted=True)
def _merge(budget: RenderBudget, target: Dict, *others: Dict) -> Dict:
    target = {} if isinstance(target, NilDict) else target
    for other in others:
        _merge_into(budget, target, other, 0, overwrites=False)
    return target


@DICTS.add("mergeOverwrite mustMergeOverwrite", "dict dict...", budgeted=True)
def _merge_overwrite(budget: RenderBudget, target: Dict, *others: Dict) -> Dict:
    target = {} if isinstance(target, NilDict) else target
    for other in others:
        _merge_into(budget, target, other, 0, overwrites=True)
    return target


def _merge_into(
    budget: RenderBudget, target: Dict, other: Dict, depth: int, *, overwrites: bool
) -> None:
    """Merge `other` into `target`, and mappings inside them in the same way.

    An empty value in `target` counts as absent. A value that is present stays, unless `overwrites`
    is set.
    """
    budget.dive(depth)
    if target is other:
        return
    for key, value in list(other.items()):
        budget.spend()
        known = target.get(key)
        if value is None:
            if overwrites:
                target[key] = None
        elif isinstance(known, dict) and isinstance(value, dict) and known:
            _merge_into(budget, known, value, depth + 1, overwrites=overwrites)
        elif is_empty(known) or overwrites:
            target[key] = value
