"""What a measurement is told as: rows of one table, and curves of cost against size.

Whether a goal is met is worked out from what was measured, so that no row can claim it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["HEAD", "Curve", "Found", "Gap", "Row", "cells", "figure", "print_rows", "say", "short"]

UNITS = ("µs", "ms", "s", "MB", "×", "/s")
HEAD = ("work", "peer", "polyver", "ratio", "spread", "goal", "met")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One piece of work, measured round by round, beside a peer where there is one.

    >>> row = Row(name="start", unit="s", ours=(0.5,), peer="kube-apiserver", theirs=(3.0,),
    ...           most=1, goal=4)
    >>> row.told_goal, row.told, row.ratio, row.met
    ('≤ 1 s, ≥ 4× less', '500 ms', 6.0, True)
    """

    name: str
    unit: str
    """µs, ms, s, MB, × (how many times as much) or /s, where more is better."""
    ours: tuple[float, ...]
    """What each round took, in the unit."""
    peer: str = ""
    theirs: tuple[float, ...] = ()
    """What the peer took in the same rounds."""
    goal: float | None = None
    """The goal beside the peer: so many times less."""
    most: float | None = None
    """The goal in the unit: no more than that."""
    least: float | None = None
    """The goal in the unit, where more is better."""
    note: str = ""

    def __post_init__(self) -> None:
        if self.unit not in UNITS or (self.unit == "/s" and self.peer):
            raise ValueError(f"{self.name}: {self.unit} is no unit here: {', '.join(UNITS)}")
        rounds = (*self.ours, *self.theirs)
        if not self.ours or not all(math.isfinite(each) and each > 0 for each in rounds):
            raise ValueError(f"{self.name}: not measured: {rounds}")
        if bool(self.peer) != bool(self.theirs) or len(self.theirs) not in (0, len(self.ours)):
            raise ValueError(f"{self.name}: a peer has as many rounds as we have")
        if self.goal is not None and not self.theirs:
            raise ValueError(f"{self.name}: the goal needs a peer")

    @property
    def ratio(self) -> float | None:
        """How many times more the peer takes."""
        return median(self.theirs) / median(self.ours) if self.theirs else None

    @property
    def spread(self) -> tuple[float, float]:
        """Between which the rounds lie, without the outer tenth on each side: ratios or figures."""
        if not self.theirs:
            return _middle(self.ours)
        return _middle([they / we for they, we in zip(self.theirs, self.ours, strict=True)])

    @property
    def met(self) -> bool | None:
        """Whether every goal is met; None where there is none."""
        ours, ratio = median(self.ours), self.ratio
        kept = [
            *([ours <= self.most] if self.most is not None else []),
            *([ours >= self.least] if self.least is not None else []),
            *([ratio >= self.goal] if self.goal is not None and ratio is not None else []),
        ]
        return all(kept) if kept else None

    # As it is told.

    @property
    def told(self) -> str:
        return figure(median(self.ours), self.unit)

    @property
    def told_peer(self) -> str:
        return f"{self.peer}: {figure(median(self.theirs), self.unit)}" if self.theirs else ""

    @property
    def told_spread(self) -> str:
        low, high = self.spread
        if low == high:
            return ""
        if self.theirs:
            return f"{short(low)}…{short(high)}×"
        return f"{figure(low, self.unit)}…{figure(high, self.unit)}"

    @property
    def told_goal(self) -> str:
        wanted = [
            f"≤ {figure(self.most, self.unit)}" if self.most is not None else "",
            f"≥ {figure(self.least, self.unit)}" if self.least is not None else "",
            f"≥ {self.goal:g}× less" if self.goal is not None else "",
        ]
        return ", ".join(filter(None, wanted))


@dataclass(frozen=True, slots=True)
class Gap:
    """Work that was to be measured and could not be: why, and what to do."""

    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What one piece of work costs at several sizes."""

    name: str
    unit: str
    sizes: str
    """What is counted: `dependents`."""
    points: tuple[tuple[int, float], ...]
    goal: tuple[int, float] | None = None
    """At which size it is to cost no more than what."""


Found = Row | Gap | Curve
"""What a measurement yields. Each file here has `rows(quick=…)`, which yields these."""


def cells(found: Row | Gap) -> tuple[str, ...]:
    """One line of the table."""
    if isinstance(found, Gap):
        return (found.name, "", "NOT MEASURED", "", "", "", "?")
    ratio = "" if found.ratio is None else f"{short(found.ratio)}×"
    met = {None: "", True: "yes", False: "NO"}[found.met]
    spread = found.told_spread
    return (found.name, found.told_peer, found.told, ratio, spread, found.told_goal, met)


def print_rows(rows: Iterable[Row | Gap]) -> None:
    """The table on a terminal."""
    lines = [HEAD, *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print(text.rstrip())


def say(text: str) -> None:
    """Progress, apart from the table."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def short(number: float) -> str:
    """A number with three digits that count, as people write it."""
    if not number:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(number))))
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_SMALLER: dict[str, str] = {"s": "ms", "ms": "µs"}
_LARGER: dict[str, str] = {"µs": "ms", "ms": "s"}


def figure(number: float, unit: str) -> str:
    """A figure in the unit that reads best."""
    if number >= 1000 and unit in _LARGER:
        return figure(number / 1000, _LARGER[unit])
    if number < 1 and unit in _SMALLER:
        return figure(number * 1000, _SMALLER[unit])
    return f"{short(number)}{'' if unit in {'×', '/s'} else ' '}{unit}"


def _middle(values: Sequence[float]) -> tuple[float, float]:
    outer = len(values) // 10
    ordered = sorted(values)
    return ordered[outer], ordered[-1 - outer]
