"""How revisions do, as numbers, for Prometheus and for whoever shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["Figures", "collector"]


@dataclass(frozen=True, slots=True)
class Figures:
    """One revision since it is served."""

    revision: str
    up: bool
    """Whether it can be called now."""
    restarts: int = 0
    """How often it was started again after it had ended by itself; others' restarts are theirs."""


def collector(figures: Callable[[], Iterable[Figures]]) -> Collector:
    """What a registry of Prometheus' library asks; the library is loaded with this."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector

    class Revisions(Collector):
        """Tells the library how revisions do."""

        def collect(self) -> Iterator[Metric]:
            up = GaugeMetricFamily(
                "polyver_function_up",
                "1 if a revision can be called, else 0.",
                labels=("revision",),
            )
            restarts = CounterMetricFamily(
                "polyver_function_restarts",
                "Restarts of a process that had exited.",
                labels=("revision",),
            )
            for each in figures():
                up.add_metric((each.revision,), float(each.up))
                restarts.add_metric((each.revision,), each.restarts)
            yield from (up, restarts)

    return Revisions()
