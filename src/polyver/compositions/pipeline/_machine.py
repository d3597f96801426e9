"""The pipeline as a state machine: its state in, the next effect out.

The caller performs the effect, and passes the result back with the effect's number. A repeated
result changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from polyver.compositions.decisions import ResolvedStep
from polyver.compositions.messages import (
    Capability,
    Condition,
    Request,
    RequestMeta,
    Requirements,
    Response,
    Result,
    Severity,
    Status,
)
from polyver.compositions.pipeline._run import (
    REASON,
    FoundRequirements,
    PipelineEvent,
    PipelineFailure,
    PipelineRun,
    awaited_by,
)
from polyver.kube.objects import digest
from polyver.kube.objects.conditions import ConditionStatus, DesiredCondition

__all__ = [
    "MOST_ROUNDS",
    "SYSTEM",
    "CallStep",
    "Done",
    "Effect",
    "Fetch",
    "answered",
    "decide",
    "failed",
    "fetched",
]

MOST_ROUNDS: Final = 5
"""Number of times that a function may change its requirements before the run fails."""
SYSTEM: Final = frozenset({"Ready", "Synced", "Healthy", "Updated"})
"""Conditions that functions must not set."""
_CAPABILITIES = tuple(each for each in Capability if each is not Capability.UNSPECIFIED)
_TRUTH: dict[Status, ConditionStatus] = {Status.TRUE: "True", Status.FALSE: "False"}


@dataclass(frozen=True, slots=True)
class CallStep:
    """Call the revision of a step."""

    number: int
    step: ResolvedStep
    request: Request


@dataclass(frozen=True, slots=True)
class Fetch:
    """Look up the resources that a function requires; a missing one gives an empty result."""

    number: int
    step: ResolvedStep
    requirements: Requirements


@dataclass(frozen=True, slots=True)
class Done:
    """The run is over, successful or failed."""


Effect = CallStep | Fetch | Done


def decide(run: PipelineRun) -> Effect:
    """Return the next effect of a run."""
    if run.is_over:
        return Done()
    step = run.steps[run.place]
    if run.awaited is not None:
        return Fetch(run.number, step, run.awaited)
    return CallStep(run.number, step, _request(run, step))


def _request(run: PipelineRun, step: ResolvedStep) -> Request:
    request = Request(
        observed=run.observed,
        desired=run.desired,
        input=None if step.input is None else dict(step.input),
        context=run.context,
        extra_resources=run.found.extra_resources,
        credentials=run.credentials.get(step.name, {}),
        required_resources={**run.given.resources, **run.found.resources},
        required_schemas=run.found.schemas,
    )
    tag = digest(request).removeprefix("sha256:")
    return replace(request, meta=RequestMeta(tag, _CAPABILITIES))


def fetched(run: PipelineRun, number: int, found: FoundRequirements) -> PipelineRun:
    """Record the required resources that were found."""
    if run.is_over or number != run.number or run.awaited is None:
        return run
    first = run.rounds == 0
    return replace(
        run,
        number=run.number + 1,
        awaited=None,
        given=found if first else run.given,
        found=run.found if first else found,
    )


def failed(run: PipelineRun, number: int, reason: str, message: str) -> PipelineRun:
    """Record that a call or a lookup failed; `reason` is one word."""
    if run.is_over or number != run.number:
        return run
    step = run.steps[run.place]
    told = f'pipeline step "{step.name}" ({step.revision}): {message}'
    return replace(run, number=run.number + 1, failure=PipelineFailure(reason, told))


def answered(run: PipelineRun, number: int, response: Response) -> PipelineRun:
    """Record the response of the current step's function."""
    if run.is_over or number != run.number or run.awaited is not None:
        return run
    fatal = next((each for each in response.results if each.severity is Severity.FATAL), None)
    if fatal is not None:
        told = failed(run, number, "FatalResult", f"fatal: {fatal.message}")
        before = response.results[: response.results.index(fatal)]
        return _telling(told, response, before)
    if response.requirements == run.asked:
        return _finished(run, response)
    if run.rounds == MOST_ROUNDS:
        message = f"its requirements did not stabilize after {MOST_ROUNDS + 1} calls"
        return failed(run, number, "UnstableRequirements", message)
    return replace(
        run,
        number=run.number + 1,
        rounds=run.rounds + 1,
        asked=response.requirements,
        awaited=response.requirements,
        context=response.context,
    )


def _finished(run: PipelineRun, response: Response) -> PipelineRun:
    told = _telling(run, response, response.results)
    ttls = [ttl for ttl in (run.ttl, response.meta.ttl) if ttl]
    following = run.place + 1
    return replace(
        told,
        number=run.number + 1,
        place=following,
        rounds=0,
        asked=Requirements(),
        awaited=awaited_by(run.steps, following),
        given=FoundRequirements(),
        found=FoundRequirements(),
        desired=response.desired,
        context=response.context,
        ttl=min(ttls) if ttls else None,
    )


def _telling(run: PipelineRun, response: Response, results: tuple[Result, ...]) -> PipelineRun:
    """Return the run with the events and conditions of a response added."""
    step = run.steps[run.place]
    ours = [each for each in response.conditions if each.type not in SYSTEM]
    others = [each.type for each in response.conditions if each.type in SYSTEM]
    events = [_event(step, result) for result in results]
    events += [_taken(step, kind) for kind in others]
    return replace(
        run,
        events=(*run.events, *events),
        conditions=(*run.conditions, *(_fact(each) for each in ours)),
    )


def _event(step: ResolvedStep, result: Result) -> PipelineEvent:
    about, reason = f'pipeline step "{step.name}"', result.reason or REASON
    if result.severity is Severity.NORMAL:
        return PipelineEvent("Normal", reason, f"{about}: {result.message}")
    if result.severity is Severity.WARNING:
        return PipelineEvent("Warning", reason, f"{about}: {result.message}")
    message = f"{about} (a result of unknown severity): {result.message}"
    return PipelineEvent("Warning", reason, message)


def _taken(step: ResolvedStep, kind: str) -> PipelineEvent:
    message = f'pipeline step "{step.name}": functions cannot set the condition {kind}'
    return PipelineEvent("Warning", REASON, message)


def _fact(condition: Condition) -> DesiredCondition:
    truth = _TRUTH.get(condition.status, "Unknown")
    return DesiredCondition(condition.type, truth, condition.reason, condition.message or "")
