"""The status of functions and their revisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polyver.capability import Refusal
from polyver.compositions.packages._plan import FunctionPlan
from polyver.core.plain import ReadOnlyObject
from polyver.kube.objects.conditions import DesiredCondition, find_condition, set_conditions

__all__ = [
    "UNPACKING",
    "FunctionPackageState",
    "function_status",
    "revision_status",
]

UNPACKING: Final = "UnpackingPackage"
"""Reason of `Installed` while the content of the package is unknown."""


@dataclass(frozen=True, slots=True)
class FunctionPackageState:
    """The state of a function's package and its current revision."""

    problem: str = ""
    """Reason why the content is unavailable, as a sentence."""
    reason: str = UNPACKING
    """The reason as one word."""
    asking: bool = False
    """True while the content is being determined."""
    revision: ReadOnlyObject | None = None
    """The current FunctionRevision, or the last known one while the current one is unknown."""


def function_status(
    obj: ReadOnlyObject,
    plan: FunctionPlan,
    refusals: Sequence[Refusal],
    seen: FunctionPackageState,
    *,
    now: str,
) -> dict[str, Any]:
    """Return the status that a Function should have; unchanged conditions keep their times."""
    facts = [_installed(refusals, seen), _healthy(seen), _postponed(plan)]
    status = _with(obj, facts, now=now)
    if plan.current and not refusals:
        package = obj["spec"]["package"]
        names = ("currentIdentifier", "resolvedPackage")
        status |= {"currentRevision": plan.current, **dict.fromkeys(names, package)}
    return status


def _installed(refusals: Sequence[Refusal], seen: FunctionPackageState) -> DesiredCondition:
    if refusals:
        message = "; ".join(map(str, refusals))
        return DesiredCondition("Installed", "False", refusals[0].reason, message)
    if seen.problem:
        return DesiredCondition("Installed", "False", seen.reason, seen.problem)
    if seen.asking or seen.revision is None:
        return DesiredCondition("Installed", "False", UNPACKING)
    name = seen.revision["metadata"]["name"]
    if seen.revision["spec"]["desiredState"] == "Active":
        return DesiredCondition("Installed", "True", "ActivePackageRevision", f"{name} is active")
    return DesiredCondition("Installed", "False", "InactivePackageRevision", f"{name} is inactive")


def _healthy(seen: FunctionPackageState) -> DesiredCondition:
    said = find_condition(seen.revision, "Healthy") if seen.revision is not None else None
    if said is None:
        return DesiredCondition("Healthy", "Unknown", "UnknownPackageRevisionHealth")
    return DesiredCondition("Healthy", said["status"], said["reason"], said.get("message") or "")


def _postponed(plan: FunctionPlan) -> DesiredCondition:
    if not plan.postponed:
        return DesiredCondition("Postponed", "False", "NothingWaits")
    return DesiredCondition("Postponed", "True", "InUse", "; ".join(map(str, plan.postponed)))


def revision_status(
    obj: ReadOnlyObject, *, endpoint: str, reason: str, message: str, now: str
) -> dict[str, Any]:
    """Return the status that a FunctionRevision should have, from its runtime's report."""
    if obj["spec"]["desiredState"] != "Active":
        why = "InactivePackageRevision", "it is inactive, and not served"
        facts = [DesiredCondition(kind, "Unknown", *why) for kind in ("Healthy", "RuntimeHealthy")]
    elif endpoint:
        healthy = DesiredCondition("Healthy", "True", "HealthyPackageRevision")
        facts = [healthy, DesiredCondition("RuntimeHealthy", "True", reason, message)]
    else:
        told = f"{reason}: {message}" if message else reason
        unhealthy = DesiredCondition("Healthy", "False", "UnhealthyPackageRevision", told)
        facts = [unhealthy, DesiredCondition("RuntimeHealthy", "False", reason, message)]
    status = _with(obj, facts, now=now)
    status.pop("endpoint", None)
    return {**status, "endpoint": endpoint} if endpoint else status


def _with(obj: ReadOnlyObject, facts: Iterable[DesiredCondition], *, now: str) -> dict[str, Any]:
    before: ReadOnlyObject = obj.get("status") or {}
    return {**before, "conditions": set_conditions(obj, facts, now=now)}
