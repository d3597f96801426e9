"""Columns of the tables that `kubectl get` prints, and functions that build cells from an object.

A printer is built from columns and the function for the cells of each column. Ages and durations
have a short form, such as `5m30s`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from polyver.core.plain import Object

__all__ = [
    "Cell",
    "CellOf",
    "Printer",
    "TableColumn",
    "age_of",
    "at",
    "column",
    "count",
    "counted",
    "flag",
    "human_duration",
    "integer",
    "labels",
    "maker",
    "number",
    "printer",
    "seconds_between",
    "selector",
    "since",
    "subjects",
    "text",
    "wide",
]

Cell = str | int | float | bool | None
CellOf = Callable[[Object, datetime], Cell]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """The header of a column. Without `-o wide`, kubectl shows only columns of priority 0."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    @property
    def definition(self) -> dict[str, str | int]:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True)
class Printer:
    """Converts objects of one kind to rows of the table that `kubectl get` prints."""

    columns: tuple[TableColumn, ...]
    cells: Callable[[Object, datetime], list[Cell]]
    conditions: Callable[[Object], list[dict[str, str]]] | None = None
    """A function that returns the conditions in the row of an object; None if rows have none.

    Clients can hide rows with certain conditions. For example, the row of a pod that has ended has
    the condition Completed.
    """
    default_of: Callable[[Sequence[Object]], str | None] | None = None
    """A function that returns the name of the default object in a list; None if there is none.

    An example is the default StorageClass. The table marks this object with `(default)`.
    """
    null_rows: bool = False
    """True if an empty table has `rows: null` instead of an empty list, as for the oldest kinds."""


def printer(*columns: tuple[TableColumn, CellOf]) -> Printer:
    """Build a printer from columns, each with the function that builds its cells."""
    makers = tuple(cell for _, cell in columns)

    def cells(obj: Object, now: datetime) -> list[Cell]:
        return [cell(obj, now) for cell in makers]

    return Printer(tuple(column for column, _ in columns), cells)


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
"""The units in which durations are written: for each limit in seconds, one or two units.

A duration below the limit is written in the first unit, such as `m`, and the rest in the second,
such as `s`. If the second unit is "", the rest is not written.
"""
_LIMITS = [limit for limit, _, _ in _SCALE]
_LONGEST = (2**63 - 1) // 10**9
"""The highest age that a table shows, in seconds: 292 years, the longest duration in Go."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


def human_duration(seconds: float) -> str:
    """Format a duration in short form.

    A duration between -2 and 0 seconds is shown as 0, because the clocks of two machines may
    differ. A duration of -2 seconds or less is shown as `<invalid>`.

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
    """Format the time from `time` until `now`.

    If `time` is missing, return `<unknown>`; if it is not a valid time, return `<invalid>`.

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
    """Return the seconds between two times; 0 if one of the times is invalid."""
    first, last = _read(start), _read(end)
    return (last - first).total_seconds() if first and last else 0


def _read(time: str) -> datetime | None:
    if not _TIME.fullmatch(time):
        return None
    try:
        return datetime.fromisoformat(time)
    except ValueError:
        return None


def at(obj: Any, path: str) -> Any:
    """Return the value at a dotted path of field names; None if there is no such value.

    >>> at({"spec": {"type": "ClusterIP"}}, "spec.type")
    'ClusterIP'
    """
    for name in path.split("."):
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


def column(
    name: str, cell: CellOf, description: str, *, holds: str = "string", priority: int = 0
) -> tuple[TableColumn, CellOf]:
    """Build a column; return it with `cell`, the function that computes its cells.

    `holds` is the type of the cells.
    """
    return TableColumn(name, holds, description=description, priority=priority), cell


def integer(name: str, cell: CellOf, description: str) -> tuple[TableColumn, CellOf]:
    """Build a column of integers."""
    return column(name, cell, description, holds="integer")


def wide(name: str, cell: CellOf, description: str) -> tuple[TableColumn, CellOf]:
    """Build a column that kubectl shows only with `-o wide`."""
    return column(name, cell, description, priority=1)


def maker(cell: Callable[[Object], Cell]) -> CellOf:
    """Build a cell function from a function that gets the object, but not the current time."""
    return lambda obj, _: cell(obj)


def text(path: str, missing: str = "") -> CellOf:
    """Build a cell function for the string at a path; without a string it returns `missing`."""

    def cell(obj: Object, _: datetime) -> Cell:
        found = at(obj, path)
        return missing if found is None else str(found)

    return cell


def number(path: str) -> CellOf:
    """Build a cell function for the number at a path; without a number it returns 0."""
    return lambda obj, _: at(obj, path) or 0


def flag(path: str) -> CellOf:
    """Build a cell function that reports whether the value at a path is true."""
    return lambda obj, _: bool(at(obj, path))


def count(*paths: str) -> CellOf:
    """Build a cell function that counts the items of the lists or maps at some paths.

    With several paths, the cell shows the total number.
    """
    return lambda obj, _: sum(len(at(obj, path) or ()) for path in paths)


def since(path: str, missing: str = "<unknown>") -> CellOf:
    """Build a cell function for the age of the time at a path; `missing` if there is no time."""

    def cell(obj: Object, now: datetime) -> Cell:
        time = at(obj, path)
        return age_of(time, now) if time else missing

    return cell


def labels(path: str) -> CellOf:
    """Build a cell function for the labels at a path, written like `app=web,tier=db`."""

    def cell(obj: Object, _: datetime) -> Cell:
        found: Mapping[str, str] = at(obj, path) or {}
        return ",".join(sorted(f"{key}={value}" for key, value in found.items())) or "<none>"

    return cell


def selector(path: str, empty: str = "<none>") -> CellOf:
    """Build a cell function for the label selector at a path, in the syntax of `kubectl -l`."""
    return lambda obj, _: _selector(at(obj, path) or {}) or empty


def _selector(found: Mapping[str, Any]) -> str:
    wanted = [(key, f"{key}={value}") for key, value in (found.get("matchLabels") or {}).items()]
    wanted += [
        (each["key"], _expression(each["key"], each.get("operator", ""), each.get("values") or ()))
        for each in found.get("matchExpressions") or ()
    ]
    return ",".join(shown for _, shown in sorted(wanted, key=lambda each: each[0]))


def _expression(key: str, operator: str, values: Iterable[str]) -> str:
    match operator:
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return f"{key} {operator.lower()} ({','.join(sorted(values))})"


def subjects(kind: str) -> CellOf:
    """Build a cell function for role bindings: the names of those subjects whose kind is `kind`."""

    def name(subject: Mapping[str, str]) -> str:
        inside = f"{subject.get('namespace', '')}/" if kind == "ServiceAccount" else ""
        return inside + subject.get("name", "")

    return lambda obj, _: ", ".join(
        name(each) for each in obj.get("subjects") or () if each.get("kind") == kind
    )


def counted(shown: list[str], *, most: int, total: int | None = None, between: str = ",") -> str:
    """Join the first `most` items, and add the number of items that are not shown.

    `total` is the number of all items if `shown` does not contain all of them.

    >>> counted(["a", "b", "c"], most=2)
    'a,b + 1 more...'
    """
    total = len(shown) if total is None else total
    more = f" + {total - most} more..." if len(shown) >= most < total else ""
    return between.join(shown[:most]) + more
