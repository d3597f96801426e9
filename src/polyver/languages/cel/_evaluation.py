"""The state of a running CEL program with its cost so far, and access to fields and items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from polyver.languages.cel._conversions import to_text
from polyver.languages.cel._operators import index_of
from polyver.languages.cel._values import NONE, CelEvaluationError, List, Map, Optional
from polyver.languages.values.step_budget import OverAllowance, allowed

__all__ = [
    "MOST_PER_CALL",
    "CelConstant",
    "ExecutionFrame",
    "Run",
    "TooCostly",
    "is_present",
    "optionally",
    "selected",
    "shown",
]

MOST_PER_CALL: Final = 1_000_000
"""The maximum cost of one evaluation, in the units of cel-go."""


class TooCostly(Exception):
    """A program exceeded its maximum cost."""


class ExecutionFrame:
    """The state of a running program: the values of its variables, and its cost so far."""

    __slots__ = ("_limit", "_most", "cost", "names")

    def __init__(self, names: dict[str, Any], limit: int = MOST_PER_CALL) -> None:
        self.names = names
        self.cost = 0
        left = allowed()
        self._limit = limit
        self._most = limit if left is None else min(left, limit)

    def charge(self, cost: int) -> None:
        """Add to the cost so far.

        Raise `TooCostly` if the cost exceeds the maximum of one evaluation. Raise `OverAllowance`
        if it only exceeds the steps that are left for work on the event loop.
        """
        self.cost += cost
        if self.cost > self._most:
            raise TooCostly if self.cost > self._limit else OverAllowance


Run = Callable[[ExecutionFrame], Any]


class CelConstant:
    """A value that is known before the program runs."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _: ExecutionFrame) -> Any:
        return self.value


def shown(value: Any) -> str:
    """Write a value in the form of error messages."""
    try:
        return to_text(value)
    except CelEvaluationError:
        return str(value)


def _found(operand: Any, key: Any) -> tuple[Any, bool]:
    """Return the value at a key or index and True, or None and False if there is no such value."""
    if isinstance(operand, Map):
        return operand.find(key)
    if isinstance(operand, List):
        index = index_of(key)
        inside = 0 <= index < len(operand)
        return (operand.items[index] if inside else None), inside
    return None, False


def selected(operand: Any, key: Any) -> Any:
    """Return the value at a key or index; raise `CelEvaluationError` if there is none.

    If the operand is an optional value, return an optional value.
    """
    if isinstance(operand, Optional):
        if not operand.present:
            return NONE
        found, there = _found(operand.value, key)
        return Optional(found) if there else NONE
    found, there = _found(operand, key)
    if there:
        return found
    text = "index out of bounds" if isinstance(operand, List) else "no such key"
    raise CelEvaluationError(f"{text}: {shown(key)}")


def is_present(operand: Any, name: str) -> bool:
    """Report whether a map, or the map inside an optional value, has the field `name`."""
    if isinstance(operand, Optional):
        return operand.present and _found(operand.value, name)[1]
    return _found(operand, name)[1]


def optionally(operand: Any, key: Any) -> Optional:
    """Return the value at a key or index as an optional value, which is empty if there is none."""
    if isinstance(operand, Optional):
        operand = operand.value
    found, there = _found(operand, key)
    return Optional(found) if there else NONE
