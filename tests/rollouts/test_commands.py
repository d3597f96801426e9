"""`polyver rollout`, as users type it: what it prints, what it changes, and how it ends."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.rollouts.releasing import BAD, ROLLOUTS, Releasing, version
from tests.walks.support import eventually

from polyver.app import main
from polyver.testing import EmbeddedServer

POLYVER = str(Path(sys.executable).parent / "polyver")
APPROVED = {"share": "50%", "pause": {"until": "Approved"}}
BROKEN_FOR_WEAK = f"{{{{ if .parameter.weak }}}}{BAD}{{{{ end }}}}\ndata: {{from: '1.0.1'}}"
WIDTH = 80
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class Typed:
    """What one command printed, and its exit code."""

    code: int
    out: str
    err: str


Type = Callable[..., Typed]


@pytest.fixture
def around() -> Iterator[tuple[Releasing, Path]]:
    with EmbeddedServer(capabilities=("apis", "definitions")) as server:
        made = Releasing(server)
        made.publish(version("1.0.0"))
        yield made, server.kubeconfig


@pytest.fixture
def cluster(around: tuple[Releasing, Path]) -> Releasing:
    return around[0]


@pytest.fixture
def kubeconfig(around: tuple[Releasing, Path]) -> Path:
    return around[1]


@pytest.fixture
def run(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Type:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))

    def typed(*arguments: str) -> Typed:
        code = main(["rollout", *arguments])
        return Typed(code, *capsys.readouterr())

    return typed


@pytest.fixture
def paused(cluster: Releasing) -> Releasing:
    """A rollout whose first step waits for approval; one follower will fail."""
    cluster.applications(5)
    cluster.application("app-weak", properties={"weak": True})
    cluster.policy(APPROVED, {"share": "100%"}, preflight={"failures": 1}, onFailure="Pause")
    cluster.publish(version("1.0.1"))
    cluster.reaches("Paused", "1/2")
    return cluster


def test_the_list_shows_each_rollout_and_a_freeze(paused: Releasing, run: Type) -> None:
    listed = run("list").out.splitlines()
    assert re.split("   +", listed[0])[2:] == [
        *("TO", "STATE", "STEP", "HEALTHY", "AGE", "REASON", "TARGET")
    ]
    assert "web-1.0.1" in listed[1]
    assert "step 1 waits for approval" in listed[1]
    assert run("freeze", "--reason", "incident 42").code == 0
    found = run("list")
    assert "rollouts are frozen (incident 42)" in found.err
    assert "polyver rollout unfreeze" in found.err
    assert run("unfreeze").out == "rollouts continue\n"
    assert run("unfreeze").out == "rollouts were not frozen\n"
    assert run("list").err == ""
    assert run("list", "-n", "empty").out == "there are no rollouts in the namespace empty\n"


def test_programs_read_json_and_yaml(paused: Releasing, run: Type) -> None:
    [listed] = json.loads(run("list", "-o", "json").out)["rollouts"]
    shown = yaml.safe_load(run("status", "web-1.0.1", "-o", "yaml").out)
    assert listed == shown
    assert (shown["name"], shown["status"]["state"]) == ("web-1.0.1", "Paused")
    assert "memory" not in shown["status"]
    history = json.loads(run("history", "web-1.0.1", "-o", "json").out)["history"]
    assert [(each["state"], each["step"]) for each in history] == [*paused.history()]
    assert json.loads(run("preflight", "web-1.0.1", "-o", "json").out)["changed"] == 6


def test_the_status_shows_steps_followers_checks_preflight_and_commands(
    paused: Releasing, run: Type
) -> None:
    found = run("status", "web-1.0.1")
    counts = paused.status()["dependents"]
    lines = found.out.splitlines()
    assert lines[0] == "vela-system/web-1.0.1   ComponentDefinition web → 1.0.1"
    assert lines[1] == "Paused: step 1 waits for approval"
    assert "▶ step 1: 50%, then a pause until it is approved  (paused)" in lines
    assert "  step 2: 100%" in lines
    assert f"{counts['cohort']} of 6 may use it" in found.out
    assert "check ready: Passed" in found.out
    assert "preflight: 0 unchanged, 6 changed, 0 would lose objects, 0 would fail" in lines
    assert "polyver rollout promote web-1.0.1 -n vela-system  # end the pause of step 1" in lines
    assert (found.code, found.err) == (0, "")


def test_commands_steer_a_rollout(paused: Releasing, run: Type) -> None:
    assert "no step starts" in run("pause", "web-1.0.1").out
    assert run("promote", "web-1.0.1").out == "rollout web-1.0.1 is promoted: step 1 is approved\n"
    eventually(lambda: paused.status()["reason"] == "paused by a user")
    assert "polyver rollout resume" in run("status", "web-1.0.1").out
    assert run("resume", "web-1.0.1").code == 0
    paused.reaches("Completed", "2/2")
    refused = run("abort", "web-1.0.1")
    assert (refused.code, refused.err) == (1, "error: rollout web-1.0.1 has ended: Completed\n")


def test_full_approves_all_steps(paused: Releasing, run: Type) -> None:
    told = run("promote", "web-1.0.1", "--full").out
    assert told == "rollout web-1.0.1 is promoted: all steps are approved\n"
    paused.reaches("Completed", "2/2")


def test_misspelled_names_are_corrected(paused: Releasing, run: Type) -> None:
    for command in ("status", "pause", "resume", "promote", "abort", "preflight", "history"):
        found = run(command, "wep-1.0.1")
        assert found.code == 1
        assert found.err == "error: there is no rollout wep-1.0.1; did you mean web-1.0.1?\n"
    elsewhere = run("status", "web-1.0.1", "-n", "default")
    assert "no rollout web-1.0.1 in the namespace default; it is in vela-system" in elsewhere.err
    start = ("start", "ComponentDefinition/web", "--to", "1.0.1", "--policy")
    assert "did you mean careful?" in run(*start, "carefull").err
    kind = run("start", "Componentdefinition/web", "--to", "1.0.1", "--policy", "careful")
    assert (kind.code, "did you mean ComponentDefinition?" in kind.err) == (2, True)


def test_a_rollout_that_cannot_begin_is_not_left_behind(paused: Releasing, run: Type) -> None:
    found = run("start", "ComponentDefinition/web", "--to", "7.0.0", "--policy", "careful")
    assert found.code == 1
    assert "the rollout cannot begin: ComponentDefinition vela-system/web has no release" in (
        found.err
    )
    assert "known: 1.0.0, 1.0.1" in found.err
    names = [each["metadata"]["name"] for each in paused.request("GET", ROLLOUTS)["items"]]
    assert names == ["web-1.0.1"]


def test_another_rollout_starts_in_the_namespace_of_its_policy(
    paused: Releasing, run: Type
) -> None:
    start = ("start", "ComponentDefinition/web", "--to", "1.0.1", "--policy", "careful")
    assert "rollout web-1.0.1 of 1.0.1 is active" in run(*start).err
    run("abort", "web-1.0.1")
    paused.reaches("Aborted", "1/2")
    told = run(*start).out
    assert "rollout vela-system/web-1.0.1-2 is started" in told
    assert "polyver rollout status web-1.0.1-2 -n vela-system --watch" in told
    paused.reaches("Paused", "1/2", "web-1.0.1-2")


def test_a_held_rollout_fails_a_script_and_says_why(cluster: Releasing, run: Type) -> None:
    cluster.applications(2)
    cluster.policy({"share": "100%"})
    cluster.publish(version("1.0.1", BAD))
    cluster.reaches("Held", "0/1")
    found = run("status", "web-1.0.1")
    assert (found.code, "2 would fail, and 0 are allowed" in found.err) == (1, True)
    assert "# start the rollout in spite of the preflight" in found.out
    assert run("promote", "web-1.0.1").out.endswith("the preflight is approved\n")
    cluster.reaches("RolledBack", "1/1")


def test_following_a_rollout_into_a_file_prints_a_line_for_each_change(
    paused: Releasing, run: Type
) -> None:
    paused.ask(approvedStep=1)
    found = run("status", "web-1.0.1", "--watch")
    assert found.code == 0
    assert "Completed, step 2 of 2, 6 of 6 moved, 6 healthy, 0 failing, 0 held" in found.out
    assert "\x1b" not in found.out
    assert found.out.count("ComponentDefinition web → 1.0.1") == 1


def test_following_ends_with_an_error_when_the_release_was_taken_back(
    paused: Releasing, run: Type
) -> None:
    paused.ask(aborted=True)
    found = run("status", "web-1.0.1", "--watch")
    assert (found.code, found.err) == (
        1,
        "error: rollout web-1.0.1 is Aborted: aborted by a user\n",
    )
    assert "0 of 6 still use it" in found.out
    assert paused.status()["progress"] == "0/0"


def test_without_rollouts_the_error_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedServer(capabilities=("apis",)) as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
        assert main(["rollout", "list"]) == 3
        assert "rollouts are not enabled" in capsys.readouterr().err


# A terminal.


class Terminal:
    """A command in a terminal of 80 columns."""

    def __init__(self, kubeconfig: Path, *arguments: str) -> None:
        self._end, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "TERM": "xterm-256color"}
        self._process = subprocess.Popen(
            [POLYVER, "rollout", *arguments],
            stdin=other,
            stdout=other,
            stderr=other,
            env={key: value for key, value in environment.items() if key != "NO_COLOR"},
        )
        os.close(other)
        self.written = ""

    def until(self, text: str) -> None:
        """Read until the command has written a text."""
        while text not in _ESCAPES.sub("", self.written):
            assert self._read(), f"the command ended without {text!r}: {self.written}"

    def end(self) -> int:
        while self._read():
            pass
        os.close(self._end)
        return self._process.wait()

    def _read(self) -> bool:
        try:
            found = os.read(self._end, 65536)
        except OSError:  # Linux reports the end of a terminal in this way
            return False
        self.written += found.decode()
        return bool(found)


def test_a_terminal_shows_a_rollout_live_and_keeps_the_last_report(
    paused: Releasing, kubeconfig: Path
) -> None:
    terminal = Terminal(kubeconfig, "status", "web-1.0.1", "-w")
    terminal.until("step 1 waits for approval")
    paused.ask(approvedStep=1)
    assert terminal.end() == 0
    assert "\x1b[1;32mCompleted" in terminal.written
    live, _, last = terminal.written.rpartition("\x1b[2K")
    shown = _ESCAPES.sub("", live).replace("\r", "\n").split("\n")
    assert max(map(len, shown)) <= WIDTH
    assert "✓ step 2: 100%" in _ESCAPES.sub("", last)
    assert "6 of 6, 0 failing, 0 held" in _ESCAPES.sub("", last)


def test_a_failed_check_is_visible_in_a_terminal(cluster: Releasing, kubeconfig: Path) -> None:
    cluster.applications(3)
    cluster.application("app-weak", properties={"weak": True})
    cluster.policy({"share": "100%"}, preflight={"failures": 1}, onFailure="Pause")
    cluster.publish(version("1.0.1", BROKEN_FOR_WEAK))
    terminal = Terminal(kubeconfig, "status", "web-1.0.1", "-w")
    terminal.until("✗ check ready: Failed")
    terminal.until("3 of 4, 1 failing, 0 held")
    terminal.until("# continue in spite of the fa…")
    cluster.ask(aborted=True)
    assert terminal.end() == 1
    assert "\x1b[31m!" in terminal.written
    assert "↩ step 1: 100%  (taken back)" in _ESCAPES.sub("", terminal.written)
