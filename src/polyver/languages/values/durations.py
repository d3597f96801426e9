"""Durations in Go's syntax, which Kubernetes uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["UNITS", "duration_text", "nanoseconds", "short_duration"]

_SECOND = 1_000_000_000
UNITS: Final[Mapping[str, int]] = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
"""The units of durations, in nanoseconds. Durations may also contain `µs` for `us`."""
_UNITS = {**UNITS, "µs": 1_000, "μs": 1_000}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")


def nanoseconds(text: str) -> int | None:
    """Convert a duration to nanoseconds; return None if the string is not a duration.

    >>> nanoseconds("1h1.5s"), nanoseconds("1d")
    (3601500000000, None)
    """
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    nanos, at = 0, 0
    while at < len(rest):
        found = _PART.match(rest, at)
        if found is None or not (found[1] or found[2]) or len(found[1]) > 20:
            return None
        unit, digits = _UNITS[found[3]], (found[2] or "")[:30]
        nanos += int(found[1] or 0) * unit + int(digits or 0) * unit // 10 ** len(digits)
        at = found.end()
    if not rest or nanos > 2**63 - (sign > 0):
        return None
    return sign * nanos


def duration_text(nanos: int) -> str:
    """Write a duration in nanoseconds as Go does.

    >>> duration_text(3_723_000_000_000), duration_text(1_500_000), duration_text(0)
    ('1h2m3s', '1.5ms', '0s')
    """
    if nanos == 0:
        return "0s"
    sign, rest = "-" if nanos < 0 else "", abs(nanos)
    for unit, length in (("ns", 1), ("µs", 1000), ("ms", 1_000_000)):
        if rest < length * 1000 and rest < 1_000_000_000:
            return f"{sign}{_fraction(rest, length)}{unit}"
    minutes, rest = divmod(rest, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    front = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{front}{_fraction(rest, 1_000_000_000)}s"


def _fraction(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    if not rest:
        return str(whole)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"


def short_duration(text: str) -> str:
    """Shorten a duration of `duration_text`: leave out the minutes and seconds that are 0.

    >>> short_duration("1h0m0s"), short_duration("1h0m5s"), short_duration("0s")
    ('1h', '1h0m5s', '0s')
    """
    return _ENDS_IN_ZERO.sub("", text)


_ENDS_IN_ZERO = re.compile(r"(?<=h)0m0s\Z|(?<=m)0s\Z")
