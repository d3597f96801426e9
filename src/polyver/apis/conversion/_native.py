"""What compiled code makes of single objects, for those who compare it with the rules in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from polyver.native import Compiled, Program

__all__ = ["native_way"]

Object = dict[str, Any]


def native_way(by: Compiled, program: Program, wanted: str) -> Callable[[Object], Object | None]:
    """A function for objects; it returns None for one that is left to Python."""
    table = by.table((program,))
    about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}

    def way(obj: Object) -> Object | None:
        request = {"desiredAPIVersion": wanted, "objects": [obj]}
        told = by.answer(table, msgspec.json.encode({**about, "request": request}))
        if told is None or told[-1] is not None:
            return None
        [made] = msgspec.json.decode(told[0])["response"]["convertedObjects"]
        found: Object = made
        return found

    return way
