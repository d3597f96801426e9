"""Rollouts that are held, started again or deleted, and the number that is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.app.test_cli import Ran
from tests.editing import edited
from tests.rollouts.releasing import APPLICATIONS, ROLLOUTS, Releasing, version
from tests.walks.support import eventually

from polyver.rollouts import policies
from polyver.testing import EmbeddedServer

NUMBER = 6
Run = Callable[..., Ran]
BROKEN_FOR_ONE = '{{ if .parameter.weak }}{{ fail "weak" }}{{ end }}data: {from: "1.0.1"}'


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(capabilities=("apis", "definitions")) as server:
        yield server


@pytest.fixture
def platform(server: EmbeddedServer) -> Releasing:
    platform = Releasing(server)
    platform.publish(version("1.0.0"))
    platform.applications(NUMBER - 1)
    platform.application(f"app-{NUMBER - 1}", properties={"weak": True})
    eventually(lambda: [*platform.written().values()] == ["1.0.0"] * NUMBER)
    return platform


@pytest.fixture
def run(
    server: EmbeddedServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    return lambda *arguments: Ran(capsys, "rollout", *arguments)


def test_a_promoted_held_rollout_still_waits_after_its_first_step(
    platform: Releasing, run: Run
) -> None:
    platform.policy({"share": "50%", "pause": {"until": "Approved"}}, {"share": "100%"})
    platform.publish(version("1.0.1", BROKEN_FOR_ONE))
    platform.reaches("Held", "0/2")
    ran = run("promote", "web-1.0.1")
    assert (ran.code, ran.out) == (
        0,
        "rollout web-1.0.1 is promoted: the preflight is approved\n",
    ), ran.err
    assert platform.rollout()["spec"]["approvedStep"] == 0
    # The follower for which the release fails may be in the first half, or not.
    eventually(lambda: platform.state() in [("Paused", "1/2"), ("RolledBack", "1/2")])


def test_a_release_that_was_taken_back_is_started_again(platform: Releasing, run: Run) -> None:
    platform.policy({"share": "100%"}, preflight={"failures": 1})
    platform.publish(version("1.0.1", BROKEN_FOR_ONE))
    platform.reaches("RolledBack", "1/1")
    eventually(lambda: {*platform.written().values()} == {"1.0.0"})
    eventually(lambda: platform.status()["dependents"]["moved"] == 0)

    def mended(application: dict[str, Any]) -> None:
        application["spec"]["components"][0]["properties"] = {"weak": False}

    edited(platform.request, f"{APPLICATIONS}/app-{NUMBER - 1}", mended)
    target = ("ComponentDefinition/web", "--to", "1.0.1", "--policy", "careful")
    ran = run("start", *target, "-n", "vela-system")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("rollout vela-system/web-1.0.1-2 is started\n")
    platform.reaches("Completed", "1/1", name="web-1.0.1-2")
    eventually(lambda: {*platform.written().values()} == {"1.0.1"})


def test_a_release_has_one_active_rollout(platform: Releasing, run: Run) -> None:
    platform.policy({"share": "50%", "pause": {"until": "Approved"}}, {"share": "100%"})
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/2")
    target = ("ComponentDefinition/web", "--to", "1.0.1", "--policy", "careful")
    ran = run("start", *target, "-n", "vela-system")
    assert ran.code == 1
    assert "rollout web-1.0.1 of 1.0.1 is active" in ran.err


def test_deleting_a_rollout_neither_opens_nor_restarts_it(platform: Releasing) -> None:
    platform.policy({"share": "50%", "pause": {"until": "Approved"}}, {"share": "100%"})
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/2")
    platform.ask(aborted=True)
    platform.reaches("Aborted", "1/2")
    eventually(lambda: {*platform.written().values()} == {"1.0.0"})
    platform.request("DELETE", f"{ROLLOUTS}/web-1.0.1")
    # The rollout of a later release shows that the policy was evaluated again.
    platform.publish(version("1.0.2"))
    platform.reaches("Paused", "1/2", name="web-1.0.2")
    names = [each["metadata"]["name"] for each in platform.request("GET", ROLLOUTS)["items"]]
    assert names == ["web-1.0.2"]
    assert "1.0.1" not in platform.versions().values()


def test_old_finished_rollouts_are_deleted(
    platform: Releasing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "KEPT", 2)
    platform.policy({"share": "100%"})
    for number in range(1, 5):
        platform.publish(version(f"1.0.{number}"))
        platform.reaches("Completed", "1/1", name=f"web-1.0.{number}")

    def kept() -> list[str]:
        return [each["metadata"]["name"] for each in platform.request("GET", ROLLOUTS)["items"]]

    eventually(lambda: kept() == ["web-1.0.3", "web-1.0.4"])
