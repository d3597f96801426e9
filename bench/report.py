"""What one run has found, kept as JSON and told as Markdown.

The documentation is written from what is kept, so that nobody copies figures by hand.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from bench.rows import HEAD, Curve, Found, Gap, Row, cells, short

__all__ = ["Conditions", "Report", "here", "markdown", "missed", "read", "reported", "written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What figures depend on, beside the code."""

    python: str = ""
    cores: int = 0
    load: float = 0.0
    """How many others wanted a core when it began."""
    seconds: float = 0.0
    """How long it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that was measured, and what could not be."""

    conditions: Conditions = field(default_factory=Conditions)
    rows: tuple[Row, ...] = ()
    gaps: tuple[Gap, ...] = ()
    curves: tuple[Curve, ...] = ()

    @property
    def lines(self) -> list[Row | Gap]:
        """The lines of the table."""
        return [*self.rows, *self.gaps]


def here() -> Conditions:
    """What it is like now."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return Conditions(
        python=python, cores=len(os.sched_getaffinity(0)), load=round(os.getloadavg()[0], 1)
    )


def reported(found: Iterable[Found], conditions: Conditions) -> Report:
    known = list(found)
    return Report(
        conditions=conditions,
        rows=tuple(each for each in known if isinstance(each, Row)),
        gaps=tuple(each for each in known if isinstance(each, Gap)),
        curves=tuple(each for each in known if isinstance(each, Curve)),
    )


def missed(report: Report) -> list[Row]:
    """The rows whose goal is not met."""
    return [row for row in report.rows if row.met is False]


def read(path: Path) -> Report:
    """What was kept; a row that says what cannot be is refused."""
    return msgspec.json.decode(path.read_bytes(), type=Report)


def written(report: Report) -> bytes:
    """To be kept: one line for each value that may change, so that a diff can be read."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def markdown(report: Report) -> str:
    """The table, and whatever has to be known to read it."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"| {' | '.join(HEAD)} |"
    yield "|---" * len(HEAD) + "|"
    for each in report.lines:
        yield f"| {' | '.join(cells(each))} |"
    about = report.conditions
    yield ""
    yield (
        f"One run of {about.seconds / 60:.0f} minutes with {about.python} on {about.cores} cores, "
        f"with a load of {short(about.load)} when it began."
    )
    notes = [f"- {row.name}: {row.note}" for row in report.rows if row.note]
    if notes:
        yield from ("", *notes)
    if report.gaps:
        yield from ("", *(f"- NOT MEASURED: {gap.name}: {gap.why}" for gap in report.gaps))
