"""Adoption: for each release, how many dependents should use it and how many use it.

A dependent is a reference to a lineage in an object, such as a component of an application. A
dependent follows a release if it moves to that release automatically.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

__all__ = ["Adopted", "Adoption", "Follower", "adopted"]

Follower = Literal["", "updated", "held", "failing"]
"""The state of a dependent that follows a release.

`updated`: it uses the release. `held`: it does not move, because the release would delete its
objects. `failing`: its move failed. Empty: it has not tried to move yet.
"""
_NAMED: Final = 3
"""The maximum number of releases that the message of the condition `Adopted` names."""


class Adoption(NamedTuple):
    """The number of dependents that follow one release: in total, and in each state."""

    followers: int = 0
    updated: int = 0
    held: int = 0
    """The number of dependents that do not move because the release would delete their objects."""
    failing: int = 0
    """The number of dependents that tried to move to the release and failed."""

    def with_follower(self, state: Follower, number: int = 1) -> Adoption:
        """Return these counts, increased by `number` dependents in one state."""
        found = self._replace(followers=self.followers + number)
        return found._replace(**{state: getattr(found, state) + number}) if state else found

    @property
    def is_settled(self) -> bool:
        """True if every dependent that follows the release is updated, held or failing."""
        return self.followers == self.updated + self.held + self.failing

    def __str__(self) -> str:
        noun = "follower" if self.followers == 1 else "followers"
        rest = f"{self.updated} on it, {self.held} held, {self.failing} failing"
        return f"{self.followers} {noun}, {rest}"


class Adopted(NamedTuple):
    """The condition `Adopted` of a lineage: True if all followers have moved to their release."""

    status: Literal["True", "False"]
    reason: str
    message: str


def adopted(releases: Mapping[str, Adoption], *, noun: str) -> Adopted:
    """Return the condition `Adopted` of a lineage, from the adoption of its releases.

    The message names the releases in the order of the mapping. `noun` is the capability's word for
    releases, in the plural.

    >>> print(*adopted({"1.2.0": Adoption(3, 2, 0, 1)}, noun="versions"))
    False Failing 1.2.0: 3 followers, 2 on it, 0 held, 1 failing
    """
    if not releases:
        return Adopted("True", "NoFollowers", "nothing follows it")
    told = [f"{name}: {each}" for name, each in releases.items()]
    more = f"; and {len(told) - _NAMED} more {noun}" if len(told) > _NAMED else ""
    known = releases.values()
    if any(each.failing for each in known):
        reason = "Failing"
    elif any(each.held for each in known):
        reason = "Held"
    else:
        reason = "Adopted" if all(each.is_settled for each in known) else "Progressing"
    return Adopted(
        "True" if reason == "Adopted" else "False", reason, "; ".join(told[:_NAMED]) + more
    )
