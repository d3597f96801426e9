"""Ages and durations in the short form of tables, such as `5m30s`."""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import UTC, datetime

__all__ = ["age_of", "human_duration", "seconds_between"]

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY
_SECONDS = {"s": 1, "m": _MINUTE, "h": _HOUR, "d": _DAY, "y": _YEAR}
_SCALE = (
    (2 * _MINUTE, "s", ""),
    (10 * _MINUTE, "m", "s"),
    (3 * _HOUR, "m", ""),
    (8 * _HOUR, "h", "m"),
    (2 * _DAY, "h", ""),
    (8 * _DAY, "d", "h"),
    (2 * _YEAR, "d", ""),
    (8 * _YEAR, "y", "d"),
    (float("inf"), "y", ""),
)
"""For each limit: the unit for durations below it, and the smaller unit that is added."""
_LIMITS = [limit for limit, _, _ in _SCALE]
_LONGEST = (2**63 - 1) // 10**9
"""The maximum of Go's durations in seconds: 292 years."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


def human_duration(seconds: float) -> str:
    """Return a duration in short form; almost two seconds below 0 are allowed, as clocks differ.

    >>> [human_duration(seconds) for seconds in (90, 330, 11520, 183600, -2)]
    ['90s', '5m30s', '3h12m', '2d3h', '<invalid>']
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    _, unit, smaller = _SCALE[bisect_right(_LIMITS, whole)]
    many, rest = divmod(whole, _SECONDS[unit])
    few = rest // _SECONDS[smaller] if smaller else 0
    return f"{many}{unit}{few}{smaller}" if few else f"{many}{unit}"


def age_of(time: str | None, now: datetime) -> str:
    """Return the age of a time, which may be missing or invalid.

    >>> age_of("2026-01-01T00:00:00Z", datetime(2026, 1, 4, tzinfo=UTC))
    '3d'
    """
    if not time:
        return "<unknown>"
    then = _read(time)
    if then is None:
        return "<invalid>"
    if then == _NEVER:
        return "<unknown>"
    return human_duration(min((now - then).total_seconds(), _LONGEST))


def seconds_between(start: str, end: str) -> float:
    """Return the seconds between two times; 0 if one is invalid."""
    first, last = _read(start), _read(end)
    return (last - first).total_seconds() if first and last else 0


def _read(time: str) -> datetime | None:
    if not _TIME.fullmatch(time):
        return None
    try:
        return datetime.fromisoformat(time)
    except ValueError:
        return None
