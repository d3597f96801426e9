"""Rollouts of functions with several revisions, together with other changes of users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.editing import edited
from tests.rollouts.composing import (
    COMPOSITION,
    FUNCTION,
    FUNCTIONS,
    POLICIES,
    Composing,
    composing,
    eventually,
)

NUMBER = 8
APPROVED = {"pause": {"until": "Approved"}}
STEPS = ({"count": 3, **APPROVED}, {"share": "100%"})
READY = [{"ready": {"within": "1h", "failing": 0}}]


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Composing]:
    with composing(tmp_path, NUMBER) as platform:
        yield platform


def completes(platform: Composing, name: str) -> None:
    """Approve the first step of a rollout, and wait for its end."""
    platform.reaches(name, "Paused", "1/2")
    platform.ask(name, approvedStep=1)
    platform.reaches(name, "Completed", "2/2")


def observed_again(platform: Composing, name: str) -> None:
    """Create a composite resource, and wait until the rollout has counted it."""
    before = platform.status(name)["dependents"]["total"]
    platform.stack(1000 + before)
    eventually(lambda: platform.status(name)["dependents"]["total"] == before + 1)


# The policy.


def test_a_rollout_continues_by_the_rules_of_its_start(platform: Composing) -> None:
    platform.policy(FUNCTION, *STEPS)
    policy = f"{POLICIES}/careful-maker"
    name = platform.publish_function("better")
    platform.reaches(name, "Paused", "1/2")
    edited(platform.request, policy, lambda obj: obj["spec"].update(steps=[{"share": "100%"}]))
    observed_again(platform, name)
    assert platform.status(name)["state"] == "Paused"
    platform.request("DELETE", policy)
    observed_again(platform, name)
    assert platform.status(name)["state"] == "Paused"
    assert platform.count("function")["good"] >= NUMBER - 3
    platform.ask(name, approvedStep=1)
    platform.reaches(name, "Completed", "2/2")
    eventually(lambda: platform.count("function") == {"better": NUMBER + 2})
    # Without a policy, the next revision reaches everyone at once.
    platform.publish_function("best")
    eventually(lambda: platform.count("function") == {"best": NUMBER + 2})
    assert [*platform.rollouts()] == [name]


# Two rollouts of the same composite resources.


def test_a_composite_resource_moves_in_one_rollout_at_a_time(platform: Composing) -> None:
    platform.policy(COMPOSITION, {"share": "100%"}, checks=READY)
    platform.policy(FUNCTION, {"share": "100%"}, checks=READY)
    first = platform.publish_composition("2", "unready")
    eventually(lambda: platform.count("composition") == {"2": NUMBER})
    second = platform.publish_function("better")
    reason = f"{NUMBER} of {NUMBER} have not tried the release yet"
    eventually(lambda: platform.status(second).get("reason") == reason)
    assert platform.count("function") == {"good": NUMBER}
    # The rollout of the function continues when the one of the Composition has ended.
    platform.ask(first, aborted=True)
    platform.reaches(second, "Completed", "1/1")
    assert platform.count("composition") == {"1": NUMBER}
    assert platform.count("function") == {"better": NUMBER}


def test_two_rollouts_of_revisions_that_work_both_complete(platform: Composing) -> None:
    steps = ({"share": "30%"}, {"share": "100%"})
    platform.policy(COMPOSITION, *steps, checks=READY)
    platform.policy(FUNCTION, *steps, checks=READY)
    names = [platform.publish_composition("2"), platform.publish_function("better")]
    for name in names:
        platform.reaches(name, "Completed", "2/2")
    assert platform.count("composition") == {"2": NUMBER}
    assert platform.count("function") == {"better": NUMBER}
    assert platform.healthy() == NUMBER


def test_a_failed_rollout_of_the_composition_does_not_end_that_of_the_function(
    platform: Composing,
) -> None:
    platform.policy(COMPOSITION, {"share": "100%"}, checks=[{"ready": {"within": "2s"}}])
    platform.policy(FUNCTION, {"share": "100%"}, checks=READY)
    first, second = (
        platform.publish_composition("2", "unready"),
        platform.publish_function("better"),
    )
    platform.reaches(first, "RolledBack", "1/1")
    platform.reaches(second, "Completed", "1/1")
    eventually(lambda: platform.count("composition") == {"1": NUMBER})
    assert platform.count("function") == {"better": NUMBER}


# Revisions of a function.


def change_function(platform: Composing, **spec: object) -> None:
    edited(platform.request, f"{FUNCTIONS}/maker", lambda obj: obj["spec"].update(spec))


def test_a_return_to_an_earlier_package_is_rolled_out_again(platform: Composing) -> None:
    change_function(platform, revisionHistoryLimit=0)
    platform.policy(FUNCTION, *STEPS)
    first = rolled_out(platform, "better", before="good")
    rolled_out(platform, "good", before="better")
    assert rolled_out(platform, "better", before="good") == f"{first}-2"


def rolled_out(platform: Composing, mode: str, *, before: str) -> str:
    """Roll out a version of the function in two steps; return the name of the rollout."""
    name = platform.starts(FUNCTION, lambda: platform.publish_function(mode))
    platform.reaches(name, "Paused", "1/2")
    assert platform.count("function") == {mode: 3, before: NUMBER - 3}
    completes(platform, name)
    assert platform.count("function") == {mode: NUMBER}
    return name


def test_a_rollout_waits_until_a_user_activates_the_revision(platform: Composing) -> None:
    change_function(platform, revisionActivationPolicy="Manual", revisionHistoryLimit=0)
    platform.policy(FUNCTION, *STEPS)
    first = platform.publish_function("better")
    reason = f"waits until {first} can be used; see the conditions of this revision"
    eventually(lambda: platform.status(first).get("reason") == reason)
    assert platform.states() == {"good": "Active", "better": "Inactive"}
    assert platform.count("function") == {"good": NUMBER}
    platform.activate("better")
    completes(platform, first)
    assert platform.count("function") == {"better": NUMBER}
    assert platform.states() == {"good": "Active", "better": "Active"}

    # The finished rollout does not open the revision when it is published again.
    back = platform.starts(FUNCTION, lambda: platform.publish_function("good"))
    completes(platform, back)
    platform.activate("better", state="Inactive")
    again = platform.starts(FUNCTION, lambda: platform.publish_function("better"))
    platform.ask(first, approvedStep=2)  # the control plane observes it again
    eventually(lambda: platform.status(again).get("reason") == reason)
    platform.activate("better")
    platform.reaches(again, "Paused", "1/2")
    assert platform.count("function") == {"better": 3, "good": NUMBER - 3}


def test_a_rollout_that_waits_for_its_revision_can_be_aborted(platform: Composing) -> None:
    change_function(platform, revisionActivationPolicy="Manual", revisionHistoryLimit=0)
    platform.policy(FUNCTION, *STEPS)
    name = platform.starts(FUNCTION, lambda: platform.publish_function("better"))
    platform.ask(name, aborted=True)
    platform.reaches(name, "Aborted", "0/2")
    platform.activate("better")
    eventually(lambda: platform.states() == {"good": "Active", "better": "Active"})
    assert platform.count("function") == {"good": NUMBER}


def test_steps_that_select_by_labels_follow_the_revisions_of_their_channel(tmp_path: Path) -> None:
    with composing(tmp_path, 0) as platform:
        change_function(platform, revisionHistoryLimit=0, activeRevisionLimit=2)
        platform.publish_function("good", channel="stable")
        platform.publish_function("better", channel="alpha")
        for channel, number in (("stable", 10), ("alpha", 20)):
            platform.composition_for(channel)
            for each in range(number, number + 5):
                platform.stack(each, compositionRef={"name": channel})
        eventually(lambda: platform.count("function") == {"good": 5, "better": 5})
        platform.policy(FUNCTION, {"share": "60%", **APPROVED}, {"share": "100%"})

        name = platform.publish_function("best", channel="alpha")
        first = platform.reaches(name, "Paused", "1/2")["dependents"]
        assert first["total"] == 5
        assert by_channel(platform, "stable") == {"good": 5}
        assert by_channel(platform, "alpha")["best"] == first["cohort"]
        completes(platform, name)
        assert by_channel(platform, "alpha") == {"best": 5}
        assert by_channel(platform, "stable") == {"good": 5}

        # The revision from before becomes the newest of the other channel.
        name = platform.starts(
            FUNCTION, lambda: platform.publish_function("better", channel="stable")
        )
        first = platform.reaches(name, "Paused", "1/2")["dependents"]
        assert first["total"] == 5
        assert by_channel(platform, "stable")["better"] == first["cohort"]
        completes(platform, name)
        assert by_channel(platform, "stable") == {"better": 5}
        assert by_channel(platform, "alpha") == {"best": 5}
        assert platform.healthy() == 10


def by_channel(platform: Composing, channel: str) -> dict[str, int]:
    """The versions of the function that made the objects for one Composition."""
    made, by = platform.written("composition"), platform.written("function")
    return dict(Counter(by[name] for name, each in made.items() if each == channel))
