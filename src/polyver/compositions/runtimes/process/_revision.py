"""Serves one function revision by a child process, and replaces this process when necessary.

A successor is a child process with renewed certificates that replaces the previous child process.
The module `_restarts` makes the decisions, and this module acts on them. Each revision has its own
asyncio task, so that no revision delays another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from polyver.client import chance, sleep
from polyver.compositions.runtimes.interface import DesiredRevision, Reason, ServingStatus
from polyver.compositions.runtimes.process._children import Child, Children, ProcessRuntimeContext
from polyver.compositions.runtimes.process._environments import FunctionEnvironment
from polyver.compositions.runtimes.process._packages import PackageUnusable
from polyver.compositions.runtimes.process._restarts import FailureCount, Outlook, ended
from polyver.core import PolyverError

__all__ = ["Serving"]


class Serving:
    """Serves one function revision, from its creation until `end` is called."""

    def __init__(
        self,
        wanted: DesiredRevision,
        surroundings: ProcessRuntimeContext,
        environment: Callable[[DesiredRevision], Awaitable[FunctionEnvironment]],
        changed: Callable[[str], None],
    ) -> None:
        self.wanted = wanted
        self.served = ServingStatus()
        self.restarts = 0
        self._at = surroundings
        self._make = environment
        self._changed = changed
        self._children = Children(wanted.name, surroundings)
        self._environment: FunctionEnvironment | None = None
        self._child: Child | None = None
        self._successor: asyncio.Task[Child | None] | None = None
        self._renewals = FailureCount()
        self._renews_at = 0.0
        self._leaving: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._run())

    async def end(self, *, drain: float) -> None:
        """Stop serving the revision, but let its child finish calls for `drain` seconds."""
        tasks = [each for each in (self._task, self._successor) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if (late := _result(self._successor)) is not None:
            self._leave(late, drain=0)
        if self._child is not None:
            self._leave(self._child, drain=drain)
            self._child = None
        await self._left()
        if self._environment is not None:
            self._environment.release()

    async def _left(self) -> None:
        """Wait until the children that were replaced have ended.

        If this task is cancelled, kill them.
        """
        try:
            while self._leaving:
                await asyncio.wait(self._leaving)
        except asyncio.CancelledError:
            for task in self._leaving:
                task.cancel()
            await asyncio.wait(self._leaving)
            raise

    # The task.

    async def _run(self) -> None:
        tries = FailureCount()
        while True:
            try:
                tries = await self._once(tries)
            except (PolyverError, OSError) as error:
                tries = tries.after(0, self._at.timing)
                reason = error.reason if isinstance(error, PackageUnusable) else "NotUsable"
                await self._wait_after(str(error), reason, tries)
            except Exception as error:
                self._at.log.failure("a revision is not served", error, revision=self._name)
                tries = tries.after(0, self._at.timing)
                await self._wait_after(f"{type(error).__name__}: {error}", "Failed", tries)

    async def _wait_after(self, problem: str, reason: Reason, tries: FailureCount) -> None:
        delay = self._at.timing.rebuilds.delay(tries.failures, spread=chance())
        self._tell(ServingStatus(reason=reason, message=f"{problem}; tried again in {delay:.0f} s"))
        await sleep(self._at.clock, delay)

    async def _once(self, tries: FailureCount) -> FailureCount:
        """Serve the revision until its child has ended. Then wait before the next start.

        `tries` counts the failures so far. Return the count after this child.
        """
        if self._environment is None:
            self._tell(ServingStatus(reason="Building", message="its environment is being created"))
            self._environment = await self._make(self.wanted)
        if self._child is None:
            self._child = await self._children.start(self._environment)
        child, why = await self._attend(self._child)
        if why in ("overdue", "hung"):
            child.program.kill()  # a hung program would ignore a termination signal
        ending = await self._children.end(child)
        self._child = None
        tries = tries.after(child.life.served_for, self._at.timing)
        delay = self._at.timing.restarts.delay(tries.failures, spread=chance())
        told = ended(child.life, why, ending, self._at.timing, again=delay)
        self._tell(told)
        self._at.log.warning(
            "function ended", revision=self._name, reason=told.reason, message=told.message
        )
        await sleep(self._at.clock, delay)
        self.restarts += 1
        return tries

    async def _attend(self, child: Child) -> tuple[Child, Outlook]:
        """Monitor a child, and then each successor that replaces it.

        Return the current child when it has ended or must be killed, and the reason.
        """
        while True:
            if child.life.answered is None:
                self._tell(ServingStatus(reason="Starting", message="it is started"))
                why = await self._children.first_answer(child)
            else:
                successor = [] if self._successor is None else [self._successor]
                why = await self._children.next_answer(child, *successor)
            if not child.program.runs or why in ("overdue", "hung"):
                return child, why
            self._tell(ServingStatus(child.address, "Serving", f"it answers at {child.address}"))
            child = self._child = self._renewed(child)

    # Functions read their certificates only when they start. So a new child is needed for new
    # certificates.

    def _renewed(self, child: Child) -> Child:
        """Return the successor of a child if it is ready; otherwise, return the child.

        If the certificates of the child must be renewed, start a successor in the background.
        """
        if self._successor is not None:
            return self._succeeded(child, self._successor) if self._successor.done() else child
        if self._at.clock.time() < self._renews_at:
            return child
        if why := self._children.renewal(child):
            self._at.log.info("certificates are renewed", revision=self._name, reason=why)
            self._successor = asyncio.create_task(self._tried())
        return child

    def _succeeded(self, child: Child, task: asyncio.Task[Child | None]) -> Child:
        self._successor = None
        successor = task.result()
        if successor is None:
            self._renewals = self._renewals.after(0, self._at.timing)
            delay = self._at.timing.rebuilds.delay(self._renewals.failures, spread=chance())
            self._renews_at = self._at.clock.time() + delay
            return child
        self._renewals = FailureCount()
        self._tell(
            ServingStatus(successor.address, "Serving", f"it answers at {successor.address}")
        )
        self._leave(child, drain=self._at.timing.drain)
        return successor

    async def _tried(self) -> Child | None:
        """Start a successor with new certificates. Return it if it answers, otherwise None."""
        assert self._environment is not None
        try:
            child = await self._children.start(self._environment)
        except PolyverError as error:
            self._at.log.warning(
                "certificates are not renewed", revision=self._name, reason=str(error)
            )
            return None
        try:
            if await self._children.first_answer(child) == "serve" and child.program.runs:
                return child
            child.program.kill()
        except asyncio.CancelledError:
            self._leave(child, drain=0)
            raise
        ending = await self._children.end(child)
        self._at.log.warning(
            "certificates are not renewed: the new process is not usable",
            revision=self._name,
            reason=child.life.problem or str(ending),
        )
        return None

    def _leave(self, child: Child, *, drain: float) -> None:
        """End a child in the background, after `drain` seconds in which its calls can finish."""
        task = asyncio.create_task(self._drained(child, drain))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _drained(self, child: Child, drain: float) -> None:
        if drain:
            with suppress(asyncio.CancelledError):
                await sleep(self._at.clock, drain)
        await self._children.end(child)

    def _tell(self, served: ServingStatus) -> None:
        if served != self.served:
            self.served = served
            self._changed(self._name)

    @property
    def _name(self) -> str:
        return self.wanted.name


def _result(task: asyncio.Task[Child | None] | None) -> Child | None:
    """Return the child that a task has started; None if there is no task or no child."""
    if task is None or task.cancelled() or task.exception() is not None:
        return None
    return task.result()
