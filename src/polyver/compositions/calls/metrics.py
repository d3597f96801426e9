"""Metrics of the calls of each function revision, for Prometheus and for the checks of rollouts.

Counting a call takes only a few additions. Only `collector` imports the Prometheus library.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from polyver.compositions.calls.errors import CallFailure
from polyver.kube.http.histograms import Times

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["CallCounts", "CallMetrics"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_MOST_REVISIONS = 1000
_OTHERS = ""
_SUCCESS = "Success"


@dataclass(slots=True)
class CallCounts:
    """Results and durations of the calls of one function revision."""

    results: dict[str, int] = field(default_factory=dict)
    """Number of calls with each result: a kind of failure, or `Success`."""
    times: Times = field(default_factory=lambda: Times(_BOUNDS))
    in_flight: int = 0
    """Number of calls that wait for a concurrency slot or for their response."""

    def observe(self, failure: CallFailure | None, seconds: float) -> None:
        """Count a call that has ended after `seconds`. `failure` is None if the call succeeded."""
        result = failure.value if failure else _SUCCESS
        self.results[result] = self.results.get(result, 0) + 1
        self.times.observe(seconds)

    @property
    def calls(self) -> int:
        return sum(self.results.values())

    @property
    def failures(self) -> int:
        return self.calls - self.results.get(_SUCCESS, 0)


class CallMetrics:
    """The counts of all function revisions since the start of this process."""

    def __init__(self) -> None:
        self._revisions: dict[str, CallCounts] = {}

    def of(self, revision: str) -> CallCounts:
        """Return the counts of a revision.

        If there are too many revisions, all others share one set of counts.
        """
        found = self._revisions.get(revision)
        if found is None:
            name = revision if len(self._revisions) < _MOST_REVISIONS else _OTHERS
            found = self._revisions.setdefault(name, CallCounts())
        return found

    def forget(self, revision: str) -> None:
        """Remove the counts of a function revision that is not called any more."""
        self._revisions.pop(revision, None)

    def __iter__(self) -> Iterator[tuple[str, CallCounts]]:
        yield from self._revisions.items()

    def collector(self) -> Collector:
        """Return a collector that reports the counts, for a Prometheus registry."""
        return _collector(self)


def _collector(metrics: CallMetrics) -> Collector:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        Metric,
    )
    from prometheus_client.registry import Collector

    class Calls(Collector):
        """Reports the counts to the Prometheus library."""

        def collect(self) -> Iterator[Metric]:
            total = CounterMetricFamily(
                "polyver_function_calls", "Calls that have ended.", labels=("revision", "result")
            )
            times = HistogramMetricFamily(
                "polyver_function_call_seconds", "Duration of calls.", labels=("revision",)
            )
            going = GaugeMetricFamily(
                "polyver_function_calls_in_flight", "Calls in progress.", labels=("revision",)
            )
            for revision, counts in metrics:
                for result, count in counts.results.items():
                    total.add_metric((revision, result), count)
                times.add_metric((revision,), counts.times.buckets(), counts.times.seconds)
                going.add_metric((revision,), counts.in_flight)
            yield from (total, times, going)

    return Calls()
