"""Metrics and Events of rollouts."""

from __future__ import annotations

import re
import ssl
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.rollouts.releasing import BAD, Releasing, version
from tests.walks.support import eventually

from polyver.testing import EmbeddedServer

EVENTS = "/api/v1/namespaces/vela-system/events"
APPROVED = {"share": "50%", "pause": {"until": "Approved"}}
BROKEN_FOR_WEAK = f"{{{{ if .parameter.weak }}}}{BAD}{{{{ end }}}}\ndata: {{from: '1.0.1'}}"


class Reported(Releasing):
    """What a control plane reports about its rollouts."""

    def __init__(self, server: EmbeddedServer) -> None:
        super().__init__(server)
        self._server = server

    def metric(self, name: str, **labels: str) -> float | None:
        """The value of a metric, or None if there is none with these labels."""
        asked = urllib.request.Request(f"{self._server.url}/metrics")
        asked.add_header("Authorization", f"Bearer {self._server.token}")
        trusted = ssl.create_default_context(cafile=str(self._server.ca_file))
        with urllib.request.urlopen(asked, context=trusted) as answer:
            text = answer.read().decode()
        for line in text.splitlines():
            found = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
            if found and dict(re.findall(r'(\w+)="([^"]*)"', found[1] or "")) == labels:
                return float(found[2])
        return None

    def events(self, name: str = "web-1.0.1") -> list[tuple[str, str, str]]:
        """The type, reason and message of each Event about a rollout, oldest first."""
        found: list[Any] = self.request("GET", EVENTS)["items"]
        mine = [each for each in found if (each.get("involvedObject") or {}).get("name") == name]
        mine.sort(key=lambda each: int(each["metadata"]["resourceVersion"]))
        return [(each["type"], each["reason"], each["message"]) for each in mine]


@pytest.fixture
def reported() -> Iterator[Reported]:
    with EmbeddedServer(capabilities=("apis", "definitions")) as server:
        cluster = Reported(server)
        cluster.publish(version("1.0.0"))
        cluster.applications(5)
        cluster.application("app-weak", properties={"weak": True})
        cluster.policy({"labels": {"no": "one"}}, APPROVED, {"share": "100%"})
        yield cluster


def test_metrics_count_rollouts_followers_preflights_and_failed_checks(reported: Reported) -> None:
    reported.publish(version("1.0.1"))
    status = reported.reaches("Paused", "2/3")
    eventually(lambda: reported.metric("polyver_rollouts", state="Paused") == 1)
    named = {"namespace": "vela-system", "rollout": "web-1.0.1"}
    for state, number in status["dependents"].items():
        assert reported.metric("polyver_rollout_followers", **named, state=state) == number
    assert reported.metric("polyver_rollout_preflight_seconds_count") == 1
    assert reported.metric("polyver_rollout_checks_failed_total", check="ready") is None
    reported.ask(aborted=True)
    eventually(lambda: reported.metric("polyver_rollouts", state="Aborted") == 1)
    assert reported.metric("polyver_rollouts", state="Paused") == 0
    assert reported.metric("polyver_rollout_followers", **named, state="total") is None


def test_a_failed_check_is_counted_once(reported: Reported) -> None:
    reported.request(
        "DELETE", "/apis/polyver.dev/v1alpha1/namespaces/vela-system/rolloutpolicies/careful"
    )
    reported.policy({"share": "100%"}, preflight={"failures": 1}, onFailure="Pause")
    reported.publish(version("1.0.1", BROKEN_FOR_WEAK))
    reported.reaches("Paused", "1/1")
    eventually(lambda: reported.metric("polyver_rollout_checks_failed_total", check="ready") == 1)
    reported.ask(paused=True)
    reported.ask(aborted=True)
    reported.reaches("Aborted", "1/1")
    assert reported.metric("polyver_rollout_checks_failed_total", check="ready") == 1


def test_events_tell_what_happens_in_each_step(reported: Reported) -> None:
    reported.publish(version("1.0.1"))
    status = reported.reaches("Paused", "2/3")
    cohort = status["dependents"]["cohort"]
    tried = "tries 1.0.1 for the followers of ComponentDefinition vela-system/web"
    first, second = "step 1 of 3 has started (label no=one)", "step 2 of 3 has started (50%)"
    expected = [
        ("Normal", "Preflight", f"{tried}; nothing changes yet"),
        ("Normal", "Progressing", f"{first}: 0 of 6 followers may use 1.0.1"),
        ("Normal", "Progressing", f"{second}: {cohort} of 6 followers may use 1.0.1"),
        ("Normal", "Paused", "step 2 waits for approval"),
    ]
    eventually(lambda: reported.events() == expected)
    reported.ask(aborted=True)
    eventually(lambda: reported.events()[4:] == [("Warning", "Aborted", "aborted by a user")])
