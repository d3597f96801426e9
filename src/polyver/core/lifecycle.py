"""The stages that a release goes through, and the clock that moves it.

The clock counts releases of whatever ships the lineage, never days: who upgrades seldom is warned
as often as who upgrades daily.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

from polyver.core.errors import PolyverError, listed
from polyver.core.versions import SemVer

if TYPE_CHECKING:
    from polyver.core.lineage import Notes, Release

__all__ = [
    "API_STAGES",
    "DEFINITION_STAGES",
    "FUNCTION_STAGES",
    "NOTICE",
    "REVISION_STAGES",
    "EarlyRemoval",
    "IllegalTransition",
    "Lifecycle",
    "Stage",
    "advance",
    "check_removal",
    "next_stage",
]


class Stage(Enum):
    """Where a release stands; each capability uses some of these (see Lifecycle)."""

    SERVED = "served"
    UNSERVED = "unserved"
    DROPPED = "dropped"
    CANDIDATE = "candidate"
    STABLE = "stable"
    PUBLISHED = "published"
    DEPRECATED = "deprecated"
    REMOVED = "removed"
    INACTIVE = "inactive"
    ACTIVE = "active"

    @property
    def is_gone(self) -> bool:
        """Whether only the number is left: a tombstone, so that it is never used again."""
        return self is Stage.REMOVED or self is Stage.DROPPED


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The legal transitions between the stages of one capability."""

    name: str
    transitions: frozenset[tuple[Stage, Stage]]

    @property
    def stages(self) -> frozenset[Stage]:
        return frozenset(stage for pair in self.transitions for stage in pair)

    def after(self, stage: Stage) -> tuple[Stage, ...]:
        """The stages that may follow this one."""
        return tuple(to for to in Stage if (stage, to) in self.transitions)


def _one_way(name: str, *stages: Stage) -> Lifecycle:
    return Lifecycle(name, frozenset(pairwise(stages)))


API_STAGES = _one_way("apis", Stage.SERVED, Stage.DEPRECATED, Stage.UNSERVED, Stage.DROPPED)
FUNCTION_STAGES = _one_way(
    "functions", Stage.CANDIDATE, Stage.STABLE, Stage.DEPRECATED, Stage.REMOVED
)
DEFINITION_STAGES = _one_way("definitions", Stage.PUBLISHED, Stage.DEPRECATED, Stage.REMOVED)
REVISION_STAGES = Lifecycle(
    "revisions",
    frozenset({(Stage.INACTIVE, Stage.ACTIVE), (Stage.ACTIVE, Stage.INACTIVE)}),
)

NOTICE = 2
"""How many releases a deprecated release stays usable: removal is in the second one or later."""


class IllegalTransition(PolyverError):
    """A release cannot go from its stage to the one asked for."""

    def __init__(self, release: Release, to: Stage, lifecycle: Lifecycle) -> None:
        legal = lifecycle.after(release.stage)
        super().__init__(
            f"{release.name} is {release.stage.value} and cannot become {to.value}",
            hint=f"it can become {listed([stage.value for stage in legal])}"
            if legal
            else "that is its last stage",
        )
        self.release = release
        self.to = to
        self.legal = legal


class EarlyRemoval(PolyverError):
    """A removal that comes fewer than two releases after the deprecation."""

    def __init__(self, name: str, since: SemVer, removed_in: SemVer, notice: int) -> None:
        super().__init__(
            f"{name} is deprecated since {since} and cannot be removed in {removed_in}",
            hint=f"that is {_count(notice)} later, at least {NOTICE} are needed",
        )
        self.since = since
        self.removed_in = removed_in
        self.notice = notice


def _count(releases: int) -> str:
    return "1 release" if releases == 1 else f"{releases} releases"


def advance(
    release: Release, to: Stage, lifecycle: Lifecycle, *, notes: Notes | None = None
) -> Release:
    """The release in its next stage, if its lifecycle allows that."""
    if (release.stage, to) not in lifecycle.transitions:
        raise IllegalTransition(release, to, lifecycle)
    return replace(release, stage=to, notes=notes or release.notes)


def next_stage(release: Release, releases_so_far: Sequence[SemVer]) -> Stage:
    """The stage that the clock gives a release; the newest of the releases so far is now."""
    due = release.notes.removed_in
    if release.stage is not Stage.DEPRECATED or due is None or not releases_so_far:
        return release.stage
    return Stage.REMOVED if max(releases_so_far) >= due else Stage.DEPRECATED


def check_removal(
    name: str, *, since: SemVer, removed_in: SemVer, releases_so_far: Sequence[SemVer]
) -> None:
    """Refuse a removal with less than two releases' notice.

    A removal that is yet to come is counted when it comes: releases may still be put before it.
    """
    if removed_in <= since:
        raise EarlyRemoval(name, since, removed_in, 0)
    if not releases_so_far or removed_in > max(releases_so_far):
        return
    notice = sum(since < release <= removed_in for release in releases_so_far)
    if notice < NOTICE:
        raise EarlyRemoval(name, since, removed_in, notice)
