"""Programs beside this process, each with a supervisor that lets nothing of it outlive this one."""

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
    """What is to run, and what it may take."""

    argv: Sequence[str]
    env: Mapping[str, str]
    folder: str
    log: str
    log_bytes: int = 1 << 20
    """Of each of the two files of its log."""
    grace: float = 10.0
    """Seconds in which it may end by itself when it is told to."""
    memory: int = 0
    """Bytes that it and all that it starts may take together; 0 for any number."""
    look: float = 5.0
    """Seconds from one look at its memory to the next."""


@dataclass(eq=False)
class Supervised:
    """A program that runs, or has ended."""

    pid: int
    """The leader of its process group; 0 if it could not be started."""
    _supervisor: asyncio.subprocess.Process
    _done: asyncio.Task[Ending] = field(init=False)

    @classmethod
    async def start(cls, order: ProcessSpec) -> Supervised:
        """Have a program started; one that cannot be has ended at once, and says why."""
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
        """Whether anything of it is left."""
        return not self._done.done()

    async def wait(self) -> Ending:
        """How it ended, as soon as nothing of it is left."""
        return await asyncio.shield(self._done)

    async def end(self) -> Ending:
        """Have it end: by itself within its grace, else by force."""
        stdin = self._supervisor.stdin
        assert stdin
        with suppress(ConnectionError, RuntimeError):
            stdin.write(b"end\n")
        return await self.wait()

    def kill(self) -> None:
        """Have all of it ended at once."""
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
        """Somebody has killed the supervisor: what is left of the group goes, too."""
        if self.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        return Ending(-signal.SIGKILL, "lost its supervisor", "")


async def _report(supervisor: asyncio.subprocess.Process) -> Mapping[str, object]:
    """What the supervisor says next; nothing if it has gone."""
    assert supervisor.stdout
    line = await supervisor.stdout.readline()
    found: Mapping[str, object] = json.loads(line) if line else {}
    return found
