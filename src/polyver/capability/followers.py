"""An index that counts the followers of a release by their state, such as `healthy`.

A follower is an object that uses a lineage and moves to new releases by itself. If one follower
changes, the index updates only the counts of the releases that this follower may use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from polyver.capability.gates import LineageName
from polyver.core import Dependent, Lineage
from polyver.core.cohorts import Cohorts, FollowerState

__all__ = ["FollowerIndex", "has_same_followers", "lineage_with_open"]

_SLICE: Final = 500
"""The number of objects that are counted at a time."""
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(slots=True)
class _Counted:
    """The followers of one release."""

    opened: Lineage | None
    """The lineage as if this release had no gate; None if the lineage does not have the release."""
    cohorts: Cohorts = field(default_factory=Cohorts)
    is_complete: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all followers have been counted once."""
    changed: set[Any] = field(default_factory=set)
    """The keys of the objects that changed during the first count of all followers. They are
    counted again after it.
    """


class FollowerIndex(Generic[K, T]):
    """The objects that use lineages, and the followers of each release by their state.

    A topic is a value, such as a kind and a name, that connects objects with lineages: `topics`
    returns the topics of an object, and `topic` returns the topic of a lineage. An object may use a
    lineage only if it has the topic of this lineage. `opened` returns a lineage as if one of its
    releases had no gate. `state` returns the dependent to count for an object, and its state
    towards a release. It returns None if the object does not follow the release.
    """

    def __init__(
        self,
        *,
        topics: Callable[[T], Iterable[Hashable]],
        topic: Callable[[LineageName], Hashable],
        opened: Callable[[LineageName, str], Lineage | None],
        state: Callable[[K, T, LineageName, Lineage, str], tuple[Dependent, FollowerState] | None],
    ) -> None:
        self._topics = topics
        self._topic = topic
        self._opened = opened
        self._state = state
        self._known: dict[K, tuple[T, frozenset[Hashable]]] = {}
        """The objects, each with its topics."""
        self._users: dict[Hashable, set[K]] = {}
        self._counted: dict[tuple[LineageName, str], _Counted] = {}

    def observe(self, key: K, after: T | None) -> set[Hashable]:
        """Record the new state `after` of an object; None removes the object from the index.

        Return the topics that the object had before or has now.
        """
        _, old = self._known.pop(key, (None, frozenset[Hashable]()))
        new = frozenset(self._topics(after)) if after is not None else frozenset()
        for topic in old - new:
            self._users[topic].discard(key)
        for topic in new:
            self._users.setdefault(topic, set()).add(key)
        if after is not None:
            self._known[key] = (after, new)
        touched = {*old, *new}
        for (lineage, release), counted in self._counted.items():
            if self._topic(lineage) in touched:
                self._count(counted, lineage, release, key)
        return touched

    def again(self, key: K) -> set[Hashable]:
        """Compute the topics of an object again, and return its old and its new topics."""
        obj, _ = self._known.get(key, (None, None))
        return self.observe(key, obj)

    def known(self) -> list[tuple[K, T]]:
        """Return all objects with their keys."""
        return [(key, obj) for key, (obj, _) in self._known.items()]

    def changed(self, topic: Hashable, is_same: Callable[[str], bool]) -> None:
        """Discard the counts of the releases whose lineage has this topic.

        The next call of `followers` computes them again. If `is_same(release)` returns True, the
        count of this release is kept, because the release still has the same followers.
        """
        for lineage, release in [*self._counted]:
            if self._topic(lineage) == topic and not is_same(release):
                del self._counted[lineage, release]

    async def followers(self, lineage: LineageName, release: str) -> Cohorts:
        """Return the followers of a release by their state.

        The first call counts all objects that use the lineage. It gives other tasks a turn after
        each slice of them.
        """
        while True:
            counted = self._counted.get((lineage, release))
            if counted is None:
                counted = _Counted(self._opened(lineage, release))
                self._counted[lineage, release] = counted
                await self._count_all(counted, lineage, release)
            await counted.is_complete.wait()
            if self._counted.get((lineage, release)) is counted:
                return counted.cohorts

    async def _count_all(self, counted: _Counted, lineage: LineageName, release: str) -> None:
        keys, found = [*self._users.get(self._topic(lineage), ())], []
        try:
            for start in range(0, len(keys), _SLICE):
                for key in keys[start : start + _SLICE]:
                    one = self._follower(counted, lineage, release, key)
                    found += [one] if one is not None else []
                await asyncio.sleep(0)
            counted.cohorts.put_all(found)
        except BaseException:
            self._counted.pop((lineage, release), None)
            raise
        finally:
            counted.is_complete.set()
        for key in counted.changed:
            self._count(counted, lineage, release, key)

    def _count(self, counted: _Counted, lineage: LineageName, release: str, key: K) -> None:
        """Update the count of the followers of a release after the object `key` has changed."""
        if not counted.is_complete.is_set():
            counted.changed.add(key)
            return
        found = self._follower(counted, lineage, release, key)
        if found is None:
            counted.cohorts.remove(_name(key))
        else:
            counted.cohorts.put(*found)

    def _follower(
        self, counted: _Counted, lineage: LineageName, release: str, key: K
    ) -> tuple[Dependent, FollowerState] | None:
        """Return the dependent of an object, and its state towards a release.

        Return None if the object does not follow the release.
        """
        known, _ = self._known.get(key, (None, None))
        if known is None or counted.opened is None:
            return None
        found = self._state(key, known, lineage, counted.opened, release)
        if found is None:
            return None
        dependent, state = found
        return Dependent(_name(key), uid=dependent.uid, labels=dependent.labels), state


def _name(key: Hashable) -> str:
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)


def lineage_with_open(lineage: Lineage | None, release: str) -> Lineage | None:
    """Return a copy of a lineage in which one release has no gate.

    Return None if the lineage does not have this release.
    """
    if lineage is None or lineage.get(release) is None:
        return None
    opened = [replace(each, gate=None) if each.name == release else each for each in lineage]
    return Lineage(lineage.name, opened)


def has_same_followers(before: Lineage, after: Lineage, release: str) -> bool:
    """Report whether a release has the same followers in both states of its lineage.

    A change of the release's own gate makes no difference.
    """
    opened = (lineage_with_open(each, release) for each in (before, after))
    was, now = (each.releases if each is not None else None for each in opened)
    return was == now
