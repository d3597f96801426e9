"""Runs pipelines: the loop of their steps, the calls of functions, and the masking of secrets.

A function that does not answer delays only its users.

The caller of `drive` passes in the functions that call and look up, so that the controller and
`polyver render`, which has only files, share this code.

Functions get credentials and connection details, and may quote them in a result, a condition or an
error; an API server may quote them in a refusal. So the messages that a composite resource reports
are masked. Status fields that functions compose are not masked: they are desired content, not
messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from polyver.capability import Refusal
from polyver.client import Backoff, Clock
from polyver.compositions.calls import Caller, CallFailure, FunctionFailed
from polyver.compositions.controllers.composites._concurrency import ConcurrencyLimits, LostCall
from polyver.compositions.controllers.composites._known_composites import CompositeKey
from polyver.compositions.messages import Request, Requirements, Resource, Response
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
from polyver.compositions.runtimes import Runtime
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


Ask = Callable[[ResolvedStep, Request], Awaitable[Response]]
"""Calls the revision of a step; raises FunctionFailed if the call fails."""
Look = Callable[[Requirements], Awaitable[FoundRequirements]]
"""Looks up the resources that a function requires; raises Refusal if that is impossible."""


async def drive(run: PipelineRun, ask: Ask, look: Look) -> PipelineRun:
    """Return the run after its end, successful or failed."""
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
    """Mask the credentials, connection details and Secrets of a run from now on."""
    for step in run.credentials.values():
        for data in step.values():
            _hide_data(masks, data)
    for state in (run.observed, run.desired):
        _hide(masks, [state.composite, *state.resources.values()])


def hide_found(masks: Masks, found: FoundRequirements) -> None:
    """Mask the Secrets among the resources that a function required."""
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
    """Return an outcome whose messages show no secret."""
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
    """Return a refusal whose message shows no secret, for the log."""
    return ApiError(error.code, error.reason, masks.mask(error.message), headers=error.headers)
