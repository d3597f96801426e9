"""Prometheus metrics of controllers. The Prometheus library is loaded on the first collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from polyver.controllers._manager import ControllerManager

__all__ = ["collector_of"]


def collector_of(engine: Callable[[], ControllerManager | None]) -> Callable[[], Collector]:
    """Build a function that creates the Prometheus collector for a controller manager.

    `engine` returns the manager, or None while no manager runs.
    """
    return partial(_collector, engine)


def _collector(engine: Callable[[], ControllerManager | None]) -> Collector:
    from prometheus_client.core import CounterMetricFamily, Metric
    from prometheus_client.registry import Collector

    class Controllers(Collector):
        """Collects the counters of all controllers."""

        def collect(self) -> Iterator[Metric]:
            done = CounterMetricFamily(
                "polyver_controller_done",
                "Reconciliations of controllers.",
                labels=("controller", "what"),
            )
            running = engine()
            for controller in running.controllers if running is not None else ():
                for what, count in controller.counts.items():
                    done.add_metric((controller.name, what), count)
                for each in controller.collectors:
                    yield from each().collect()
            yield done

    return Controllers()
