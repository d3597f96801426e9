"""What controllers have applied for others, as it is on the server, followed by watches.

The kinds that are in use are watched, and of these only what has a certain label, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from polyver.client import Change, Discovery, preferred
from polyver.controllers.applied_annotation import AppliedObject
from polyver.controllers.controller import Watch
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind

__all__ = ["AppliedObjects", "ObservedState", "number_of"]

_VERBS: Final = ("list", "watch")


class ObservedState(Protocol):
    """What is kept of an object."""

    @property
    def revision(self) -> int:
        """Its resourceVersion, as a number."""

    def differs(self, other: Self | None) -> bool:
        """Whether another state means something else for those who look at it."""


S = TypeVar("S", bound=ObservedState)
K = TypeVar("K")


def number_of(obj: Object) -> int:
    """The resourceVersion of an object: a higher one is later."""
    text = obj["metadata"].get("resourceVersion", "")
    return int(text) if text.isdecimal() else 0


class AppliedObjects(Generic[S, K]):
    """What is known of all objects that were applied."""

    def __init__(
        self,
        changed: Callable[[], None],
        *,
        keep: Callable[[ResourceKind, Object], S],
        whose: Callable[[S], K | None],
        labels: str = "",
        metadata: bool = False,
    ) -> None:
        """`changed` is called when other kinds have to be watched; `whose` tells a key.

        With `metadata`, `keep` is given the metadata of objects alone.
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
        """What is being applied: a watch may tell of it before the answer is here."""

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
        """Have these kinds, by group and name, watched from now on."""
        new = set(kinds) - self._kinds
        if new:
            self._kinds |= new
            self._changed()

    def is_followed(self, part: AppliedObject) -> bool:
        """Whether changes of it are told."""
        return (part.group, part.kind) in self._followed

    def of(self, part: AppliedObject) -> S | None:
        return self._seen.get(part)

    @contextmanager
    def expected(self, part: AppliedObject) -> Iterator[None]:
        """While an object is applied, what is told of it is no news."""
        self._expected.add(part)
        try:
            yield
        finally:
            self._expected.discard(part)

    def note(self, part: AppliedObject, obj: Object | None) -> bool:
        """Take note of an object that was applied or read; whether nothing newer is known.

        None if there is none.
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
            return ()  # what was applied since is known already
        self._seen[part] = after
        if part in self._expected or not after.differs(known):
            return ()
        return self._keys(after, known)

    def _keys(self, *seen: S | None) -> set[K]:
        keys = {self._whose(each) for each in seen if each is not None}
        return {key for key in keys if key is not None}

    def _forget(self, kind: ResourceKind, known: Iterable[S]) -> Iterable[K]:
        """Nobody knows whether objects of a kind are there that is not served."""
        named = kind.group, kind.kind
        self._followed.discard(named)
        for part in [each for each in self._seen if (each.group, each.kind) == named]:
            del self._seen[part]
        return self._keys(*known)


_ANY: Any = None
