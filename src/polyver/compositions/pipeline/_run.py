"""A run of a pipeline: what it started from, how far it is, and what has come of it so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from polyver.capability import Refusal
from polyver.compositions.decisions import ResolvedStep, Secret
from polyver.compositions.messages import Requirements, Resource, State
from polyver.kube.objects.conditions import DesiredCondition

__all__ = [
    "REASON",
    "FoundRequirements",
    "PipelineEvent",
    "PipelineFailure",
    "PipelineRun",
    "awaited_by",
    "secrets_of",
    "start",
]

Data = Mapping[str, bytes]
REASON: Final = "ComposeResources"
"""Of events whose function gives none."""


@dataclass(frozen=True, slots=True)
class PipelineEvent:
    """Something to tell whoever looks at the composite resource."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PipelineFailure:
    """Why nothing was composed; `reason` is one word for conditions."""

    reason: str
    message: str

    @classmethod
    def of(cls, refusal: Refusal) -> PipelineFailure:
        return cls(refusal.reason, str(refusal))


@dataclass(frozen=True, slots=True)
class FoundRequirements:
    """What was found for the requirements of a function; what does not exist is empty."""

    resources: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    extra_resources: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    schemas: Mapping[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """How far a pipeline is. The steps were resolved when it started, and stay what they are."""

    observed: State
    steps: tuple[ResolvedStep, ...]
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
    given: FoundRequirements = field(default_factory=FoundRequirements)
    """What it gets to see because its step says so."""
    found: FoundRequirements = field(default_factory=FoundRequirements)
    """What it gets to see because it asked."""
    desired: State = field(default_factory=State)
    context: dict[str, Any] | None = field(default_factory=dict)
    events: tuple[PipelineEvent, ...] = ()
    conditions: tuple[DesiredCondition, ...] = ()
    ttl: float | None = None
    """For how many seconds the result holds, if a function says so."""
    failure: PipelineFailure | None = None

    @property
    def is_over(self) -> bool:
        return self.failure is not None or self.place == len(self.steps)


def secrets_of(steps: Iterable[ResolvedStep]) -> set[Secret]:
    """The secrets that have to be read before a pipeline starts."""
    return {secret for step in steps for secret in step.credentials.values()}


def start(
    observed: State, steps: tuple[ResolvedStep, ...], secrets: Mapping[Secret, Data] | None = None
) -> PipelineRun:
    """A run that nothing has happened in; Refusal if a secret is not there."""
    known = secrets or {}
    credentials = {step.name: _credentials(step, known) for step in steps if step.credentials}
    told = [PipelineEvent("Warning", REASON, each) for step in steps for each in step.warnings]
    return PipelineRun(
        observed, steps, credentials, awaited=awaited_by(steps, 0), events=tuple(told)
    )


def _credentials(step: ResolvedStep, known: Mapping[Secret, Data]) -> dict[str, Data]:
    for name, secret in step.credentials.items():
        if secret not in known:
            fact = f'there is no secret {secret}, the credentials "{name}" of step "{step.name}"'
            raise Refusal("CredentialsNotFound", fact)
    return {name: known[secret] for name, secret in step.credentials.items()}


def awaited_by(steps: tuple[ResolvedStep, ...], place: int) -> Requirements | None:
    """What a step is to be given from the start."""
    if place == len(steps) or not steps[place].requirements:
        return None
    return Requirements(resources=steps[place].requirements)
