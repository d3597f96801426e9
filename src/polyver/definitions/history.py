"""The history of an application: its ApplicationRevisions, and rollback to an earlier revision.

A rollback restores the old spec and adds a lock with the old versions. Without the lock, a
reference that requests a series would immediately move to the newest release again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from polyver.core import InvalidVersion, PolyverError, Serial, listed
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.locking import Locked, locked, with_lock
from polyver.definitions.names import PUBLISH_VERSION
from polyver.definitions.resolution import numbered_revisions, revision_hash

__all__ = ["LAST_APPLIED", "RecordedRevision", "earlier", "history_of", "returned"]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class RecordedRevision:
    """An ApplicationRevision, parsed."""

    number: int
    name: str
    spec: ReadOnlyObject
    resolutions: tuple[ReadOnlyObject, ...]
    made: str
    """Creation time of the revision."""
    published: str | None
    """Value of `app.oam.dev/publishVersion`."""
    same_as: int | None
    """Number of the first revision with the same content and the same publishVersion.

    None if there is no such earlier revision.
    """

    @property
    def places(self) -> tuple[Locked, ...]:
        """Lock entries with the versions that this revision used."""
        return tuple(map(locked, self.resolutions))


def history_of(revisions: Iterable[ReadOnlyObject]) -> list[RecordedRevision]:
    """Parse the ApplicationRevisions of an application, oldest first."""
    first: dict[tuple[str | None, str | None], int] = {}
    found = []
    for number, each in numbered_revisions(revisions):
        metadata, spec = each["metadata"], each.get("spec") or {}
        told = revision_hash(each)
        same_as = first.setdefault(told, number)
        found.append(
            RecordedRevision(
                number,
                metadata["name"],
                (spec.get("application") or {}).get("spec") or {},
                tuple(spec.get("resolutions") or ()),
                metadata.get("creationTimestamp", ""),
                told[1],
                same_as if same_as != number else None,
            )
        )
    return found


def earlier(name: str, history: Sequence[RecordedRevision], to: str = "") -> RecordedRevision:
    """Find the revision for a rollback: `to`, which is a number or a name.

    If `to` is empty, find the newest revision that differs from the current one.
    """
    if not history:
        raise PolyverError(f"{name} has no ApplicationRevision", hint="it was never resolved")
    if not to:
        return _before(name, history)
    known = {each.number: each for each in history}
    with suppress(InvalidVersion):
        number = Serial.parse(to.removeprefix(f"{name}-").removeprefix("v")).number
        if number in known:
            return known[number]
    names = listed([each.name for each in history])
    raise PolyverError(f"{name} has no revision {to}", hint=f"known: {names}")


def _before(name: str, history: Sequence[RecordedRevision]) -> RecordedRevision:
    now = history[-1]
    state = now.same_as or now.number
    for each in reversed(history[:-1]):
        if (each.same_as or each.number) != state:
            return each
    raise PolyverError(f"{name} has no earlier revision than {now.name}")


def returned(application: ReadOnlyObject, to: RecordedRevision) -> dict[str, Any]:
    """Build the application after a rollback to the revision `to`.

    The result has the spec of this revision, and a lock of its versions.
    """
    metadata: ReadOnlyObject = application["metadata"]
    annotations = {**(metadata.get("annotations") or {})}
    annotations.pop(PUBLISH_VERSION, None)
    if to.published is not None:
        annotations[PUBLISH_VERSION] = to.published
    if LAST_APPLIED in annotations:
        annotations[LAST_APPLIED] = _last_applied(annotations[LAST_APPLIED], to.spec)
    whole = {**application, "metadata": {**metadata, "annotations": annotations}, "spec": to.spec}
    return with_lock(whole, to.places)


def _last_applied(text: str, spec: ReadOnlyObject) -> str:
    """Replace the spec in the last-applied annotation of `kubectl apply` by the restored spec.

    Otherwise the next `kubectl apply` would not remove fields that the rollback has restored.
    """
    try:
        said = json.loads(text)
    except ValueError:
        return text
    if not isinstance(said, dict):
        return text
    return f"{json.dumps({**said, 'spec': spec}, separators=(',', ':'))}\n"
