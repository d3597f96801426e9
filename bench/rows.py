"""What every comparison gives: one row for each piece of work, with all of its rounds.

One shape for all of them, so that they can stand in one table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

__all__ = ["Row", "print_rows", "told"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One piece of work, measured round by round on both sides."""

    name: str
    unit: str
    """µs, ms, s or MB; less is better in all of them."""
    peer: str = ""
    """Whom it was measured beside; empty if there is nobody."""
    theirs: tuple[float, ...] = ()
    ours: tuple[float, ...]
    goal: float | None = None
    """How many times less than the peer it should be."""
    most: float | None = None
    """What it should not exceed, whatever the peer does."""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times less than the peer it is, by the medians of all rounds."""
        return median(self.theirs) / median(self.ours) if self.theirs else None

    @property
    def spread(self) -> tuple[float, float] | None:
        """The least and the greatest ratio of any one round."""
        if not self.theirs:
            return None
        found = [one / other for one, other in zip(self.theirs, self.ours, strict=False)]
        return min(found), max(found)

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        if self.goal is None and self.most is None:
            return None
        enough = self.goal is None or (self.ratio is not None and self.ratio >= self.goal)
        return enough and (self.most is None or median(self.ours) <= self.most)


def told(rounds: Iterable[float], unit: str) -> str:
    """The median of all rounds, the least and the most."""
    found = sorted(rounds)
    if not found:
        return "–"
    middle, least, most = (_number(each) for each in (median(found), found[0], found[-1]))
    return f"{middle} {unit} ({least}…{most})"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _goal(row: Row) -> str:
    parts = [f"≥ {row.goal:g}×"] if row.goal is not None else []
    parts += [f"≤ {row.most:g} {row.unit}"] if row.most is not None else []
    mark = {None: "", True: " ✓", False: " ✗"}[row.met]
    return ", ".join(parts) + mark


def _ratio(row: Row) -> str:
    if row.ratio is None or row.spread is None:
        return ""
    least, most = row.spread
    return f"{row.ratio:.1f}× ({least:.1f}…{most:.1f})"


def print_rows(rows: Iterable[Row]) -> None:
    """A table on the terminal; what is measured meanwhile is told beside it."""
    head = ("work", "peer", "polyver", "times less", "goal")
    cells = []
    for row in rows:
        print(f"measured: {row.name}", file=sys.stderr, flush=True)
        sides = [told(each, row.unit) for each in (row.theirs, row.ours)]
        cells.append((row.name, *sides, _ratio(row), _goal(row)))
    widths = [max(len(line[at]) for line in (head, *cells)) for at in range(len(head))]
    for line in (head, *cells):
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)))
