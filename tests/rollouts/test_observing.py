"""The observations of servers: when a check is observed, and which observation counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import pytest
from tests.deadlines import HANG
from tests.web_server import WebServer, web_server

from polyver.client import SystemClock
from polyver.controllers.egress import AllowedHttp
from polyver.controllers.outgoing import HttpRequests
from polyver.core.rollout import CheckResult
from polyver.core.rollout_checks import HttpCheck, PrometheusCheck
from polyver.kube.http.logs import Log
from polyver.rollouts import observing
from polyver.rollouts.observing import CheckObserver
from polyver.rollouts.rules import RolloutCheck


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


class Deciding:
    """A rollout that reads the results of one check again and again."""

    def __init__(self, web: WebServer, *, allowed: str = "") -> None:
        requests = HttpRequests(AllowedHttp.read([allowed or web.pattern]))
        self.observer = CheckObserver(requests, SystemClock(), Log())
        self.checks: list[RolloutCheck] = [HttpCheck(f"{web.url}/health")]
        self._woken = asyncio.Event()

    def results(self, *, step: int = 1, has_moved: bool = True) -> Mapping[int, CheckResult]:
        wake = self._woken.set
        return self.observer.results("web", self.checks, step=step, has_moved=has_moved, wake=wake)

    async def result(self, *, step: int = 1, has_moved: bool = True) -> CheckResult:
        """Return the result after one more observation."""
        self._woken.clear()
        self.results(step=step, has_moved=has_moved)
        async with asyncio.timeout(HANG):
            await self._woken.wait()
        return self.observer.results(
            "web", [], step=step, has_moved=has_moved, wake=self._woken.set
        )[0]


@pytest.fixture(autouse=True)
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "EVERY", 3600.0)


@pytest.fixture
def at_once(seldom: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "EVERY", 0.0)


@pytest.mark.usefixtures("at_once")
def test_three_failures_in_a_row_fail(web: WebServer) -> None:
    async def verdicts(*statuses: int, deciding: Deciding) -> list[str]:
        found: list[str] = []
        for status in statuses:
            web.answers["/health"] = (status, b"")
            found.append((await deciding.result()).verdict)
        return found

    async def run() -> None:
        deciding = Deciding(web)
        found = await verdicts(500, 500, 200, 500, 500, 500, deciding=deciding)
        assert found == ["Waiting", "Waiting", "Passed", "Waiting", "Waiting", "Failed"]
        assert (await deciding.result(step=2)).verdict == "Waiting", "a step begins anew"
        await deciding.observer.close()

    asyncio.run(run())


def test_an_observation_from_before_the_move_lets_nothing_pass(web: WebServer) -> None:
    async def run() -> None:
        deciding = Deciding(web)
        assert (await deciding.result(has_moved=False)).verdict == "Passed"
        assert deciding.results(has_moved=True) == {}
        assert (await deciding.result(has_moved=True)).verdict == "Passed"
        assert len(web.asked) == 2
        await deciding.observer.close()

    asyncio.run(run())


def test_a_check_is_observed_once_in_an_interval(web: WebServer) -> None:
    async def run() -> None:
        deciding = Deciding(web)
        await deciding.result()
        for _ in range(50):
            assert deciding.results()[0].verdict == "Passed"
            await asyncio.sleep(0)
        assert len(web.asked) == 1
        await deciding.observer.close()

    asyncio.run(run())


def test_a_server_that_is_no_longer_allowed_is_not_asked(web: WebServer) -> None:
    async def run() -> None:
        deciding = Deciding(web, allowed="shop.example")
        result = await deciding.result()
        assert result.verdict == "Waiting"
        assert result.message.startswith(f"requests to {web.url} are not allowed")
        await deciding.observer.close()

    asyncio.run(run())
    assert not web.asked


def test_a_long_message_of_a_server_is_cut(web: WebServer) -> None:
    web.answers["/api/v1/query"] = (400, b'{"status":"error","error":"%s"}' % (b"x" * 10_000))

    async def run() -> None:
        deciding = Deciding(web)
        observer = deciding.observer
        deciding.checks = [PrometheusCheck(web.url, "up")]
        result = await deciding.result()
        assert result.message.startswith("Prometheus reports")
        assert len(result.message) == 500
        await observer.close()

    asyncio.run(run())
