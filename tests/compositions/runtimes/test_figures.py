"""How revisions do, as Prometheus reads it."""

from __future__ import annotations

from polyver.compositions.runtimes import Figures
from polyver.compositions.runtimes.metrics import collector
from polyver.kube.server.metrics import ApiServerMetrics


def text_of(metrics: ApiServerMetrics) -> str:
    body = metrics.response().body
    assert isinstance(body, bytes)
    return body.decode()


def test_metrics_tell_which_revisions_are_up_and_how_often_they_were_started_again() -> None:
    known = [Figures("fn-1", up=True), Figures("fn-2", up=False, restarts=3)]
    metrics = ApiServerMetrics(also=[lambda: collector(lambda: known)])
    lines = text_of(metrics).splitlines()
    assert 'polyver_function_up{revision="fn-1"} 1.0' in lines
    assert 'polyver_function_up{revision="fn-2"} 0.0' in lines
    assert 'polyver_function_restarts_total{revision="fn-2"} 3.0' in lines
    known.pop()
    assert "fn-2" not in text_of(metrics)
