"""The lock of one application: an annotation with the version of each reference to a definition.

The lock file of a cluster (see `locking`) has the same entries, for many applications. An entry
contains no times, so that equal versions always give equal text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from polyver.capability import Refusal
from polyver.core import InvalidVersion, Pin, SemVer, Serial
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.names import LOCK
from polyver.kube.objects import Document, dump_yaml, load_manifests
from polyver.kube.objects.codec import prepare

__all__ = ["LOCK_PLACE", "Locked", "carried_lock", "check_places", "lock_text"]

LOCK_PLACE = f"metadata.annotations[{LOCK}]"


class Locked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The locked version of one reference in an application."""

    kind: Literal["Component", "Trait", "Policy", "WorkflowStep"]
    component: str
    """Name of the component, policy or workflow step that has the reference."""
    definition: str
    """Namespace and name of the definition: `NAMESPACE/NAME`."""
    requested: str = ""
    version: str
    revision: str
    """Name of the DefinitionRevision."""
    digest: str

    @property
    def home(self) -> str:
        """Namespace of the definition."""
        return self.definition.rpartition("/")[0]

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, component name and definition name of the reference.

        The key stays the same if a user changes the order of the references in the application.
        """
        return self.kind, self.component, self.definition.rpartition("/")[2]

    @property
    def pin(self) -> Pin:
        """Pin of the locked release.

        For a semantic version, the pin contains the version; for a numbered revision, the name of
        the revision.
        """
        try:
            return Pin(str(SemVer.parse(self.version)), self.digest)
        except InvalidVersion:
            return Pin(self.revision, self.digest)

    @property
    def data(self) -> dict[str, str]:
        """The lock entry as a dictionary, with the fields always in the same order."""
        found: dict[str, str] = msgspec.to_builtins(self)
        return found


prepare(Locked)


def lock_text(places: Iterable[Locked]) -> str:
    """Convert lock entries to YAML, the value of the lock annotation."""
    return dump_yaml([each.data for each in places])


def carried_lock(application: ReadOnlyObject) -> tuple[Locked, ...] | None:
    """Parse the lock annotation of an application; return None if the application has none.

    Raise an error if the annotation is invalid.
    """
    annotations: ReadOnlyObject = application["metadata"].get("annotations") or {}
    text = annotations.get(LOCK)
    return None if text is None else _read(str(text))


@lru_cache(maxsize=4096)  # read with every reconcile
def _read(text: str) -> tuple[Locked, ...]:
    documents = load_manifests(text, LOCK_PLACE)
    if len(documents) != 1:
        fact = f"a lock is one list, but this has {len(documents)} documents"
        raise Refusal("InvalidLock", fact, at=LOCK_PLACE, hint="an empty lock is written as []")
    places = tuple(documents[0].read(list[Locked]))
    check_places(documents[0], places)
    return places


def check_places(document: Document, places: Sequence[Locked], *path: str | int) -> None:
    """Raise an error if a lock entry has an invalid definition, version, revision or digest."""
    for number, each in enumerate(places):
        home, _, name = each.definition.partition("/")
        if not home or not name or "/" in name:
            fact = f'"{each.definition}" is not a definition'
            hint = "expected NAMESPACE/NAME"
            raise document.error(fact, *path, number, "definition", hint=hint)
        if not _is_version(each.version):
            fact = f'"{each.version}" is not a version that can be locked'
            hint = "expected 1.2.3, or a revision number"
            raise document.error(fact, *path, number, "version", hint=hint)
        for field in ("revision", "digest"):
            if not getattr(each, field):
                raise document.error(f"the {field} is empty", *path, number, field)


def _is_version(text: str) -> bool:
    for read in (SemVer.parse, Serial.parse):
        try:
            read(text)
        except InvalidVersion:
            continue
        return True
    return False
