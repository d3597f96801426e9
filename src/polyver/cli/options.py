"""Parse the values of options that several commands have."""

from __future__ import annotations

from polyver.cli.exit_codes import Misused

__all__ = ["read_seconds"]


def read_seconds(text: str, option: str) -> float:
    """Parse the value of a duration option, such as 1m30s; return it in seconds.

    Raise Misused unless the duration is positive.
    """
    from polyver.languages.values.durations import nanoseconds

    found = nanoseconds(text)
    if not found or found < 0:
        hint = "write a duration such as 90s, 1m30s or 2h"
        raise Misused(f"{text!r} is not a duration", at=option, hint=hint)
    return found / 1e9
