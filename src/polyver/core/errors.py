"""The base class of all errors that polyver raises on purpose.

The message of an error states the fact, the location and the next step, in that order. Each of
these three parts is also an attribute of the error.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["PolyverError", "listed"]


class PolyverError(Exception):
    """An error: a fact, the location of its cause (`at`), and the next step for the user (`hint`).

    >>> print(PolyverError("webservice has no 1.2.9", at="spec.type", hint="known: 1.2.3"))
    webservice has no 1.2.9 (spec.type); known: 1.2.3
    """

    def __init__(self, fact: str, *, at: str = "", hint: str = "") -> None:
        super().__init__(fact, at, hint)
        self._fact = fact
        self._at = at
        self._hint = hint

    @property
    def fact(self) -> str:
        return self._fact

    @property
    def at(self) -> str:
        return self._at

    @property
    def hint(self) -> str:
        return self._hint

    def __str__(self) -> str:
        place = f" ({self.at})" if self.at else ""
        step = f"; {self.hint}" if self.hint else ""
        return f"{self.fact}{place}{step}"


def listed(names: Sequence[str], *, most: int = 12) -> str:
    """Join names for a sentence: at most `most` names, and the number of the remaining names.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
