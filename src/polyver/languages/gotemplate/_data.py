"""Template functions for values of any type: defaults, types, equality, copies."""

from __future__ import annotations

from typing import Any

from polyver.languages.gotemplate._budget import RenderBudget
from polyver.languages.gotemplate._functions import FunctionTable
from polyver.languages.gotemplate._values import TemplateFailure, Version, is_true, kind_of, type_of

__all__ = ["DATA", "copied", "equal", "is_empty"]

DATA = FunctionTable("values")


def is_empty(value: object) -> bool:
    """Report whether a value is nil, zero, false or empty."""
    return not is_true(value)


@DATA.add("default", "any any...")
def _default(otherwise: object, *given: object) -> object:
    return otherwise if not given or is_empty(given[0]) else given[0]


DATA.put("empty", "any", is_empty)
DATA.put("coalesce", "any...", lambda *values: next(filter(is_true, values), None))
DATA.put("all", "any...", lambda *values: all(map(is_true, values)))
DATA.put("any", "any...", lambda *values: any(map(is_true, values)))
DATA.put("ternary", "any any bool", lambda one, other, chosen: one if chosen else other)
DATA.put("typeOf", "any", type_of)
DATA.put("typeIs", "string any", lambda name, value: name == type_of(value))
DATA.put("kindOf", "any", kind_of)
DATA.put("kindIs", "string any", lambda name, value: name == kind_of(value))


@DATA.add("typeIsLike", "string any")
def _type_is_like(name: str, value: object) -> bool:
    return type_of(value) in (name, f"*{name}")


@DATA.add("fail", "string")
def _fail(message: str) -> object:
    raise TemplateFailure(message)


@DATA.add("required", "string any")
def _required(message: str, value: object) -> object:
    """Return a value; fail with `message` if the value is nil or "". Helm has the same function."""
    if value is None or value == "":
        raise TemplateFailure(message)
    return value


def equal(budget: RenderBudget, one: Any, other: Any, depth: int = 0) -> bool:
    """Report whether two values and their types are equal, also inside lists and mappings."""
    budget.dive(depth)
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            equal(budget, one[key], other[key], depth + 1) for key in one
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(
            equal(budget, each, given, depth + 1) for each, given in zip(one, other, strict=True)
        )
    if isinstance(one, Version):
        return str(one) == str(other) and one.original == other.original
    return bool(one == other)


DATA.add("deepEqual", "any any", budgeted=True)(equal)


def copied(budget: RenderBudget, value: object, depth: int = 0) -> object:
    """Return a deep copy."""
    budget.dive(depth)
    if isinstance(value, dict):
        return type(value)((key, copied(budget, each, depth + 1)) for key, each in value.items())
    if isinstance(value, list):
        return type(value)(copied(budget, each, depth + 1) for each in value)
    return value


@DATA.add("deepCopy mustDeepCopy", "any", budgeted=True)
def _deep_copy(budget: RenderBudget, value: object) -> object:
    if value is None:
        raise TemplateFailure("there is nothing to copy")
    return copied(budget, value)
