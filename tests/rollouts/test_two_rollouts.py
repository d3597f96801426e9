"""An application that uses two definitions: it takes part in one of their rollouts at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.rollouts.releasing import APPLICATIONS, ROLLOUTS, Object, Releasing, releasing, version
from tests.rollouts.test_many import NEVER_BOUND
from tests.walks.support import eventually

WAITS = {"checks": [{"ready": {"within": "1h", "failing": 0}}]}


@pytest.fixture
def platform() -> Iterator[Releasing]:
    with releasing() as platform:
        for name in ("web", "cache"):
            platform.publish(version("1.0.0"), of=name)
        for number in range(3):
            metadata = {"name": f"both-{number}"}
            components = [
                {"name": f"{name}-{number}", "type": f"{name}@1"} for name in ("web", "cache")
            ]
            platform.request(
                "POST",
                APPLICATIONS,
                {
                    "apiVersion": "core.oam.dev/v1beta1",
                    "kind": "Application",
                    "metadata": metadata,
                    "spec": {"components": components},
                },
            )
        eventually(lambda: used(platform) == {("1.0.0", "1.0.0")})
        for name in ("web", "cache"):
            platform.policy({"share": "100%"}, of=name, **WAITS)
        yield platform


def used(platform: Releasing) -> set[tuple[str, ...]]:
    """The versions of web and cache that applications use."""
    found = platform.request("GET", APPLICATIONS)["items"]
    return {tuple(each["version"] for each in resolutions(each)) for each in found}


def resolutions(application: Object) -> list[Object]:
    found: list[Object] = (application.get("status") or {}).get("resolutions") or []
    return found


def test_an_application_moves_in_one_rollout_at_a_time(platform: Releasing) -> None:
    platform.publish(version("1.0.1", NEVER_BOUND))
    eventually(lambda: used(platform) == {("1.0.1", "1.0.0")})
    platform.publish(version("1.0.1"), of="cache")
    reason = "3 of 3 have not tried the release yet"
    eventually(lambda: platform.status("cache-1.0.1").get("reason") == reason)
    assert used(platform) == {("1.0.1", "1.0.0")}
    for each in platform.request("GET", APPLICATIONS)["items"]:
        reason = resolutions(each)[1]["reason"]
        assert reason == "kept: it moves to the next version after rollout web-1.0.1"
    # The other rollout goes on when this one has ended.
    platform.ask(aborted=True)
    platform.reaches("Completed", "1/1", name="cache-1.0.1")
    eventually(lambda: used(platform) == {("1.0.0", "1.0.1")})


def test_two_rollouts_of_releases_that_work_both_complete(platform: Releasing) -> None:
    for name in ("web", "cache"):
        platform.publish(version("1.0.1"), of=name)
    for name in ("web-1.0.1", "cache-1.0.1"):
        platform.reaches("Completed", "1/1", name=name)
    assert used(platform) == {("1.0.1", "1.0.1")}


def test_a_failed_move_does_not_stop_the_other_rollout(platform: Releasing) -> None:
    platform.request("DELETE", f"{ROLLOUTS.replace('rollouts', 'rolloutpolicies')}/careful")
    rules: Object = {"preflight": {"failures": 3}, "onFailure": "Pause"}
    platform.policy({"share": "100%"}, **rules)
    platform.publish(version("1.0.1", '{{ fail "broken" }}'))
    platform.reaches("Paused", "1/1")
    platform.publish(version("1.0.1"), of="cache")
    platform.reaches("Completed", "1/1", name="cache-1.0.1")
    assert used(platform) == {("1.0.0", "1.0.1")}
    assert platform.rollout()["status"]["dependents"]["failing"] == 3
