"""Functions for mappings; `set`, `unset` and the merge functions change their first argument."""

from __future__ import annotations

from typing import Any

from polyver.languages.gotemplate._budget import RenderBudget
from polyver.languages.gotemplate._data import is_empty
from polyver.languages.gotemplate._functions import FunctionTable
from polyver.languages.gotemplate._strings import to_text
from polyver.languages.gotemplate._values import NilDict, Strings, TemplateFailure, encoded, type_of

__all__ = ["DICTS"]

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
    """Return the keys of each mapping sorted; Go returns them in random order."""
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
    """Merge `other` into `target` recursively; an empty value in `target` counts as absent."""
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
