"""What the core costs: CPU time, the best of several rounds, and how it grows with size."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

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


def cpu(work: Callable[[], object], *, times: int = 1, rounds: int = 7) -> float:
    """Seconds of CPU for one call, in the best of the rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - start) / times)
    return best


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


def sorting() -> Iterator[tuple[str, str]]:
    numbers = random.Random(1)
    texts = [
        f"{numbers.randrange(50)}.{numbers.randrange(50)}.{numbers.randrange(50)}"
        f"{numbers.choice(['', '', '-rc.1', '-alpha.2'])}"
        for _ in range(20_000)
    ]
    yield (
        "parse and sort 20,000 semvers",
        f"{cpu(lambda: sorted(map(SemVer.parse, texts))) * 1e3:.0f} ms",
    )


def resolving() -> Iterator[tuple[str, str]]:
    for size in (10, 100, 1_000, 10_000):
        web = lineage(size)
        selectors: dict[str, Selector] = {
            "exact": Exact(web.releases[size // 2].version),
            "series": Series(0, 0),
            "labels": Labels.of({"channel": "alpha", "tier": "3"}),
            "nothing": UNSPECIFIED,
        }
        for name, selector in selectors.items():

            def work(web: Lineage = web, selector: Selector = selector) -> object:
                return resolve(web, selector, POLICY)

            yield f"resolve {name}, {size:,} releases", f"{cpu(work, times=5_000) * 1e6:.1f} µs"


def moving() -> Iterator[tuple[str, str]]:
    web = lineage(1_000)
    for size in (1_000, 10_000, 100_000):
        index = Index.of(dependents(web, size))
        for what, gate in (("", None), (", behind a gate", Gate("spring", 1, share=0.5))):
            after = web.publish(Release(SemVer.parse("9.9.10"), gate=gate))

            def work(index: Index = index, after: Lineage = after) -> object:
                return affected(index, web, after)

            moved = len(affected(index, web, after).moves)
            yield (
                f"affected, {size:,} dependents, {moved} move{what}",
                f"{cpu(work, times=10) * 1e3:.2f} ms",
            )


def dependents(web: Lineage, size: int) -> Iterator[tuple[Dependent, str, Selector, Policy]]:
    for number in range(size):
        series = Series(9, 9) if number < 10 else Series(number % 9, number % 10)
        pin = resolve(web, series, POLICY).release.pin
        yield (
            Dependent(f"default/{number}", "spec", uid=f"{number}", pin=pin),
            "web",
            series,
            POLICY,
        )


def main() -> None:
    for rows in (sorting, resolving, moving):
        for name, figure in rows():
            print(f"{name:<55} {figure:>10}", flush=True)


if __name__ == "__main__":
    main()
