"""Adoption of a Composition's or a Function's revisions by composite resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from polyver.core.adoption import Adoption, Follower, adopted
from polyver.kube.objects.conditions import DesiredCondition

__all__ = ["adopted_fact", "adoption_of"]


def adoption_of(followers: Iterable[tuple[str, Follower]]) -> dict[str, Adoption]:
    """Return the adoption of each release, by its name."""
    found: dict[str, Adoption] = {}
    for release, state in followers:
        found[release] = found.get(release, Adoption()).with_follower(state)
    return found


def adopted_fact(adoption: Mapping[str, Adoption]) -> DesiredCondition:
    """Return the condition `Adopted` of a Composition or a Function."""
    return DesiredCondition("Adopted", *adopted(dict(sorted(adoption.items())), noun="revisions"))
