"""The columns of a table and the functions that fill them, for one kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from polyver.core.plain import Object

__all__ = ["Cell", "CellOf", "Printer", "TableColumn", "printer"]

Cell = str | int | float | bool | None
CellOf = Callable[[Object, datetime], Cell]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """The definition of a column; kubectl shows those of priority 0, and all with `-o wide`."""

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
    """Converts objects of one kind to rows."""

    columns: tuple[TableColumn, ...]
    cells: Callable[[Object, datetime], list[Cell]]
    conditions: Callable[[Object], list[dict[str, str]]] | None = None
    """Returns the conditions of a row, by which clients can hide it."""
    default_of: Callable[[Sequence[Object]], str | None] | None = None
    """Returns the name of the default object in a list; its row is marked."""
    null_rows: bool = False
    """True if an empty table has null for its rows, as the oldest kinds have."""


def printer(*columns: tuple[TableColumn, CellOf]) -> Printer:
    """Return a printer from columns and their cell functions."""
    makers = tuple(cell for _, cell in columns)

    def cells(obj: Object, now: datetime) -> list[Cell]:
        return [cell(obj, now) for cell in makers]

    return Printer(tuple(column for column, _ in columns), cells)
