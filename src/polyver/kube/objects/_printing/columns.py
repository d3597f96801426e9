"""What a table of one kind looks like: its columns, and how an object fills them."""

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
    """The head of a column; kubectl shows those of priority 0, and all with `-o wide`."""

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
    """How objects of one kind become rows."""

    columns: tuple[TableColumn, ...]
    cells: Callable[[Object, datetime], list[Cell]]
    conditions: Callable[[Object], list[dict[str, str]]] | None = None
    """What a row says of itself beside its cells, so that clients can hide it."""
    default_of: Callable[[Sequence[Object]], str | None] | None = None
    """Which object of a list is the one that is used by default; its row says so."""
    null_rows: bool = False
    """Whether a table of nothing has null for its rows, as the oldest kinds do."""


def printer(*columns: tuple[TableColumn, CellOf]) -> Printer:
    """A printer from columns that each know their cell."""
    makers = tuple(cell for _, cell in columns)

    def cells(obj: Object, now: datetime) -> list[Cell]:
        return [cell(obj, now) for cell in makers]

    return Printer(tuple(column for column, _ in columns), cells)
