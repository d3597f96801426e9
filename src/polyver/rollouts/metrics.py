"""Prometheus metrics of rollouts. The Prometheus library is loaded on the first collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from polyver.core.rollout import CheckResult, RolloutState
from polyver.kube.http.histograms import Times

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["RolloutMetrics"]

_BOUNDS: Final = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
_MOST_ROLLOUTS: Final = 100
"""The maximum number of active rollouts for which the metrics include the numbers of followers."""
_Name = tuple[str, str]


class RolloutMetrics:
    """The numbers of rollouts by state, the followers of active rollouts, and failed checks."""

    def __init__(self) -> None:
        self.preflights = Times(_BOUNDS)
        self._states: dict[_Name, str] = {}
        self._followers: dict[_Name, Mapping[str, int]] = {}
        self._failed: Counter[str] = Counter()

    def observe_state(self, namespace: str, name: str, state: str | None) -> None:
        """Record the state of a rollout; None if the rollout was deleted."""
        if state is None:
            self._states.pop((namespace, name), None)
        else:
            self._states[namespace, name] = state
        if not state or RolloutState(state).is_final:
            self._followers.pop((namespace, name), None)

    def observe_followers(self, namespace: str, name: str, counts: Mapping[str, int]) -> None:
        """Record the numbers of followers of an active rollout, by their state."""
        self._followers[namespace, name] = counts

    def observe_checks(self, before: Iterable[CheckResult], now: Sequence[CheckResult]) -> None:
        """Count the checks that fail now and did not fail in the evaluation before."""
        failed = Counter(each.name for each in now if each.verdict == "Failed")
        failed -= Counter(each.name for each in before if each.verdict == "Failed")
        self._failed += failed

    def states(self) -> Mapping[str, int]:
        """Return the number of rollouts in each state."""
        found = Counter(state for state in self._states.values() if state)
        return {each.value: found[each.value] for each in RolloutState}

    def followers(self) -> Iterator[tuple[_Name, str, int]]:
        """Yield the name of an active rollout, a state, and how many of its followers have it."""
        for name, counts in islice(sorted(self._followers.items()), _MOST_ROLLOUTS):
            for state, number in counts.items():
                yield name, state, number

    def failed_checks(self) -> Mapping[str, int]:
        """Return the number of failed checks since the start of this process, by type of check."""
        return self._failed

    def collector(self) -> Collector:
        """Build a collector for a Prometheus registry."""
        return _collector(self)


def _collector(metrics: RolloutMetrics) -> Collector:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        Metric,
    )
    from prometheus_client.registry import Collector

    class Rollouts(Collector):
        """Reports the metrics to the Prometheus library."""

        def collect(self) -> Iterator[Metric]:
            states = GaugeMetricFamily("polyver_rollouts", "Rollouts.", labels=("state",))
            for state, number in metrics.states().items():
                states.add_metric((state,), number)
            followers = GaugeMetricFamily(
                "polyver_rollout_followers",
                "Followers of active rollouts.",
                labels=("namespace", "rollout", "state"),
            )
            for (namespace, name), state, number in metrics.followers():
                followers.add_metric((namespace, name, state), number)
            failed = CounterMetricFamily(
                "polyver_rollout_checks_failed", "Checks that failed.", labels=("check",)
            )
            for check, number in metrics.failed_checks().items():
                failed.add_metric((check,), number)
            times = HistogramMetricFamily(
                "polyver_rollout_preflight_seconds", "Duration of preflights."
            )
            times.add_metric((), metrics.preflights.buckets(), metrics.preflights.seconds)
            yield from (states, followers, failed, times)

    return Rollouts()
