"""Watch the objects that a controller has applied.

Only the kinds of applied objects are watched. With a label selector, only objects that match the
selector are watched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from polyver.client import Change, Discovery, preferred
from polyver.controllers.controller import Watch
from polyver.controllers.owned_objects.inventory import AppliedObject
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind

__all__ = ["AppliedObjects", "ObservedState", "number_of"]

_VERBS: Final = ("list", "watch")


class ObservedState(Protocol):
    """The part of an applied object that is kept in memory."""

    @property
    def revision(self) -> int:
        """The resourceVersion of the object, as a number."""

    def differs(self, other: Self | None) -> bool:
        """Report whether another state differs so much that the owner must be reconciled."""


S = TypeVar("S", bound=ObservedState)
K = TypeVar("K")


def number_of(obj: Object) -> int:
    """Return the resourceVersion of an object as a number; a higher number is a later state."""
    text = obj["metadata"].get("resourceVersion", "")
    return int(text) if text.isdecimal() else 0


class AppliedObjects(Generic[S, K]):
    """The last known state of all objects that a controller has applied."""

    def __init__(
        self,
        changed: Callable[[], None],
        *,
        keep: Callable[[ResourceKind, Object], S],
        whose: Callable[[S], K | None],
        labels: str = "",
        metadata: bool = False,
    ) -> None:
        """Create an index without objects.

        `changed` is called when other kinds must be watched than before. `keep` returns the part of
        an object to keep in memory. `whose` returns from this part the key of the owner. With
        `metadata`, only the metadata of objects is watched and passed to `keep`.
        """
        self._changed = changed
        self._keep = keep
        self._whose = whose
        self._labels = labels
        self._metadata = metadata
        self._kinds: set[tuple[str, str]] = set()
        self._followed: set[tuple[str, str]] = set()
        self._seen: dict[AppliedObject, S] = {}
        self._expected: set[AppliedObject] = set()
        """Objects that this process is applying now.

        A watch may report the applied object before the response to the request arrives.
        """

    def watch(self) -> Watch[S, K]:
        return Watch(
            kinds=self._in_use,
            observe=self._observe,
            keep=self._keep,
            labels=self._labels,
            metadata=self._metadata,
            needed=False,
            complete=lambda kind: self._followed.add((kind.group, kind.kind)),
            forget=self._forget,
        )

    def use(self, kinds: Iterable[tuple[str, str]]) -> None:
        """Also watch these kinds, given as group and kind."""
        new = set(kinds) - self._kinds
        if new:
            self._kinds |= new
            self._changed()

    def is_followed(self, part: AppliedObject) -> bool:
        """Report whether the kind of an object is watched."""
        return (part.group, part.kind) in self._followed

    def of(self, part: AppliedObject) -> S | None:
        return self._seen.get(part)

    @contextmanager
    def expected(self, part: AppliedObject) -> Iterator[None]:
        """Ignore watch events for an object during the `with` block, in which it is applied."""
        self._expected.add(part)
        try:
            yield
        finally:
            self._expected.discard(part)

    def note(self, part: AppliedObject, obj: Object | None) -> bool:
        """Record the state of an object that was applied or read (None if it does not exist).

        Return False if a watch has already reported a newer state that differs from this state.
        """
        if obj is None:
            self._seen.pop(part, None)
            return True
        known, seen = self._seen.get(part), self._keep(_ANY, obj)
        if known is not None and known.revision > seen.revision:
            return not known.differs(seen)
        self._seen[part] = seen
        return True

    def _in_use(self, discovery: Discovery) -> list[ResourceKind]:
        served = preferred(discovery.kinds, verbs=_VERBS)
        return [kind for kind in served if (kind.group, kind.kind) in self._kinds]

    def _observe(self, kind: ResourceKind, change: Change[S]) -> Iterable[K]:
        part = AppliedObject(kind.group, kind.kind, *change.key)
        known = self._seen.get(part)
        after = change.after
        if after is None:
            return self._keys(self._seen.pop(part, None))
        if known is not None and known.revision > after.revision:
            return ()  # a newer state is known already
        self._seen[part] = after
        if part in self._expected or not after.differs(known):
            return ()
        return self._keys(after, known)

    def _keys(self, *seen: S | None) -> set[K]:
        keys = {self._whose(each) for each in seen if each is not None}
        return {key for key in keys if key is not None}

    def _forget(self, kind: ResourceKind, known: Iterable[S]) -> Iterable[K]:
        """Drop the objects of a kind that is not served any more; return the keys of their owners.

        It is unknown whether these objects still exist.
        """
        named = kind.group, kind.kind
        self._followed.discard(named)
        for part in [each for each in self._seen if (each.group, each.kind) == named]:
            del self._seen[part]
        return self._keys(*known)


_ANY: Any = None
