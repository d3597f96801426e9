"""Times in Go's layouts, and template functions for dates.

A layout is an example: it shows how the time 2006-01-02 15:04:05 would be written. Functions that
need a clock (`now`, `ago`) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from polyver.languages.gotemplate._functions import FunctionTable
from polyver.languages.gotemplate._values import TemplateFailure, type_of
from polyver.languages.values.durations import duration_text, nanoseconds

__all__ = [
    "DATES",
    "ZERO",
    "formatted",
    "in_zone",
    "parse_time",
    "source_text",
    "time_text",
]

ZERO = datetime(1, 1, 1, tzinfo=UTC)
_MONTHS = (
    "January February March April May June July August September October November December".split()
)
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_WORD = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|2006|__2|_2(?!006)|002|01|02|03|04|05|06|15"
    r"|PM|pm|Z07:00:00|Z070000|Z07:00|Z0700|Z07|-07:00:00|-070000|-07:00|-0700|-07"
    r"|[.,](?:0+|9+)(?![0-9])|1|2|3|4|5"
)


def time_text(moment: datetime) -> str:
    """Write a time in the form of Go.

    >>> time_text(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02 03:04:05 +0000 UTC'
    """
    return formatted(moment, "2006-01-02 15:04:05.999999999 -0700 MST")


def source_text(moment: datetime) -> str:
    """Write a UTC time in the syntax of Go source code."""
    month = f"time.{_MONTHS[moment.month - 1]}"
    clock = f"{moment.hour}, {moment.minute}, {moment.second}, {moment.microsecond * 1000}"
    return f"time.Date({moment.year}, {month}, {moment.day}, {clock}, time.UTC)"


def formatted(moment: datetime, layout: str) -> str:
    """Write a time as a layout such as `02 Jan 2006` shows."""
    return _WORD.sub(lambda found: _written(moment, found[0]), layout)


_PARTS: dict[str, Callable[[datetime], str]] = {
    "2006": lambda moment: f"{moment.year:04d}",
    "06": lambda moment: f"{moment.year % 100:02d}",
    "01": lambda moment: f"{moment.month:02d}",
    "1": lambda moment: str(moment.month),
    "Jan": lambda moment: _MONTHS[moment.month - 1][:3],
    "January": lambda moment: _MONTHS[moment.month - 1],
    "02": lambda moment: f"{moment.day:02d}",
    "_2": lambda moment: f"{moment.day:2d}",
    "2": lambda moment: str(moment.day),
    "002": lambda moment: f"{moment.timetuple().tm_yday:03d}",
    "__2": lambda moment: f"{moment.timetuple().tm_yday:3d}",
    "Mon": lambda moment: _DAYS[moment.weekday()][:3],
    "Monday": lambda moment: _DAYS[moment.weekday()],
    "15": lambda moment: f"{moment.hour:02d}",
    "03": lambda moment: f"{moment.hour % 12 or 12:02d}",
    "3": lambda moment: str(moment.hour % 12 or 12),
    "04": lambda moment: f"{moment.minute:02d}",
    "4": lambda moment: str(moment.minute),
    "05": lambda moment: f"{moment.second:02d}",
    "5": lambda moment: str(moment.second),
    "PM": lambda moment: "PM" if moment.hour >= 12 else "AM",
    "pm": lambda moment: "pm" if moment.hour >= 12 else "am",
}


def _written(moment: datetime, word: str) -> str:
    if word in _PARTS:
        return _PARTS[word](moment)
    if word == "MST":
        return _zone_name(moment)
    if word[0] in ".,":
        digits = f"{moment.microsecond:06d}".ljust(len(word) - 1, "0")[: len(word) - 1]
        if word[1] == "9":
            digits = digits.rstrip("0")
        return f"{word[0]}{digits}" if digits else ""
    return _offset_text(moment, word)


def _zone_name(moment: datetime) -> str:
    name = moment.tzname() or "UTC"
    if not name.startswith("UTC") or name == "UTC":
        return name
    return _offset_text(moment, "-0700")


def _offset_text(moment: datetime, word: str) -> str:
    seconds = int((moment.utcoffset() or timedelta()).total_seconds())
    if word[0] == "Z" and not seconds:
        return "Z"
    sign, seconds = "-" if seconds < 0 else "+", abs(seconds)
    colon = ":" if ":" in word else ""
    parts = [seconds // 3600, seconds // 60 % 60, seconds % 60]
    count = len(re.findall("0[07]", word))
    return sign + colon.join(f"{part:02d}" for part in parts[:count])


def in_zone(moment: datetime, zone: str) -> datetime:
    """Convert a time to a time zone; an unknown zone counts as UTC."""
    if zone in ("", "UTC", "Local"):
        return moment.astimezone(UTC)
    try:
        return moment.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError, OverflowError):
        return moment.astimezone(UTC)


_READ = {
    "2006": r"(?P<year>\d{4})",
    "06": r"(?P<short>\d{2})",
    "01": r"(?P<month>\d{2})",
    "1": r"(?P<month>\d{1,2}+)",
    "Jan": rf"(?P<name>{'|'.join(name[:3] for name in _MONTHS)})",
    "January": rf"(?P<name>{'|'.join(_MONTHS)})",
    "02": r"(?P<day>\d{2})",
    "_2": r" ?+(?P<day>\d{1,2}+)",
    "2": r" ?+(?P<day>\d{1,2}+)",
    "002": r"(?P<yday>\d{3})",
    "__2": r" {0,2}+(?P<yday>\d{1,3}+)",
    "Mon": rf"(?:{'|'.join(name[:3] for name in _DAYS)})",
    "Monday": rf"(?:{'|'.join(_DAYS)})",
    "15": r"(?P<hour>\d{1,2}+)",
    "03": r"(?P<hour>\d{2})",
    "3": r"(?P<hour>\d{1,2}+)",
    "04": r"(?P<minute>\d{2})",
    "4": r"(?P<minute>\d{1,2}+)",
    "05": r"(?P<second>\d{2})",
    "5": r"(?P<second>\d{1,2}+)",
    "PM": r"(?P<half>[AP]M)",
    "pm": r"(?P<half>[ap]m)",
    "MST": r"(?P<zone>UTC|[A-Z]{3,4}|[+-]\d{2}(?:\d{2})?+)",
}
# Possessive quantifiers never backtrack, so that parsing takes linear time for every layout.
_FRACTION = r"(?:[.,](?P<fraction>\d++))?+"


def parse_time(layout: str, text: str) -> datetime:
    """Parse a time that is written as a layout shows; raise `TemplateFailure` if it is not."""
    found = _expression(layout).fullmatch(text) if len(text) < 200 else None
    if found is None:
        raise TemplateFailure(
            f'parsing time "{text[:200]}" as "{layout}": it does not match the layout'
        )
    parts = found.groupdict()
    try:
        return _moment(parts)
    except (ValueError, OverflowError):
        raise TemplateFailure(f'parsing time "{text}": there is no such time') from None


@lru_cache(maxsize=64)
def _expression(layout: str) -> re.Pattern[str]:
    parts: list[str] = []
    at = 0
    for word in _WORD.finditer(layout):
        after = layout[word.end() : word.end() + 1]
        parts.append(re.escape(layout[at : word.start()]))
        parts.append(_reading(word[0], dotted=after in (".", ",")))
        at = word.end()
    return re.compile("".join([*_named_once(parts), re.escape(layout[at:])]))


_SAME = {"short": "year", "name": "month"}


def _named_once(parts: list[str]) -> list[str]:
    """Make the names of regular expression groups unique.

    If a layout has the same part of a time twice, such as two hours, only the last of the two gets
    a named group.
    """
    seen: set[str] = set()
    found: list[str] = []
    for part in reversed(parts):
        once = part
        for name in re.findall(r"\?P<(\w+)>", part):
            what = _SAME.get(name, name)
            if what in seen:
                once = once.replace(f"?P<{name}>", "?:")
            seen.add(what)
        found.append(once)
    return found[::-1]


def _reading(word: str, *, dotted: bool) -> str:
    if word in ("05", "5"):
        # A fraction may follow the seconds even if the layout has none.
        return _READ[word] if dotted else _READ[word] + _FRACTION
    if word in _READ:
        return _READ[word]
    if word[0] in ".,":
        digits = len(word) - 1
        return _FRACTION if word[1] == "9" else rf"[.,](?P<fraction>\d{{{digits}}})"
    colon = ":" if ":" in word else ""
    inside = colon.join([r"\d{2}"] * len(re.findall("0[07]", word)))
    return rf"(?P<offset>{'Z|' if word[0] == 'Z' else ''}[+-]{inside})"


def _moment(parts: dict[str, str | None]) -> datetime:
    def number(name: str, otherwise: int) -> int:
        return int(parts.get(name) or otherwise)

    year = number("year", 0)
    if parts.get("short"):
        year = number("short", 0) + (1900 if number("short", 0) >= 69 else 2000)
    month, day = number("month", 1), number("day", 1)
    name = parts.get("name")
    if name:
        month = next(index for index, each in enumerate(_MONTHS, 1) if each[:3] == name[:3])
    hour = _hour(number("hour", 0), (parts.get("half") or "").upper())
    micro = int((parts.get("fraction") or "0")[:6].ljust(6, "0"))
    zone = _zone(parts.get("offset"), parts.get("zone"))
    if parts.get("yday"):
        start = datetime(
            year or 1, 1, 1, hour, number("minute", 0), number("second", 0), micro, zone
        )
        return start + timedelta(days=number("yday", 1) - 1)
    return datetime(
        year or 1, month, day, hour, number("minute", 0), number("second", 0), micro, zone
    )


def _hour(hour: int, half: str) -> int:
    if half == "PM" and hour < 12:
        return hour + 12
    return 0 if half == "AM" and hour == 12 else hour


def _zone(offset: str | None, name: str | None) -> timezone:
    text = offset or (name if name and name[0] in "+-" else "")
    if not text or text == "Z":
        # As in Go, any name of a time zone other than UTC also counts as offset 0.
        return UTC if not name or name == "UTC" else timezone(timedelta(), name)
    digits = text[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:6])
    length = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if not length:
        return UTC
    return timezone(-length if text[0] == "-" else length)


DATES = FunctionTable("dates")
_RFC3339 = "2006-01-02T15:04:05.999999999Z07:00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _date_of(value: object) -> datetime:
    """Convert a value to a time. The value is a time, an RFC 3339 string, or seconds since 1970."""
    match value:
        case datetime():
            return value
        case int() if not isinstance(value, bool):
            return _shifted(_EPOCH, timedelta(seconds=1), int(value))
        case str():
            return parse_time(_RFC3339, value)
    fact = f"a value of type {type_of(value)} is not a date"
    raise TemplateFailure(fact, "convert it: (toDate …)")


def _shifted(moment: datetime, unit: timedelta, count: int) -> datetime:
    try:
        return moment + unit * count
    except OverflowError:
        raise TemplateFailure("the date is out of range") from None


@DATES.add("date", "string any")
def _date(layout: str, value: object) -> str:
    return formatted(in_zone(_date_of(value), "UTC"), layout)


@DATES.add("dateInZone date_in_zone", "string any string")
def _date_in_zone(layout: str, value: object, zone: str) -> str:
    return formatted(in_zone(_date_of(value), zone), layout)


@DATES.add("htmlDate", "any")
def _html_date(value: object) -> str:
    return _date("2006-01-02", value)


@DATES.add("htmlDateInZone", "any string")
def _html_date_in_zone(value: object, zone: str) -> str:
    return _date_in_zone("2006-01-02", value, zone)


@DATES.add("mustDateModify must_date_modify", "string time")
def _must_modify(length: str, moment: datetime) -> datetime:
    nanos = nanoseconds(length)
    if nanos is None:
        raise TemplateFailure(f'invalid duration "{length}"')
    return _shifted(moment, timedelta(microseconds=1), nanos // 1000)


@DATES.add("dateModify date_modify", "string time")
def _modify(length: str, moment: datetime) -> datetime:
    return moment if nanoseconds(length) is None else _must_modify(length, moment)


DATES.put("mustToDate", "string string", parse_time)


@DATES.add("toDate", "string string")
def _to_date(layout: str, text: str) -> datetime:
    try:
        return parse_time(layout, text)
    except TemplateFailure:
        return ZERO


@DATES.add("unixEpoch", "time")
def _unix_epoch(moment: datetime) -> str:
    return str((moment - _EPOCH) // timedelta(seconds=1))


@DATES.add("duration", "any")
def _duration(value: object) -> str:
    seconds = 0
    if isinstance(value, str):
        plain = value.lstrip("+-")
        good = plain.isdecimal() and len(value) - len(plain) < 2 and len(plain) < 20
        seconds = int(value) if good else 0
    elif type(value) is int:
        seconds = value
    nanos = seconds * 1_000_000_000
    return duration_text((nanos + 2**63) % 2**64 - 2**63)


_UNITS = (
    ("y", 365 * 86400),
    ("mo", 30 * 86400),
    ("d", 86400),
    ("h", 3600),
    ("m", 60),
    ("s", 1),
)


@DATES.add("durationRound", "any")
def _duration_round(value: object) -> str:
    nanos = 0
    if isinstance(value, datetime):
        raise TemplateFailure("templates have no clock; a time has no age here")
    if isinstance(value, str):
        nanos = nanoseconds(value) or 0
    elif type(value) is int:
        nanos = value
    for name, seconds in _UNITS:
        if abs(nanos) > seconds * 1_000_000_000:
            return f"{abs(nanos) // (seconds * 1_000_000_000)}{name}"
    return "0s"
