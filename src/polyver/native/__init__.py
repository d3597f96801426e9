"""Reviews answered by compiled code, where that was built: see reviews.c.

What it cannot answer, and all where it was not built, is answered by the same rules in Python.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Compiled", "LeftOut", "Program", "compiled"]

Program = tuple[object, ...]
"""What rules do, in tuples, whole numbers and bytes."""

Hole = tuple[int, int, int]
"""Where in an answer an object is missing, and where that begins and ends in the body."""

LeftOut = tuple[str, tuple[Hole, ...]]
"""The version that was wanted, and what was left to Python."""

Told = tuple[bytes, int, int, LeftOut | None]
"""An answer, how many objects were converted, the number of the program of one, and the holes."""


class Compiled(Protocol):
    """The functions of the compiled code."""

    def table(self, programs: tuple[Program, ...], /) -> object:
        """Programs, as they are used for many answers."""

    def answer(self, table: object, body: bytes | bytearray, /) -> Told | None:
        """The answer to a body that is text; None if it is not for compiled code."""

    def respond(  # noqa: PLR0917 - it is called for each request
        self,
        table: object,
        read: bytearray,
        size: int,
        start: bytes,
        rest: bytes,
        beginning: bytes,
        /,
    ) -> tuple[bytes, int, int] | None:
        """A whole answer in HTTP to a whole request, which is `size` bytes long.

        Its head is these bytes around the length of the body; the answer begins with those before
        its own length. None if Python has to look at anything.
        """


def _loaded() -> Compiled | None:
    try:
        from polyver.native import _reviews  # type: ignore[attr-defined,unused-ignore]
    except ImportError:
        return None
    found: Compiled = _reviews
    return found


compiled = _loaded()
"""None where it was not built."""
