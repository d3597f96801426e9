"""What a lock says of one place, and the text in which an application carries its own.

The file of a whole cluster has the same for many applications; nothing in it tells a time, so
that the same result is the same text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from polyver.capability import Refusal
from polyver.core import InvalidVersion, Pin, SemVer, Serial
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.names import LOCK, TYPES
from polyver.kube.objects import Document, dump_yaml, load_manifests
from polyver.kube.objects.codec import prepare

__all__ = ["LOCK_PLACE", "Locked", "LockedPlaces", "carried_lock", "check_places", "lock_text"]

LOCK_PLACE = f"metadata.annotations[{LOCK}]"


class Locked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The version that one place of an application has, by what is the same everywhere."""

    kind: Literal["Component", "Trait", "Policy", "WorkflowStep"]
    component: str
    """The component, or what else names the place."""
    definition: str
    """With its namespace."""
    requested: str = ""
    version: str
    revision: str
    """The name of its DefinitionRevision."""
    digest: str

    @property
    def home(self) -> str:
        """The namespace of the definition."""
        return self.definition.rpartition("/")[0]

    @property
    def key(self) -> tuple[str, str, str]:
        """What does not change when places are put in another order."""
        return self.kind, self.component, self.definition.rpartition("/")[2]

    @property
    def pin(self) -> Pin:
        """What the release is called in its lineage: revisions that are numbered have a name."""
        try:
            return Pin(str(SemVer.parse(self.version)), self.digest)
        except InvalidVersion:
            return Pin(self.revision, self.digest)

    @property
    def data(self) -> dict[str, str]:
        """As it is written, always in the same order."""
        found: dict[str, str] = msgspec.to_builtins(self)
        return found


prepare(Locked)


class LockedPlaces:
    """The places of a lock, each of which is taken once."""

    def __init__(self, places: Iterable[Locked]) -> None:
        self._left: dict[tuple[str, str, str], list[Locked]] = {}
        for each in places:
            self._left.setdefault(each.key, []).append(each)

    def take(self, kind: str, place: str, name: str) -> Locked | None:
        """The next one that is left for a place and a definition."""
        left = self._left.get((TYPES[kind], place, name))
        return left.pop(0) if left else None


def lock_text(places: Iterable[Locked]) -> str:
    """Places as an application carries them."""
    return dump_yaml([each.data for each in places])


def carried_lock(application: ReadOnlyObject) -> tuple[Locked, ...] | None:
    """The lock that an application carries, if it does; what cannot be read is refused."""
    annotations: ReadOnlyObject = application["metadata"].get("annotations") or {}
    text = annotations.get(LOCK)
    return None if text is None else _read(str(text))


@lru_cache(maxsize=4096)  # every look at an application reads it
def _read(text: str) -> tuple[Locked, ...]:
    documents = load_manifests(text, LOCK_PLACE)
    if len(documents) != 1:
        fact = f"a lock is one list, but this has {len(documents)} documents"
        raise Refusal("InvalidLock", fact, at=LOCK_PLACE, hint="an empty lock is written as []")
    places = tuple(documents[0].read(list[Locked]))
    check_places(documents[0], places)
    return places


def check_places(document: Document, places: Sequence[Locked], *path: str | int) -> None:
    """Refuse what no definition and no version can be called."""
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
