"""The pipeline as a state machine: how far it is, in; what to do next, out.

Whoever does it gives the result back with the effect's number. A result that was given already
changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from polyver.compositions._conditions import Fact, Truth
from polyver.compositions.decisions import Step
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
from polyver.compositions.pipeline._run import REASON, Event, Failure, Found, Run, awaited_by
from polyver.kube.objects import digest

__all__ = [
    "MOST_ROUNDS",
    "SYSTEM",
    "Call",
    "Done",
    "Effect",
    "Fetch",
    "answered",
    "decide",
    "failed",
    "fetched",
]

MOST_ROUNDS: Final = 5
"""How often a function may ask for more before it is called no more."""
SYSTEM: Final = frozenset({"Ready", "Synced", "Healthy", "Updated"})
"""The conditions that are not for functions."""
_CAPABILITIES = tuple(each for each in Capability if each is not Capability.UNSPECIFIED)
_TRUTH: dict[Status, Truth] = {Status.TRUE: "True", Status.FALSE: "False"}


@dataclass(frozen=True, slots=True)
class Call:
    """Call the revision of a step."""

    number: int
    step: Step
    request: Request


@dataclass(frozen=True, slots=True)
class Fetch:
    """Look for what a function needs to see; what is not there is found empty."""

    number: int
    step: Step
    requirements: Requirements


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to call: all went well, or something failed."""


Effect = Call | Fetch | Done


def decide(run: Run) -> Effect:
    """What to do next."""
    if run.is_over:
        return Done()
    step = run.steps[run.place]
    if run.awaited is not None:
        return Fetch(run.number, step, run.awaited)
    return Call(run.number, step, _request(run, step))


def _request(run: Run, step: Step) -> Request:
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


def fetched(run: Run, number: int, found: Found) -> Run:
    """What was looked for is there, as far as it exists."""
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


def failed(run: Run, number: int, reason: str, message: str) -> Run:
    """A call or a look came to nothing; `reason` is one word."""
    if run.is_over or number != run.number:
        return run
    step = run.steps[run.place]
    told = f'pipeline step "{step.name}" ({step.revision}): {message}'
    return replace(run, number=run.number + 1, failure=Failure(reason, told))


def answered(run: Run, number: int, response: Response) -> Run:
    """The function of the step that is due has answered."""
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
        message = f"its requirements are others each time it is called, {MOST_ROUNDS + 1} times now"
        return failed(run, number, "UnstableRequirements", message)
    return replace(
        run,
        number=run.number + 1,
        rounds=run.rounds + 1,
        asked=response.requirements,
        awaited=response.requirements,
        context=response.context,
    )


def _finished(run: Run, response: Response) -> Run:
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
        given=Found(),
        found=Found(),
        desired=response.desired,
        context=response.context,
        ttl=min(ttls) if ttls else None,
    )


def _telling(run: Run, response: Response, results: tuple[Result, ...]) -> Run:
    """A run with what a function has to tell."""
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


def _event(step: Step, result: Result) -> Event:
    about, reason = f'pipeline step "{step.name}"', result.reason or REASON
    if result.severity is Severity.NORMAL:
        return Event("Normal", reason, f"{about}: {result.message}")
    if result.severity is Severity.WARNING:
        return Event("Warning", reason, f"{about}: {result.message}")
    message = f"{about} (a result of unknown severity): {result.message}"
    return Event("Warning", reason, message)


def _taken(step: Step, kind: str) -> Event:
    message = f'pipeline step "{step.name}": the condition {kind} is not for functions'
    return Event("Warning", REASON, message)


def _fact(condition: Condition) -> Fact:
    truth = _TRUTH.get(condition.status, "Unknown")
    return Fact(condition.type, truth, condition.reason, condition.message or "")
