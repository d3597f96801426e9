"""Durations in blueprints, which functions get as a number of seconds.

A function can pass one to anything that takes seconds, without a conversion.
"""

from __future__ import annotations

from polyver.core import PolyverError
from polyver.languages.values.durations import nanoseconds

__all__ = ["Duration", "InvalidDuration"]

_NANOS = 1_000_000_000


class InvalidDuration(PolyverError):
    """A string that is not a duration."""

    def __init__(self, text: str) -> None:
        super().__init__(f'"{text}" is not a duration', hint="write one as 90s, 1m30s or 2h")
        self.text = text


class Duration(float):
    """A duration in seconds, from a number of seconds or a string in Go's syntax.

    >>> Duration("1m30s") + 1, str(Duration("1m30s"))
    (91.0, '1m30s')
    """

    __slots__ = ()

    def __new__(cls, value: float | str) -> Duration:
        if not isinstance(value, str):
            return super().__new__(cls, value)
        found = nanoseconds(value)
        if found is None:
            raise InvalidDuration(value)
        return super().__new__(cls, found / _NANOS)

    def __str__(self) -> str:
        seconds = round(abs(float(self)), 9)
        hours, rest = divmod(seconds, 3600)
        minutes, left = divmod(rest, 60)
        shown = f"{hours:.0f}h" if hours else ""
        shown += f"{minutes:.0f}m" if minutes else ""
        shown += f"{left:.9f}".rstrip("0").rstrip(".") + "s" if left or not shown else ""
        return f"-{shown}" if self < 0 else shown

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"
