"""Parsing and formatting of timestamps and durations, which are counted in nanoseconds."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from polyver.languages.cel._values import CelDuration, CelEvaluationError, Timestamp
from polyver.languages.values.durations import nanoseconds

__all__ = [
    "FIRST_SECOND",
    "LAST_SECOND",
    "civil",
    "duration_text",
    "parse_duration",
    "parse_timestamp",
    "read_date",
    "read_date_time",
    "read_duration",
    "timestamp_text",
]

_SECOND = 1_000_000_000
_LOOSE = re.compile(r"([0-9]+)\s*([A-Za-zµ]+)")
_LOOSE_UNITS = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 1_000),
    (("ms", "milli"), 1_000_000),
    (("s", "sec"), _SECOND),
    (("m", "min"), 60 * _SECOND),
    (("h", "hr", "hour"), 3600 * _SECOND),
    (("d", "day"), 86400 * _SECOND),
    (("w", "wk", "week"), 7 * 86400 * _SECOND),
)
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(Z|([+-])([0-9]{2}):([0-9]{2}))"
)
FIRST_SECOND: Final = -62135596800
LAST_SECOND: Final = 253402300799
"""The last second that a timestamp may have, in seconds since 1970: the end of the year 9999."""


def parse_duration(text: str) -> CelDuration | None:
    """Parse a duration in Go's syntax; return None if it is invalid.

    >>> parse_duration("1h1.5s"), parse_duration("1d")
    (CelDuration(nanos=3601500000000), None)
    """
    nanos = nanoseconds(text)
    return None if nanos is None else CelDuration(nanos)


def read_duration(text: str) -> CelDuration:
    """Parse a string of the format `duration` in an object.

    Unlike durations in expressions, it may have the units days and weeks, and long names of units.
    """
    found = parse_duration(text)
    if found is not None:
        return found
    nanos = 0
    for number, unit in _LOOSE.findall(text):
        for names, length in _LOOSE_UNITS:
            if unit.lower() in names or unit.lower().startswith(names[-1]):
                nanos += int(number) * length
                break
    return CelDuration(max(min(nanos, 2**63 - 1), -(2**63)))


def parse_timestamp(text: str) -> Timestamp | None:
    """Parse an RFC 3339 timestamp; return None if it is invalid."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found[each]) for each in range(1, 7))
    if not 1 <= month <= 12 or not 1 <= day <= calendar.monthrange(year or 2000, month)[1]:
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    offset = 0
    if found[9]:
        if int(found[10]) > 24 or int(found[11]) > 60:
            return None
        offset = (int(found[10]) * 60 + int(found[11])) * 60 * (-1 if found[9] == "-" else 1)
    seconds = _seconds(year, month, day) + hour * 3600 + minute * 60 + second - offset
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise CelEvaluationError("timestamp overflow")
    return Timestamp(seconds * _SECOND + int((found[7] or "0")[:9].ljust(9, "0")), offset)


def _seconds(year: int, month: int, day: int) -> int:
    """Return the seconds since 1970. The year may be 0, which `datetime` does not support."""
    if year == 0:
        return _seconds(2000, month, day) - 5 * 146097 * 86400
    return (datetime(year, month, day, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).days * 86400


def read_date(text: str) -> Timestamp:
    """Parse a string of the format `date` in an object, as midnight UTC."""
    try:
        found = parse_timestamp(f"{text}T00:00:00Z")
    except CelEvaluationError:
        return Timestamp(_seconds(int(text[:4]), int(text[5:7]), int(text[8:10])) * _SECOND)
    if found is None:
        raise CelEvaluationError(f'Invalid date formatted string {text}: parsing time "{text}"')
    return found


def read_date_time(text: str) -> Timestamp:
    """Parse a string of the format `date-time` in an object."""
    found = parse_timestamp(text.upper())
    if found is None:
        raise CelEvaluationError(
            f'Invalid date-time formatted string {text}: parsing time "{text}"'
        )
    return found


def civil(moment: Timestamp, offset: int | None = None) -> datetime:
    """Return the date and time of a timestamp, without nanoseconds.

    `offset` is the offset from UTC in seconds; None means UTC.
    """
    seconds = moment.nanos // _SECOND + (offset or 0)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def _fraction(nanos: int) -> str:
    return f".{nanos:09d}".rstrip("0").rstrip(".")


def timestamp_text(moment: Timestamp) -> str:
    """Write a timestamp in RFC 3339 syntax.

    >>> timestamp_text(Timestamp(1_500_000_000, 3600))
    '1970-01-01T01:00:01.5+01:00'
    """
    day = civil(moment, moment.offset)
    text = f"{day.year:04d}-{day:%m-%dT%H:%M:%S}{_fraction(moment.nanos % _SECOND)}"
    if not moment.offset:
        return f"{text}Z"
    minutes = abs(moment.offset) // 60
    return f"{text}{'-' if moment.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def duration_text(length: CelDuration) -> str:
    """Write a duration in seconds.

    >>> duration_text(CelDuration(-1_500_000_000))
    '-1.5s'
    """
    whole, rest = divmod(abs(length.nanos), _SECOND)
    seconds = float(whole) + rest / 1e9
    text = f"{seconds:.9f}".rstrip("0").rstrip(".") if seconds % 1 else str(int(seconds))
    return f"{'-' if length.nanos < 0 else ''}{text}s"
