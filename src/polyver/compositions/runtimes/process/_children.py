"""Starts, probes and ends the child processes that serve one function revision."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyver.client import Clock, sleep
from polyver.compositions.calls import (
    CertificateFolder,
    Endpoint,
    FunctionCertificates,
    FunctionFailed,
    probe,
)
from polyver.compositions.runtimes.process._environments import FunctionEnvironment
from polyver.compositions.runtimes.process._projects import filled
from polyver.compositions.runtimes.process._restarts import Ending, Life, Outlook, Timing, outlook
from polyver.compositions.runtimes.process._subprocesses import ProcessSpec, Supervised
from polyver.core import PolyverError
from polyver.kube.http.addresses import LOOPBACK
from polyver.kube.http.files import private_folder
from polyver.kube.http.logs import Log
from polyver.kube.http.worker_threads import DaemonThreadPool

__all__ = ["Child", "Children", "ProcessRuntimeContext"]

_LONGEST_BETWEEN = 1.0


@dataclass(eq=False)
class ProcessRuntimeContext:
    """Settings and resources that all revisions of the runtime share."""

    certificates: CertificateFolder
    logs: Path
    work: Path
    timing: Timing
    memory: int
    look: float
    clock: Clock
    log: Log
    aside: DaemonThreadPool
    ports: set[int] = field(default_factory=set)
    """Ports that function processes use. No other process gets one of these ports.

    If two gRPC servers listened at the same port, each would get a part of the calls.
    """


@dataclass(eq=False)
class Child:
    """A child process that serves a function revision."""

    program: Supervised
    port: int
    certificates: FunctionCertificates
    work: Path
    life: Life

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"


class Children:
    """Starts, probes and ends the child processes of a function revision."""

    def __init__(self, revision: str, surroundings: ProcessRuntimeContext) -> None:
        self._revision = revision
        self._at = surroundings
        self._certificates: FunctionCertificates | None = None

    async def start(self, environment: FunctionEnvironment) -> Child:
        """Start another child process for the revision."""
        certificates, port = await self._issued(), _free_port(self._at.ports)
        work = self._at.work / f"{self._revision}-{port}"
        address = f"{LOOPBACK}:{port}"
        argv, more = filled(environment.command, address=address, tls=str(certificates.folder))
        order = ProcessSpec(
            argv,
            _variables(environment, work) | dict(more),
            str(environment.source or work),
            str(self._at.logs / f"{self._revision}.log"),
            grace=self._at.timing.grace,
            memory=self._at.memory,
            look=self._at.look,
        )
        try:
            private_folder(work)
            program = await Supervised.start(order)
        except BaseException as error:
            self._at.ports.discard(port)
            if not isinstance(error, OSError):
                raise
            why = error.strerror or error
            raise PolyverError(f"{argv[0]} cannot be started: {why}") from None
        return Child(program, port, certificates, work, Life(self._at.clock.time()))

    async def _issued(self) -> FunctionCertificates:
        """Return the certificates for the next start of a child.

        They are the same as for the last start, until they must be renewed.
        """
        known, now = self._certificates, self._at.clock.now()
        if known is None or self._at.certificates.renewal(known, now=now):
            issue = self._at.certificates.issue
            known = await self._at.aside.run(lambda: issue(self._revision, now=now))
            self._certificates = known
        return known

    def renewal(self, child: Child) -> str:
        """Return the reason why a child needs new certificates; "" if it needs none."""
        return self._at.certificates.renewal(child.certificates, now=self._at.clock.now())

    async def first_answer(self, child: Child) -> Outlook:
        """Probe a new child until it answers, exits, or needs too much time to start."""
        pause = self._at.timing.ask_while_starting
        while True:
            await self._ask(child)
            why = outlook(child.life, self._at.timing, self._at.clock.time())
            if why != "wait" or not child.program.runs:
                return why
            await self._pause(child, pause)
            pause = min(pause * 1.5, _LONGEST_BETWEEN)

    async def next_answer(self, child: Child, *others: asyncio.Task[Any]) -> Outlook:
        """Probe a child after a pause, which ends early if one of the tasks `others` ends."""
        await self._pause(child, self._at.timing.ask_every, others)
        await self._ask(child)
        return outlook(child.life, self._at.timing, self._at.clock.time())

    async def end(self, child: Child) -> Ending:
        """Ask a child to exit. Kill it if it still runs after its grace period.

        If this task is cancelled, kill the child immediately.
        """
        try:
            return await child.program.end()
        except asyncio.CancelledError:
            child.program.kill()
            await child.program.wait()
            raise
        finally:
            child.program.kill()  # the program has ended; the end of stdin also ends its supervisor
            self._at.ports.discard(child.port)
            await self._at.aside.run(lambda: shutil.rmtree(child.work, ignore_errors=True))

    async def _pause(
        self, child: Child, seconds: float, others: Iterable[asyncio.Task[Any]] = ()
    ) -> None:
        """Wait for some seconds, but stop waiting if the child exits or one of `others` ends."""
        waits = [
            asyncio.ensure_future(sleep(self._at.clock, seconds)),
            asyncio.ensure_future(child.program.wait()),
        ]
        try:
            await asyncio.wait([*waits, *others], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _ask(self, child: Child) -> None:
        """Probe a child and record the result, unless the child exits during the probe."""
        if not child.program.runs:
            return
        asked = asyncio.ensure_future(self._problem(child))
        gone = asyncio.ensure_future(child.program.wait())
        try:
            await asyncio.wait([asked, gone], return_when=asyncio.FIRST_COMPLETED)
            if asked.done() and not gone.done():
                child.life = child.life.heard(asked.result(), self._at.clock.time())
        finally:
            asked.cancel()
            gone.cancel()

    async def _problem(self, child: Child) -> str:
        trust = self._at.certificates.trust(self._revision, now=self._at.clock.now())
        try:
            endpoint = Endpoint(self._revision, child.address, trust)
            await probe(endpoint, within=self._at.timing.answer)
        except FunctionFailed as error:
            return str(error)
        return ""


def _variables(environment: FunctionEnvironment, work: Path) -> dict[str, str]:
    """Return the environment variables for a child.

    Of polyver's own environment variables, the child gets only PATH.
    """
    path = os.environ.get("PATH", os.defpath)
    if environment.programs is not None:
        path = f"{environment.programs}{os.pathsep}{path}"
    folder = str(work)
    return {
        "PATH": path,
        "HOME": folder,
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }


def _free_port(taken: set[int]) -> int:
    while True:
        with socket.socket() as found:
            found.bind((LOOPBACK, 0))
            port = int(found.getsockname()[1])
        if port not in taken:
            taken.add(port)
            return port
