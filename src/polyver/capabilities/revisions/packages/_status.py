"""The status of functions and their revisions: what is true of them, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from polyver.capabilities import Refusal
from polyver.capabilities.revisions.packages._deciding import Plan

__all__ = ["UNPACKING", "Seen", "condition_of", "function_status", "revision_status"]

Object = Mapping[str, Any]
UNPACKING: Final = "UnpackingPackage"
"""The reason of what is not installed because its package was not looked into."""
Truth = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class _Fact:
    type: str
    status: Truth
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a function's package and its current revision."""

    problem: str = ""
    """Why the content of the package cannot be had."""
    reason: str = UNPACKING
    """The same in one word."""
    asking: bool = False
    """Whether somebody is about to find out what it is."""
    revision: Object | None = None
    """The current FunctionRevision as it was read, or the one before while that is not known."""


def function_status(
    obj: Object, plan: Plan, refusals: Sequence[Refusal], seen: Seen, *, now: str
) -> dict[str, Any]:
    """The status that a Function should have; times of what has not changed stay."""
    facts = [_installed(refusals, seen), _healthy(seen), _postponed(plan)]
    status = _with(obj, facts, now=now)
    if plan.current and not refusals:
        package = obj["spec"]["package"]
        names = ("currentIdentifier", "resolvedPackage")
        status |= {"currentRevision": plan.current, **dict.fromkeys(names, package)}
    return status


def _installed(refusals: Sequence[Refusal], seen: Seen) -> _Fact:
    if refusals:
        message = "; ".join(map(str, refusals))
        return _Fact("Installed", "False", refusals[0].reason, message)
    if seen.problem:
        return _Fact("Installed", "False", seen.reason, seen.problem)
    if seen.asking or seen.revision is None:
        return _Fact("Installed", "False", UNPACKING)
    name = seen.revision["metadata"]["name"]
    if seen.revision["spec"]["desiredState"] == "Active":
        return _Fact("Installed", "True", "ActivePackageRevision", f"{name} is active")
    return _Fact("Installed", "False", "InactivePackageRevision", f"{name} is inactive")


def _healthy(seen: Seen) -> _Fact:
    said = condition_of(seen.revision, "Healthy") if seen.revision is not None else None
    if said is None:
        return _Fact("Healthy", "Unknown", "UnknownPackageRevisionHealth")
    return _Fact("Healthy", said["status"], said["reason"], said.get("message") or "")


def _postponed(plan: Plan) -> _Fact:
    if not plan.postponed:
        return _Fact("Postponed", "False", "NothingWaits")
    return _Fact("Postponed", "True", "InUse", "; ".join(map(str, plan.postponed)))


def revision_status(
    obj: Object, *, endpoint: str, reason: str, message: str, now: str
) -> dict[str, Any]:
    """The status that a FunctionRevision should have, by what its runtime says."""
    if obj["spec"]["desiredState"] != "Active":
        why = "InactivePackageRevision", "it is inactive, and not served"
        facts = [_Fact(kind, "Unknown", *why) for kind in ("Healthy", "RuntimeHealthy")]
    elif endpoint:
        healthy = _Fact("Healthy", "True", "HealthyPackageRevision")
        facts = [healthy, _Fact("RuntimeHealthy", "True", reason, message)]
    else:
        told = f"{reason}: {message}" if message else reason
        unhealthy = _Fact("Healthy", "False", "UnhealthyPackageRevision", told)
        facts = [unhealthy, _Fact("RuntimeHealthy", "False", reason, message)]
    status = _with(obj, facts, now=now)
    status.pop("endpoint", None)
    return {**status, "endpoint": endpoint} if endpoint else status


def condition_of(obj: Object, kind: str) -> Object | None:
    """A condition of an object, if it has it."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), None)


def _with(obj: Object, facts: Iterable[_Fact], *, now: str) -> dict[str, Any]:
    before: Object = obj.get("status") or {}
    generation = obj["metadata"].get("generation", 1)
    made = [_condition(fact, condition_of(obj, fact.type), generation, now) for fact in facts]
    ours = {each["type"] for each in made}
    others = [each for each in before.get("conditions") or () if each["type"] not in ours]
    return {**before, "conditions": [*others, *made]}


def _condition(fact: _Fact, before: Object | None, generation: int, now: str) -> dict[str, Any]:
    same = before is not None and before["status"] == fact.status
    since = before["lastTransitionTime"] if same and before is not None else now
    return {
        "type": fact.type,
        "status": fact.status,
        "reason": fact.reason,
        **({"message": fact.message} if fact.message else {}),
        "observedGeneration": generation,
        "lastTransitionTime": since,
    }
