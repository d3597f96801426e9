"""A cheap comparison of the size of plain data with a limit."""

from __future__ import annotations

from typing import Any

__all__ = ["is_larger"]


def is_larger(value: Any, size: int) -> bool:
    """Report whether plain data would take more than about `size` bytes of JSON.

    The walk ends as soon as that is known, so it is cheap for large data.

    >>> is_larger({"a": ["b"] * 10}, 100), is_larger({"a": ["b"] * 100}, 100)
    (False, True)
    """
    waiting = [value]
    while waiting and size >= 0:
        found = waiting.pop()
        size -= 4
        if isinstance(found, str):
            size -= len(found)
        elif isinstance(found, dict):
            size -= sum(map(len, found)) if len(found) * 4 <= size else size + 1
            waiting += found.values() if size >= 0 else ()
        elif isinstance(found, list):
            size -= 0 if len(found) * 4 <= size else size + 1
            waiting += found if size >= 0 else ()
    return size < 0
