"""A real Prometheus decides whether a rollout goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.rollouts.prometheus import needs_prometheus, prometheus
from tests.rollouts.releasing import Releasing, releasing, version
from tests.walks.support import eventually
from tests.web_server import WebServer, web_server

from polyver.rollouts import observing

pytestmark = needs_prometheus
NUMBER = 4
HALF = {"share": "50%", "pause": {"until": "Approved"}}


@pytest.fixture
def app() -> Iterator[WebServer]:
    """An application with metrics."""
    with web_server() as server:
        has_errors(server, web=0)
        server.headers["/metrics"] = {"content-type": "text/plain; version=0.0.4"}
        yield server


@pytest.fixture
def address(app: WebServer, tmp_path: Path) -> Iterator[str]:
    with prometheus(tmp_path, target=app.pattern) as url:
        yield url


@pytest.fixture
def platform(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Releasing]:
    monkeypatch.setattr(observing, "EVERY", 0.1)
    with releasing(allow_http=[address]) as platform:
        platform.publish(version("1.0.0"))
        platform.applications(NUMBER)
        eventually(lambda: [*platform.written().values()] == ["1.0.0"] * NUMBER)
        yield platform


def has_errors(app: WebServer, **shares: float) -> None:
    """Let the application report these shares of errors, by the name of a service."""
    lines = [f'app_errors{{service="{name}"}} {share}\n' for name, share in shares.items()]
    app.answers["/metrics"] = (200, "".join(lines).encode())


def check(address: str, query: str) -> Any:
    return {"prometheus": {"address": address, "query": query, "below": 0.01}}


def shown(platform: Releasing) -> Any:
    return (platform.status().get("checks") or [{}])[0]


def test_a_rollout_with_good_metrics_completes(platform: Releasing, address: str) -> None:
    platform.policy(HALF, {"share": "100%"}, checks=[check(address, "max(app_errors)")])
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/2")
    platform.ask(approvedStep=1)
    status = platform.reaches("Completed", "2/2")
    message = "0, must be below 0.01"
    assert status["checks"] == [{"name": "prometheus", "result": "Passed", "message": message}]
    assert {*platform.versions().values()} == {"1.0.1"}


def test_a_rollout_with_bad_metrics_rolls_back(
    platform: Releasing, address: str, app: WebServer
) -> None:
    has_errors(app, web=0, shop=0)
    platform.policy(HALF, {"share": "100%"}, checks=[check(address, "app_errors")])
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/2")
    has_errors(app, web=0, shop=0.25)
    status = platform.reaches("RolledBack", "1/2")
    assert "0.25, must be below 0.01 (1 of 2 values are not)" in status["reason"]
    eventually(lambda: {*platform.written().values()} == {"1.0.0"})


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("sum(", "Prometheus reports bad_data: invalid parameter"),
        ("no_such_metric", "the result of the query is empty"),
        ("0/0", "the value is NaN"),
        ("scalar(no_such_metric)", "the value is NaN"),
        ("app_errors[1m]", "the result is of the type matrix, expected a scalar or a vector"),
    ],
)
def test_a_rollout_waits_for_a_value(
    platform: Releasing, address: str, query: str, message: str
) -> None:
    platform.policy(HALF, {"share": "100%"}, checks=[check(address, query)])
    platform.publish(version("1.0.1"))
    eventually(lambda: message in shown(platform).get("message", ""))
    assert shown(platform)["result"] == "Waiting"
    assert platform.state() == ("Progressing", "1/2")
