"""Revisions of Compositions and functions reach composite resources in steps, and come back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.rollouts.composing import (
    COMPOSITION,
    FUNCTION,
    ROLLOUTS,
    STACKS,
    Composing,
    composing,
    eventually,
)

NUMBER = 12
APPROVED = {"pause": {"until": "Approved"}}
FIRST = {"Composition": "1", "Function": "good"}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Composing]:
    with composing(tmp_path, NUMBER) as platform:
        yield platform


def test_a_composition_revision_reaches_composite_resources_in_steps(platform: Composing) -> None:
    platform.policy(COMPOSITION, {"count": 5, **APPROVED}, {"share": "100%"})
    name = platform.publish_composition("2")
    first = platform.reaches(name, "Paused", "1/2")["dependents"]
    assert first["total"] == NUMBER
    assert 0 < first["cohort"] == first["healthy"] < NUMBER
    assert platform.count("composition") == {"2": first["cohort"], "1": NUMBER - first["cohort"]}
    used = [e["spec"]["compositionRevisionRef"] for e in platform.request("GET", STACKS)["items"]]
    assert Counter(each["name"] for each in used)[name] == first["cohort"]
    platform.ask(name, approvedStep=1)
    platform.reaches(name, "Completed", "2/2")
    assert platform.count("composition") == {"2": NUMBER}


def test_a_function_revision_reaches_composite_resources_in_steps(platform: Composing) -> None:
    platform.policy(FUNCTION, {"count": 5, **APPROVED}, {"share": "100%"})
    name = platform.publish_function("better")
    first = platform.reaches(name, "Paused", "1/2")["dependents"]
    assert 0 < first["cohort"] == first["healthy"] < NUMBER
    assert platform.count("function") == {
        "better": first["cohort"],
        "good": NUMBER - first["cohort"],
    }
    assert platform.states() == {"good": "Active", "better": "Active"}
    platform.ask(name, approvedStep=1)
    platform.reaches(name, "Completed", "2/2")
    assert platform.count("function") == {"better": NUMBER}
    eventually(lambda: platform.states() == {"better": "Active"})


@pytest.mark.parametrize("target", [COMPOSITION, FUNCTION], ids=["composition", "function"])
def test_an_aborted_rollout_returns_all_to_the_revision_before(
    platform: Composing, target: dict[str, str]
) -> None:
    platform.policy(target, {"share": "60%", **APPROVED}, {"share": "100%"})
    name, by = platform.publish(target, "better"), target["kind"].lower()
    platform.reaches(name, "Paused", "1/2")
    platform.ask(name, aborted=True)
    platform.reaches(name, "Aborted", "1/2")
    eventually(lambda: platform.count(by) == {FIRST[target["kind"]]: NUMBER})
    eventually(lambda: platform.healthy() == NUMBER)
    if target is FUNCTION:
        eventually(lambda: platform.states() == {"good": "Active", "better": "Inactive"})


@pytest.mark.parametrize("target", [COMPOSITION, FUNCTION], ids=["composition", "function"])
def test_a_revision_that_fails_for_one_is_held_before_its_first_step(
    platform: Composing, target: dict[str, str]
) -> None:
    platform.unusual()
    platform.policy(target, {"share": "100%"})
    name = platform.publish(target, "fails")
    status = platform.reaches(name, "Held", "0/1")
    assert status["reason"] == "1 would fail, and 0 are allowed"
    [failure] = status["preflight"]["failures"]
    assert "number 33 is not supported" in failure["message"]
    assert failure["names"] == ["Stack/s33"]
    assert platform.count(target["kind"].lower()) == {FIRST[target["kind"]]: NUMBER + 1}


@pytest.mark.parametrize("target", [COMPOSITION, FUNCTION], ids=["composition", "function"])
def test_a_revision_that_fails_for_one_is_taken_back(
    platform: Composing, target: dict[str, str]
) -> None:
    platform.unusual()
    platform.policy(target, {"share": "100%"}, preflight={"failures": 1})
    name = platform.publish(target, "fails")
    status = platform.reaches(name, "RolledBack", "1/1")
    assert "1 failing, 0 may fail" in status["reason"]
    eventually(
        lambda: platform.count(target["kind"].lower()) == {FIRST[target["kind"]]: NUMBER + 1}
    )
    eventually(lambda: platform.healthy() == NUMBER + 1)


@pytest.mark.parametrize("target", [COMPOSITION, FUNCTION], ids=["composition", "function"])
def test_a_revision_that_is_not_ready_in_time_is_taken_back(
    platform: Composing, target: dict[str, str]
) -> None:
    checks = [{"ready": {"within": "2s"}}]
    platform.policy(target, {"count": 3, **APPROVED}, {"share": "100%"}, checks=checks)
    name = platform.publish(target, "unready")
    status = platform.reaches(name, "RolledBack", "1/2")
    assert "3 not healthy after 2 s" in status["reason"]
    eventually(lambda: platform.count(target["kind"].lower()) == {FIRST[target["kind"]]: NUMBER})
    eventually(lambda: platform.healthy() == NUMBER)


@pytest.mark.parametrize("target", [COMPOSITION, FUNCTION], ids=["composition", "function"])
def test_a_revision_that_deletes_objects_is_held(
    platform: Composing, target: dict[str, str]
) -> None:
    platform.policy(target, {"share": "100%"})
    name = platform.publish(target, "deletes")
    status = platform.reaches(name, "Held", "0/1")
    assert status["reason"] == f"{NUMBER} would lose objects, and 0 are allowed"
    assert platform.extras() == NUMBER
    platform.ask(name, approvedStep=0)
    # Each composite resource refuses the move, too, so the check fails.
    status = platform.reaches(name, "RolledBack", "1/1")
    assert "the check ready failed: 0 of 12 healthy" in status["reason"]
    assert platform.extras() == NUMBER
    assert platform.count(target["kind"].lower()) == {FIRST[target["kind"]]: NUMBER}


def test_a_slow_function_is_taken_back_by_its_latency(platform: Composing) -> None:
    checks = [{"latency": {"p99": "3x", "minimum": 5}}]
    platform.policy(FUNCTION, {"share": "60%", **APPROVED}, {"share": "100%"}, checks=checks)
    name = platform.publish_function("slow")

    def was_called_often_enough() -> bool:
        platform.touch()  # each change calls the function again
        return platform.status(name).get("state") == "RolledBack"

    eventually(was_called_often_enough, every=1.0)
    status = platform.reaches(name, "RolledBack", "1/2")
    assert "the check latency failed: p99 is " in status["reason"]
    eventually(lambda: platform.count("function") == {"good": NUMBER})


def test_a_function_that_crashes_is_taken_back(platform: Composing) -> None:
    platform.unusual()
    checks = [{"ready": {"within": "20s"}}]
    platform.policy(FUNCTION, {"share": "100%"}, checks=checks, preflight={"failures": 1})
    name = platform.publish_function("crashes")
    platform.reaches(name, "RolledBack", "1/1")
    eventually(lambda: platform.count("function") == {"good": NUMBER + 1})
    eventually(lambda: platform.healthy() == NUMBER + 1)


def test_composite_resources_that_name_a_revision_or_keep_theirs_are_not_moved(
    platform: Composing,
) -> None:
    platform.stack(101, compositionUpdatePolicy="Manual")
    eventually(lambda: platform.healthy() == NUMBER + 1)
    platform.policy(COMPOSITION, {"count": 5, **APPROVED}, {"share": "100%"})
    name = platform.publish_composition("2")
    first = platform.reaches(name, "Paused", "1/2")["dependents"]
    assert first["total"] == NUMBER
    chosen = {"name": name}
    platform.stack(102, compositionUpdatePolicy="Manual", compositionRevisionRef=chosen)
    eventually(lambda: platform.written("composition").get("s102") == "2")
    platform.ask(name, aborted=True)
    platform.reaches(name, "Aborted", "1/2")
    eventually(lambda: platform.count("composition") == {"1": NUMBER + 1, "2": 1})
    assert platform.written("composition")["s102"] == "2"


@pytest.mark.parametrize("target", [COMPOSITION, FUNCTION], ids=["composition", "function"])
def test_a_return_to_the_content_in_use_needs_no_rollout(
    platform: Composing, target: dict[str, str]
) -> None:
    platform.policy(target, {"count": 5, **APPROVED}, {"share": "100%"})
    name = platform.publish(target, "better")
    platform.reaches(name, "Paused", "1/2")
    by, before = target["kind"].lower(), FIRST[target["kind"]]
    if target is FUNCTION:
        platform.publish_function("good")
    else:
        platform.publish_composition("1")
    platform.reaches(name, "Superseded", "1/2")
    eventually(lambda: platform.count(by) == {before: NUMBER})
    platform.stack(55)
    eventually(lambda: platform.healthy() == NUMBER + 1)
    assert platform.count(by) == {before: NUMBER + 1}
    assert len(platform.request("GET", ROLLOUTS)["items"]) == 1
