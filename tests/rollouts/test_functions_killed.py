"""kill -9 of the control plane in the middle of a rollout of a function."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.rollouts import greet
from tests.rollouts.releasing_functions import APPROVED, NEW, OLD, Platform
from tests.walks.support import eventually
from tests.walks.test_killed import Server

from polyver.kube.objects.status import ApiError

NUMBER = 5


class KilledPlatform(Platform):
    """Control planes in processes of their own, each killed before the next one starts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: Server | None = None

    def start(self, catalogue: str) -> None:
        self.end()
        file = self._folder / "catalogue.yaml"
        file.write_text(catalogue)
        code = ("--functions", greet.__file__, "--catalogue", str(file))
        chosen = ("--no-page", "--capabilities", "apis,functions")
        self._server = Server(self._folder / "data", *chosen, *code)
        self.request = self._request

    def end(self) -> None:
        if self._server is not None:
            self._server.kill()

    def _request(self, method: str, path: str, body: object = None) -> Any:
        assert self._server is not None
        connection = self._server.connect()
        try:
            status, found = self._server.ask(connection, method, path, body)
        finally:
            connection.close()
        if status >= 400:
            raise ApiError.from_status(found)
        return found


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[KilledPlatform]:
    platform = KilledPlatform(tmp_path)
    platform.start(OLD)
    for number in range(NUMBER):
        platform.blueprint(f"greet-{number}")
    platform.policy({"count": 2, **APPROVED}, {"count": 4, **APPROVED}, {"share": "100%"})
    platform.start(NEW)
    yield platform
    platform.end()


def moved(platform: Platform) -> set[str]:
    return {name for name, version in platform.versions().items() if version == "v0.2.0"}


def test_a_rollout_and_its_rollback_go_on_after_kills(platform: KilledPlatform) -> None:
    platform.start(NEW)  # during the preflight, or before it
    platform.reaches("Progressing", "1/3")
    first = moved(platform)
    assert len(first) == 2
    platform.start(NEW)
    platform.reaches("Paused", "1/3")
    assert moved(platform) == first
    platform.ask(approvedStep=1)
    platform.start(NEW)  # while a step begins
    platform.reaches("Progressing", "2/3")
    second = moved(platform)
    assert first < second
    assert len(second) == 4
    platform.reaches("Paused", "2/3")
    platform.ask(aborted=True)
    platform.start(NEW)
    platform.reaches("Aborted", "2/3")
    assert moved(platform) == set()


def test_a_call_that_a_kill_interrupts_takes_nothing_back(
    platform: KilledPlatform, tmp_path: Path
) -> None:
    platform.reaches("Progressing", "1/3")
    inside = min(moved(platform))
    platform.reaches("Paused", "1/3")
    begun = platform.begin(inside, f"until {tmp_path / 'never'}")
    eventually(lambda: platform.action_set(begun).get("state") == "running")
    platform.start(NEW)
    [phase] = platform.ended(begun)["actions"][0]["phases"]
    assert (phase["state"], phase["rollout"]) == ("failed", "greet-v0.2.0")
    assert "endTime" not in phase
    # The control plane has observed the failure before it completes the rollout.
    platform.ask(approvedStep=2)
    platform.reaches("Progressing", "2/3")
    moved(platform)
    platform.reaches("Progressing", "3/3")
    moved(platform)
    platform.reaches("Completed", "3/3")


def test_actions_that_run_during_a_rollback_finish(
    platform: KilledPlatform, tmp_path: Path
) -> None:
    platform.reaches("Progressing", "1/3")
    inside = min(moved(platform))
    platform.reaches("Paused", "1/3")
    begun = platform.begin(inside, f"until {tmp_path / 'now'}")
    eventually(lambda: platform.action_set(begun).get("state") == "running")
    platform.ask(aborted=True)
    platform.reaches("Aborted", "1/3")
    assert platform.run(inside)["resolvedVersion"] == "v0.1.0"
    (tmp_path / "now").touch()
    ended = platform.ended(begun)
    assert (ended["state"], ended["resolvedVersion"]) == ("complete", "v0.2.0")
