"""Methods that a template can call on times and versions, which are not plain data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from polyver.languages.gotemplate._functions import FunctionTable, TemplateFunction
from polyver.languages.gotemplate._times import formatted
from polyver.languages.gotemplate._values import Int, Version, Wide
from polyver.languages.gotemplate._versions import compared

__all__ = ["METHODS", "method_of"]

_TIMES = FunctionTable("moments")
_VERSIONS = FunctionTable("versions")


def method_of(value: object, name: str) -> TemplateFunction | None:
    """Return the method `name` of a time or a version; None if it does not exist."""
    for kind, table in METHODS.items():
        if isinstance(value, kind):
            return table.functions.get(name)
    return None


_TIMES.put("Year", "", lambda moment: Int(moment.year))
_TIMES.put("Day", "", lambda moment: Int(moment.day))
_TIMES.put("Hour", "", lambda moment: Int(moment.hour))
_TIMES.put("Minute", "", lambda moment: Int(moment.minute))
_TIMES.put("Second", "", lambda moment: Int(moment.second))
_TIMES.put("YearDay", "", lambda moment: Int(moment.timetuple().tm_yday))
_TIMES.put("UTC", "", lambda moment: moment.astimezone(UTC))
_TIMES.put("Format", "string", formatted)
_TIMES.put(
    "String", "", lambda moment: formatted(moment, "2006-01-02 15:04:05.999999999 -0700 MST")
)
_TIMES.put("Before", "time", lambda moment, other: moment < other)
_TIMES.put("After", "time", lambda moment, other: moment > other)
_TIMES.put("Equal", "time", lambda moment, other: moment == other)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@_TIMES.add("Unix")
def _unix(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1)


@_TIMES.add("AddDate", "int int int")
def _add_date(moment: datetime, years: int, months: int, days: int) -> datetime:
    total = moment.year * 12 + moment.month - 1 + years * 12 + months
    start = moment.replace(year=total // 12, month=total % 12 + 1, day=1)
    return start + timedelta(days=moment.day - 1 + days)


_VERSIONS.put("Major", "", lambda version: Wide(version.numbers[0]))
_VERSIONS.put("Minor", "", lambda version: Wide(version.numbers[1]))
_VERSIONS.put("Patch", "", lambda version: Wide(version.numbers[2]))
_VERSIONS.put("Prerelease", "", lambda version: version.pre)
_VERSIONS.put("Metadata", "", lambda version: version.metadata)
_VERSIONS.put("Original", "", lambda version: version.original)
_VERSIONS.put("String", "", str)
_VERSIONS.put("Compare", "version", lambda version, other: Int(compared(version, other)))
_VERSIONS.put("LessThan", "version", lambda version, other: compared(version, other) < 0)
_VERSIONS.put("GreaterThan", "version", lambda version, other: compared(version, other) > 0)
_VERSIONS.put("Equal", "version", lambda version, other: compared(version, other) == 0)

METHODS: dict[type, FunctionTable] = {datetime: _TIMES, Version: _VERSIONS}
