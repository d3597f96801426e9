"""One page of a long list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

__all__ = ["PAGE", "paged"]

T = TypeVar("T")
PAGE = 50
"""The number of rows on one page."""


def paged(items: Iterable[T], page: int, *, size: int = PAGE) -> dict[str, Any]:
    """Return one page of items; if the page number is too high, return the last page."""
    found = items if isinstance(items, list) else list(items)
    last = max(1, -(-len(found) // size))
    page = min(max(page, 1), last)
    return {
        "total": len(found),
        "page": page,
        "pages": last,
        "items": found[(page - 1) * size : page * size],
    }
