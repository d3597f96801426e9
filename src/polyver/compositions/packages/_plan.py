"""The plan for the revisions of a Function, and the status of the Function and its revisions.

The plan states which revisions are created, renumbered, activated, deactivated and deleted. It
depends only on the actual and the desired state, so that it can be made again after an
interruption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from polyver.capability import Refusal
from polyver.compositions._revision_rules import (
    distinct,
    number_of_now,
    renumbered,
    republished,
    undecided,
)
from polyver.compositions.names import revision_name
from polyver.compositions.packages._functions import (
    DesiredFunction,
    KnownFunctionRevision,
    lineage_of,
    new_revision,
    relabelled,
)
from polyver.compositions.packages._uses import FunctionPin, StepFunctionUse, selected_in
from polyver.core import listed
from polyver.core.plain import ReadOnlyObject
from polyver.kube.objects.conditions import DesiredCondition, find_condition, set_conditions

__all__ = [
    "UNPACKING",
    "FunctionPackageState",
    "FunctionPlan",
    "Postponed",
    "decide",
    "function_status",
    "results_of",
    "revision_status",
    "users_of",
]

_UNKNOWN = ("users that cannot be listed at the moment",)
UNPACKING: Final = "UnpackingPackage"
"""Reason of the condition `Installed` while the content of the package is unknown."""


Selected = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Postponed:
    """A change of a revision that is postponed until no step selects the revision any more."""

    revision: str
    what: Literal["deactivated", "collected"]
    dependents: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.revision} is not {self.what}: selected by {listed(self.dependents)}"


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """The changes that the controller makes for a Function.

    The controller first creates `create`, then makes `changes`, and then deletes `collect`. If
    `refusals` is not empty, there are no changes.
    """

    create: KnownFunctionRevision | None = None
    changes: tuple[KnownFunctionRevision, ...] = ()
    """The revisions to change, in their desired state."""
    collect: tuple[KnownFunctionRevision, ...] = ()
    postponed: tuple[Postponed, ...] = ()
    current: str = ""
    """The name of the revision with the desired content. Empty if the content is unknown."""
    selected: Selected = field(default_factory=dict)
    """The steps that select each revision, by the name of the revision."""
    refusals: tuple[Refusal, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.create or self.changes or self.collect)


def decide(
    function: DesiredFunction,
    known: Sequence[KnownFunctionRevision],
    digest: str | None,
    uses: Sequence[StepFunctionUse] | None = (),
    *,
    pins: Mapping[FunctionPin, tuple[str, ...]] | None = None,
    policy: str = "",
) -> FunctionPlan:
    """Make the plan for a Function.

    Without a digest, the content of the package is unknown, and no revision is created. If `uses`
    is None, the users of the Function are unknown, and no revision is deactivated or deleted.

    `pins` names the composite resources that were composed with each revision. If the Function has
    strict references, or if any of its revisions has a gate, a revision that `pins` contains stays
    active. `policy` is the name of the Ready RolloutPolicy of the Function, or empty; the policy
    closes a revision that becomes the newest.
    """
    before = {each.name: each for each in known}
    refusal = _taken(function, before, digest)
    if refusal is not None:
        return FunctionPlan(refusals=(refusal,))
    there = _distinct(known)
    for name in undecided(there.values()) if policy else ():
        there[name] = republished(there[name], policy)
    current = _bring(function, there, digest, policy)
    for name in _wanted(function, there):
        there[name] = replace(there[name], active=True)
    selected = selected_in(uses or (), lineage_of(function.name, there.values()))
    holding: Selected = selected if function.strict else {}
    if function.strict or any(each.gate for each in there.values()):
        holding = _joined(holding, _composing(there, pins or {}))
    if uses is None and function.strict:
        holding = dict.fromkeys(there, _UNKNOWN)
    postponed = [*_deactivate(function, there, holding)]
    doomed = _surplus(function, there, current)
    postponed += [_late(name, "collected", holding) for name in doomed if name in holding]
    collect = [there.pop(name) for name in doomed if name not in holding]
    changes = [each for each in there.values() if before.get(each.name, each) != each]
    # Activate revisions before other revisions are deactivated, so that there is always a revision
    # to call.
    changes.sort(key=lambda each: (not each.active, each.name))
    return FunctionPlan(
        next((each for name, each in there.items() if name not in before), None),
        tuple(changes),
        tuple(collect),
        tuple(postponed),
        current,
        selected,
    )


def users_of(
    function: str, known: Sequence[KnownFunctionRevision], uses: Sequence[StepFunctionUse]
) -> Mapping[str, tuple[str, ...]]:
    """Return the steps that select each revision, by the name of the revision."""
    return selected_in(uses, lineage_of(function, _distinct(known).values()))


def results_of(
    plan: FunctionPlan, known: Iterable[KnownFunctionRevision]
) -> list[KnownFunctionRevision]:
    """Return the revisions of a Function as they are after a plan was carried out."""
    found = {each.name: each for each in known}
    made = (plan.create,) if plan.create else ()
    found |= {each.name: each for each in (*made, *plan.changes)}
    gone = {each.name for each in plan.collect}
    return [each for name, each in found.items() if name not in gone]


def _taken(
    function: DesiredFunction, before: Mapping[str, KnownFunctionRevision], digest: str | None
) -> Refusal | None:
    """Return a refusal if the name of the new revision belongs to a revision with other content."""
    if digest is None:
        return None
    there = before.get(revision_name(function.name, digest))
    if there is None or revision_name(function.name, there.digest) != there.name:
        return None  # the digest of that revision was not recorded
    if there.digest == digest:
        return None
    fact = f"{there.name} is the revision of other content ({there.digest}, not {digest})"
    return Refusal("NameTaken", fact, at="spec.package", hint="rebuild the package")


def _distinct(known: Sequence[KnownFunctionRevision]) -> dict[str, KnownFunctionRevision]:
    """Return revisions by name, with distinct numbers.

    Revisions that are being deleted keep their numbers.
    """
    return distinct(sorted(known, key=lambda each: (not each.deleting, each.name)))


def _composing(
    there: Mapping[str, KnownFunctionRevision], pins: Mapping[FunctionPin, tuple[str, ...]]
) -> Selected:
    """Return, for each revision, the composite resources that use it or may return to it."""
    found: dict[str, tuple[str, ...]] = {}
    for pin, composites in pins.items():
        used = there.get(pin.revision)
        may_return = used is not None and used.gate is not None
        for name in (pin.revision, *((pin.previous,) if may_return else ())):
            found[name] = (*found.get(name, ()), *composites)
    return found


def _joined(one: Selected, other: Selected) -> Selected:
    names = dict.fromkeys((*one, *other))
    return {name: (*one.get(name, ()), *other.get(name, ())) for name in names}


def _bring(
    function: DesiredFunction,
    there: dict[str, KnownFunctionRevision],
    digest: str | None,
    policy: str,
) -> str:
    """Give the highest number to the revision with the desired content. Return its name."""
    if digest is None:
        return ""
    name = revision_name(function.name, digest)
    found, number = there.get(name), number_of_now(there, name)
    if found is None:
        made = new_revision(function, digest, number)
        there[name] = republished(made, policy) if there else made
    elif not found.deleting:  # one that is being deleted is created again afterwards
        again = renumbered(found, number, there.values(), policy)
        there[name] = relabelled(again, function)
    return name


def _wanted(function: DesiredFunction, there: Mapping[str, KnownFunctionRevision]) -> set[str]:
    """Return the names of the revisions that must be active.

    With automatic activation, these are the open revisions with the highest numbers, and newer
    revisions that a rollout brings to composite resources. Otherwise, these are the revisions that
    users have activated.
    """
    if not function.automatic:
        return {name for name, each in there.items() if each.active}
    staying = [each for each in there.values() if not each.deleting]
    releases = lineage_of("", staying).releases
    opened = [each for each in releases if each.gate is None]
    newer = releases[releases.index(opened[-1]) + 1 :] if opened else releases
    moving = [each for each in newer if each.gate is not None and not each.gate.returns]
    return {each.name for each in (*opened[-function.active_limit :], *moving)}


def _deactivate(
    function: DesiredFunction, there: dict[str, KnownFunctionRevision], holding: Selected
) -> Iterator[Postponed]:
    wanted = _wanted(function, there)
    for name, each in sorted(there.items()):
        if not each.active or each.deleting or name in wanted:
            continue
        if name in holding:
            yield _late(name, "deactivated", holding)
        else:
            there[name] = replace(each, active=False)


def _late(name: str, what: Literal["deactivated", "collected"], holding: Selected) -> Postponed:
    return Postponed(name, what, holding[name])


def _surplus(
    function: DesiredFunction, there: Mapping[str, KnownFunctionRevision], current: str
) -> list[str]:
    """Return the names of the revisions to delete. The lowest number is first.

    Active revisions and the current revision are never deleted.
    """
    staying = {name: each for name, each in there.items() if not each.deleting}
    too_many = len(staying) - function.history_limit
    if function.history_limit == 0 or too_many <= 0:
        return []
    releases = lineage_of("", staying.values()).releases
    kept = current or releases[-1].name
    inactive = [each.name for each in releases if not staying[each.name].active]
    return [name for name in inactive if name != kept][:too_many]


@dataclass(frozen=True, slots=True)
class FunctionPackageState:
    """The state of the package of a Function, and of the current revision."""

    problem: str = ""
    """The reason why the content of the package is unavailable, as a sentence."""
    reason: str = UNPACKING
    """The reason in `problem` as one word, for conditions."""
    asking: bool = False
    """True while the digest of the content is being computed."""
    revision: ReadOnlyObject | None = None
    """The current FunctionRevision. While the current revision is unknown, the last known revision.
    """


def function_status(
    obj: ReadOnlyObject,
    plan: FunctionPlan,
    refusals: Sequence[Refusal],
    seen: FunctionPackageState,
    *,
    now: str,
) -> dict[str, Any]:
    """Build the status that a Function should have.

    Unchanged conditions keep their transition times.
    """
    said = find_condition(seen.revision, "Healthy") if seen.revision is not None else None
    healthy = DesiredCondition("Healthy", "Unknown", "UnknownPackageRevisionHealth")
    if said is not None:
        message = said.get("message") or ""
        healthy = DesiredCondition("Healthy", said["status"], said["reason"], message)
    postponed = DesiredCondition("Postponed", "False", "NothingWaits")
    if plan.postponed:
        told = "; ".join(map(str, plan.postponed))
        postponed = DesiredCondition("Postponed", "True", "InUse", told)
    facts = [_installed(refusals, seen), healthy, postponed]
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


def revision_status(
    obj: ReadOnlyObject, *, endpoint: str, reason: str, message: str, now: str
) -> dict[str, Any]:
    """Build the status of a FunctionRevision from the state that its runtime reports."""
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
