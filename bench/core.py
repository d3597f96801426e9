"""What the core costs in CPU time, and how that grows with size."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median

from bench.rows import Curve, Found, Row, print_rows

from polyver.core import (
    UNSPECIFIED,
    Dependent,
    Exact,
    Gate,
    Index,
    Labels,
    Lineage,
    Policy,
    Release,
    Selector,
    SemVer,
    Series,
    Stage,
    affected,
    resolve,
)

POLICY = Policy("bench", usable=frozenset({Stage.PUBLISHED}), best="newest release")


def cpu(work: Callable[[], object], *, times: int = 1, rounds: int) -> tuple[float, ...]:
    """Seconds of CPU for one call, round by round."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            work()
        taken.append((time.process_time() - start) / times)
    return tuple(taken)


def in_unit(taken: Iterable[float], factor: float) -> tuple[float, ...]:
    return tuple(each * factor for each in taken)


def lineage(size: int) -> Lineage:
    """Ten minor series to a major one, and ten patch releases in each."""
    return Lineage(
        "web",
        [
            Release(
                SemVer.parse(f"{number // 100}.{number // 10 % 10}.{number % 10}"),
                digest=f"sha256:{number}",
                labels={"channel": "alpha" if number % 2 else "stable", "tier": str(number % 5)},
            )
            for number in range(size)
        ],
    )


def sorting(rounds: int) -> Iterator[Row]:
    numbers = random.Random(1)
    texts = [
        f"{numbers.randrange(50)}.{numbers.randrange(50)}.{numbers.randrange(50)}"
        f"{numbers.choice(['', '', '-rc.1', '-alpha.2'])}"
        for _ in range(20_000)
    ]
    taken = cpu(lambda: sorted(map(SemVer.parse, texts)), rounds=rounds)
    yield Row(name="parse and sort 20,000 semantic versions", unit="ms", ours=in_unit(taken, 1e3))


def resolving(rounds: int, sizes: Sequence[int]) -> Iterator[Found]:
    points: dict[str, list[tuple[int, float]]] = {}
    for size in sizes:
        web = lineage(size)
        for name, selector in selectors(web).items():
            taken = in_unit(
                cpu(partial(resolve, web, selector, POLICY), times=5_000, rounds=rounds), 1e6
            )
            points.setdefault(name, []).append((size, median(taken)))
            if size == 1_000:
                told = f"`resolve` among 1,000 releases, {name}"
                yield Row(name=told, unit="µs", ours=taken, most=5)
    for name, found in points.items():
        told = f"resolve, {name}"
        goal = (1_000, 5.0)
        yield Curve(name=told, unit="µs", sizes="releases", points=tuple(found), goal=goal)


def selectors(web: Lineage) -> dict[str, Selector]:
    return {
        "exact": Exact(web.releases[len(web) // 2].version),
        "series": Series(0, 0),
        "two labels": Labels.of({"channel": "alpha", "tier": "3"}),
        "nothing asked for": UNSPECIFIED,
    }


def moving(rounds: int, sizes: Sequence[int]) -> Iterator[Found]:
    """One release, and ten dependents that it moves, however many there are."""
    web = lineage(1_000)
    ways = {"": None, ", behind a gate": Gate("spring", 1, share=0.5)}
    taken: dict[str, dict[int, tuple[float, ...]]] = {way: {} for way in ways}
    for size in sizes:
        index = Index.of(dependents(web, size))
        for way, gate in ways.items():
            after = web.publish(Release(SemVer.parse("9.9.10"), gate=gate))
            moved = len(affected(index, web, after).moves)
            assert moved == 10 if gate is None else 0 < moved < 10, moved
            work = partial(affected, index, web, after)
            taken[way][size] = in_unit(cpu(work, times=10, rounds=rounds), 1e3)
    for way, found in taken.items():
        yield from told_moves(way, found)


def told_moves(way: str, taken: Mapping[int, tuple[float, ...]]) -> Iterator[Found]:
    most, large = 50, 100_000
    name = f"`affected`, 10 of {large:,} dependents{way}"
    note = "half of the ten see the release" if way else ""
    yield Row(name=name, unit="ms", ours=taken[large], most=most, note=note)
    if not way:
        first, last = min(taken), max(taken)
        grown = tuple(one / other for one, other in zip(taken[last], taken[first], strict=True))
        told = f"`affected`, 10 of {last:,} dependents beside 10 of {first:,}"
        yield Row(name=told, unit="×", ours=grown, most=2)
    points = tuple((size, median(each)) for size, each in taken.items())
    name, goal = f"affected{way}", (large, float(most))
    yield Curve(name=name, unit="ms", sizes="dependents", points=points, goal=goal)


def dependents(web: Lineage, size: int) -> Iterator[tuple[Dependent, str, Selector, Policy]]:
    pins = {
        series: resolve(web, series, POLICY).release.pin
        for series in (Series(major, minor) for major in range(10) for minor in range(10))
    }
    for number in range(size):
        series = Series(9, 9) if number < 10 else Series(number % 9, number % 10)
        yield (
            Dependent(f"default/{number}", "spec", uid=f"{number}", pin=pins[series]),
            "web",
            series,
            POLICY,
        )


def rows(*, quick: bool = False) -> Iterator[Found]:
    rounds, most = (3, 100_000) if quick else (7, 1_000_000)
    sizes = [10**power for power in range(1, 7) if 10**power <= most]
    yield from sorting(rounds)
    yield from resolving(rounds, [size for size in sizes if size <= 100_000])
    yield from moving(rounds, [size for size in sizes if size >= 100])


if __name__ == "__main__":
    print_rows(found for found in rows() if isinstance(found, Row))
