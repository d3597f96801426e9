"""Prometheus metrics of the webhook server.

The counters are plain dictionaries. Only kinds that the server converts or reviews get label values
of their own, so that requests for invented kinds cannot fill the memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from polyver.kube.http.histograms import Times
from polyver.kube.http.http import HttpResponse
from polyver.kube.http.watchdog import LAG, LAG_TEXT, lags
from polyver.webhook.budget import MemoryBudget
from polyver.webhook.reviews import Admitted, Key, Reviewed

__all__ = ["WebhookMetrics"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
Labels = TypeVar("Labels", bound=tuple[str, ...])
_OF_A_KIND = ("group", "kind")
_SUCCESS = (200, "success")


class WebhookMetrics(Collector):
    """The counters of the webhook server since its start."""

    def __init__(
        self,
        valid_until: Callable[[], datetime] | None = None,
        *,
        also: Sequence[Callable[[], Collector]] = (),
    ) -> None:
        """Create the metrics; `valid_until` returns the time at which the certificate expires.

        Each function in `also` returns another Prometheus collector, whose metrics are served too.
        """
        self._valid_until = valid_until
        self._also = also
        self._reviews: Counter[tuple[int, str]] = Counter()
        self._objects: Counter[tuple[str, str, str]] = Counter()
        self._failures: Counter[Key] = Counter()
        self._admissions: Counter[Admitted] = Counter()
        self._times = Times(_BOUNDS)
        self._in_flight = 0
        self.budget: MemoryBudget | None = None
        """The memory budget, for the metrics about memory; None for no such metrics."""

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Count a review as being answered (in flight) during a `with` block."""
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1

    def observe(self, reviewed: Reviewed, seconds: float) -> None:
        """Count one answered review, which took this number of seconds."""
        failed, admitted = reviewed.failed, reviewed.admitted
        success = reviewed.status == 200 and failed is None
        self._reviews[_SUCCESS if success else _result(reviewed)] += 1
        self._times.observe(seconds)
        for key, count in reviewed.objects.items():
            self._objects[*key, reviewed.version] += count
        if failed is not None:
            self._failures[failed] += 1
        if admitted is not None:
            self._admissions[admitted] += 1

    def withdraw(self, *keys: Key) -> None:
        """Remove the counts of kinds that are no longer served."""
        for key in keys:
            self._failures.pop(key, None)
        for each in [each for each in self._objects if each[:2] in keys]:
            del self._objects[each]
        for admitted in [each for each in self._admissions if each.kind in keys]:
            del self._admissions[admitted]

    def response(self) -> HttpResponse:
        """Return all metrics in the Prometheus text format."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        for each in self._also:
            registry.register(each())
        headers = [("content-type", CONTENT_TYPE_PLAIN_0_0_4)]
        return HttpResponse(200, headers, generate_latest(registry))

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, for the Prometheus library."""
        reviews = {(str(code), result): each for (code, result), each in self._reviews.items()}
        yield _counter("reviews", "Reviews answered.", ("code", "result"), reviews)
        text = "Objects converted, by the version to which they were converted."
        yield _counter("objects", text, (*_OF_A_KIND, "version"), self._objects)
        text = "Reviews that failed because of an object; without a kind if the kind is not served."
        yield _counter("failures", text, _OF_A_KIND, self._failures)
        text = "Writes that were admitted or refused; without a kind if the kind is not served."
        written = {(act, *kind, result): n for (act, kind, result), n in self._admissions.items()}
        yield _counter("admissions", text, ("act", *_OF_A_KIND, "result"), written)
        took = HistogramMetricFamily("polyver_webhook_review_seconds", "Duration of answers.")
        took.add_metric((), self._times.buckets(), self._times.seconds)
        yield took
        lag, measured = HistogramMetricFamily(LAG, LAG_TEXT), lags()
        lag.add_metric((), measured.buckets(), measured.seconds)
        yield lag
        text = "Reviews in progress."
        yield GaugeMetricFamily("polyver_webhook_reviews_in_flight", text, self._in_flight)
        if self.budget is not None:
            yield from _memory(self.budget)
        if self._valid_until is not None:
            text = "Expiry of the certificate, in seconds since 1970."
            until = self._valid_until().timestamp()
            yield GaugeMetricFamily("polyver_webhook_certificate_until_seconds", text, until)


def _memory(budget: MemoryBudget) -> Iterator[Metric]:
    name = "polyver_webhook_memory"
    whole = budget.bodies.size + budget.work.size
    yield GaugeMetricFamily(
        f"{name}_bytes", "Estimated memory of the reviews in progress.", budget.used
    )
    yield GaugeMetricFamily(f"{name}_limit_bytes", "Memory limit for all reviews.", whole)
    text = "Reviews that waited for memory."
    yield CounterMetricFamily(f"{name}_waits", text, budget.waited)
    text = "Reviews that were refused with 429 because of missing memory."
    yield CounterMetricFamily(f"{name}_refusals", text, budget.refused)


def _result(reviewed: Reviewed) -> tuple[int, str]:
    """Return the status and the result (failure or refused) of a review without success."""
    return reviewed.status, "failure" if reviewed.status == 200 else "refused"


def _counter(name: str, text: str, labels: Sequence[str], counts: Mapping[Labels, int]) -> Metric:
    family = CounterMetricFamily(f"polyver_webhook_{name}", text, labels=labels)
    for key, count in counts.items():
        family.add_metric(key, count)
    return family
