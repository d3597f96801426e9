"""A version of a blueprint function that becomes stable reaches blueprints in steps."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.app.test_cli import Ran
from tests.rollouts import greet
from tests.rollouts.releasing_functions import (
    APPROVED,
    KANISTER,
    NAME,
    NEW,
    NEWEST,
    NEXT,
    NUMBER,
    OLD,
    ROLLOUTS,
    SELECTED,
    TARGET,
    Object,
    Platform,
)
from tests.walks.support import eventually
from tests.web.visiting import Visitor

from polyver.functions import Registry
from polyver.functions.catalogue import read_catalogue
from polyver.functions.registering import known_functions
from polyver.kube.objects import load_manifests
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer


class EmbeddedPlatform(Platform):
    """Embedded servers, one after the other, on the same data."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack

    def start(self, catalogue: str) -> None:
        self._stack.close()
        [document] = load_manifests(catalogue, "catalogue.yaml")
        known = known_functions(Registry.of(greet), [read_catalogue(document)])
        chosen = ("apis", "functions")
        self.server = EmbeddedServer(
            data=self._folder, capabilities=chosen, functions=known, page=True
        )
        self.request = self._stack.enter_context(self.server).request


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[EmbeddedPlatform]:
    with ExitStack() as stack:
        platform = EmbeddedPlatform(tmp_path / "data", stack)
        platform.start(OLD)
        for number in range(NUMBER):
            platform.blueprint(f"greet-{number}")
        yield platform


