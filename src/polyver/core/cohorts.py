"""The followers of a lineage, counted by their state inside of a rollout's cohort.

The cohort of a rollout is the followers that may use its release. To count them takes a few binary
searches, whatever their number is: the followers are kept in sorted lists, one for each state and
each combination of the labels that steps name.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from polyver.core.lineage import Dependent
from polyver.core.rollout import CohortCounts, Exposure

__all__ = ["WORST_FIRST", "Cohorts", "FollowerState"]

FollowerState = Literal[
    "waiting", "moved", "healthy", "failing", "unhealthy", "held", "idle", "running"
]
"""The state of a follower towards the release of a rollout:

`waiting` has not tried the release, `moved` uses it and is not ready yet, `healthy` uses it and is
healthy, `unhealthy` uses it and has failed, `failing` could not move to it, `held` did not move
because it would lose objects. A follower that only uses a release when somebody runs it is `idle`
before that, and `running` until its run ends.
"""
WORST_FIRST: Final[tuple[FollowerState, ...]] = (
    "failing",
    "held",
    "unhealthy",
    "waiting",
    "moved",
    "healthy",
)
"""If the references of one object have several states, the first state in this order counts."""
_USING: tuple[FollowerState, ...] = ("moved", "healthy", "unhealthy", "running")
_Sides = tuple[bool, ...]
_Member = tuple[float, str]


class Cohorts:
    """The followers of one lineage, each with its state towards one release.

    >>> cohorts = Cohorts()
    >>> for number in range(100):
    ...     cohorts.put(Dependent(str(number), uid=str(number)), "healthy")
    >>> cohorts.counts(Exposure(share=1.0)).healthy
    100
    """

    def __init__(self) -> None:
        self._followers: dict[str, tuple[Dependent, FollowerState, _Sides]] = {}
        self._members: dict[tuple[FollowerState, _Sides], list[_Member]] = {}
        self._all: list[_Member] = []
        self._labels: tuple[Mapping[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self._followers)

    def put(self, follower: Dependent, state: FollowerState) -> None:
        """Add a follower, or replace what is known of it."""
        self.remove(follower.name)
        sides = self._sides(follower)
        member = (follower.position, follower.name)
        self._followers[follower.name] = (follower, state, sides)
        insort(self._members.setdefault((state, sides), []), member)
        insort(self._all, member)

    def put_all(self, followers: Iterable[tuple[Dependent, FollowerState]]) -> None:
        """Add many followers that are not known yet; this is faster than adding each of them."""
        for follower, state in followers:
            sides = self._sides(follower)
            member = (follower.position, follower.name)
            self._followers[follower.name] = (follower, state, sides)
            self._members.setdefault((state, sides), []).append(member)
            self._all.append(member)
        for members in (*self._members.values(), self._all):
            members.sort()

    def remove(self, name: str) -> None:
        """Remove a follower; do nothing if it is not known."""
        known = self._followers.pop(name, None)
        if known is None:
            return
        follower, state, sides = known
        member = (follower.position, name)
        for members in (self._members[state, sides], self._all):
            del members[bisect_left(members, member)]

    def state(self, name: str) -> FollowerState | None:
        """Return the state of a follower, or None if it is not known."""
        known = self._followers.get(name)
        return known[1] if known is not None else None

    def counts(self, exposure: Exposure) -> CohortCounts:
        """Return the number of followers by state in the cohort of an exposure."""
        self._group_by(exposure.labels)
        found: dict[FollowerState, int] = {}
        for (state, sides), members in self._members.items():
            inside = self._inside(state, sides, members, exposure)
            found[state] = found.get(state, 0) + inside
        healthy, unhealthy = found.get("healthy", 0), found.get("unhealthy", 0)
        running = found.get("running", 0)
        return CohortCounts(
            total=len(self._followers),
            cohort=sum(found.values()),
            moved=found.get("moved", 0) + healthy + unhealthy + running,
            healthy=healthy,
            failing=found.get("failing", 0) + unhealthy,
            held=found.get("held", 0),
            waiting=found.get("waiting", 0),
            idle=found.get("idle", 0),
            running=running,
        )

    def threshold(self, count: int) -> float:
        """Return the share with which this number of followers is in the cohort.

        >>> cohorts = Cohorts()
        >>> for number in range(9):
        ...     cohorts.put(Dependent(str(number), uid=str(number)), "waiting")
        >>> cohorts.counts(Exposure(cohorts.threshold(4))).cohort
        4
        """
        if count >= len(self._all):
            return 1.0
        return self._all[count][0]

    def names(self, exposure: Exposure, *states: FollowerState) -> list[str]:
        """Return the names of the followers of a cohort in some states, by position."""
        self._group_by(exposure.labels)
        found: list[_Member] = []
        for (state, sides), members in self._members.items():
            if state in states:
                found += members[: self._inside(state, sides, members, exposure)]
        return [name for _, name in sorted(found)]

    @staticmethod
    def _inside(
        state: FollowerState, sides: _Sides, members: list[_Member], exposure: Exposure
    ) -> int:
        """Return how many of these followers, from the lowest position on, are in the cohort.

        A follower that uses the release stays in the cohort when its labels change.
        """
        if any(sides) or state in _USING:
            return len(members)
        return bisect_left(members, (exposure.share, ""))

    def _group_by(self, labels: tuple[Mapping[str, str], ...]) -> None:
        """Group the followers by the labels of steps that they have, unless they are grouped so."""
        if labels == self._labels:
            return
        self._labels = labels
        self._members = {}
        for name, (follower, state, _) in self._followers.items():
            sides = self._sides(follower)
            self._followers[name] = (follower, state, sides)
            self._members.setdefault((state, sides), []).append((follower.position, name))
        for members in self._members.values():
            members.sort()

    def _sides(self, follower: Dependent) -> _Sides:
        return tuple(wanted.items() <= follower.labels.items() for wanted in self._labels)
