"""The stages of a release, and the rules for moving a release to its next stage.

A release is one version in a lineage, such as version v1beta1 of an API. A product release is a
version of the software that ships the lineage. The time between deprecation and removal is counted
in product releases, never in days, so that users who upgrade seldom also see the warning. Only
minor and major product releases count. Patch releases do not count, because two of them may come on
the same day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

from polyver.core.errors import PolyverError, listed
from polyver.core.versions import KubeVersion, SemVer

if TYPE_CHECKING:
    from polyver.core.lineage import Notes, Release

__all__ = [
    "API_STAGES",
    "DEFINITION_STAGES",
    "FUNCTION_STAGES",
    "NOTICE",
    "REVISION_STAGES",
    "Contradiction",
    "EarlyRemoval",
    "IllegalTransition",
    "Lifecycle",
    "Stage",
    "advance",
    "check_dates",
    "check_releases",
    "check_removal",
    "next_stage",
    "usual_removal",
]


class Stage(Enum):
    """The stage of a release.

    Each capability uses only some of these stages: those in its `Lifecycle`.
    """

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
        """True if the release was removed. No new release may have the version of a removed one."""
        return self is Stage.REMOVED or self is Stage.DROPPED


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The allowed transitions between the stages of one capability."""

    transitions: frozenset[tuple[Stage, Stage]]

    def after(self, stage: Stage) -> tuple[Stage, ...]:
        """Return the stages to which a release in `stage` may move."""
        return tuple(to for to in Stage if (stage, to) in self.transitions)


def _one_way(*stages: Stage) -> Lifecycle:
    return Lifecycle(frozenset(pairwise(stages)))


API_STAGES = _one_way(Stage.SERVED, Stage.DEPRECATED, Stage.UNSERVED, Stage.DROPPED)
# A candidate that never becomes stable can be removed, with the same notice as a stable release.
FUNCTION_STAGES = Lifecycle(
    _one_way(Stage.CANDIDATE, Stage.STABLE, Stage.DEPRECATED, Stage.REMOVED).transitions
    | {(Stage.CANDIDATE, Stage.DEPRECATED)}
)
DEFINITION_STAGES = _one_way(Stage.PUBLISHED, Stage.DEPRECATED, Stage.REMOVED)
REVISION_STAGES = Lifecycle(
    frozenset({(Stage.INACTIVE, Stage.ACTIVE), (Stage.ACTIVE, Stage.INACTIVE)})
)

NOTICE = 2
"""The minimum number of minor or major product releases from a deprecation to the removal.

The product release of the removal counts. So the second such product release after the deprecation
is the first that may remove the deprecated release.
"""


class IllegalTransition(PolyverError):
    """A release cannot go from its stage to the requested stage."""

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


class Contradiction(PolyverError):
    """The stages and the product releases that an author wrote contradict each other.

    `field` is the path of the wrong field as a tuple; it is empty if the error has no field.
    """

    def __init__(self, fact: str, *field: str | int, hint: str = "") -> None:
        super().__init__(fact, hint=hint)
        self.field = field


class EarlyRemoval(Contradiction):
    """A removal before the second minor or major product release after the deprecation."""

    def __init__(self, name: str, since: SemVer, removed_in: SemVer, notice: int) -> None:
        super().__init__(
            f"{name} is deprecated since {since} and cannot be removed in {removed_in}",
            "removedIn",
            hint=f"that is {_count(notice)} later, at least {NOTICE} are needed; patch releases "
            "and prereleases do not count",
        )
        self.since = since
        self.removed_in = removed_in
        self.notice = notice


def _count(releases: int) -> str:
    plural = "" if releases == 1 else "s"
    return f"{releases} minor or major release{plural}"


def advance(
    release: Release, to: Stage, lifecycle: Lifecycle, *, notes: Notes | None = None
) -> Release:
    """Return the release in the stage `to`; raise `IllegalTransition` if that is not allowed.

    `notes` replaces the notes of the release; without `notes`, they stay.
    """
    if (release.stage, to) not in lifecycle.transitions:
        raise IllegalTransition(release, to, lifecycle)
    return replace(release, stage=to, notes=notes or release.notes)


