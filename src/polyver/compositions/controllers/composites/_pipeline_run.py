"""Runs pipelines: the loop over the steps, the calls of functions, and the masking of Secrets.

A function that does not answer delays only the composite resources whose pipelines call it.

`drive` gets the callables that call a function and look up required resources as arguments. So the
controller and `polyver render`, which has no API server, share this code.

Functions get credentials and connection details, and may quote them in a result, a condition or an
error. An API server may also quote them in an error. Therefore the messages that a composite
resource reports are masked. Status fields that functions set are not masked, because they are
desired content and not messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from polyver.capability import Refusal
from polyver.client import Backoff, Clock
from polyver.compositions.calls import Caller, CallFailure, FunctionFailed
from polyver.compositions.calls.history import CallHistory
from polyver.compositions.controllers.composites._concurrency import ConcurrencyLimits, LostCall
from polyver.compositions.controllers.composites._known_composites import CompositeKey
from polyver.compositions.messages import Request, Requirements, Resource, Response, Severity
from polyver.compositions.pipeline import (
    CallStep,
    Done,
    Fetch,
    FoundRequirements,
    PipelineOutcome,
    PipelineRun,
    ResolvedStep,
    answered,
    decide,
    failed,
    fetched,
)
from polyver.compositions.runtimes import FunctionReach
from polyver.core import PolyverError
from polyver.kube.objects.masking import Masks
from polyver.kube.objects.status import ApiError

__all__ = [
    "Ask",
    "CompositeLimits",
    "Look",
    "PipelineCalls",
    "RevisionCaller",
    "drive",
    "hide_found",
    "hide_run",
    "masked_error",
    "masked_outcome",
]


@dataclass(frozen=True, slots=True)
class CompositeLimits:
    """Limits of the composition of composite resources; times are in seconds."""

    seconds: float = 10.0
    """Timeout of one call of a function."""
    workers: int = 64
    """Number of composite resources that are reconciled concurrently."""
    lane: int = 16
    """Maximum number of composite resources that call the same function revision concurrently."""
    resync: float = 600.0
    """Interval after which a composite resource is reconciled even if nothing has changed."""
    shortest: float = 1.0
    """Lower bound for the time to live that a function sets in its response."""
    quiet: float = 15.0
    """Seconds for which a missing answer of a function is not reported. The function may be
    starting.
    """
    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, most=60.0))
    """Back-off of failed reconciles."""
    quarantine: Backoff = field(default_factory=lambda: Backoff(first=60.0, most=1800.0))
    """Back-off for a composite resource whose input makes a function exit or hang."""


@dataclass(slots=True)
class PipelineCalls:
    """Makes the calls of one run, and records which function revisions answered."""

    calling: RevisionCaller
    clock: Clock
    key: CompositeKey
    input_of: Callable[[], str]
    """Returns a digest of all inputs of the run."""
    answered: set[str] = field(default_factory=set)
    """Function revisions that answered. A response with an error is an answer too."""
    silent: str = ""
    """The function revision that did not answer; empty if there is none."""
    lost: LostCall | None = None
    """The call without an answer, if the function may have received the request."""

    async def ask(self, step: ResolvedStep, request: Request) -> Response:
        started = self.clock.time()
        try:
            response = await self.calling.call(step, request, self.key)
        except FunctionFailed as error:
            self._observe(step, started, failed=True)
            if error.failure.passes:
                self.silent = step.revision
            if error.sent:
                hung = error.failure is CallFailure.DEADLINE
                self.lost = LostCall(self.input_of(), hung=hung)
            raise
        self.answered.add(step.revision)
        fatal = any(each.severity is Severity.FATAL for each in response.results)
        self._observe(step, started, failed=fatal)
        return response

    def _observe(self, step: ResolvedStep, started: float, *, failed: bool) -> None:
        seconds = self.clock.time() - started
        self.calling.history.observe(step.revision, seconds, failed=failed)


class RevisionCaller:
    """Calls function revisions, and records the keys that wait until a revision answers."""

    def __init__(
        self,
        runtime: FunctionReach,
        wake: Callable[[CompositeKey], None],
        clock: Clock,
        limits: CompositeLimits,
        caller: Caller,
    ) -> None:
        self.caller = caller
        self.history = CallHistory(clock)
        self._runtime = runtime
        self._wake = wake
        self._seconds = limits.seconds
        self._lanes = ConcurrencyLimits(
            wake, clock, width=limits.lane, quarantine=limits.quarantine
        )
        self._stuck: dict[str, set[CompositeKey]] = {}
        """By function revision that could not be called: the keys that wait until it answers."""
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
        # Do not send the request of a suspect a second time: its input could make the function exit
        # again.
        resend = not self._lanes.is_suspect(key, step.revision)
        return await self.caller.call(endpoint, request, within=self._seconds, resend=resend)

    def quarantined(
        self, key: CompositeKey, revisions: Iterable[str], input_of: Callable[[], str]
    ) -> tuple[str, float]:
        """Return the revision that must not be called for a key now, and for how many seconds.

        Return "" and 0 if all revisions may be called.
        """
        return self._lanes.quarantined(key, revisions, input_of)

    async def enter(self, key: CompositeKey, revisions: Iterable[str]) -> bool:
        """Report whether a run may begin now.

        If it may not, the key is woken when the run may begin.
        """
        return await self._lanes.enter(key, revisions)

    def leave(self, key: CompositeKey, revisions: Iterable[str], asking: PipelineCalls) -> None:
        """Record the end of a run.

        Wake the keys that wait for a revision that answered in this run.
        """
        silent, lost = asking.silent, asking.lost
        self._lanes.leave(key, revisions, answered=asking.answered, silent=silent, lost=lost)
        # The key no longer waits for these revisions. It may have waited for them because of a
        # combination to which it could not move.
        self._free(key, revisions)
        if silent and not self.quarantined(key, [silent], asking.input_of)[0]:
            self.stick(key, silent)
        for name in asking.answered - {asking.silent}:
            # The keys that waited for this function revision may be reconciled again.
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
        """Remove the data about a function revision that no longer exists."""
        self._stuck.pop(revision, None)
        self._lanes.drop(revision)
        self.history.forget(revision)

    def _free(self, key: CompositeKey, revisions: Iterable[str]) -> None:
        for name in revisions:
            waiting = self._stuck.get(name)
            if waiting is not None:
                waiting.discard(key)
                if not waiting:
                    del self._stuck[name]

    def served(self, revision: str, endpoint: str) -> set[CompositeKey]:
        """Record the endpoint of a function revision. Return the keys to reconcile.

        `endpoint` is empty if the revision is not served. A key that has lost several calls in a
        row is not returned: its input might make the function exit again before other keys get an
        answer. Such a key waits until the function has answered another key, or until its back-off
        ends.
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


