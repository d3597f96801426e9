"""kill -9 of the control plane in the middle of a rollout: it goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.rollouts.releasing import BAD, Releasing, version
from tests.walks.support import eventually
from tests.walks.test_killed import Server

from polyver.kube.objects.status import ApiError

NUMBER = 8


class KilledServer:
    """Control planes in processes of their own, one after the other, on the same data."""

    def __init__(self, folder: Path, *options: str, capabilities: str = "apis,definitions") -> None:
        self._folder = folder
        self._options = ("--no-page", "--capabilities", capabilities, *options)
        self.start()

    def start(self) -> None:
        self._server = Server(self._folder, *self._options)

    def kill(self) -> None:
        self._server.kill()
        self.start()

    def end(self) -> None:
        self._server.kill()

    def request(self, method: str, path: str, body: object = None) -> Any:
        connection = self._server.connect()
        try:
            status, found = self._server.ask(connection, method, path, body)
        finally:
            connection.close()
        if status >= 400:
            raise ApiError.from_status(found)
        return found


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[tuple[KilledServer, Releasing]]:
    server = KilledServer(tmp_path / "data")
    platform = Releasing(server)
    platform.publish(version("1.0.0"))
    platform.applications(NUMBER)
    eventually(lambda: [*platform.written().values()] == ["1.0.0"] * NUMBER)
    approved = {"pause": {"until": "Approved"}}
    platform.policy({"count": 2, **approved}, {"count": 5, **approved}, {"share": "100%"})
    yield server, platform
    server.end()


def moved(platform: Releasing) -> set[str]:
    return {name for name, each in platform.versions().items() if each == "1.0.1"}


def test_a_rollout_goes_on_after_kills(killed: tuple[KilledServer, Releasing]) -> None:
    server, platform = killed
    platform.publish(version("1.0.1"))
    server.kill()  # during the preflight, or before it
    platform.reaches("Paused", "1/3")
    first = moved(platform)
    assert len(first) == 2
    server.kill()  # while it waits for an approval
    assert platform.state() == ("Paused", "1/3")
    assert moved(platform) == first
    platform.ask(approvedStep=1)
    server.kill()  # while a step begins
    platform.reaches("Paused", "2/3")
    second = moved(platform)
    assert first < second
    assert len(second) == 5
    platform.ask(approvedStep=2)
    server.kill()
    platform.reaches("Completed", "3/3")
    assert len(moved(platform)) == NUMBER
    steps = [step for _, step in platform.history()]
    assert steps == sorted(steps), "no step was taken twice"


def test_a_rollback_goes_on_after_a_kill(killed: tuple[KilledServer, Releasing]) -> None:
    server, platform = killed
    platform.publish(version("1.0.1"))
    platform.reaches("Paused", "1/3")
    platform.ask(approvedStep=1)
    platform.reaches("Paused", "2/3")
    platform.ask(aborted=True)
    server.kill()
    platform.reaches("Aborted", "2/3")
    eventually(lambda: {*platform.written().values()} == {"1.0.0"})
    eventually(lambda: not moved(platform))


def test_a_held_rollout_is_held_after_a_kill(killed: tuple[KilledServer, Releasing]) -> None:
    server, platform = killed
    platform.publish(version("1.0.1", BAD))
    platform.reaches("Held", "0/3")
    server.kill()
    assert platform.state() == ("Held", "0/3")
    # A release that works supersedes it: so the control plane has observed both since then.
    platform.publish(version("1.0.2"))
    platform.reaches("Superseded", "0/3")
    platform.reaches("Paused", "1/3", name="web-1.0.2")
    assert "1.0.1" not in platform.versions().values()