def next_stage(release: Release, releases_so_far: Sequence[SemVer]) -> Stage:
    """Return the stage that a release has in the newest product release.

    A deprecated release leaves this stage in the product release that its notes name in
    `removed_in`: an API version becomes unserved, any other release is removed.
    """
    due = release.notes.removed_in
    if release.stage is not Stage.DEPRECATED or due is None or not releases_so_far:
        return release.stage
    if max(releases_so_far) < due:
        return Stage.DEPRECATED
    return Stage.UNSERVED if isinstance(release.version, KubeVersion) else Stage.REMOVED


def check_removal(
    name: str, *, since: SemVer, removed_in: SemVer, releases_so_far: Sequence[SemVer]
) -> None:
    """Raise `EarlyRemoval` if a release is removed too soon after its deprecation.

    `since` and `removed_in` are the product releases of the deprecation and of the removal. The
    removal must be in the second minor or major product release after the deprecation, or later.
    For a removal in the future, the product releases that may still come before the removal also
    count.
    """
    if removed_in <= since:
        raise EarlyRemoval(name, since, removed_in, 0)
    now = max(releases_so_far, default=since)
    # Product releases that differ only in the patch number count once; prereleases never count.
    minor_releases = {
        (each.major, each.minor)
        for each in releases_so_far
        if not each.is_prerelease
        and each <= removed_in
        and (each.major, each.minor) > (since.major, since.minor)
    }
    notice = len(minor_releases)
    if removed_in > now:
        if removed_in.major != now.major:
            return  # any number of minor product releases may come before the next major one
        notice += removed_in.minor - now.minor
    if notice < NOTICE:
        raise EarlyRemoval(name, since, removed_in, notice)


def usual_removal(releases_so_far: Sequence[SemVer]) -> SemVer:
    """Return the default product release of a removal: two minor releases after the newest one.

    >>> usual_removal([SemVer.parse("0.3.0"), SemVer.parse("0.3.1")])
    SemVer('0.5.0')
    """
    now = max(releases_so_far)
    return SemVer.parse(f"{now.major}.{now.minor + NOTICE}.0")


def check_releases(releases: Sequence[SemVer]) -> None:
    """Raise `Contradiction` if the list of product releases is empty or not in ascending order."""
    if not releases:
        raise Contradiction("no release is listed")
    for number, (one, other) in enumerate(pairwise(releases), start=1):
        if one >= other:
            raise Contradiction(f"{other} does not come after {one}", number)


def check_dates(name: str, release: Release, releases_so_far: Sequence[SemVer]) -> None:
    """Check the fields `since` and `removedIn` of a release; raise `Contradiction` on an error.

    Both fields name product releases. They must fit the stage of the release, the product releases
    so far, and one another.
    """
    stage, since, removed_in = release.stage, release.notes.since, release.notes.removed_in
    now = max(releases_so_far)
    if stage is Stage.DEPRECATED and since is None:
        raise Contradiction(f"{name} is deprecated without the field since")
    if stage is Stage.REMOVED and removed_in is None:
        raise Contradiction(f"{name} is removed without the field removedIn")
    if stage is Stage.REMOVED and removed_in is not None and removed_in > now:
        raise Contradiction(f"{name} is removed in {removed_in}, but now is {now}", "removedIn")
    if stage in (Stage.CANDIDATE, Stage.STABLE) and (since or removed_in):
        raise Contradiction(f"{name} is {stage.value}, and cannot have since or removedIn")
    if since is not None and since not in releases_so_far:
        raise Contradiction(f"{name}: {since} is not one of the releases", "since")
    if since is not None and removed_in is not None:
        check_removal(name, since=since, removed_in=removed_in, releases_so_far=releases_so_far)
