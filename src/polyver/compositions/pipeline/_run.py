"""A run of a pipeline: what it started from, how far it is, and what has come of it so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from polyver.capability import Refusal
from polyver.compositions._conditions import Fact
from polyver.compositions.decisions import Secret, Step
from polyver.compositions.messages import Requirements, Resource, State

__all__ = ["REASON", "Event", "Failure", "Found", "Run", "awaited_by", "secrets_of", "start"]

Data = Mapping[str, bytes]
REASON: Final = "ComposeResources"
"""Of events whose function gives none."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell whoever looks at the composite resource."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why nothing was composed; `reason` is one word for conditions."""

    reason: str
    message: str

    @classmethod
    def of(cls, refusal: Refusal) -> Failure:
        return cls(refusal.reason, str(refusal))


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for the requirements of a function; what does not exist is empty."""

    resources: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    extra_resources: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    schemas: Mapping[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """How far a pipeline is. The steps were resolved when it started, and stay what they are."""

    observed: State
    steps: tuple[Step, ...]
    credentials: Mapping[str, Mapping[str, Data]] = field(default_factory=dict)
    """By step, and by the name that the step gives them."""
    place: int = 0
    """Of the step that is due; after the last one if all are done."""
    number: int = 0
    """How many results have come; each effect is for the next one."""
    rounds: int = 0
    """How often the function that is due has asked for more."""
    asked: Requirements = field(default_factory=Requirements)
    """What it asked for last."""
    awaited: Requirements | None = None
    """What is to be fetched before it is called."""
    given: Found = field(default_factory=Found)
    """What it gets to see because its step says so."""
    found: Found = field(default_factory=Found)
    """What it gets to see because it asked."""
    desired: State = field(default_factory=State)
    context: dict[str, Any] | None = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    conditions: tuple[Fact, ...] = ()
    ttl: float | None = None
    """For how many seconds the result holds, if a function says so."""
    failure: Failure | None = None

    @property
    def is_over(self) -> bool:
        return self.failure is not None or self.place == len(self.steps)


def secrets_of(steps: Iterable[Step]) -> set[Secret]:
    """The secrets that have to be read before a pipeline starts."""
    return {secret for step in steps for secret in step.credentials.values()}


def start(
    observed: State, steps: tuple[Step, ...], secrets: Mapping[Secret, Data] | None = None
) -> Run:
    """A run that nothing has happened in; Refusal if a secret is not there."""
    known = secrets or {}
    credentials = {step.name: _credentials(step, known) for step in steps if step.credentials}
    told = [Event("Warning", REASON, each) for step in steps for each in step.warnings]
    return Run(observed, steps, credentials, awaited=awaited_by(steps, 0), events=tuple(told))


def _credentials(step: Step, known: Mapping[Secret, Data]) -> dict[str, Data]:
    for name, secret in step.credentials.items():
        if secret not in known:
            fact = f'there is no secret {secret}, the credentials "{name}" of step "{step.name}"'
            raise Refusal("CredentialsNotFound", fact)
    return {name: known[secret] for name, secret in step.credentials.items()}


def awaited_by(steps: tuple[Step, ...], place: int) -> Requirements | None:
    """What a step is to be given from the start."""
    if place == len(steps) or not steps[place].requirements:
        return None
    return Requirements(resources=steps[place].requirements)
