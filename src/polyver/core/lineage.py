"""A lineage: all releases of one building block, indexed so that a release is chosen quickly.

A building block is for example an API, a ComponentDefinition or a blueprint function. A set of
releases is an integer: bit i stands for the i-th release in ascending order. `resolve` joins the
sets of all rules with `&` and chooses the highest bit that is left, so that choosing among a
thousand releases takes a few operations.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NoReturn

from polyver.core.errors import PolyverError
from polyver.core.lifecycle import Stage
from polyver.core.versions import SemVer, Serial, Series, Version

__all__ = [
    "Dependent",
    "FailedMove",
    "Gate",
    "Lineage",
    "MixedOrders",
    "Notes",
    "Pin",
    "Release",
    "VersionTaken",
    "is_same",
]

_LAST = math.nextafter(1.0, 0.0)


class _Labels(dict[str, str]):
    """Labels that cannot be changed: they have a hash, and can be part of a hashable value."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[_Labels], tuple[dict[str, str]]]:
        return _Labels, (dict(self),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("labels of a release cannot be changed")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


_NO_LABELS: Mapping[str, str] = _Labels()


def _frozen(labels: Mapping[str, str]) -> _Labels:
    return labels if isinstance(labels, _Labels) else _Labels(labels)


@dataclass(frozen=True, slots=True)
class Pin:
    """The release that a dependent uses, identified by its name and digest."""

    release: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class FailedMove:
    """A release to which a dependent could not move; the dependent therefore keeps its pin.

    Comparisons ignore the message `why`, because it has no influence on which release is chosen.
    """

    to: Pin
    deletes: bool = False
    """True if the release would delete objects of the dependent without a replacement."""
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Dependent:
    """One reference to a lineage in one object, such as a component of an application."""

    name: str = ""
    """The kind, namespace and name of the object: `Application default/shop`."""
    at: str = ""
    uid: str = ""
    labels: Mapping[str, str] = _NO_LABELS
    pin: Pin | None = None
    lock: Pin | None = None
    """The only release that the dependent may use; None if there is no lock."""
    failed_move: FailedMove | None = None
    previous: Pin | None = None
    """The release that the dependent used before its pin; a rollback returns it to this release."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", _frozen(self.labels))

    @property
    def position(self) -> float:
        """A number in [0, 1) that depends only on the uid, so that dependents are spread evenly.

        A gate with the share 0.1 admits the dependents with a position below 0.1. The position of a
        dependent without a uid is the highest possible number.
        """
        if not self.uid:
            return _LAST
        digest = hashlib.blake2b(self.uid.encode(), digest_size=8).digest()
        return (int.from_bytes(digest, "big") >> 11) / (1 << 53)


@dataclass(frozen=True, slots=True)
class Gate:
    """The rule that decides which dependents may use a release during a rollout.

    A gate admits two groups: a share of all dependents, and each dependent that has all labels of
    one of the `cohorts`. A dependent that already uses the release keeps it, unless the rollout
    rolls the release back.
    """

    rollout: str
    """The name of the rollout; if there is no rollout yet, the name of the rollout policy."""
    step: int = 0
    share: float = 0.0
    cohorts: tuple[Mapping[str, str], ...] = ()
    """Sets of labels, one for each rollout step that selects dependents by labels."""
    returns: bool = False
    """True if the rollout rolls the release back: dependents return to their previous release."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise PolyverError(f"a gate's share is {self.share}, expected 0 to 1", at=self.rollout)
        object.__setattr__(self, "cohorts", tuple(map(_frozen, self.cohorts)))

    def admits(self, dependent: Dependent) -> bool:
        """Report whether a dependent is in the share, or has all labels of one of the cohorts."""
        if any(labels.items() <= dependent.labels.items() for labels in self.cohorts):
            return True
        return self.share > 0 and dependent.position < self.share

    def __str__(self) -> str:
        if self.returns:
            return f"taken back by rollout {self.rollout}"
        if not self.step:
            return f"held by rollout {self.rollout} before its first step"
        return f"held by rollout {self.rollout}, step {self.step}"


@dataclass(frozen=True, slots=True)
class Notes:
    """The deprecation of a release.

    `since` and `removed_in` are the product releases of its deprecation and of its removal, `use`
    names its replacement, and `text` is a message for users.
    """

    since: SemVer | None = None
    removed_in: SemVer | None = None
    use: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """One immutable version of a building block, and its stage."""

    version: Version
    digest: str = ""
    stage: Stage = Stage.PUBLISHED
    labels: Mapping[str, str] = _NO_LABELS
    gate: Gate | None = None
    notes: Notes = Notes()
    name: str = ""
    """The name by which users refer to the release; by default the version as a string."""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", str(self.version))
        object.__setattr__(self, "labels", _frozen(self.labels))

    @property
    def pin(self) -> Pin:
        return Pin(self.name, self.digest)

    @property
    def fate(self) -> str:
        """The stage of the release as a string.

        For a removed release, the string also names the product release that removed it, such as
        `removed in 0.5.0`.
        """
        gone_in = self.notes.removed_in if self.stage.is_gone else None
        return f"{self.stage.value} in {gone_in}" if gone_in else self.stage.value


class VersionTaken(PolyverError):
    """A new release has the version of a release that exists or that was removed."""

    def __init__(self, lineage: str, taken: Release, refused: Release) -> None:
        super().__init__(f"{lineage} {refused.name} cannot be published", hint=_why(taken, refused))
        self.lineage = lineage
        self.taken = taken
        self.refused = refused


def _why(taken: Release, refused: Release) -> str:
    if taken.stage.is_gone:
        return f"{taken.name} was {taken.fate} and its number is never used again"
    if taken.digest != refused.digest:
        contents = f"{taken.digest or 'no digest'}, not {refused.digest or 'no digest'}"
        return f"it exists with other content ({contents}): publish a new version"
    if str(taken.version) != str(refused.version) or taken == refused:
        return f"it is the same version as {taken.name}"
    if taken.name != refused.name:
        return f"its number, {taken.version}, is that of {taken.name}"
    return "it exists with another stage, other labels or other notes"


class MixedOrders(PolyverError):
    """The releases of a lineage have different kinds of versions, so they cannot be sorted."""

    def __init__(self, lineage: str, one: Release, other: Release) -> None:
        super().__init__(
            f"{lineage} mixes {_order(one)} ({one.name}) and {_order(other)} ({other.name})",
            hint="a lineage has one kind of version",
        )


def _order(release: Release) -> str:
    if isinstance(release.version, SemVer):
        return "semantic versions"
    return "revision numbers" if isinstance(release.version, Serial) else "API versions"


class Lineage:
    """All releases of one building block, in ascending order of their versions.

    >>> lineage = Lineage("webservice", [Release(SemVer.parse(v)) for v in ("1.2.3", "1.2.10")])
    >>> lineage.newest.name
    '1.2.10'
    """

    __slots__ = (
        "_labels",
        "_names",
        "_series",
        "_stage_sets",
        "_stages",
        "_versions",
        "everything",
        "finals",
        "name",
        "releases",
        "versioned",
    )

    name: str
    releases: tuple[Release, ...]
    versioned: bool
    """False for a building block that has one implementation and declares no versions."""
    everything: int
    finals: int
    """The set of all releases except prereleases; an integer, as the module docstring explains."""

    def __init__(self, name: str, releases: Iterable[Release] = (), *, versioned: bool = True):
        self.name = name
        self.versioned = versioned
        self._versions: dict[Version, int] = {}
        self._names: dict[str, int] = {}
        given = tuple(releases)
        unique: dict[Version, Release] = {}
        for release in given:
            if type(release.version) is not type(given[0].version):
                raise MixedOrders(self.name, given[0], release)
            if release.version in unique:
                raise VersionTaken(self.name, unique[release.version], release)
            unique[release.version] = release
        self.releases = tuple(sorted(given, key=attrgetter("version")))
        self._stages: dict[Stage, int] = {}
        self._stage_sets: dict[frozenset[Stage], int] = {}
        self._labels: dict[tuple[str, str], int] = {}
        self._series: dict[tuple[int, ...], int] = {}
        self.everything = (1 << len(self.releases)) - 1
        self.finals = 0
        for position, release in enumerate(self.releases):
            bit = 1 << position
            version = release.version
            self._versions[version] = position
            if self._names.setdefault(release.name, position) != position:
                raise PolyverError(f"{self.name} has two releases with the name {release.name}")
            self._stages[release.stage] = self._stages.get(release.stage, 0) | bit
            for label in release.labels.items():
                self._labels[label] = self._labels.get(label, 0) | bit
            if isinstance(version, SemVer):
                for numbers in ((version.major,), (version.major, version.minor)):
                    self._series[numbers] = self._series.get(numbers, 0) | bit
            if not (isinstance(version, SemVer) and version.is_prerelease):
                self.finals |= bit

    def __len__(self) -> int:
        return len(self.releases)

    def __iter__(self) -> Iterator[Release]:
        return iter(self.releases)

    def __repr__(self) -> str:
        return f"Lineage({self.name!r}, {[release.name for release in self.releases]})"

    @property
    def newest(self) -> Release:
        return self.releases[-1]

    def get(self, wanted: Version | str) -> Release | None:
        """Return the release with this version or name, or None. It may be a removed release."""
        position = self._position(wanted)
        return None if position is None else self.releases[position]

    def _position(self, wanted: Version | str) -> int | None:
        return self._names.get(wanted) if isinstance(wanted, str) else self._versions.get(wanted)

    # Each of these methods returns a set of releases as an integer (see the top of this module).

    def exactly(self, wanted: Version | str) -> int:
        position = self._position(wanted)
        return 0 if position is None else 1 << position

    def in_series(self, series: Series) -> int:
        return self._series.get(series.numbers, 0)

    def labelled(self, labels: Collection[tuple[str, str]]) -> int:
        left = self.everything
        for label in labels:
            left &= self._labels.get(label, 0)
        return left

    def in_stages(self, stages: frozenset[Stage]) -> int:
        found = self._stage_sets.get(stages)
        if found is None:
            found = 0
            for stage in stages:
                found |= self._stages.get(stage, 0)
            self._stage_sets[stages] = found
        return found

    # A lineage is immutable, so these methods return a new lineage.

    def publish(self, release: Release) -> Lineage:
        """Return the lineage with one release more; return this lineage if it has an equal release.

        Raise `VersionTaken` if another release has the same version.
        """
        taken = self.get(release.version)
        if taken is None:
            return Lineage(self.name, (*self.releases, release), versioned=self.versioned)
        if taken.stage.is_gone or not is_same(taken, release):
            raise VersionTaken(self.name, taken, release)
        return self

    def restate(self, release: Release) -> Lineage:
        """Return the lineage with `release` in place of the release that has the same version.

        Only the stage, the labels, the gate and the notes may differ; otherwise raise
        `VersionTaken`.
        """
        taken = self.get(release.version)
        if taken is None:
            raise PolyverError(f"{self.name} has no {release.name}", hint="publish it first")
        revived = taken.stage.is_gone and not release.stage.is_gone
        if revived or taken.pin != release.pin or str(taken.version) != str(release.version):
            raise VersionTaken(self.name, taken, release)
        return Lineage(
            self.name,
            [release if known.version == release.version else known for known in self.releases],
            versioned=self.versioned,
        )


def is_same(one: Release, other: Release) -> bool:
    """Report whether two releases are equal, including the build metadata of their versions."""
    return one == other and str(one.version) == str(other.version)
