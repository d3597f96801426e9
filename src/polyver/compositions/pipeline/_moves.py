"""Moves of a composite resource to another release.

A release that fails for it, or would delete objects that the current release made, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from polyver.compositions._function_references import mapping
from polyver.compositions.names import ALLOW_DELETION
from polyver.compositions.pipeline._outcome import PipelineOutcome
from polyver.compositions.pipeline._resources import shown
from polyver.core import listed
from polyver.core.plain import ReadOnlyObject
from polyver.core.replacement import Role, without_replacement
from polyver.kube.objects.conditions import DesiredCondition
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
    """A release that a composite resource could not move to, and the reason."""

    release: str
    reason: str
    message: str
    passes: bool = False
    """True if the move may succeed later without any change."""


def lost_objects(
    composite: ReadOnlyObject, outcome: PipelineOutcome, before: PipelineOutcome | None = None
) -> list[ReadOnlyObject]:
    """Return the objects that a move would delete without a replacement.

    `before` is the current result of the release in use. Objects that it would delete too are left
    out: a user's edit removes them.
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
    """Return the failure of a move that would delete objects."""
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
    """Return the condition `Updated`; None for a composite resource that never failed to move."""
    if failed is not None:
        message = f"{failed.release} cannot be used: {failed.message}"
        return DesiredCondition("Updated", "False", failed.reason, message)
    known = mapping(composite.get("status")).get("conditions") or ()
    if any(each["type"] == "Updated" for each in known):
        return DesiredCondition("Updated", "True", "Updated", "it uses the requested release")
    return None
