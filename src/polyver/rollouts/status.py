"""Converts the progress of a rollout to the status of the Rollout, and reads it from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final

from polyver.core.plain import Object, ReadOnlyObject
from polyver.core.rollout import (
    CheckResult,
    CohortCounts,
    Exposure,
    RolloutPlan,
    RolloutProgress,
    RolloutState,
)
from polyver.kube.objects.conditions import DesiredCondition, set_conditions
from polyver.rollouts.notices import pending_notices

__all__ = [
    "RolloutObservation",
    "checks_in",
    "counts_in",
    "dependents_data",
    "progress_in",
    "rollout_status",
]

_LONGEST_HISTORY: Final = 100


@dataclass(frozen=True, slots=True)
class RolloutObservation:
    """The part of the status that does not come from the plan, such as counts and check results."""

    counts: CohortCounts
    checks: Sequence[CheckResult]
    rules: ReadOnlyObject
    """The rules of the policy, or of the rollout itself, as they were when the rollout started."""
    steps: int
    preflight: ReadOnlyObject | None


def progress_in(status: ReadOnlyObject) -> RolloutProgress:
    """Read the progress of a rollout from its status.

    If the status has no state, return the progress of a new rollout.
    """
    memory: Mapping[str, Any] = status.get("memory") or {}
    if not status.get("state"):
        return RolloutProgress()
    return RolloutProgress(
        RolloutState(status["state"]),
        memory.get("step", 0),
        status.get("reason") or "",
        memory.get("startedAt", 0.0),
        memory.get("passedAt"),
        memory.get("failure") or "",
        tuple(memory.get("thresholds") or ()),
        memory.get("seenAt", 0.0),
        memory.get("approvedBefore", -1),
        memory.get("beganAt", 0.0),
        memory.get("observed", 0),
    )


def checks_in(status: ReadOnlyObject) -> list[CheckResult]:
    """Read the results of the checks from the status of a rollout."""
    return [
        CheckResult(each["name"], each["result"], each.get("message") or "")
        for each in status.get("checks") or ()
    ]


def _memory(progress: RolloutProgress) -> dict[str, Any]:
    found = {
        "step": progress.step,
        "startedAt": progress.started_at,
        "passedAt": progress.passed_at,
        "failure": progress.failure,
        "thresholds": [*progress.thresholds],
        "seenAt": progress.seen_at,
        "approvedBefore": progress.approved_before if progress.failure else None,
        "beganAt": progress.began_at or None,
        "observed": progress.observed or None,
    }
    return {name: value for name, value in found.items() if value not in (None, "", [])}


def rollout_status(
    obj: ReadOnlyObject, plan: RolloutPlan, observed: RolloutObservation, *, now: datetime
) -> Object:
    """Return the complete status of a rollout after a decision."""
    before: ReadOnlyObject = obj.get("status") or {}
    progress, counts = plan.progress, observed.counts
    state = progress.state.value
    time = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status: Object = {
        "state": state,
        "step": f"{progress.step}/{observed.steps}",
        "progress": f"{counts.healthy}/{counts.cohort}",
        "dependents": dependents_data(counts),
        "policy": dict(observed.rules),
        "exposure": _exposure(plan.exposure),
        "memory": _memory(progress),
        "history": _history(before, progress, time),
        "conditions": set_conditions(obj, [_condition(progress)], now=time),
    }
    if progress.reason:
        status["reason"] = progress.reason
    moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    earlier = progress_in(before)
    if notices := pending_notices(before, earlier, progress, observed.rules, time=moment):
        status["notifications"] = notices
    if observed.preflight is not None:
        status["preflight"] = dict(observed.preflight)
    if observed.checks:
        status["checks"] = [
            {"name": each.name, "result": each.verdict, "message": each.message}
            for each in observed.checks
        ]
    return status


def counts_in(status: ReadOnlyObject) -> CohortCounts:
    """Read the numbers of followers from the status of a rollout."""
    known: ReadOnlyObject = status.get("dependents") or {}
    return CohortCounts(**{each.name: known.get(each.name, 0) for each in fields(CohortCounts)})


def dependents_data(counts: CohortCounts) -> dict[str, int]:
    """Convert the numbers of followers to the field `dependents` of the status."""
    found = asdict(counts)
    for name in ("idle", "running"):  # only for followers that somebody has to run
        if not found[name]:
            del found[name]
    return found


def _exposure(exposure: Exposure) -> dict[str, Any]:
    found: dict[str, Any] = {"share": exposure.share}
    return found | ({"labels": [*map(dict, exposure.labels)]} if exposure.labels else {})


def _history(before: ReadOnlyObject, progress: RolloutProgress, now: str) -> list[Any]:
    """Return the history, with a new entry at its end if the state or the step has changed."""
    known = [*(before.get("history") or ())]
    entry = {"time": now, "state": progress.state.value, "step": progress.step}
    last = known[-1] if known else {}
    if all(last.get(name) == entry[name] for name in ("state", "step")):
        return known
    if progress.reason:
        entry["message"] = progress.reason
    # The beginning is kept: it shows how the rollout was started.
    return [*known[:1], *known[1:][-(_LONGEST_HISTORY - 2) :], entry]


def _condition(progress: RolloutProgress) -> DesiredCondition:
    state = progress.state
    message = progress.reason or f"step {progress.step} is in progress"
    done = state is RolloutState.COMPLETED
    return DesiredCondition("Completed", "True" if done else "False", state.value, message)
