"""CEL functions for timestamps and durations."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from polyver.languages.cel._moments import civil
from polyver.languages.cel._values import CelDuration, CelEvaluationError, Timestamp
from polyver.languages.values.strings import quoted

__all__ = ["TIMES"]

_SECOND = 1_000_000_000


def _offset(moment: Timestamp, zone: str) -> int:
    """Return the offset of a time zone from UTC, in seconds, at the time of a timestamp."""
    hours, colon, minutes = zone.partition(":")
    if colon:
        return _written_offset(zone, hours, minutes)
    if zone in ("", "UTC"):
        return 0
    try:
        known = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CelEvaluationError(f"unknown time zone {zone}") from None
    found = civil(moment).astimezone(UTC).astimezone(known).utcoffset()
    return int(found.total_seconds()) if found else 0


def _written_offset(zone: str, hours: str, minutes: str) -> int:
    for part in (hours, minutes):
        if not re.fullmatch("[+-]?[0-9]{1,9}", part):
            raise CelEvaluationError(f"strconv.Atoi: parsing {quoted(part)}: invalid syntax")
    sign = -1 if zone.startswith("-") else 1
    return (int(hours) * 60 + sign * int(minutes)) * 60


_Part = Callable[[datetime, Timestamp], int]


def _part(read: _Part) -> Callable[..., int]:
    def get(moment: Timestamp, zone: str = "UTC") -> int:
        try:
            return read(civil(moment, _offset(moment, zone)), moment)
        except OverflowError:
            raise CelEvaluationError("timestamp overflow") from None

    return get


_PARTS: dict[str, _Part] = {
    "year": lambda day, _: day.year,
    "month": lambda day, _: day.month - 1,
    "day_of_year": lambda day, _: day.timetuple().tm_yday - 1,
    "day_of_month": lambda day, _: day.day - 1,
    "day_of_month_1_based": lambda day, _: day.day,
    "day_of_week": lambda day, _: day.isoweekday() % 7,
    "hours": lambda day, _: day.hour,
    "minutes": lambda day, _: day.minute,
    "seconds": lambda day, _: day.second,
    "milliseconds": lambda _, moment: moment.nanos % _SECOND // 1_000_000,
}
_LENGTHS = {
    "hours": 3600 * _SECOND,
    "minutes": 60 * _SECOND,
    "seconds": _SECOND,
    "milliseconds": 1_000_000,
}


def _length(unit: int) -> Callable[[CelDuration], int]:
    def get(found: CelDuration) -> int:
        whole = abs(found.nanos) // unit
        return whole if found.nanos >= 0 else -whole

    return get


TIMES: dict[str, Callable[..., Any]] = {
    **{f"timestamp_to_{name}": _part(read) for name, read in _PARTS.items()},
    **{f"timestamp_to_{name}_with_tz": _part(read) for name, read in _PARTS.items()},
    "timestamp_to_seconds_tz": _part(_PARTS["seconds"]),
    **{f"duration_to_{name}": _length(unit) for name, unit in _LENGTHS.items()},
}
