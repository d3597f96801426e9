"""An allowance of steps for work that can be repeated.

The event loop checks an object with an allowance; a check that needs more steps is stopped and
repeated in a worker thread, which has no allowance.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["OverAllowance", "allowed", "limited", "spend"]


class OverAllowance(Exception):
    """More steps are needed than the allowance has left."""


_left: ContextVar[list[int] | None] = ContextVar("allowance", default=None)


@contextmanager
def limited(steps: int) -> Iterator[None]:
    """Raise `OverAllowance` if the body spends more than a number of steps.

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
    """Return the number of steps that are left; None if there is no allowance."""
    left = _left.get()
    return None if left is None else left[0]


def spend(steps: int) -> None:
    """Count steps before they are executed; raise `OverAllowance` if too few are left."""
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise OverAllowance
