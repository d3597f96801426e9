"""Releases of a definition reach applications in steps, and come back if they hurt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.editing import edited
from tests.rollouts.releasing import (
    BAD,
    MAPS,
    POLICIES,
    TARGET,
    Releasing,
    releasing,
    version,
)
from tests.walks.support import eventually

from polyver.kube.objects.status import ApiError

NUMBER = 12


@pytest.fixture
def platform() -> Iterator[Releasing]:
    with releasing() as platform:
        platform.publish(version("1.0.0"))
        platform.applications(NUMBER)
        eventually(lambda: [*platform.written().values()] == ["1.0.0"] * NUMBER)
        yield platform


def test_a_release_reaches_applications_in_steps(platform: Releasing) -> None:
    platform.policy(
        {"count": 4, "pause": {"until": "Approved"}},
        {"count": 8, "pause": {"until": "Approved"}},
        {"share": "100%"},
    )
    platform.publish(version("1.0.1"))
    first = platform.reaches("Paused", "1/3")["dependents"]
    assert first["total"] == NUMBER
    assert 0 < first["cohort"] == first["healthy"] < NUMBER
    assert Counter(platform.versions().values())["1.0.1"] == first["cohort"]
    moved = {name for name, each in platform.written().items() if each == "1.0.1"}
    platform.ask(approvedStep=1)
    second = platform.reaches("Paused", "2/3")["dependents"]
    assert first["cohort"] < second["cohort"] < NUMBER
    assert moved <= {name for name, each in platform.written().items() if each == "1.0.1"}
    platform.ask(approvedStep=2)
    platform.reaches("Completed", "3/3")
    assert {*platform.versions().values()} == {"1.0.1"}
    assert platform.history() == [
        ("Preflight", 0),
        ("Progressing", 1),
        ("Paused", 1),
        ("Progressing", 2),
        ("Paused", 2),
        ("Progressing", 3),
        ("Completed", 3),
    ]


def test_a_release_that_fails_to_render_is_held_before_its_first_step(platform: Releasing) -> None:
    platform.policy({"share": "100%"})
    platform.publish(version("1.0.1", BAD))
    status = platform.reaches("Held", "0/1")
    assert status["preflight"]["fails"] == NUMBER
    assert {*platform.versions().values()} == {"1.0.0"}
    assert status["reason"] == f"{NUMBER} would fail, and 0 are allowed"


def test_an_aborted_rollout_returns_everyone(platform: Releasing) -> None:
    platform.policy({"share": "50%", "pause": {"until": "Approved"}}, {"share": "100%"})
    platform.publish(version("1.0.1", 'data: {from: "1.0.1", more: "yes"}'))
    platform.reaches("Paused", "1/2")
    platform.ask(aborted=True)
    platform.reaches("Aborted", "1/2")
    eventually(lambda: {*platform.versions().values()} == {"1.0.0"})
    eventually(lambda: {*platform.written().values()} == {"1.0.0"})
    maps = platform.request("GET", MAPS)["items"]
    assert not any("more" in (each.get("data") or {}) for each in maps)


def test_a_release_that_fails_for_some_is_taken_back(platform: Releasing) -> None:
    platform.policy({"share": "100%"}, preflight={"failures": 1000})
    broken = '{{ if eq .context.appName "app-3" }}{{ fail "not for app-3" }}{{ end }}'
    platform.publish(version("1.0.1", f'{broken}\ndata: {{from: "1.0.1"}}'))
    status = platform.reaches("RolledBack", "1/1")
    assert "the check ready failed" in status["reason"]
    eventually(lambda: {*platform.versions().values()} == {"1.0.0"})
    eventually(lambda: {*platform.written().values()} == {"1.0.0"})


def test_who_asks_for_an_exact_version_is_not_gated(platform: Releasing) -> None:
    platform.policy({"share": "50%", "pause": {"until": "Approved"}}, {"share": "100%"})
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/2")
    platform.application("app-exact", asks="web@1.0.1")
    eventually(lambda: platform.versions().get("app-exact") == "1.0.1")
    assert platform.rollout()["status"]["dependents"]["total"] == NUMBER


def test_a_step_by_labels_reaches_those_with_the_labels(platform: Releasing) -> None:
    platform.application("app-dev", labels={"tier": "dev"})
    eventually(lambda: platform.versions().get("app-dev") == "1.0.0")
    dev = {"labels": {"tier": "dev"}, "pause": {"until": "Approved"}}
    platform.policy(dev, {"share": "100%"})
    platform.publish(version("1.0.1"))
    status = platform.reaches("Paused", "1/2")
    assert status["dependents"]["cohort"] == 1
    assert {n for n, v in platform.versions().items() if v == "1.0.1"} == {"app-dev"}


def test_a_count_reaches_that_many(platform: Releasing) -> None:
    platform.policy({"count": 5, "pause": {"until": "Approved"}}, {"share": "100%"})
    platform.publish(version("1.0.1"))
    assert platform.reaches("Paused", "1/2")["dependents"]["healthy"] == 5
    assert Counter(platform.versions().values()) == {"1.0.1": 5, "1.0.0": NUMBER - 5}


def test_a_newer_release_supersedes_and_a_first_release_is_open(platform: Releasing) -> None:
    platform.policy({"share": "50%", "pause": {"until": "Approved"}}, {"share": "100%"})
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/2")
    platform.publish(version("1.0.2"))
    platform.reaches("Superseded", "1/2")
    platform.reaches("Paused", "1/2", name="web-1.0.2")
    platform.ask(name="web-1.0.2", approvedStep=1)
    platform.reaches("Completed", "2/2", name="web-1.0.2")
    assert {*platform.versions().values()} == {"1.0.2"}


def test_a_newer_release_that_is_held_neither_supersedes_nor_delays(platform: Releasing) -> None:
    platform.policy({"share": "50%", "pause": {"until": "Approved"}}, {"share": "100%"})
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/2")
    platform.publish(version("1.0.2", BAD))
    platform.reaches("Held", "0/2", name="web-1.0.2")
    platform.ask(approvedStep=1)
    platform.reaches("Completed", "2/2")
    # A release of another series does not wait for the held one.
    platform.publish(version("1.1.0"))
    platform.reaches("Paused", "1/2", name="web-1.1.0")
    assert platform.state("web-1.0.2") == ("Held", "0/2")


def test_a_paused_and_a_frozen_rollout_start_no_step(platform: Releasing) -> None:
    platform.policy({"share": "50%", "pause": {"until": "Approved"}}, {"share": "100%"})
    frozen = {"metadata": {"name": "polyver-rollout-freeze"}}
    platform.request("POST", "/api/v1/namespaces/polyver-system/configmaps", frozen)
    platform.publish(version("1.0.1"))
    status = platform.reaches("Paused", "0/2")
    assert status["reason"].startswith("rollouts are frozen")
    assert {*platform.versions().values()} == {"1.0.0"}
    path = "/api/v1/namespaces/polyver-system/configmaps/polyver-rollout-freeze"
    platform.request("DELETE", path)
    platform.reaches("Paused", "1/2")
    platform.ask(paused=True, approvedStep=1)
    eventually(lambda: platform.rollout()["status"].get("reason") == "paused by a user")
    assert platform.state() == ("Paused", "1/2")
    platform.ask(paused=False)
    platform.reaches("Completed", "2/2")


def test_a_policy_that_is_edited_or_deleted_does_not_change_a_rollout(platform: Releasing) -> None:
    platform.policy({"share": "50%", "pause": {"until": "Approved"}}, {"share": "100%"})
    platform.publish(version("1.0.1"))
    before = platform.reaches("Paused", "1/2")

    def edit(policy: Any) -> None:
        policy["spec"]["steps"] = [{"share": "100%"}]

    edited(platform.request, f"{POLICIES}/careful", edit)
    platform.request("DELETE", f"{POLICIES}/careful")
    platform.ask(approvedStep=1)
    assert platform.reaches("Completed", "2/2")["policy"] == before["policy"]


@pytest.mark.parametrize(
    ("spec", "at"),
    [
        ({"steps": [{"share": "50%"}]}, "spec.steps[0]"),
        ({"targets": [{**TARGET, "kind": "Deployment"}]}, "spec.targets[0].kind"),
        ({"targets": [{"group": TARGET["group"], "kind": TARGET["kind"]}]}, "spec.targets[0]"),
        ({"checks": [{"errors": {"max": "1%"}}]}, "spec.checks[0].errors"),
        ({"notify": [{"url": "http://chat.example"}]}, "spec.notify[0].url"),
        ({"checks": [{"ready": {}}, {"http": {"url": "http://a.example"}}]}, "spec.checks[1].http"),
        ({"targets": [TARGET]}, "spec.targets[0].name"),
    ],
)
def test_a_policy_that_cannot_work_is_refused(platform: Releasing, spec: Any, at: str) -> None:
    platform.policy({"share": "100%"})
    whole = {"targets": [{**TARGET, "name": "other"}], "steps": [{"share": "100%"}], **spec}
    named = {"apiVersion": "polyver.dev/v1alpha1", "kind": "RolloutPolicy"}
    policy = {**named, "metadata": {"name": "wrong"}, "spec": whole}
    with pytest.raises(ApiError) as refused:
        platform.request("POST", POLICIES, policy)
    assert refused.value.code == 422
    assert at in str(refused.value)


def test_a_rollout_is_immutable_but_for_the_requests_of_users(platform: Releasing) -> None:
    platform.policy({"share": "50%", "pause": {"until": "Approved"}}, {"share": "100%"})
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/2")
    with pytest.raises(ApiError, match="immutable"):
        platform.ask(to="1.0.0")
