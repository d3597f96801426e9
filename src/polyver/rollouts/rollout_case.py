"""One Rollout with everything that a decision about it needs, and what follows from a decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from polyver.capability.gates import ReleaseObject
from polyver.capability.rollouts import RolloutTargets
from polyver.core import Gate, PolyverError, listed
from polyver.core.plain import Object, ReadOnlyObject
from polyver.core.rollout import Rollout, RolloutPlan, RolloutProgress, RolloutState
from polyver.rollouts.description import addition_text
from polyver.rollouts.known import KnownRollout, RolloutKey
from polyver.rollouts.names import RolloutRequest
from polyver.rollouts.rules import RolloutRules
from polyver.rollouts.status import RolloutObservation

__all__ = ["RolloutCase", "event_message", "gate_after", "problem_message", "superseded_by"]


@dataclass(frozen=True, slots=True)
class RolloutCase:
    """One Rollout with everything that a decision about it needs."""

    key: RolloutKey
    obj: Object
    request: RolloutRequest
    progress: RolloutProgress
    targets: RolloutTargets
    releases: Sequence[ReleaseObject]
    rules: RolloutRules
    data: Object
    """The same rules as in `rules`, as a dictionary with the fields of the spec."""
    now: float
    """The current time in seconds, for durations. Changes of the machine's clock do not affect it.
    """
    moment: datetime
    """The current date and time, for windows and for entries of the history."""

    @property
    def rollout(self) -> Rollout:
        rules, request = self.rules, self.request
        asked = request.paused, request.aborted, request.approved_step
        return Rollout(rules.steps, rules.limits, rules.on_failure, *asked)


def superseded_by(case: RolloutCase, others: Iterable[KnownRollout]) -> str:
    """Return the name of a newer release in the same series that replaces this one, or "".

    A newer release replaces this one if all followers may use it, or if its rollout has passed
    its preflight. `others` are the other active rollouts of the lineage.
    """
    mine = next(each for each in case.releases if each.name == case.request.to)
    passed = [known.request for known in others if known.has_passed_preflight]
    starting = {request.to for request in passed if request is not None}
    for newer in case.releases:
        is_newer = newer.order > mine.order and newer.series == mine.series
        is_open = newer.gate is None and newer.is_marked and newer.is_published
        if is_newer and (is_open or newer.name in starting):
            return newer.name
    return ""


def gate_after(name: str, plan: RolloutPlan) -> Gate | None:
    """Return the gate of a release after a decision; None if all followers may use the release.

    `name` is the name of the rollout.
    """
    if plan.progress.state is RolloutState.COMPLETED:
        return None
    exposure = plan.exposure
    return Gate(name, plan.progress.step, exposure.share, exposure.labels, exposure.returns)


def event_message(
    case: RolloutCase, progress: RolloutProgress, observed: RolloutObservation
) -> str:
    """Return the message of the Event that polyver emits when the state or the step has changed."""
    to, counts = case.request.to, observed.counts
    if progress.state is RolloutState.PREFLIGHT:
        return f"tries {to} for the followers of {case.request.lineage}; nothing changes yet"
    if progress.state is not RolloutState.PROGRESSING:
        return progress.reason or progress.state.value
    added = addition_text(case.data["steps"][progress.step - 1])
    step, cohort = f"step {progress.step} of {observed.steps}", f"{counts.cohort} of {counts.total}"
    return f"{step} has started ({added}): {cohort} followers may use {to}"


def problem_message(
    request: RolloutRequest,
    rules: ReadOnlyObject | None,
    problems: Sequence[PolyverError],
    releases: Sequence[ReleaseObject],
    *,
    is_enabled: bool,
) -> str:
    """Return the reason why a rollout cannot start.

    `rules` is None if its policy does not exist. `is_enabled` is False if the capability of its
    target is not enabled.
    """
    if rules is None:
        return f"there is no RolloutPolicy {request.policy} (spec.policyRef)"
    if problems:
        return "; ".join(map(str, problems))
    if not is_enabled:
        return f"rollouts of {request.lineage.kind} are not enabled here (spec.target.kind)"
    known = listed([each.name for each in releases]) if releases else "none"
    return f"{request.lineage} has no release {request.to} (spec.to); known: {known}"
