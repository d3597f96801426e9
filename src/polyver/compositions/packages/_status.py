"""The status of functions and their revisions: what is true of them, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polyver.capability import Refusal
from polyver.compositions._conditions import Fact, condition_of, conditions_with
from polyver.compositions.packages._plan import Plan
from polyver.core.plain import ReadOnlyObject

__all__ = ["UNPACKING", "Seen", "condition_of", "function_status", "revision_status"]

UNPACKING: Final = "UnpackingPackage"
"""The reason of what is not installed because its package was not looked into."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a function's package and its current revision."""

    problem: str = ""
    """Why the content of the package cannot be had."""
    reason: str = UNPACKING
    """The same in one word."""
    asking: bool = False
    """Whether somebody is about to find out what it is."""
    revision: ReadOnlyObject | None = None
    """The current FunctionRevision as it was read, or the one before while that is not known."""


def function_status(
    obj: ReadOnlyObject, plan: Plan, refusals: Sequence[Refusal], seen: Seen, *, now: str
) -> dict[str, Any]:
    """The status that a Function should have; times of what has not changed stay."""
    facts = [_installed(refusals, seen), _healthy(seen), _postponed(plan)]
    status = _with(obj, facts, now=now)
    if plan.current and not refusals:
        package = obj["spec"]["package"]
        names = ("currentIdentifier", "resolvedPackage")
        status |= {"currentRevision": plan.current, **dict.fromkeys(names, package)}
    return status


def _installed(refusals: Sequence[Refusal], seen: Seen) -> Fact:
    if refusals:
        message = "; ".join(map(str, refusals))
        return Fact("Installed", "False", refusals[0].reason, message)
    if seen.problem:
        return Fact("Installed", "False", seen.reason, seen.problem)
    if seen.asking or seen.revision is None:
        return Fact("Installed", "False", UNPACKING)
    name = seen.revision["metadata"]["name"]
    if seen.revision["spec"]["desiredState"] == "Active":
        return Fact("Installed", "True", "ActivePackageRevision", f"{name} is active")
    return Fact("Installed", "False", "InactivePackageRevision", f"{name} is inactive")


def _healthy(seen: Seen) -> Fact:
    said = condition_of(seen.revision, "Healthy") if seen.revision is not None else None
    if said is None:
        return Fact("Healthy", "Unknown", "UnknownPackageRevisionHealth")
    return Fact("Healthy", said["status"], said["reason"], said.get("message") or "")


def _postponed(plan: Plan) -> Fact:
    if not plan.postponed:
        return Fact("Postponed", "False", "NothingWaits")
    return Fact("Postponed", "True", "InUse", "; ".join(map(str, plan.postponed)))


def revision_status(
    obj: ReadOnlyObject, *, endpoint: str, reason: str, message: str, now: str
) -> dict[str, Any]:
    """The status that a FunctionRevision should have, by what its runtime says."""
    if obj["spec"]["desiredState"] != "Active":
        why = "InactivePackageRevision", "it is inactive, and not served"
        facts = [Fact(kind, "Unknown", *why) for kind in ("Healthy", "RuntimeHealthy")]
    elif endpoint:
        healthy = Fact("Healthy", "True", "HealthyPackageRevision")
        facts = [healthy, Fact("RuntimeHealthy", "True", reason, message)]
    else:
        told = f"{reason}: {message}" if message else reason
        unhealthy = Fact("Healthy", "False", "UnhealthyPackageRevision", told)
        facts = [unhealthy, Fact("RuntimeHealthy", "False", reason, message)]
    status = _with(obj, facts, now=now)
    status.pop("endpoint", None)
    return {**status, "endpoint": endpoint} if endpoint else status


def _with(obj: ReadOnlyObject, facts: Iterable[Fact], *, now: str) -> dict[str, Any]:
    before: ReadOnlyObject = obj.get("status") or {}
    return {**before, "conditions": conditions_with(obj, facts, now=now)}
