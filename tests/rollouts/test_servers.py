"""Checks that ask other servers, and notifications, against a server on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.rollouts.releasing import BAD, POLICIES, ROLLOUTS, TARGET, Releasing, releasing, version
from tests.rollouts.test_killed import KilledServer
from tests.walks.support import eventually
from tests.web_server import WebServer, web_server

from polyver.client import Backoff
from polyver.kube.objects.status import ApiError
from polyver.rollouts import notifying, observing

NUMBER = 4
QUERY = "/api/v1/query"
HALF = {"share": "50%", "pause": {"until": "Approved"}}
EVENTS = "/api/v1/namespaces/vela-system/events"


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


@pytest.fixture
def platform(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Releasing]:
    monkeypatch.setattr(observing, "EVERY", 0.1)
    monkeypatch.setattr(notifying, "PAUSES", Backoff(first=0.01))
    with releasing(allow_http=[web.pattern]) as platform:
        platform.publish(version("1.0.0"))
        platform.applications(NUMBER)
        eventually(lambda: [*platform.written().values()] == ["1.0.0"] * NUMBER)
        yield platform


def has_value(web: WebServer, *values: str) -> None:
    """Let Prometheus answer with a vector of these values."""
    samples = [{"metric": {"number": str(n)}, "value": [1.5, v]} for n, v in enumerate(values)]
    answer = {"status": "success", "data": {"resultType": "vector", "result": samples}}
    web.answers[QUERY] = (200, json.dumps(answer).encode())


def prometheus(web: WebServer) -> Any:
    return {"prometheus": {"address": web.url, "query": 'rate(bad{a="é"}[5m])', "below": 0.01}}


def waits(platform: Releasing, message: str) -> None:
    """Wait until the first check waits, with a part of its message."""

    def there() -> bool:
        checks = platform.status().get("checks") or [{}]
        return checks[0].get("result") == "Waiting" and message in checks[0]["message"]

    eventually(there)


def test_a_rollout_goes_on_while_the_values_are_within_the_limits(
    platform: Releasing, web: WebServer
) -> None:
    has_value(web, "0.001", "0")
    platform.policy(HALF, {"share": "100%"}, checks=[prometheus(web)])
    platform.publish(version("1.0.1"))
    status = platform.reaches("Paused", "1/2")
    message = "all 2 values, must be below 0.01"
    assert status["checks"] == [{"name": "prometheus", "result": "Passed", "message": message}]
    platform.ask(approvedStep=1)
    platform.reaches("Completed", "2/2")
    assert web.asked[0].target == f"{QUERY}?query=rate%28bad%7Ba%3D%22%C3%A9%22%7D%5B5m%5D%29"


def test_a_rollout_returns_after_failures_in_a_row(platform: Releasing, web: WebServer) -> None:
    has_value(web, "0.001")
    platform.policy(HALF, {"share": "100%"}, checks=[prometheus(web)])
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/2")
    has_value(web, "0.001", "0.5")
    status = platform.reaches("RolledBack", "1/2")
    said = "0.5, must be below 0.01 (1 of 2 values are not)"
    assert status["reason"] == f"the check prometheus failed: {said}"
    eventually(lambda: {*platform.written().values()} == {"1.0.0"})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, b'{"status":"success","data":{"resultType":"vector","result":[]}}'), "is empty"),
        (
            (200, b'{"status":"success","data":{"resultType":"scalar","result":[1,"NaN"]}}'),
            "the value is NaN",
        ),
        ((422, b'{"status":"error","errorType":"execution","error":"too many"}'), "too many"),
        ((502, b"<html>"), "status 502, and the answer is not JSON"),
        ((200, b"[" * 100_000), "status 200, and the answer is not JSON"),
        ((200, b" " * (2 << 20)), "answered with more than 1024 KiB"),
    ],
)
def test_a_check_waits_without_a_value(
    platform: Releasing, web: WebServer, answer: tuple[int, bytes], message: str
) -> None:
    web.answers[QUERY] = answer
    platform.policy(HALF, {"share": "100%"}, checks=[prometheus(web)])
    platform.publish(version("1.0.1"))
    waits(platform, message)
    count = len(web.asked)
    eventually(lambda: len(web.asked) >= count + 4)
    assert platform.state() == ("Progressing", "1/2")
    has_value(web, "0")
    platform.reaches("Paused", "1/2")


def test_a_paused_rollout_returns_when_its_url_redirects(
    platform: Releasing, web: WebServer
) -> None:
    platform.policy(HALF, {"share": "100%"}, checks=[{"http": {"url": f"{web.url}/health"}}])
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/2")
    platform.ask(paused=True)
    web.answers["/health"] = (302, b"")
    web.headers["/health"] = {"location": "/elsewhere"}
    status = platform.reaches("RolledBack", "1/2")
    assert status["reason"] == "the check http failed: status 302, expected 200"
    assert {each.target for each in web.asked} == {"/health"}


def test_each_step_is_observed_anew(platform: Releasing, web: WebServer) -> None:
    steps = {"share": "50%"}, {"share": "100%"}
    platform.policy(*steps, checks=[{"http": {"url": f"{web.url}/health"}}], onFailure="Pause")
    before = len(web.asked)
    platform.publish(version("1.0.1"))
    platform.reaches("Completed", "2/2")
    assert len(web.asked) >= before + 2


def test_a_server_that_is_not_allowed_is_refused_and_never_asked(
    platform: Releasing, web: WebServer
) -> None:
    other = web.url.replace("127.0.0.1", "localhost")
    rules = {
        "steps": [{"share": "100%"}],
        "checks": [{"ready": {}}, {"http": {"url": other}}],
        "notify": [{"url": web.url}, {"url": "http://u:p@chat.example"}],
    }
    kind = {"apiVersion": "polyver.dev/v1alpha1", "metadata": {"name": "wrong"}}
    policy = {**kind, "kind": "RolloutPolicy", "spec": {"targets": [TARGET], **rules}}
    rollout = {**kind, "kind": "Rollout", "spec": {"target": TARGET, "to": "1.0.1", **rules}}
    for path, obj in ((POLICIES, policy), (ROLLOUTS, rollout)):
        with pytest.raises(ApiError) as refused:
            platform.request("POST", path, obj)
        assert refused.value.code == 422
        said = str(refused.value)
        assert f"spec.checks[1].http.url: Invalid value: requests to {other} are not" in said
        assert "the option --allow-http of polyver allows them" in said
        assert "spec.notify[1].url" in said
        assert "spec.notify[0]" not in said
    assert not web.asked


# Notifications.


def posted(web: WebServer) -> list[Any]:
    return [json.loads(each.body) for each in web.asked if each.target == "/hook?token=1"]


def hook(web: WebServer, *on: str) -> Any:
    return {"url": f"{web.url}/hook?token=1", **({"on": [*on]} if on else {})}


def test_every_event_is_reported(platform: Releasing, web: WebServer) -> None:
    platform.policy(HALF, {"share": "100%"}, notify=[hook(web)])
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/2")
    platform.ask(approvedStep=1)
    platform.reaches("Completed", "2/2")
    eventually(lambda: len(posted(web)) >= 3)
    eventually(lambda: "notifications" not in platform.status())
    found = posted(web)
    assert sorted(each["event"] for each in found) == ["Completed", "Paused", "Started"]
    paused = next(each for each in found if each["event"] == "Paused")
    assert paused.pop("time") in paused.pop("id")
    assert paused == {
        "text": "Rollout vela-system/web-1.0.1: Paused: step 1 waits for approval",
        "event": "Paused",
        "namespace": "vela-system",
        "rollout": "web-1.0.1",
        "target": TARGET,
        "to": "1.0.1",
        "step": 1,
        "steps": 2,
        "message": "step 1 waits for approval",
    }


def test_chosen_events_are_reported(platform: Releasing, web: WebServer) -> None:
    platform.policy(HALF, {"share": "100%"}, notify=[hook(web, "Held", "Aborted")])
    platform.publish(version("1.0.1", BAD))
    platform.reaches("Held", "0/2")
    platform.ask(aborted=True)
    platform.reaches("Aborted", "0/2")
    eventually(lambda: sorted(each["event"] for each in posted(web)) == ["Aborted", "Held"])


def test_a_notification_is_sent_again_and_delays_nothing(
    platform: Releasing, web: WebServer
) -> None:
    web.answers["/hook"] = (503, b"")
    platform.policy({"share": "100%"}, notify=[hook(web, "Completed")])
    platform.publish(version("1.0.1"))
    platform.reaches("Completed", "1/1")

    def reported() -> Any:
        events = platform.request("GET", EVENTS)["items"]
        return [each for each in events if each["reason"] == "NotificationFailed"]

    [event] = eventually(reported)
    said = f"Completed was not reported: {web.url} answered with the status 503"
    assert event["message"] == f"{said} (spec.notify[0].url)"
    assert event["involvedObject"]["name"] == "web-1.0.1"
    assert len(posted(web)) == notifying.TRIES
    assert len({each["id"] for each in posted(web)}) == 1
    eventually(lambda: "notifications" not in platform.status())


def test_a_failed_check_in_a_pause_is_reported(platform: Releasing, web: WebServer) -> None:
    checks = [{"http": {"url": f"{web.url}/health"}}]
    notify = [hook(web, "Paused")]
    platform.policy(HALF, {"share": "100%"}, checks=checks, onFailure="Pause", notify=notify)
    platform.publish(version("1.0.1"))
    eventually(lambda: len(posted(web)) == 1)
    web.answers["/health"] = (500, b"")
    eventually(lambda: len(posted(web)) == 2)
    assert posted(web)[1]["message"] == "the check http failed: status 500, expected 200"


def test_a_notification_is_sent_after_a_kill(web: WebServer, tmp_path: Path) -> None:
    web.answers["/hook"] = (503, b"")
    server = KilledServer(tmp_path / "data", "--allow-http", web.pattern)
    try:
        platform = Releasing(server)
        platform.publish(version("1.0.0"))
        platform.applications(1)
        platform.policy({"share": "100%"}, notify=[hook(web, "Completed")])
        eventually(lambda: platform.written() == {"app-0": "1.0.0"})
        platform.publish(version("1.0.1"))
        eventually(lambda: posted(web))
        server.kill()
        before = len(posted(web))
        web.answers["/hook"] = (204, b"")
        eventually(lambda: len(posted(web)) > before)
        eventually(lambda: "notifications" not in platform.status())
        assert len({each["id"] for each in posted(web)}) == 1
    finally:
        server.end()
