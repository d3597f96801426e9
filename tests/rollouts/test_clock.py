"""Somebody sets the clock of the machine during a rollout: no pause ends, and no check fails."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.rollouts.releasing import Releasing, releasing, version
from tests.rollouts.test_many import NEVER_BOUND
from tests.walks.support import eventually

from polyver.client import SystemClock

NUMBER = 4


class Shift:
    """The difference between the clock of the machine and the time."""

    hours = 0


@pytest.fixture
def shift(monkeypatch: pytest.MonkeyPatch) -> type[Shift]:
    def now(clock: SystemClock) -> datetime:
        del clock
        return datetime.now(UTC) + timedelta(hours=Shift.hours)

    monkeypatch.setattr(Shift, "hours", 0)
    monkeypatch.setattr(SystemClock, "now", now)
    return Shift


@pytest.fixture
def platform(shift: type[Shift]) -> Iterator[Releasing]:
    del shift
    with releasing() as platform:
        platform.publish(version("1.0.0"))
        platform.applications(NUMBER)
        eventually(lambda: [*platform.written().values()] == ["1.0.0"] * NUMBER)
        yield platform


def observed_again(platform: Releasing, name: str) -> None:
    """Add a follower, and wait until the rollout has counted it."""
    before = platform.status()["dependents"]["total"]
    platform.application(name)
    eventually(lambda: platform.status()["dependents"]["total"] == before + 1)


def test_a_pause_does_not_end(platform: Releasing, shift: type[Shift]) -> None:
    platform.policy({"share": "50%", "pause": {"for": "30m"}}, {"share": "100%"})
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/2")
    for number, hours in enumerate([2, -5, 2], start=NUMBER):
        shift.hours = hours
        observed_again(platform, f"app-{number}")
        eventually(lambda: platform.state()[0] == "Paused")
        assert platform.state() == ("Paused", "1/2")


def test_a_check_does_not_fail(platform: Releasing, shift: type[Shift]) -> None:
    platform.policy({"share": "100%"}, checks=[{"ready": {"within": "30m"}}])
    platform.publish(version("1.0.1", NEVER_BOUND))
    platform.reaches("Progressing", "1/1")
    for number, hours in enumerate([2, -5, 2], start=NUMBER):
        shift.hours = hours
        observed_again(platform, f"app-{number}")
        assert platform.state() == ("Progressing", "1/1")
