"""The outcome of a run, and the checks before a composite resource moves to other revisions.

The outcome contains the objects to apply and to delete, the status and the conditions. A composite
resource does not move to revisions if the run with them fails, or if their outcome would delete
objects without a replacement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from polyver.capability import Refusal
from polyver.compositions._function_references import mapping
from polyver.compositions.calls.errors import CallFailure
from polyver.compositions.decisions import Composite, CompositeKind, Secret
from polyver.compositions.messages import Ready
from polyver.compositions.names import ALLOW_DELETION, PAUSED
from polyver.compositions.pipeline._resources import (
    ComposedResource,
    RemovedResource,
    check_distinct,
    composed_of,
    connection_secret,
    reference_to,
    removed_of,
    shown,
)
from polyver.compositions.pipeline._run import SYSTEM, PipelineEvent, PipelineFailure, PipelineRun
from polyver.core import listed
from polyver.core.plain import ReadOnlyObject
from polyver.core.replacement import Role, without_replacement
from polyver.kube.objects.conditions import DesiredCondition, set_conditions
from polyver.kube.objects.owners import controller_of

__all__ = [
    "NOT_SERVED",
    "QUARANTINED",
    "WOULD_DELETE",
    "FailedCompositeMove",
    "PipelineOutcome",
    "allows_deletion",
    "composite_conditions",
    "conclude",
    "deleting_conditions",
    "failed_move_in",
    "joined",
    "lost_objects",
    "paused_conditions",
    "published_details",
    "published_to",
    "refused",
    "stayed_conditions",
    "updated_fact",
    "without",
    "would_delete",
]

_OURS = frozenset({"conditions", "connectionDetails", "pipeline"})
_FIRST = 3
WOULD_DELETE: Final = "WouldDelete"
NOT_SERVED: Final = "RevisionNotServed"
QUARANTINED: Final = "Quarantined"
_PASSING: Final = {NOT_SERVED, QUARANTINED, *(each for each in CallFailure if each.passes)}
_CANNOT: Final = " cannot be used: "
_AND: Final = " with "
_FEW: Final = 5


@dataclass(frozen=True, slots=True)
class PipelineOutcome:
    """The outcome of a run: the changes to make for a composite resource.

    The changes are made in this order: the objects in `remove` are deleted, `references` are
    stored, and the objects in `apply` are applied. So after an interruption, each existing object
    has a reference.
    """

    remove: tuple[RemovedResource, ...] = ()
    references: tuple[dict[str, str], ...] = ()
    """The desired `resourceRefs` of the composite resource."""
    apply: tuple[ComposedResource, ...] = ()
    status: dict[str, Any] = field(default_factory=dict)
    """Status fields that functions set, and `pipeline`, which records the function revision of each
    step.
    """
    connection_details: Mapping[str, bytes] = field(default_factory=dict)
    ready: bool = False
    unready: tuple[str, ...] = ()
    """The composed resources that are not ready, by their names in the pipeline."""
    events: tuple[PipelineEvent, ...] = ()
    conditions: tuple[DesiredCondition, ...] = ()
    """Conditions that functions set."""
    context: dict[str, Any] | None = None
    ttl: float | None = None
    failure: PipelineFailure | None = None
    """The reason why no change is made. None if the run was successful."""
    updated: DesiredCondition | None = None
    """The condition `Updated`. None if the condition does not have to be set."""

    @property
    def types(self) -> set[str]:
        """The types of the conditions in this outcome, except `Synced` and `Ready`."""
        found = {each.type for each in self.conditions}
        return found | ({self.updated.type} if self.updated is not None else set())


def conclude(run: PipelineRun, *, distinct: bool = True) -> PipelineOutcome:
    """Build the outcome of a finished run.

    If `distinct` is true, an object that is composed twice is a failure.
    """
    assert run.is_over
    if run.failure is not None:
        return _failed(run, run.failure)
    composite = run.observed.composite.resource
    try:
        composed = composed_of(composite, run.observed.resources, run.desired.resources)
        if distinct:
            check_distinct(composite, composed)
    except Refusal as refusal:
        return _failed(run, PipelineFailure.of(refusal))
    unready = tuple(each.name for each in composed if not each.ready)
    said = run.desired.composite.ready
    order = ("apiVersion", "kind", "namespace", "name")
    references = sorted(
        (reference_to(each.obj) for each in composed),
        key=lambda reference: [reference.get(name, "") for name in order],
    )
    wanted = mapping(run.desired.composite.resource.get("status"))
    status = {name: value for name, value in wanted.items() if name not in _OURS}
    status["pipeline"] = [step.record for step in run.steps]
    return PipelineOutcome(
        removed_of(run.observed.resources, composed),
        tuple(references),
        composed,
        status,
        run.desired.composite.connection_details,
        not unready if said is Ready.UNSPECIFIED else said is Ready.TRUE,
        unready if said is Ready.UNSPECIFIED else (),
        run.events,
        run.conditions,
        run.context,
        run.ttl,
    )


def refused(refusal: Refusal) -> PipelineOutcome:
    """Build the outcome for a refusal before the run started."""
    failure = PipelineFailure.of(refusal)
    return PipelineOutcome(failure=failure, events=(_told(failure),))


def without(missing: Sequence[str], outcome: PipelineOutcome) -> PipelineOutcome:
    """Return the outcome with the resources in `missing` marked as not ready.

    These resources belong to other owners.
    """
    if not missing:
        return outcome
    unready = tuple(sorted({*outcome.unready, *missing}))
    return replace(outcome, ready=False, unready=unready)


def _failed(run: PipelineRun, failure: PipelineFailure) -> PipelineOutcome:
    events = (*run.events, _told(failure))
    return PipelineOutcome(
        events=events, conditions=run.conditions, context=run.context, failure=failure
    )


def _told(failure: PipelineFailure) -> PipelineEvent:
    return PipelineEvent("Warning", failure.reason, failure.message)


# Conditions of the composite resource.


def composite_conditions(
    composite: ReadOnlyObject, outcome: PipelineOutcome, unsynced: Sequence[str] = (), *, now: str
) -> list[dict[str, Any]]:
    """Build the conditions of a composite resource.

    `unsynced` are messages about composed resources that could not be applied.
    """
    facts = [*_system(outcome, unsynced), *outcome.conditions]
    if outcome.failure is not None:
        facts += _unknown(composite, {fact.type for fact in facts})
    last = {fact.type: fact for fact in facts}
    return set_conditions(composite, last.values(), now=now)


def _system(outcome: PipelineOutcome, unsynced: Sequence[str]) -> Iterator[DesiredCondition]:
    failure = outcome.failure
    if outcome.updated is not None:
        yield outcome.updated
    if failure is not None:
        yield DesiredCondition("Synced", "False", failure.reason, failure.message)
        # the readiness is unknown, because this run failed; the existing objects have not changed
        return
    if unsynced:
        message = f"not accepted: {listed(sorted(unsynced), most=_FIRST)}"
        yield DesiredCondition("Synced", "False", "ReconcileError", message)
    else:
        yield DesiredCondition("Synced", "True", "ReconcileSuccess")
    if outcome.ready:
        yield DesiredCondition("Ready", "True", "Available")
    else:
        names = listed(sorted(outcome.unready), most=_FIRST)
        yield DesiredCondition("Ready", "False", "Creating", f"not ready: {names}" if names else "")


def _unknown(composite: ReadOnlyObject, told: set[str]) -> Iterator[DesiredCondition]:
    """Yield the conditions that functions set in earlier runs, with the status Unknown.

    This is needed after a failed run: functions that were not called have not set their conditions.
    """
    message = "the pipeline failed before this condition was set"
    for each in mapping(composite.get("status")).get("conditions") or ():
        if each["type"] not in SYSTEM | told:
            yield DesiredCondition(each["type"], "Unknown", "FatalError", message)


def stayed_conditions(
    composite: ReadOnlyObject, updated: DesiredCondition, *, now: str
) -> list[dict[str, Any]]:
    """Build the conditions of a composite resource that could not move to other revisions."""
    return set_conditions(composite, [updated], now=now)


def paused_conditions(composite: ReadOnlyObject, *, now: str) -> list[dict[str, Any]]:
    """Build the conditions of a composite resource that an annotation pauses."""
    message = f"the annotation {PAUSED} pauses reconciliation"
    return set_conditions(
        composite, [DesiredCondition("Synced", "False", "ReconcilePaused", message)], now=now
    )


def deleting_conditions(composite: ReadOnlyObject, *, now: str) -> list[dict[str, Any]]:
    """Build the conditions of a composite resource that is being deleted."""
    return set_conditions(composite, [DesiredCondition("Ready", "False", "Deleting")], now=now)


def published_details(outcome: PipelineOutcome, defined: CompositeKind) -> dict[str, bytes]:
    """Return the connection details to publish, limited to the keys of the definition."""
    keys = defined.connection_keys
    details = outcome.connection_details
    return {name: data for name, data in details.items() if not keys or name in keys}


def published_to(composite: Composite, revision: ReadOnlyObject) -> Secret | None:
    """Return the Secret to which connection details are published, or None."""
    found = connection_secret(composite.obj)
    namespace = revision["spec"].get("writeConnectionSecretsToNamespace")
    if found is not None or not namespace:
        return found
    return Secret(namespace, composite.obj["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class FailedCompositeMove:
    """Revisions that a composite resource could not move to, and the reason."""

    release: str
    """The names of the new revisions: a CompositionRevision, FunctionRevisions, or both."""
    reason: str
    message: str
    passes: bool = False
    """True if another try may succeed without any change."""

    @property
    def revisions(self) -> list[str]:
        return self.release.split(_AND)


def joined(revisions: Iterable[str]) -> str:
    """Return the names of the new revisions of a move as one string for messages.

    >>> joined(["shop-1a2b3c4", "resize-0123456789ab"])
    'shop-1a2b3c4 with resize-0123456789ab'
    """
    return _AND.join(dict.fromkeys(revisions))


def failed_move_in(composite: ReadOnlyObject) -> FailedCompositeMove | None:
    """Return the failed move that the condition `Updated` reports. None if no move has failed."""
    for each in mapping(composite.get("status")).get("conditions") or ():
        if each.get("type") == "Updated" and each.get("status") == "False":
            release, _, message = str(each.get("message", "")).partition(_CANNOT)
            reason = str(each.get("reason", ""))
            return FailedCompositeMove(release, reason, message, reason in _PASSING)
    return None


def lost_objects(
    composite: ReadOnlyObject, outcome: PipelineOutcome, before: PipelineOutcome | None = None
) -> list[ReadOnlyObject]:
    """Return the objects that a move would delete without a replacement.

    `before` is the outcome of the revisions in use. If `before` would also delete an object, the
    object is not returned. The cause of its deletion is then a change by a user, and not the move.
    """
    uid = composite["metadata"].get("uid", "")
    wished = {shown(each.obj) for each in before.remove} if before is not None else set()
    gone = [each.obj for each in outcome.remove if controller_of(each.obj) == uid]
    new = [each.obj for each in outcome.apply if not each.exists]
    lost = without_replacement(gone, new, _role)
    return [each for each in lost if shown(each) not in wished]


def _role(obj: ReadOnlyObject) -> Role:
    return Role("", obj["kind"], obj["metadata"]["name"])


def would_delete(release: str, lost: Iterable[ReadOnlyObject]) -> FailedCompositeMove:
    """Build the failure of a move that would delete objects."""
    names = listed([shown(each) for each in lost], most=_FEW)
    fact = f"it would delete {names} without replacement"
    hint = f'annotate the revision with {ALLOW_DELETION}: "true" to allow it'
    return FailedCompositeMove(release, WOULD_DELETE, f"{fact}; {hint}")


def allows_deletion(obj: ReadOnlyObject | None) -> bool:
    """Report whether the annotation `polyver.dev/allow-deletion` of an object is `true`.

    The object is a revision, or its Composition or Function. For None, return False.
    """
    annotations = mapping(obj["metadata"].get("annotations")) if obj is not None else {}
    return annotations.get(ALLOW_DELETION) == "true"


def updated_fact(
    composite: ReadOnlyObject, failed: FailedCompositeMove | None
) -> DesiredCondition | None:
    """Build the condition `Updated`.

    Return None if no move of the composite resource has ever failed.
    """
    if failed is not None:
        message = f"{failed.release}{_CANNOT}{failed.message}"
        return DesiredCondition("Updated", "False", failed.reason, message)
    known = mapping(composite.get("status")).get("conditions") or ()
    if any(each["type"] == "Updated" for each in known):
        return DesiredCondition("Updated", "True", "Updated", "it uses the requested release")
    return None
