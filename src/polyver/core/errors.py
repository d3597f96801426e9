"""The base class of all errors that polyver raises on purpose: data, and a sentence made from it.

A message states the fact, the location and the next step, in that order; a caller can read the
data instead of the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["PolyverError", "listed"]


class PolyverError(Exception):
    """A fact, its location, and the next step.

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
    """Join names for a sentence, with the number of omitted names.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
