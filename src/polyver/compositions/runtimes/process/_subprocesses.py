"""Child processes. Each of them has a supervisor process.

When polyver ends for any reason, the supervisor ends the child process and all its descendants.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from polyver.compositions.runtimes.process._restarts import Ending

__all__ = ["ProcessSpec", "Supervised"]

_SCRIPT = Path(__file__).with_name("_supervisor.py")
_LONGEST_REPORT = 1 << 20


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """The command that a child process runs, and its limits."""

    argv: Sequence[str]
    env: Mapping[str, str]
    folder: str
    log: str
    log_bytes: int = 1 << 20
    """Maximum size of each of the two log files, in bytes."""
    grace: float = 10.0
    """Seconds in which the program must exit after a request to end. Then it is killed."""
    memory: int = 0
    """Maximum memory of the program and its descendants together, in bytes. 0 means no limit."""
    look: float = 5.0
    """Seconds between two memory checks."""


@dataclass(eq=False)
class Supervised:
    """A program that runs or has ended, with its supervisor."""

    pid: int
    """The process id of the program, which is also the id of its process group.

    0 if the program could not be started.
    """
    _supervisor: asyncio.subprocess.Process
    _done: asyncio.Task[Ending] = field(init=False)

    @classmethod
    async def start(cls, order: ProcessSpec) -> Supervised:
        """Start a program under a supervisor.

        If the program cannot be started, the result is like a program that has ended: `wait`
        returns the reason.
        """
        pipe = asyncio.subprocess.PIPE
        supervisor = await asyncio.create_subprocess_exec(
            *(sys.executable, "-IS", str(_SCRIPT), str(os.getpid())),
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            limit=_LONGEST_REPORT,
        )
        assert supervisor.stdin
        try:
            with suppress(ConnectionError):
                supervisor.stdin.write(json.dumps(asdict(order)).encode() + b"\n")
                await supervisor.stdin.drain()
            first = await _report(supervisor)
        except BaseException:
            supervisor.stdin.close()
            raise
        found = cls(int(first.get("pid", 0)), supervisor)  # type: ignore[call-overload]
        found._done = asyncio.create_task(found._watch(first))
        return found

    @property
    def runs(self) -> bool:
        """True while any process of the program exists."""
        return not self._done.done()

    async def wait(self) -> Ending:
        """Wait until no process of the program exists. Return how the program ended."""
        return await asyncio.shield(self._done)

    async def end(self) -> Ending:
        """Ask the program to exit, and kill it after its grace period. Return how it ended."""
        stdin = self._supervisor.stdin
        assert stdin
        with suppress(ConnectionError, RuntimeError):
            stdin.write(b"end\n")
        return await self.wait()

    def kill(self) -> None:
        """Kill all processes of the program immediately."""
        assert self._supervisor.stdin
        self._supervisor.stdin.close()

    async def _watch(self, report: Mapping[str, object]) -> Ending:
        if "code" not in report:
            report = await _report(self._supervisor)
        await self._supervisor.wait()
        assert self._supervisor.stdin
        self._supervisor.stdin.close()
        if "code" not in report:
            return self._abandoned()
        return Ending(int(str(report["code"])), str(report["why"]), str(report["said"]))

    def _abandoned(self) -> Ending:
        """Kill the process group of the program, because its supervisor was killed."""
        if self.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        return Ending(-signal.SIGKILL, "lost its supervisor", "")


async def _report(supervisor: asyncio.subprocess.Process) -> Mapping[str, object]:
    """Return the next report of a supervisor; an empty mapping if the supervisor has ended."""
    assert supervisor.stdout
    line = await supervisor.stdout.readline()
    found: Mapping[str, object] = json.loads(line) if line else {}
    return found
