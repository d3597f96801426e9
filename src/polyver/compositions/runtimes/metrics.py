"""Metrics of the runtimes that serve function revisions, for Prometheus and other readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["Figures", "collector"]


@dataclass(frozen=True, slots=True)
class Figures:
    """Metrics of one function revision."""

    revision: str
    up: bool
    """True if polyver can call the revision now."""
    restarts: int = 0
    """Number of restarts because the process of the revision exited by itself.

    It is 0 if the runtime starts no processes.
    """


def collector(figures: Callable[[], Iterable[Figures]]) -> Collector:
    """Return a collector for a Prometheus registry.

    The Prometheus library is imported only when this function is called.
    """
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector

    class Revisions(Collector):
        """Reports the metrics to the Prometheus library."""

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
