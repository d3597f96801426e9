"""What controllers count, for Prometheus; the library for it is loaded with the first question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["Counts", "collector_of"]

Counts = Callable[[], Mapping[str, Mapping[str, int]]]
"""By the names of controllers, and by what it is that they did."""


def collector_of(counts: Counts) -> Callable[[], Collector]:
    """What tells of them wherever metrics are served."""
    return partial(_collector, counts)


def _collector(counts: Counts) -> Collector:
    from prometheus_client.core import CounterMetricFamily, Metric
    from prometheus_client.registry import Collector

    class Controllers(Collector):
        """Tells the library what was counted."""

        def collect(self) -> Iterator[Metric]:
            done = CounterMetricFamily(
                "polyver_controller_done", "What controllers did.", labels=("controller", "what")
            )
            for controller, each in counts().items():
                for what, count in each.items():
                    done.add_metric((controller, what), count)
            yield done

    return Controllers()
