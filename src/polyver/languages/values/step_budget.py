"""An allowance of steps, so that the validation of an object does not block the event loop.

An object is first validated on the event loop, with a limited number of steps (the allowance). If
the validation needs more steps, it is stopped and repeated in a worker thread, without a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["OverAllowance", "allowed", "limited", "spend"]


class OverAllowance(Exception):
    """The work needs more steps than are left in the allowance."""


_left: ContextVar[list[int] | None] = ContextVar("allowance", default=None)


@contextmanager
def limited(steps: int) -> Iterator[None]:
    """Set an allowance for the `with` block; `spend` raises `OverAllowance` if it is exceeded.

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
    """Take `steps` from the allowance, before the caller executes them.

    Raise `OverAllowance` if too few steps are left. Without an allowance, do nothing.
    """
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise OverAllowance
