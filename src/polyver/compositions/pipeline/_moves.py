"""Moves: a composite resource that is composed by another release than before.

A release that does not work for it, or would delete what the one before has made, is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from polyver.compositions._conditions import DesiredCondition
from polyver.compositions._function_references import mapping
from polyver.compositions.names import ALLOW_DELETION
from polyver.compositions.pipeline._outcome import PipelineOutcome
from polyver.compositions.pipeline._resources import shown
from polyver.core import listed
from polyver.core.plain import ReadOnlyObject
from polyver.core.replacement import Role, without_replacement
from polyver.kube.objects.owners import controller_of

__all__ = [
    "WOULD_DELETE",
    "FailedCompositeMove",
    "allows_deletion",
    "lost_objects",
    "updated_fact",
    "would_delete",
]

WOULD_DELETE: Final = "WouldDelete"
_FEW: Final = 5


@dataclass(frozen=True, slots=True)
class FailedCompositeMove:
    """A release that a composite resource could not take, and why."""

    release: str
    reason: str
    message: str
    passes: bool = False
    """Whether it may work later without anybody doing anything."""


def lost_objects(
    composite: ReadOnlyObject, outcome: PipelineOutcome, before: PipelineOutcome | None = None
) -> list[ReadOnlyObject]:
    """Return what a composite resource would lose by a move, with nothing in its place.

    `before` is what the release that it has makes of it now: what that would delete as well is
    the wish of a user.
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
    """A move that is held because of what would be deleted."""
    names = listed([shown(each) for each in lost], most=_FEW)
    fact = f"it would delete {names} without replacement"
    hint = f'annotate the revision with {ALLOW_DELETION}: "true" to allow it'
    return FailedCompositeMove(release, WOULD_DELETE, f"{fact}; {hint}")


def allows_deletion(obj: ReadOnlyObject | None) -> bool:
    """Return True if an annotation of the object allows its release to delete objects."""
    annotations = mapping(obj["metadata"].get("annotations")) if obj is not None else {}
    return annotations.get(ALLOW_DELETION) == "true"


def updated_fact(
    composite: ReadOnlyObject, failed: FailedCompositeMove | None
) -> DesiredCondition | None:
    """The condition `Updated`; None for a composite resource that never failed to move."""
    if failed is not None:
        message = f"{failed.release} cannot be used: {failed.message}"
        return DesiredCondition("Updated", "False", failed.reason, message)
    known = mapping(composite.get("status")).get("conditions") or ()
    if any(each["type"] == "Updated" for each in known):
        return DesiredCondition("Updated", "True", "Updated", "it uses the requested release")
    return None
