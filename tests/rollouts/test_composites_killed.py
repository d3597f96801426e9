"""kill -9 of the control plane, or of the leader, while a function is rolled out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.rollouts.composing import FUNCTION, STACKS, Composing, packages, uses
from tests.rollouts.releasing import Replicated, replicated
from tests.rollouts.test_killed import KilledServer
from tests.walks.support import eventually

from polyver.testing import LocalCluster

NUMBER = 8
CHOSEN = "apis,compositions"
APPROVED = {"pause": {"until": "Approved"}}
STEPS = ({"count": 2, **APPROVED}, {"count": 5, **APPROVED}, {"share": "100%"})


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[tuple[KilledServer, Composing]]:
    file = packages(tmp_path / "functions")
    server = KilledServer(tmp_path / "data", "--packages", str(file), capabilities=CHOSEN)
    platform = Composing(server)
    platform.prepare()
    platform.stacks(NUMBER)
    yield server, platform
    server.end()


def moved(platform: Composing, mode: str = "better") -> set[str]:
    revision = platform.revision_of(mode) or "none"
    found = platform.request("GET", STACKS)["items"]
    return {each["metadata"]["name"] for each in found if uses(each, revision)}


def test_a_rollout_of_a_function_goes_on_after_kills(
    killed: tuple[KilledServer, Composing],
) -> None:
    server, platform = killed
    platform.policy(FUNCTION, *STEPS)
    name = platform.publish_function("better")
    server.kill()  # during the preflight, or before it
    platform.reaches(name, "Paused", "1/3")
    first = moved(platform)
    assert len(first) == 2
    server.kill()  # while it waits for an approval
    assert platform.reaches(name, "Paused", "1/3")
    assert moved(platform) == first
    platform.ask(name, approvedStep=1)
    server.kill()  # while a step begins
    platform.reaches(name, "Paused", "2/3")
    second = moved(platform)
    assert first < second
    assert len(second) == 5
    platform.ask(name, approvedStep=2)
    server.kill()
    platform.reaches(name, "Completed", "3/3")
    server.kill()
    # A new composite resource uses the revision, so the control plane has observed it since then.
    platform.stack(50)
    eventually(lambda: platform.count("function") == {"better": NUMBER + 1})
    steps = [step for _, step in platform.history(name)]
    assert steps == sorted(steps), "no step was taken twice"
    assert [*platform.rollouts()] == [name]
    eventually(lambda: platform.states() == {"better": "Active"})


def test_a_rollback_of_a_function_goes_on_after_kills(
    killed: tuple[KilledServer, Composing],
) -> None:
    server, platform = killed
    checks = [{"ready": {"within": "2s"}}]
    platform.policy(FUNCTION, *STEPS, checks=checks)
    name = platform.publish_function("unready")
    eventually(lambda: moved(platform, "unready"))
    server.kill()  # while the step waits for the check
    platform.reaches(name, "RolledBack", "1/3")
    server.kill()  # while the composite resources return
    eventually(lambda: platform.count("function") == {"good": NUMBER})
    eventually(lambda: platform.healthy() == NUMBER)
    eventually(lambda: platform.states() == {"good": "Active", "unready": "Inactive"})
    assert platform.status(name)["state"] == "RolledBack"


def test_a_held_rollout_of_a_function_is_held_after_a_kill(
    killed: tuple[KilledServer, Composing],
) -> None:
    server, platform = killed
    platform.policy(FUNCTION, *STEPS)
    name = platform.publish_function("deletes")
    platform.reaches(name, "Held", "0/3")
    server.kill()
    assert platform.status(name)["state"] == "Held"
    # A revision that works supersedes it: so the control plane has observed both since then.
    later = platform.publish_function("better")
    platform.reaches(name, "Superseded", "0/3")
    platform.reaches(later, "Paused", "1/3")
    platform.ask(later, aborted=True)
    server.kill()
    platform.reaches(later, "Aborted", "1/3")
    eventually(lambda: platform.count("function") == {"good": NUMBER})
    assert platform.extras() == NUMBER


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replicated]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    file = packages(tmp_path / "functions")
    chosen = ("--capabilities", CHOSEN)
    with (
        LocalCluster() as cluster,
        replicated(cluster, 2, chosen, "--packages", str(file)) as made,
    ):
        yield made


@pytest.mark.kube
def test_another_leader_continues_the_rollout_of_a_function(installed: Replicated) -> None:
    platform = Composing(installed)
    platform.prepare()
    platform.stacks(NUMBER)
    platform.policy(FUNCTION, *STEPS)
    name = platform.publish_function("better")
    platform.reaches(name, "Paused", "1/3")
    first = moved(platform)
    assert len(first) == 2
    installed.kill_leader()
    installed.start()
    assert moved(platform) == first
    platform.ask(name, approvedStep=1)
    platform.reaches(name, "Paused", "2/3")
    second = moved(platform)
    assert first < second
    assert len(second) == 5
    platform.ask(name, aborted=True)
    installed.kill_leader()
    platform.reaches(name, "Aborted", "2/3")
    eventually(lambda: platform.count("function") == {"good": NUMBER})
    eventually(lambda: not moved(platform))
    steps = [step for _, step in platform.history(name)]
    assert steps == sorted(steps), "no step was taken twice"
