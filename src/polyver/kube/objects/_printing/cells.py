"""Functions that make cells from parts of an object; printers are built from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects._printing.ages import age_of
from polyver.kube.objects._printing.columns import Cell, CellOf, TableColumn

__all__ = [
    "at",
    "column",
    "count",
    "counted",
    "flag",
    "integer",
    "labels",
    "maker",
    "number",
    "selector",
    "since",
    "subjects",
    "text",
    "wide",
]


def at(obj: Any, path: str) -> Any:
    """Return the value at a dotted path of field names, or None.

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
    """Return a column and the function that makes its cells."""
    return TableColumn(name, holds, description=description, priority=priority), cell


def integer(name: str, cell: CellOf, description: str) -> tuple[TableColumn, CellOf]:
    """Return a column of integers."""
    return column(name, cell, description, holds="integer")


def wide(name: str, cell: CellOf, description: str) -> tuple[TableColumn, CellOf]:
    """Return a column that kubectl shows only with `-o wide`."""
    return column(name, cell, description, priority=1)


def maker(cell: Callable[[Object], Cell]) -> CellOf:
    """Return a cell function that does not depend on the time."""
    return lambda obj, _: cell(obj)


def text(path: str, missing: str = "") -> CellOf:
    """Return a cell function for the string at a path, or `missing`."""

    def cell(obj: Object, _: datetime) -> Cell:
        found = at(obj, path)
        return missing if found is None else str(found)

    return cell


def number(path: str) -> CellOf:
    """Return a cell function for the number at a path, or 0."""
    return lambda obj, _: at(obj, path) or 0


def flag(path: str) -> CellOf:
    """Return a cell function for the truth of the value at a path."""
    return lambda obj, _: bool(at(obj, path))


def count(*paths: str) -> CellOf:
    """Return a cell function for the total number of items in the lists or maps at some paths."""
    return lambda obj, _: sum(len(at(obj, path) or ()) for path in paths)


def since(path: str, missing: str = "<unknown>") -> CellOf:
    """Return a cell function for the age of the time at a path."""

    def cell(obj: Object, now: datetime) -> Cell:
        time = at(obj, path)
        return age_of(time, now) if time else missing

    return cell


def labels(path: str) -> CellOf:
    """Return a cell function for the labels at a path in selector syntax."""
    return lambda obj, _: joined_labels(at(obj, path) or {}) or "<none>"


def joined_labels(found: Mapping[str, str]) -> str:
    return ",".join(sorted(f"{key}={value}" for key, value in found.items()))


def selector(path: str, empty: str = "<none>") -> CellOf:
    """Return a cell function for the label selector at a path, as kubectl accepts it with `-l`."""
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
    """Return a cell function for the names of a role binding's subjects of one kind."""

    def name(subject: Mapping[str, str]) -> str:
        inside = f"{subject.get('namespace', '')}/" if kind == "ServiceAccount" else ""
        return inside + subject.get("name", "")

    return lambda obj, _: ", ".join(
        name(each) for each in obj.get("subjects") or () if each.get("kind") == kind
    )


def counted(shown: list[str], *, most: int, total: int | None = None, between: str = ",") -> str:
    """Join the first few items, and add the number of others.

    >>> counted(["a", "b", "c"], most=2)
    'a,b + 1 more...'
    """
    total = len(shown) if total is None else total
    more = f" + {total - most} more..." if len(shown) >= most < total else ""
    return between.join(shown[:most]) + more