def test_a_stable_version_reaches_blueprints_in_steps(platform: Platform) -> None:
    platform.policy({"count": 3, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    status = platform.reaches("Progressing", "1/2")
    assert status["preflight"]["changed"] == NUMBER
    versions = platform.versions()
    assert sorted(versions.values()) == ["v0.1.0"] * 5 + ["v0.2.0"] * 3
    platform.reaches("Paused", "1/2")
    eventually(lambda: platform.rollout()["dependents"]["healthy"] == 3)
    counts = platform.rollout()["dependents"]
    assert (counts["total"], counts["cohort"]) == (NUMBER, 3)
    platform.ask(approvedStep=1)
    # The runs of the first step say nothing about the blueprints of the second one.
    platform.reaches("Progressing", "2/2")
    waits = "3 of 8 healthy, 0 failing; 0 of 1 observed"
    eventually(lambda: platform.rollout()["checks"][0]["message"] == waits)
    assert {*platform.versions().values()} == {"v0.2.0"}
    platform.reaches("Completed", "2/2")


def test_a_version_that_fails_is_taken_back_by_itself(platform: Platform) -> None:
    platform.policy({"share": "100%"}, checks=[{"ready": {"minimum": 5}}])
    platform.start(NEW)
    platform.reaches("Progressing", "1/1")
    assert platform.run("greet-0")["resolvedVersion"] == "v0.2.0"
    failed = platform.run("greet-1", "bad")
    assert (failed["state"], failed["rollout"]) == ("failed", NAME)
    status = platform.reaches("RolledBack", "1/1")
    assert "the check ready failed" in status["reason"]
    assert {*platform.versions().values()} == {"v0.1.0"}
    assert platform.run("greet-0")["reason"] == f"kept: v0.2.0 is taken back by rollout {NAME}"


def test_an_aborted_rollout_returns_all_blueprints(platform: Platform) -> None:
    platform.policy({"count": 3, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.reaches("Progressing", "1/2")
    assert Counter(platform.versions().values())["v0.2.0"] == 3
    platform.ask(aborted=True)
    platform.reaches("Aborted", "1/2")
    assert {*platform.versions().values()} == {"v0.1.0"}


def test_a_blueprint_outside_of_the_cohort_is_told_why(platform: Platform) -> None:
    platform.policy({"labels": {"tier": "dev"}, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.blueprint("greet-dev", labels={"tier": "dev"})
    platform.reaches("Progressing", "1/2")
    held = platform.run("greet-0")
    assert held["reason"] == f"kept: v0.2.0 is held by rollout {NAME}, step 1"
    assert "rollout" not in held
    assert platform.run("greet-dev")["resolvedVersion"] == "v0.2.0"
    platform.reaches("Paused", "1/2")


def test_an_exact_version_is_not_gated_and_a_preferred_version_is(platform: Platform) -> None:
    platform.policy({"count": 1, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.blueprint("exact", version="v0.2.0")
    exact = platform.run("exact")
    assert (exact["resolvedVersion"], exact["resolvedReason"]) == ("v0.2.0", "exact version")
    assert "rollout" not in exact
    platform.reaches("Progressing", "1/2")
    wished = [platform.run(f"greet-{n}", preferredVersion="v0.2.0") for n in range(NUMBER)]
    versions = [each["resolvedVersion"] for each in wished]
    assert Counter(versions) == {"v0.1.0": NUMBER - 1, "v0.2.0": 1}
    warnings = wished[versions.index("v0.1.0")]["warnings"]
    assert warnings[0].endswith("the preferred version: v0.1.0 is used")
    assert platform.reaches("Paused", "1/2")["dependents"]["total"] == NUMBER


def test_without_a_policy_a_stable_version_is_used_at_once(platform: Platform) -> None:
    platform.start(NEW)
    assert {*platform.versions().values()} == {"v0.2.0"}
    # A policy that comes later finds the version in use.
    platform.policy({"share": "100%"})
    assert platform.run("greet-0")["reason"] == "stable version"


def test_a_version_is_closed_before_a_controller_has_seen_it(platform: Platform) -> None:
    platform.policy({"count": 1, **APPROVED}, {"share": "100%"})
    freeze = {"metadata": {"name": "polyver-rollout-freeze"}}
    platform.request("POST", "/api/v1/namespaces/polyver-system/configmaps", freeze)
    platform.start(NEW)
    assert {*platform.versions().values()} == {"v0.1.0"}
    platform.reaches("Paused", "0/2")


def test_a_rollout_goes_on_after_a_restart(platform: Platform) -> None:
    platform.policy({"count": 3, **APPROVED}, {"count": 5, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.reaches("Progressing", "1/3")
    first = {name for name, each in platform.versions().items() if each == "v0.2.0"}
    platform.reaches("Paused", "1/3")
    platform.start(NEW)
    platform.reaches("Paused", "1/3")
    eventually(lambda: platform.rollout()["dependents"]["healthy"] == 3)
    platform.ask(approvedStep=1)
    platform.reaches("Progressing", "2/3")
    platform.start(NEW)
    second = {name for name, each in platform.versions().items() if each == "v0.2.0"}
    assert first < second
    assert len(second) == 5
    platform.reaches("Paused", "2/3")


def test_a_version_that_lacks_an_argument_is_held_by_the_preflight(platform: Platform) -> None:
    platform.start(NEW)
    platform.policy({"share": "100%"})
    platform.start(NEXT)
    status = platform.reaches("Held", "0/1", name="greet-v0.3.0")
    assert status["preflight"]["fails"] == NUMBER
    message = status["preflight"]["failures"][0]["message"]
    assert "action run, phase only: Greet v0.3.0" in message
    assert "language" in message
    assert {*platform.versions().values()} == {"v0.2.0"}


def test_a_blueprint_keeps_its_version_if_the_new_one_lacks_an_argument(platform: Platform) -> None:
    platform.start(NEW)
    limits = {"failures": 1000}
    steps = {"share": "90%", **APPROVED}, {"share": "100%"}
    platform.policy(*steps, preflight=limits, checks=[{"ready": {"failing": 1000}}])
    platform.start(NEXT)
    # Nobody has to run the blueprints: it is known that the version fails for all.
    status = platform.reaches("Paused", "1/2", name="greet-v0.3.0")
    assert status["dependents"]["failing"] == status["dependents"]["cohort"]
    runs = [platform.run(each) for each in platform.blueprints()]
    assert {each["resolvedVersion"] for each in runs} == {"v0.2.0"}
    assert "kept: the move to v0.3.0 failed" in {each["reason"] for each in runs}


def test_a_newer_version_supersedes_and_nobody_moves_twice(platform: Platform) -> None:
    platform.policy({"count": 3, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.reaches("Progressing", "1/2")
    before = platform.versions()
    platform.reaches("Paused", "1/2")
    platform.start(NEWEST)
    platform.reaches("Superseded", "1/2")
    platform.reaches("Progressing", "1/2", name="greet-v0.4.0")
    after = platform.versions()
    newer = {"v0.1.0": "v0.1.0", "v0.2.0": "v0.4.0"}
    assert after == {name: newer[version] for name, version in before.items()}
    platform.reaches("Paused", "1/2", name="greet-v0.4.0")
    platform.ask(name="greet-v0.4.0", approvedStep=1)
    platform.reaches("Progressing", "2/2", name="greet-v0.4.0")
    assert {*platform.versions().values()} == {"v0.4.0"}
    platform.reaches("Completed", "2/2", name="greet-v0.4.0")


def test_a_newer_version_that_is_held_stops_no_rollout(platform: Platform) -> None:
    platform.policy({"count": 3, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.reaches("Progressing", "1/2")
    before = platform.versions()
    platform.reaches("Paused", "1/2")
    platform.start(NEXT)
    platform.reaches("Held", "0/2", name="greet-v0.3.0")
    assert platform.versions() == before
    platform.ask(approvedStep=1)
    platform.reaches("Progressing", "2/2")
    assert {*platform.versions().values()} == {"v0.2.0"}
    platform.reaches("Completed", "2/2")


def test_the_author_of_a_catalogue_returns_to_an_earlier_version_at_once(
    platform: Platform,
) -> None:
    platform.policy({"count": 3, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.reaches("Progressing", "1/2")
    platform.start(OLD)
    assert {*platform.versions().values()} == {"v0.1.0"}


def test_a_version_that_was_taken_back_is_started_again(platform: Platform) -> None:
    platform.policy({"share": "100%"})
    platform.start(NEW)
    platform.reaches("Progressing", "1/1")
    platform.run("greet-0", "bad")
    platform.reaches("RolledBack", "1/1")
    again = {
        "apiVersion": "polyver.dev/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": f"{NAME}-2"},
        "spec": {"target": TARGET, "to": "v0.2.0", "policyRef": {"name": "careful"}},
    }
    platform.request("POST", ROLLOUTS, again)
    # The failure of the first rollout does not count in the second one.
    platform.reaches("Progressing", "1/1", name=f"{NAME}-2")
    assert platform.run("greet-0")["resolvedVersion"] == "v0.2.0"
    platform.reaches("Completed", "1/1", name=f"{NAME}-2")


def test_a_policy_for_all_functions_applies_to_each(platform: Platform) -> None:
    platform.policy({"share": "100%"}, targets=[{**SELECTED, "selector": {"matchLabels": {}}}])
    platform.start(NEW)
    platform.reaches("Progressing", "1/1")


def test_calls_are_checked_from_the_status_of_action_sets(platform: Platform) -> None:
    checks = [
        {"ready": {"failing": 1000}},
        {"errors": {"max": "50%", "minimum": 3}},
        {"latency": {"p99": "10000x", "minimum": 1}},
    ]
    platform.policy({"count": 4, **APPROVED}, {"share": "100%"}, checks=checks)
    platform.start(NEW)
    platform.reaches("Progressing", "1/2")
    found = {name: platform.run(name) for name in platform.blueprints()}
    calls = [each for each in found.values() if each["resolvedVersion"] == "v0.2.0"]
    assert all(each["startTime"] <= each["endTime"] for each in calls)
    status = platform.reaches("Paused", "1/2")
    assert [each["name"] for each in status["checks"]] == ["ready", "errors", "latency"]
    counted = "0 of 4 calls failed (0%)"
    eventually(lambda: platform.rollout()["checks"][1]["message"] == counted)
    moved = next(name for name, each in found.items() if each["resolvedVersion"] == "v0.2.0")
    for _ in range(5):
        platform.run(moved, "bad")
    assert "the check errors failed" in platform.reaches("RolledBack", "1/2")["reason"]


def test_discovery_the_page_and_why_show_the_gate(
    platform: EmbeddedPlatform, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.policy({"count": 1, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    platform.reaches("Progressing", "1/2")
    held = f"held by rollout {NAME}, step 1"
    found = platform.request("GET", "/functions")["functions"]
    [greet] = [each for each in found if each["name"] == "Greet"]
    assert (greet["default"], greet["versions"][1]["gate"]["text"]) == ("v0.1.0", held)

    monkeypatch.setenv("KUBECONFIG", str(platform.server.kubeconfig))
    listed = Ran(capsys, "functions", "list").out.splitlines()
    assert [line for line in listed if "Greet" in line and held in line]
    platform.run("greet-0")
    versions = platform.versions()
    names = {}
    for each in platform.request("GET", f"{KANISTER}/actionsets")["items"]:
        names[each["spec"]["actions"][0]["blueprint"]] = each["metadata"]["name"]
    for blueprint, version in versions.items():
        why = json.loads(Ran(capsys, "why", f"actionset/{names[blueprint]}", "-o", "json").out)
        now = why["phases"][0]["now"]
        assert now["version"] == version
        kept = version == "v0.1.0"
        assert now["why"].startswith(f"kept: v0.2.0 is {held}" if kept else "stable version")

    visitor = Visitor(platform.server.page)

    def shown() -> bool:
        data = visitor.lineage("functions", "Greet")
        gates = {each["name"]: each.get("gate") for each in data["releases"]}
        users = {each["name"]: each["users"] for each in data["releases"]}
        both = (users["v0.1.0"], users["v0.2.0"])
        return gates["v0.2.0"] == held and both == (NUMBER - 1, 1)

    eventually(shown)
    assert visitor.lineage("functions", "Greet")["default"]["release"] == "v0.1.0"


def test_a_blueprint_is_checked_against_the_version_that_it_uses(platform: Platform) -> None:
    platform.start(NEW)
    platform.policy({"share": "100%"})
    platform.start(NEXT)
    platform.reaches("Held", "0/1", name="greet-v0.3.0")
    platform.blueprint("another")  # v0.2.0 takes its arguments, and v0.3.0 would not
    assert platform.run("another")["resolvedVersion"] == "v0.2.0"
    with pytest.raises(ApiError, match="language"):
        platform.blueprint("newer", version="v0.3.0")


@pytest.mark.parametrize(
    ("namespace", "spec", "at"),
    [
        ("default", {}, "spec.targets[0]"),
        ("polyver-system", {"checks": [{"ready": {"within": "5m"}}]}, "spec.checks[0].ready"),
        (
            "polyver-system",
            {"targets": [{**SELECTED, "selector": {"matchLabels": {"a": "b"}}}]},
            "spec.targets[0].selector.matchLabels",
        ),
    ],
)
def test_a_policy_that_cannot_work_is_refused(
    platform: Platform, namespace: str, spec: Object, at: str
) -> None:
    policy = {
        "apiVersion": "polyver.dev/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "wrong"},
        "spec": {"targets": [TARGET], "steps": [{"share": "100%"}], **spec},
    }
    path = f"/apis/polyver.dev/v1alpha1/namespaces/{namespace}/rolloutpolicies"
    with pytest.raises(ApiError) as refused:
        platform.request("POST", path, policy)
    assert refused.value.code == 422
    assert at in str(refused.value)
