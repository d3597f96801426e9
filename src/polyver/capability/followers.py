"""The followers of lineages, counted by their states towards the releases of rollouts.

A follower is an object that uses a lineage and moves to new releases by itself. A change of one
follower updates only the counts in which it takes part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from polyver.capability.gates import LineageName
from polyver.core import Dependent, Lineage
from polyver.core.cohorts import Cohorts, FollowerState

__all__ = ["FollowerIndex", "lineage_with_open"]

_SLICE: Final = 500
"""The number of objects that are counted at a time."""
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(slots=True)
class _Counted:
    """The followers of one release."""

    opened: Lineage | None
    """The lineage without the gate of the release; None if the lineage lacks the release."""
    cohorts: Cohorts = field(default_factory=Cohorts)
    is_complete: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all followers have been counted once."""
    changed: set[Any] = field(default_factory=set)
    """The keys of objects that have changed while all followers were counted."""


class FollowerIndex(Generic[K, T]):
    """The objects that use lineages, and the counts of those that follow a release.

    `topics` returns the names by which an object refers to lineages. `topic` returns the name of a
    lineage; each object that may use the lineage must have this name among its topics. `opened`
    returns a lineage without the gate of one of its releases. `state` returns the dependent to
    count for an object, and its state towards a release; None if the object does not follow the
    release.
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
        """Record an object, or its deletion (None). Return the topics of the old and new state."""
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
        """Record a known object again, whose topics may have changed; return the topics."""
        obj, _ = self._known.get(key, (None, None))
        return self.observe(key, obj)

    def known(self) -> list[tuple[K, T]]:
        """Return all objects with their keys."""
        return [(key, obj) for key, (obj, _) in self._known.items()]

    def changed(self, topic: Hashable, is_same: Callable[[str], bool]) -> None:
        """Forget the counts of the lineages with this topic; `followers` computes them again.

        `is_same` reports whether the release with this name still has the same followers.
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
        """Update the state of one object towards a release."""
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
        """Return the dependent of an object, and its state; None if it does not follow."""
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
    """Return a lineage without the gate of one release; None if the lineage does not have it."""
    if lineage is None or lineage.get(release) is None:
        return None
    opened = [replace(each, gate=None) if each.name == release else each for each in lineage]
    return Lineage(lineage.name, opened)
