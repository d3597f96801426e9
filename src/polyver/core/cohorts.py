"""Count the followers in the cohort of a rollout by their state.

The followers of a lineage are the dependents that move to new releases automatically. The cohort of
a rollout consists of the followers that may use its release. Counting takes a few binary searches,
whatever the number of followers is: sorted lists hold the followers, one list for each state and
each combination of the labels that rollout steps name.
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
because it would lose objects. Some followers use a release only in a run that somebody starts. Such
a follower is `idle` before its first run with the release, and `running` until this run ends.
"""
WORST_FIRST: Final[tuple[FollowerState, ...]] = (
    "failing",
    "held",
    "unhealthy",
    "waiting",
    "moved",
    "healthy",
)
"""The states from the worst to the best, without `idle` and `running`.

An object whose references have several states gets the first of these states.
"""
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
        """Add a follower and its state, or replace the follower with the same name."""
        self.remove(follower.name)
        sides = self._sides(follower)
        member = (follower.position, follower.name)
        self._followers[follower.name] = (follower, state, sides)
        insort(self._members.setdefault((state, sides), []), member)
        insort(self._all, member)

    def put_all(self, followers: Iterable[tuple[Dependent, FollowerState]]) -> None:
        """Add many followers with new names; this is faster than calling `put` for each of them."""
        for follower, state in followers:
            sides = self._sides(follower)
            member = (follower.position, follower.name)
            self._followers[follower.name] = (follower, state, sides)
            self._members.setdefault((state, sides), []).append(member)
            self._all.append(member)
        for members in (*self._members.values(), self._all):
            members.sort()

    def remove(self, name: str) -> None:
        """Remove the follower with this name, if there is one."""
        known = self._followers.pop(name, None)
        if known is None:
            return
        follower, state, sides = known
        member = (follower.position, name)
        for members in (self._members[state, sides], self._all):
            del members[bisect_left(members, member)]

    def state(self, name: str) -> FollowerState | None:
        """Return the state of the follower with this name; None if there is no such follower."""
        known = self._followers.get(name)
        return known[1] if known is not None else None

    def counts(self, exposure: Exposure) -> CohortCounts:
        """Count the followers that `exposure` lets use the release, by their state."""
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
        """Return the `Exposure.share` with which `count` followers are in the cohort.

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
        """Return the names of the followers in the cohort whose state is one of `states`.

        The cohort has the followers that `exposure` lets use the release. The names are in the
        order of the followers' positions.
        """
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
        """Return how many of `members` are in the cohort; these are the first ones.

        All members are in the cohort if a step selects them by their labels (see `sides`), or if
        they already use the release. So a follower that uses the release stays in the cohort when
        its labels change.
        """
        if any(sides) or state in _USING:
            return len(members)
        return bisect_left(members, (exposure.share, ""))

    def _group_by(self, labels: tuple[Mapping[str, str], ...]) -> None:
        """Group the followers again if the steps select followers by other labels than before."""
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
