"""An allowance of steps: work that is known to be repeatable may be tried with few steps first.

The event loop checks an object with an allowance; a check that needs more steps is given up and
repeated in a worker thread, which has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["OverAllowance", "allowed", "limited", "spend"]


class OverAllowance(Exception):
    """More steps are needed than the allowance has."""


_left: ContextVar[list[int] | None] = ContextVar("allowance", default=None)


@contextmanager
def limited(steps: int) -> Iterator[None]:
    """Raise `OverAllowance` in the body when it spends more than so many steps.

    >>> with limited(10):
    ...     spend(11)
    Traceback (most recent call last):
    polyver.languages.values.step_budget.OverAllowance
    """
    token = _left.set([steps])
    try:
        yield
    finally:
        _left.reset(token)


def allowed() -> int | None:
    """Return how many steps may still be spent; None for any number."""
    left = _left.get()
    return None if left is None else left[0]


def spend(steps: int) -> None:
    """Count steps before they are taken."""
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise OverAllowance
