"""What the webhook has done, for Prometheus.

Only kinds that are served have labels of their own: what clients write cannot fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from polyver.serving.http import Response
from polyver.webhook.reviews import OUTCOMES, Key, Reviewed

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["Metrics"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_OF_A_KIND = ("group", "kind")


class Metrics:
    """Counts since the start."""

    def __init__(
        self,
        valid_until: Callable[[], datetime] | None = None,
        *,
        also: Sequence[Callable[[], Collector]] = (),
    ) -> None:
        """`also` are those who count something else that is told in the same place."""
        self._registry = CollectorRegistry()
        for each in also:
            self._registry.register(each())
        self._reviews = Counter(
            "polyver_webhook_reviews",
            "Reviews answered.",
            ("code", "result"),
            registry=self._registry,
        )
        self._objects = Counter(
            "polyver_webhook_objects", "Objects converted.", _OF_A_KIND, registry=self._registry
        )
        self._failures = Counter(
            "polyver_webhook_failures",
            "Reviews that an object failed; without a kind if that is not served.",
            _OF_A_KIND,
            registry=self._registry,
        )
        self._admissions = Counter(
            "polyver_webhook_admissions",
            "Writes that were admitted or not; without a kind if that is not served.",
            ("act", *_OF_A_KIND, "result"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "polyver_webhook_review_seconds",
            "How long answers took.",
            buckets=_BOUNDS,
            registry=self._registry,
        )
        self.in_flight = Gauge(
            "polyver_webhook_reviews_in_flight",
            "Reviews that have come and are not answered yet.",
            registry=self._registry,
        )
        if valid_until:
            Gauge(
                "polyver_webhook_certificate_until_seconds",
                "When the certificate ends, in seconds since 1970.",
                registry=self._registry,
            ).set_function(lambda: valid_until().timestamp())

    def observe(self, reviewed: Reviewed, seconds: float) -> None:
        """Count one review."""
        result = "failure" if reviewed.failed else "success"
        refused = reviewed.status != 200
        self._reviews.labels(str(reviewed.status), "refused" if refused else result).inc()
        self._seconds.observe(seconds)
        for key, count in reviewed.objects.items():
            self._objects.labels(*key).inc(count)
        if reviewed.failed is not None:
            self._failures.labels(*reviewed.failed).inc()
        if reviewed.admitted is not None:
            act, kind, outcome = reviewed.admitted
            self._admissions.labels(act, *kind, outcome).inc()

    def withdraw(self, *keys: Key) -> None:
        """Forget kinds that are not served any more."""
        for key in keys:
            for counter in (self._objects, self._failures):
                counter.remove(*key)
            for act, outcome in product(("mutate", "validate"), OUTCOMES):
                self._admissions.remove(act, *key, outcome)

    def response(self) -> Response:
        """All of it in Prometheus' text."""
        headers = [("content-type", CONTENT_TYPE_PLAIN_0_0_4)]
        return Response(200, headers, generate_latest(self._registry))
