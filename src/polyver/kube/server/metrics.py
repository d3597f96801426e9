"""Metrics about requests to the API server, for Prometheus.

Requests are counted in plain dictionaries. The Prometheus library is loaded when the metrics are
requested for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from polyver.kube.http.histograms import Times
from polyver.kube.http.watchdog import LAG, LAG_TEXT, lags
from polyver.kube.server.http import HttpResponse, parse_api_path, verb_of

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["ApiServerMetrics"]

_BOUNDS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)
_MOST_SERIES = 1000
_WORDS = {"create": "POST", "update": "PUT"}
_LABELS = ("verb", "group", "version", "resource", "code")


class _Series(NamedTuple):
    """The labels of one time series. Their names are the same as in kube-apiserver."""

    verb: str
    group: str
    version: str
    resource: str
    code: str


_OTHER = _Series("OTHER", "", "", "", "")


class _Counts:
    """The requests of one time series: their number, and a histogram of their durations."""

    __slots__ = ("count", "times")

    def __init__(self) -> None:
        self.count = 0
        self.times = Times(_BOUNDS)


class ApiServerMetrics:
    """The metrics about the requests to one API server since its start."""

    def __init__(
        self,
        revision: Callable[[], int] = lambda: 0,
        *,
        also: Sequence[Callable[[], Collector]] = (),
        known: Callable[[str, str, str], bool] = lambda *_: True,
    ) -> None:
        """Each function in `also` returns a collector whose metrics are added to the answer.

        `known` reports whether a resource is served, by its group, version and plural. Requests for
        other resources are counted without these labels.
        """
        self._revision = revision
        self._also = also
        self._known = known
        self._series: dict[_Series, _Counts] = {}
        self.watchers = 0

    def observe(
        self, method: str, path: str, code: int, seconds: float | None, *, watch: bool = False
    ) -> None:
        """Count a request.

        `seconds` is its duration; None for a watch, whose client determines the duration.
        """
        series = _series(method, path, code, watch=watch)
        counts = self._series.get(series)
        if counts is None:
            plural = series.resource.partition("/")[0]
            if plural and not self._known(series.group, series.version, plural):
                series = _Series(method, "", "", "", str(code))
            # Clients choose the paths, so the number of time series must be limited.
            series = series if len(self._series) < _MOST_SERIES else _OTHER
            counts = self._series.setdefault(series, _Counts())
        counts.count += 1
        if seconds is not None:
            counts.times.observe(seconds)

    def response(self) -> HttpResponse:
        """Build the response with all metrics in the Prometheus text format."""
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

        registry = CollectorRegistry(auto_describe=False)
        for collector in (_collector(self), *(each() for each in self._also)):
            registry.register(collector)
        headers = [("Content-Type", CONTENT_TYPE_PLAIN_0_0_4)]
        return HttpResponse(200, headers, generate_latest(registry))

    def series(self) -> Iterator[tuple[_Series, _Counts]]:
        """Yield every time series with its counts."""
        yield from self._series.items()

    @property
    def revision(self) -> int:
        return self._revision()


def _series(method: str, path: str, code: int, *, watch: bool) -> _Series:
    api_path = parse_api_path(path)
    # A request that was refused may name a resource that does not exist.
    if api_path is None or not api_path.resource or code in (401, 403):
        return _Series(method, "", "", "", str(code))
    verb = verb_of(method, api_path, watch=watch)
    part = (
        f"{api_path.resource}/{api_path.subresource}" if api_path.subresource else api_path.resource
    )
    word = _WORDS.get(verb, verb.upper())
    return _Series(word, api_path.group, api_path.version, part, str(code))


def _collector(metrics: ApiServerMetrics) -> Collector:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        Metric,
    )
    from prometheus_client.registry import Collector

    class Requests(Collector):
        """Gives all metrics to the Prometheus library when a client requests them."""

        def collect(self) -> Iterator[Metric]:
            total = CounterMetricFamily("apiserver_request", "Requests answered.", labels=_LABELS)
            times = HistogramMetricFamily(
                "apiserver_request_duration_seconds", "Duration of responses.", labels=_LABELS
            )
            for series, counts in metrics.series():
                total.add_metric(series, counts.count)
                times.add_metric(series, counts.times.buckets(), counts.times.seconds)
            yield from (total, times)
            yield GaugeMetricFamily(
                "apiserver_longrunning_requests", "Open watches.", metrics.watchers
            )
            lag, measured = HistogramMetricFamily(LAG, LAG_TEXT), lags()
            lag.add_metric((), measured.buckets(), measured.seconds)
            yield lag
            yield GaugeMetricFamily(
                "polyver_store_revision", "The newest revision of the store.", metrics.revision
            )

    return Requests()
