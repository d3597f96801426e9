"""Rows of composite resources: how many are made in a second, and what each costs by their number.

What there is and how it is watched is in bench/composites.py, which also disturbs them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

from bench.applications import Server, running, until
from bench.composites import (
    PATIENCE,
    STEPS,
    Seen,
    _all_are,
    create,
    functions_cpu,
    packages,
    prepare,
    release,
    watched,
)
from bench.rows import Curve, Found, Row, print_rows, say

Spent = tuple[float, float, float]
"""How many in a second, and milliseconds of CPU for each: of the server, of the functions."""


def rows(*, quick: bool = False) -> Iterator[Found]:
    sizes, rounds = ((50,), 1) if quick else ((50, 200), 2)
    made: dict[int, Spent] = {}
    moved: dict[int, list[Spent]] = {}
    for size in sizes:
        say(f"{size:,} composite resources, and {rounds} revisions that move all of them")
        made[size], moved[size] = measured(size, rounds)
    largest = max(sizes)
    yield from told(f"{largest:,} composite resources made and ready", [made[largest]])
    yield from told(f"a revision of a function moves {largest:,}", moved[largest])
    points = tuple((size, median(each[1] for each in found)) for size, found in moved.items())
    yield Curve(name="each moved", unit="ms", sizes="composite resources", points=points)


def told(what: str, spent: list[Spent]) -> Iterator[Row]:
    rates, server, functions = zip(*spent, strict=True)
    yield Row(name=f"{what}, in a second", unit="/s", ours=rates)
    yield Row(name=f"{what}, CPU of the server for each", unit="ms", ours=server)
    yield Row(name=f"{what}, CPU of two functions for each", unit="ms", ours=functions)


def measured(size: int, rounds: int) -> tuple[Spent, list[Spent]]:
    """What making them took, and then each revision of the first function."""
    with tempfile.TemporaryDirectory(prefix="polyver-bench-") as name:
        folder = Path(name)
        file = packages(folder / "functions", rounds + 1)
        with running(folder, "apis,compositions", "--packages", str(file)) as server:
            prepare(server)
            with watched(server) as seen:
                made = spent(server, seen, size, 1, lambda: create(server, size))
                moved = [
                    spent(server, seen, size, each, partial(release, server, STEPS[0], each))
                    for each in range(2, rounds + 2)
                ]
    return made, moved


def spent(
    server: Server, seen: Seen, size: int, version: int, begin: Callable[[], object]
) -> Spent:
    """What it took until all are ready with that version of the first function."""
    began, own, theirs = time.monotonic(), server.cpu, functions_cpu(server)
    begin()
    until(lambda: _all_are(seen, (version, 1), size), PATIENCE)
    seconds = time.monotonic() - began
    used = server.cpu - own, functions_cpu(server) - theirs
    return size / seconds, used[0] / size * 1e3, used[1] / size * 1e3


if __name__ == "__main__":
    print_rows(found for found in rows() if isinstance(found, Row))
