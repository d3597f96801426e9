"""Adopting: how many composite resources follow a release, and how many of them have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from polyver.capabilities.revisions._conditions import Fact

__all__ = ["Adoption", "Follower", "adopted_fact", "adoption_of"]

Follower = Literal["", "updated", "held", "failing"]
"""What became of one that follows a release; empty if it has not tried it yet."""
_NAMED: Final = 3


class Adoption(NamedTuple):
    """How many composite resources follow a release, and what became of them."""

    followers: int = 0
    updated: int = 0
    held: int = 0
    failing: int = 0

    @property
    def is_settled(self) -> bool:
        """Whether each of them has tried it."""
        return self.followers == self.updated + self.held + self.failing

    def __str__(self) -> str:
        noun = "follower" if self.followers == 1 else "followers"
        rest = f"{self.updated} on it, {self.held} held, {self.failing} failing"
        return f"{self.followers} {noun}, {rest}"


def adoption_of(followers: Iterable[tuple[str, Follower]]) -> dict[str, Adoption]:
    """The adoption of each release, by its name."""
    found: dict[str, Adoption] = {}
    for release, state in followers:
        known = found.get(release, Adoption())
        known = known._replace(followers=known.followers + 1)
        if state:
            known = known._replace(**{state: getattr(known, state) + 1})
        found[release] = known
    return found


def adopted_fact(adoption: Mapping[str, Adoption]) -> Fact:
    """The condition `Adopted` of a Composition or a Function."""
    if not adoption:
        return Fact("Adopted", "True", "NoFollowers", "nothing follows it")
    told = [f"{name}: {each}" for name, each in sorted(adoption.items())]
    more = f"; and {len(told) - _NAMED} more revisions" if len(told) > _NAMED else ""
    message = "; ".join(told[:_NAMED]) + more
    reason = _reason([*adoption.values()])
    return Fact("Adopted", "True" if reason == "Adopted" else "False", reason, message)


def _reason(known: list[Adoption]) -> str:
    if any(each.failing for each in known):
        return "Failing"
    if any(each.held for each in known):
        return "Held"
    return "Adopted" if all(each.is_settled for each in known) else "Progressing"
