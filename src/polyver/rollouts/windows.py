"""The windows of a rollout: the periods of a week in which its steps may start.

>>> window = Window(frozenset(range(4)), 9 * 60, 16 * 60, "Europe/Berlin")
>>> monday_noon = datetime(2026, 11, 16, 11, tzinfo=UTC)
>>> is_open([window], monday_noon)
True
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from polyver.core import PolyverError

__all__ = ["InvalidWindow", "Window", "is_open", "next_opening", "read_window"]

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TIME: Final = re.compile(r"([01]\d|2[0-4]):([0-5]\d)")
_MINUTES: Final = 8 * 24 * 60
"""A number of minutes in which every window opens at least once: one week and one day."""


class InvalidWindow(PolyverError):
    """The spec of a window is invalid, or the window never opens."""


@dataclass(frozen=True, slots=True)
class Window:
    """A period of the day on some days of the week, in a time zone. It may end on the next day."""

    days: frozenset[int]
    """The days of the week on which the window opens; Monday is 0."""
    start: int
    """The time at which the window opens, in minutes since midnight."""
    end: int
    timezone: str = "UTC"

    def includes(self, moment: datetime) -> bool:
        """Report whether the window is open at a moment."""
        local = moment.astimezone(ZoneInfo(self.timezone))
        minute = local.hour * 60 + local.minute
        if self.start < self.end:
            return local.weekday() in self.days and self.start <= minute < self.end
        if minute >= self.start:
            return local.weekday() in self.days
        return minute < self.end and (local.weekday() - 1) % 7 in self.days


def read_window(entry: Mapping[str, Any], at: str) -> Window:
    """Parse one window of a policy. Raise InvalidWindow with the path of an invalid field."""
    days = entry.get("days") or _DAYS
    start, end = (_minute(entry[name], f"{at}.{name}") for name in ("from", "to"))
    if start == end:
        hint = 'from "00:00" to "24:00" is the whole day'
        raise InvalidWindow("the window never opens", at=at, hint=hint)
    timezone = entry.get("timezone") or "UTC"
    try:
        ZoneInfo(timezone)
    except (OSError, ValueError, KeyError):
        hint = "write a name such as Europe/Berlin"
        fact = f"there is no time zone {timezone!r}"
        raise InvalidWindow(fact, at=f"{at}.timezone", hint=hint) from None
    return Window(frozenset(map(_DAYS.index, days)), start, end, timezone)


def _minute(text: str, at: str) -> int:
    found = _TIME.fullmatch(text)
    minute = int(found[1]) * 60 + int(found[2]) if found else 24 * 60 + 1
    if minute > 24 * 60:
        hint = 'write a time such as "09:00"'
        raise InvalidWindow(f"{text!r} is not a time of the day", at=at, hint=hint)
    return minute


def is_open(windows: Sequence[Window], moment: datetime) -> bool:
    """Report whether a step may start at this time. Without windows, a step may always start."""
    return not windows or any(each.includes(moment) for each in windows)


def next_opening(windows: Sequence[Window], moment: datetime) -> datetime | None:
    """Return the first minute from `moment` on with an open window; None if there is none."""
    first = moment.astimezone(UTC).replace(second=0, microsecond=0)
    for minutes in range(_MINUTES):
        each = first + timedelta(minutes=minutes)
        if is_open(windows, each):
            return each
    return None
