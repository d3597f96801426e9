"""The state of a run of a pipeline."""

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
"""Reason of events whose function gives none."""


@dataclass(frozen=True, slots=True)
class PipelineEvent:
    """An event about the composite resource."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PipelineFailure:
    """Reason why nothing was composed; `reason` is one word for conditions."""

    reason: str
    message: str

    @classmethod
    def of(cls, refusal: Refusal) -> PipelineFailure:
        return cls(refusal.reason, str(refusal))


@dataclass(frozen=True, slots=True)
class FoundRequirements:
    """Results for the requirements of a function; empty for objects that do not exist."""

    resources: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    extra_resources: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    schemas: Mapping[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """The state of a run. The steps are resolved when it starts, and do not change."""

    observed: State
    steps: tuple[ResolvedStep, ...]
    credentials: Mapping[str, Mapping[str, Data]] = field(default_factory=dict)
    """Credentials by step, and by their names in the step."""
    place: int = 0
    """Index of the current step; the number of steps if all are done."""
    number: int = 0
    """Number of results so far; the next effect gets this number."""
    rounds: int = 0
    """Number of times that the current function changed its requirements."""
    asked: Requirements = field(default_factory=Requirements)
    """Last requirements of the current function."""
    awaited: Requirements | None = None
    """Requirements to fetch before the current function is called."""
    given: FoundRequirements = field(default_factory=FoundRequirements)
    """Resources that the composition requires for the current step."""
    found: FoundRequirements = field(default_factory=FoundRequirements)
    """Resources that the current function required in its response."""
    desired: State = field(default_factory=State)
    context: dict[str, Any] | None = field(default_factory=dict)
    events: tuple[PipelineEvent, ...] = ()
    conditions: tuple[DesiredCondition, ...] = ()
    ttl: float | None = None
    """Seconds for which the result is valid, if a function limits it."""
    failure: PipelineFailure | None = None

    @property
    def is_over(self) -> bool:
        return self.failure is not None or self.place == len(self.steps)


def secrets_of(steps: Iterable[ResolvedStep]) -> set[Secret]:
    """Return the secrets to read before a pipeline starts."""
    return {secret for step in steps for secret in step.credentials.values()}


def start(
    observed: State, steps: tuple[ResolvedStep, ...], secrets: Mapping[Secret, Data] | None = None
) -> PipelineRun:
    """Return a new run; raise Refusal if a secret is missing."""
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
    """Return the requirements that the composition has for a step, or None."""
    if place == len(steps) or not steps[place].requirements:
        return None
    return Requirements(resources=steps[place].requirements)
