"""CEL operators that skip an argument, or that accept an argument whose evaluation fails.

For example, `a || b` is true if b is true, even if evaluating a fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyver.languages.cel._evaluation import ExecutionFrame, Run, optionally, selected
from polyver.languages.cel._nodes import CelCall, CelIdentifier, CelNode, CelSelect
from polyver.languages.cel._values import CelEvaluationError, Optional, no_overload

__all__ = ["SPECIAL", "step_cost"]


def step_cost(operand: CelNode) -> int:
    """Return the cost of selecting a field or item of an operand.

    The cost is 1 if the operand is itself a name or a selection, and 2 otherwise.
    """
    steps = ("_[_]", "_[?_]", "_?._")
    is_path = isinstance(operand, CelIdentifier | CelSelect)
    return 1 if is_path or (isinstance(operand, CelCall) and operand.function in steps) else 2


def _and(runs: Sequence[Run], _: int) -> Run:
    return _logical(runs, stop=False)


def _or(runs: Sequence[Run], _: int) -> Run:
    return _logical(runs, stop=True)


def _logical(runs: Sequence[Run], *, stop: bool) -> Run:
    def run(frame: ExecutionFrame) -> bool:
        failure: CelEvaluationError | None = None
        for each in runs:
            try:
                found = each(frame)
            except CelEvaluationError as problem:
                failure = failure or problem
                continue
            if isinstance(found, bool) and found is stop:
                return stop
            if not isinstance(found, bool):
                failure = failure or no_overload()
        if failure is not None:
            raise failure
        return not stop

    return run


def _conditional(runs: Sequence[Run], _: int) -> Run:
    test, then, other = runs

    def run(frame: ExecutionFrame) -> Any:
        found = test(frame)
        if not isinstance(found, bool):
            raise no_overload()
        return then(frame) if found else other(frame)

    return run


def _not_false(runs: Sequence[Run], _: int) -> Run:
    def run(frame: ExecutionFrame) -> bool:
        try:
            frame.charge(1)
            return runs[0](frame) is not False
        except CelEvaluationError:
            return True

    return run


def _index(runs: Sequence[Run], cost: int) -> Run:
    def run(frame: ExecutionFrame) -> Any:
        operand, key = runs[0](frame), runs[1](frame)
        frame.charge(cost)
        return selected(operand, key)

    return run


def _optional_index(runs: Sequence[Run], cost: int) -> Run:
    def run(frame: ExecutionFrame) -> Any:
        operand, key = runs[0](frame), runs[1](frame)
        frame.charge(cost)
        return optionally(operand, key)

    return run


def _or_else(runs: Sequence[Run], _: int) -> Run:
    return _otherwise(runs, unwrap=False)


def _or_value(runs: Sequence[Run], _: int) -> Run:
    return _otherwise(runs, unwrap=True)


def _otherwise(runs: Sequence[Run], *, unwrap: bool) -> Run:
    def run(frame: ExecutionFrame) -> Any:
        found = runs[0](frame)
        if not isinstance(found, Optional):
            raise no_overload()
        if not found.present:
            return runs[1](frame)
        return found.value if unwrap else found

    return run


SPECIAL: dict[str, Callable[[Sequence[Run], int], Run]] = {
    "_&&_": _and,
    "_||_": _or,
    "_?_:_": _conditional,
    "@not_strictly_false": _not_false,
    "_[_]": _index,
    "_[?_]": _optional_index,
    "_?._": _optional_index,
    "or": _or_else,
    "orValue": _or_value,
}
