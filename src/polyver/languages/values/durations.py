"""Durations in Go's syntax, which Kubernetes uses."""

from __future__ import annotations

import re

__all__ = ["nanoseconds"]

_SECOND = 1_000_000_000
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
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
