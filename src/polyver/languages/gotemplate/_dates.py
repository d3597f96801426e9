"""Functions for given dates; functions that need a clock (`now`, `ago`) are left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from polyver.languages.gotemplate._functions import FunctionTable
from polyver.languages.gotemplate._times import ZERO, duration_text, formatted, in_zone, parse_time
from polyver.languages.gotemplate._values import TemplateFailure, type_of
from polyver.languages.values.durations import nanoseconds

__all__ = ["DATES"]

DATES = FunctionTable("dates")
_RFC3339 = "2006-01-02T15:04:05.999999999Z07:00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(value: object) -> datetime:
    """Return a time from a time, an RFC 3339 string or seconds since 1970."""
    match value:
        case datetime():
            return value
        case int() if not isinstance(value, bool):
            return _shifted(_EPOCH, timedelta(seconds=1), int(value))
        case str():
            return parse_time(_RFC3339, value)
    fact = f"a value of type {type_of(value)} is no date"
    raise TemplateFailure(fact, "make one of it: (toDate …)")


def _shifted(moment: datetime, unit: timedelta, count: int) -> datetime:
    try:
        return moment + unit * count
    except OverflowError:
        raise TemplateFailure("the date is out of range") from None


@DATES.add("date", "string any")
def _date(layout: str, value: object) -> str:
    return formatted(in_zone(_moment(value), "UTC"), layout)


@DATES.add("dateInZone date_in_zone", "string any string")
def _date_in_zone(layout: str, value: object, zone: str) -> str:
    return formatted(in_zone(_moment(value), zone), layout)


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
        raise TemplateFailure("templates have no clock to tell how long ago that is")
    if isinstance(value, str):
        nanos = nanoseconds(value) or 0
    elif type(value) is int:
        nanos = value
    for name, seconds in _UNITS:
        if abs(nanos) > seconds * 1_000_000_000:
            return f"{abs(nanos) // (seconds * 1_000_000_000)}{name}"
    return "0s"
