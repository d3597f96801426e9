"""Rollouts with several replicas of `polyver run`: another leader continues after a kill."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.rollouts.releasing import Releasing, Replicated, replicated, version
from tests.rollouts.test_killed import moved
from tests.walks.support import eventually

from polyver.testing import LocalCluster

pytestmark = pytest.mark.kube

NUMBER = 8
APPROVED = {"pause": {"until": "Approved"}}


@pytest.fixture
def installed() -> Iterator[Replicated]:
    with LocalCluster() as cluster, replicated(cluster, 2) as made:
        yield made


def test_another_leader_continues(installed: Replicated) -> None:
    platform = Releasing(installed)
    platform.publish(version("1.0.0"))
    platform.applications(NUMBER)
    eventually(lambda: [*platform.written().values()] == ["1.0.0"] * NUMBER)
    platform.policy({"count": 2, **APPROVED}, {"count": 5, **APPROVED}, {"share": "100%"})
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/3")
    first = moved(platform)
    assert len(first) == 2
    installed.kill_leader()
    installed.start()
    assert moved(platform) == first
    platform.ask(approvedStep=1)
    platform.reaches("Paused", "2/3")
    second = moved(platform)
    assert first < second
    assert len(second) == 5
    platform.ask(aborted=True)
    installed.kill_leader()
    platform.reaches("Aborted", "2/3")
    eventually(lambda: {*platform.written().values()} == {"1.0.0"})
    eventually(lambda: not moved(platform))
    steps = [step for _, step in platform.history()]
    assert steps == sorted(steps), "no step was taken twice"