Ask = Callable[[ResolvedStep, Request], Awaitable[Response]]
"""Calls the function revision of a step. Raises FunctionFailed if the call fails."""
Look = Callable[[Requirements], Awaitable[FoundRequirements]]
"""Looks up the resources that a function requires. Raises Refusal if the lookup fails."""


async def drive(run: PipelineRun, ask: Ask, look: Look) -> PipelineRun:
    """Run a pipeline to its end. Return the final state, which is successful or failed."""
    while True:
        effect = decide(run)
        match effect:
            case Done():
                return run
            case CallStep():
                try:
                    response = await ask(effect.step, effect.request)
                    run = answered(run, effect.number, response)
                except FunctionFailed as error:
                    run = failed(run, effect.number, error.failure, str(error))
            case Fetch():
                try:
                    run = fetched(run, effect.number, await look(effect.requirements))
                except Refusal as refusal:
                    run = failed(run, effect.number, refusal.reason, str(refusal))


def hide_run(masks: Masks, run: PipelineRun) -> None:
    """Add the credentials, connection details and Secrets of a run to the values to mask."""
    for step in run.credentials.values():
        for data in step.values():
            _hide_data(masks, data)
    for state in (run.observed, run.desired):
        _hide(masks, [state.composite, *state.resources.values()])


def hide_found(masks: Masks, found: FoundRequirements) -> None:
    """Add the values of Secrets among the required resources to the values to mask."""
    for given in (found.resources, found.extra_resources):
        for each in given.values():
            _hide(masks, each)


def _hide(masks: Masks, resources: Iterable[Resource]) -> None:
    for each in resources:
        _hide_data(masks, each.connection_details)
        obj: Mapping[str, Any] = each.resource or {}
        if (obj.get("apiVersion"), obj.get("kind")) == ("v1", "Secret"):
            masks.add_secret(obj)


def _hide_data(masks: Masks, data: Mapping[str, bytes]) -> None:
    for content in data.values():
        masks.add_bytes(content)


def masked_outcome(outcome: PipelineOutcome, masks: Masks) -> PipelineOutcome:
    """Return the outcome, with the values of Secrets masked in all messages."""
    if not masks:
        return outcome
    failure = outcome.failure
    return replace(
        outcome,
        events=tuple(replace(each, message=masks.mask(each.message)) for each in outcome.events),
        conditions=tuple(
            each._replace(message=masks.mask(each.message)) for each in outcome.conditions
        ),
        failure=failure and replace(failure, message=masks.mask(failure.message)),
    )


def masked_error(error: ApiError, masks: Masks) -> ApiError:
    """Return the error of an API server, with the values of Secrets masked in its message."""
    return ApiError(error.code, error.reason, masks.mask(error.message), headers=error.headers)
