"""Calls of the functions of pipelines; a function that does not answer delays only its users."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from polyver.client import Backoff, Clock
from polyver.compositions.calls import Caller, CallFailure, FunctionFailed
from polyver.compositions.controllers.composites._concurrency import ConcurrencyLimits, LostCall
from polyver.compositions.controllers.composites._dependents import CompositeKey
from polyver.compositions.decisions import ResolvedStep
from polyver.compositions.messages import Request, Response
from polyver.compositions.runtimes import Runtime
from polyver.core import PolyverError

__all__ = ["CompositeLimits", "PipelineCalls", "RevisionCaller"]


@dataclass(frozen=True, slots=True)
class CompositeLimits:
    """Limits of the composition of composite resources; times are in seconds."""

    seconds: float = 10.0
    """Timeout of one call of a function."""
    workers: int = 64
    """Number of composite resources that are reconciled concurrently."""
    lane: int = 16
    """Number of composite resources that may call the same revision concurrently."""
    resync: float = 600.0
    """Interval after which a composite resource is reconciled without any change."""
    shortest: float = 1.0
    """Lower bound of the time to live that a function may set for its response."""
    quiet: float = 15.0
    """Time for which an unanswered call is not reported: the function may be starting."""
    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, most=60.0))
    """Back-off of failed reconciles."""
    quarantine: Backoff = field(default_factory=lambda: Backoff(first=60.0, most=1800.0))
    """Back-off of a resource whose input makes a function exit or hang."""


@dataclass(slots=True)
class PipelineCalls:
    """The calls of one run."""

    calling: RevisionCaller
    key: CompositeKey
    input_of: Callable[[], str]
    """Returns a digest of all inputs of the run."""
    answered: set[str] = field(default_factory=set)
    """Revisions that answered, even with an error."""
    silent: str = ""
    """The revision that did not answer."""
    lost: LostCall | None = None
    """The unanswered call, if the revision may have received it."""

    async def ask(self, step: ResolvedStep, request: Request) -> Response:
        try:
            response = await self.calling.call(step, request, self.key)
        except FunctionFailed as error:
            if error.failure.passes:
                self.silent = step.revision
            if error.sent:
                hung = error.failure is CallFailure.DEADLINE
                self.lost = LostCall(self.input_of(), hung=hung)
            raise
        self.answered.add(step.revision)
        return response


class RevisionCaller:
    """Calls revisions, and records the keys that wait for a revision to answer."""

    def __init__(
        self,
        runtime: Runtime,
        wake: Callable[[CompositeKey], None],
        clock: Clock,
        limits: CompositeLimits,
        caller: Caller,
    ) -> None:
        self.caller = caller
        self._runtime = runtime
        self._wake = wake
        self._seconds = limits.seconds
        self._lanes = ConcurrencyLimits(
            wake, clock, width=limits.lane, quarantine=limits.quarantine
        )
        self._stuck: dict[str, set[CompositeKey]] = {}
        """Keys that could not be composed, by the revision that prevented it."""
        self._endpoints: dict[str, str] = {}
        self._forgetting: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        await asyncio.gather(*self._forgetting, return_exceptions=True)
        await self.caller.close()

    async def call(self, step: ResolvedStep, request: Request, key: CompositeKey) -> Response:
        try:
            endpoint = await self._runtime.reach(step.revision, step.endpoint)
        except FunctionFailed:
            raise
        except PolyverError as error:
            fact = f"cannot be reached: {error}"
            unreachable = CallFailure.UNREACHABLE
            raise FunctionFailed(unreachable, fact, revision=step.revision) from None
        # A suspect that is sent twice could make the function exit twice.
        resend = not self._lanes.is_suspect(key, step.revision)
        return await self.caller.call(endpoint, request, within=self._seconds, resend=resend)

    def quarantined(
        self, key: CompositeKey, revisions: Iterable[str], input_of: Callable[[], str]
    ) -> tuple[str, float]:
        """Return the revision that must not be called for a key now, and for how many seconds."""
        return self._lanes.quarantined(key, revisions, input_of)

    async def enter(self, key: CompositeKey, revisions: Iterable[str]) -> bool:
        """Return True if a run may begin now; else its key is woken when it may."""
        return await self._lanes.enter(key, revisions)

    def leave(self, key: CompositeKey, revisions: Iterable[str], asking: PipelineCalls) -> None:
        """End a run, and wake the keys that wait for one of the revisions that answered."""
        silent, lost = asking.silent, asking.lost
        self._lanes.leave(key, revisions, answered=asking.answered, silent=silent, lost=lost)
        # The key may have been waiting for another release that it could not move to.
        self._free(key, revisions)
        if silent and not self.quarantined(key, [silent], asking.input_of)[0]:
            self.stick(key, silent)
        for name in asking.answered - {asking.silent}:
            # Keys that could not be composed because of it may try again.
            for other in self._stuck.pop(name, ()):
                self._wake(other)

    def settle(self, key: CompositeKey) -> None:
        self._lanes.settle(key)

    def stick(self, key: CompositeKey, revision: str) -> None:
        """Record that a key waits until a revision answers."""
        self._stuck.setdefault(revision, set()).add(key)

    def forget(self, key: CompositeKey) -> None:
        self._free(key, [*self._stuck])
        self._lanes.forget(key)

    def drop(self, revision: str) -> None:
        """Remove a revision that no longer exists."""
        self._stuck.pop(revision, None)
        self._lanes.drop(revision)

    def _free(self, key: CompositeKey, revisions: Iterable[str]) -> None:
        for name in revisions:
            waiting = self._stuck.get(name)
            if waiting is not None:
                waiting.discard(key)
                if not waiting:
                    del self._stuck[name]

    def served(self, revision: str, endpoint: str) -> set[CompositeKey]:
        """Record the endpoint of a revision, empty if none; return the keys to reconcile.

        A key that has lost several calls in a row is not returned: it might make the function exit
        again before other keys get an answer. It waits until another key gets an answer, or for its
        back-off.
        """
        before = self._endpoints.pop(revision, "")
        if endpoint:
            self._endpoints[revision] = endpoint
        elif before:
            task = asyncio.create_task(self.caller.forget(revision))
            self._forgetting.add(task)
            task.add_done_callback(self._forgetting.discard)
        if not endpoint or endpoint == before:
            return set()
        self._lanes.open(revision)
        stuck = self._stuck.get(revision, ())
        return {key for key in stuck if not self._lanes.failed_again(key, revision)}
