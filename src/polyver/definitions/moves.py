"""Moving: the releases that an application would move to, and what such a move would delete.

An application moves to a release only if that works for it. A place can stay where it is if its
pin is still there and still is what the place asks for. Otherwise somebody has edited the
application, and the edit holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from polyver.core import FailedMove, PolyverError, Release, listed
from polyver.core.plain import ReadOnlyObject
from polyver.core.replacement import Role
from polyver.definitions.names import ALLOW_DELETION, TYPES
from polyver.definitions.rendered_objects import rendered_from
from polyver.definitions.resolution import ChosenVersion, Homes, choose, resolution_data
from polyver.kube.objects import digest

__all__ = [
    "MoveTarget",
    "Piece",
    "ReleaseChoice",
    "WouldDelete",
    "allows_deletion",
    "choice_of",
    "failed_before",
    "inputs_of",
    "role_of",
]


class MoveTarget(NamedTuple):
    """A release that places of an application would move to."""

    kind: str
    definition: str
    """With its namespace."""
    version: str
    revision: str
    digest: str
    allows_deletion: bool

    def __str__(self) -> str:
        return f"{self.definition.rpartition('/')[2]} {self.version}"


def allows_deletion(release: Release) -> bool:
    """Return True if a move to this release may delete objects of an application."""
    return release.labels.get(ALLOW_DELETION) == "true"


@dataclass(frozen=True, slots=True)
class ReleaseChoice:
    """The release of each reference of an application, and the one it keeps if a move fails."""

    chosen: Sequence[ChosenVersion]
    kept: Mapping[str, ChosenVersion] = field(default_factory=dict)
    """By the path of each reference that would move, and can stay on its release."""

    @property
    def targets(self) -> tuple[MoveTarget, ...]:
        """The releases that can be refused, each once."""
        moving = (each for each in self.chosen if each.use.dependent.at in self.kept)
        return tuple(dict.fromkeys(map(_target, moving)))

    def resolutions(
        self,
        taken: Collection[MoveTarget],
        failed: Mapping[MoveTarget, ReadOnlyObject],
        *,
        now: str,
    ) -> list[dict[str, Any]]:
        """The resolutions with some targets taken, and why others are not."""
        return [self._resolution(each, taken, failed, now) for each in self.chosen]

    def _resolution(
        self,
        each: ChosenVersion,
        taken: Collection[MoveTarget],
        failed: Mapping[MoveTarget, ReadOnlyObject],
        now: str,
    ) -> dict[str, Any]:
        kept, target = self.kept.get(each.use.dependent.at), _target(each)
        if kept is None or target in taken:
            return resolution_data(each, now=now)
        data = resolution_data(kept, now=now)
        return data | ({"failedMove": dict(failed[target])} if target in failed else {})


def _target(chosen: ChosenVersion) -> MoveTarget:
    release = chosen.resolution.release
    return MoveTarget(
        TYPES[chosen.use.kind],
        f"{chosen.home}/{chosen.use.definition}",
        str(release.version),
        chosen.revision,
        release.digest,
        allows_deletion(release),
    )


def choice_of(chosen: Sequence[ChosenVersion], homes: Callable[[str, str], Homes]) -> ReleaseChoice:
    """Return the chosen releases, with the one that each reference keeps if its move fails."""
    kept = {}
    for each in chosen:
        stayed = _kept(each, homes(each.use.kind, each.use.definition))
        if stayed is not None:
            kept[each.use.dependent.at] = stayed
    return ReleaseChoice(chosen, kept)


def _kept(chosen: ChosenVersion, homes: Homes) -> ChosenVersion | None:
    dependent, release = chosen.use.dependent, chosen.resolution.release
    if dependent.pin is None or dependent.pin == release.pin:
        return None
    failing = replace(dependent, failed_move=FailedMove(release.pin))
    stayed = choose(replace(chosen.use, dependent=failing), homes)
    return stayed if stayed.resolution.release.pin == dependent.pin else None


def inputs_of(application: ReadOnlyObject, targets: Iterable[MoveTarget], *, by: str) -> str:
    """A digest of all that decides whether an application can move to some releases.

    `by` names the program that renders: another one may be able to.
    """
    seen = rendered_from(application)
    metadata = {name: seen["metadata"].get(name) or {} for name in ("labels", "annotations")}
    return digest({"spec": seen.get("spec"), **metadata, "to": [*map(list, targets)], "by": by})


def failed_before(
    application: ReadOnlyObject, targets: Iterable[MoveTarget], inputs: str
) -> dict[MoveTarget, ReadOnlyObject]:
    """The targets that failed with the same inputs before, as the status tells."""
    status: ReadOnlyObject = application.get("status") or {}
    known = {}
    for each in status.get("resolutions") or ():
        failed = each.get("failedMove")
        if failed and failed.get("inputs") == inputs:
            key = each["kind"], each["definition"], failed["version"], failed["digest"]
            known[key] = failed
    found = {each: (each.kind, each.definition, each.version, each.digest) for each in targets}
    return {each: known[key] for each, key in found.items() if key in known}


# The objects that a move would delete.


class Piece(NamedTuple):
    """An object of an application."""

    group: str
    kind: str
    namespace: str
    name: str
    component: str

    def __str__(self) -> str:
        return f"{self.kind} {'/'.join(filter(None, (self.namespace, self.name)))}"

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The same object, whichever component makes it."""
        return self.group, self.kind, self.namespace, self.name


def role_of(piece: Piece) -> Role:
    """How an object is known to those who use it."""
    return Role(piece.component, piece.kind, piece.name)


class WouldDelete(PolyverError):
    """A release that would delete objects of an application, without replacement."""

    def __init__(self, targets: Sequence[MoveTarget], lost: Sequence[Piece]) -> None:
        names = " and ".join(map(str, targets))
        fact = f"{names} would delete {listed([*map(str, lost)])} without replacement"
        holding = next(_unallowed(targets), targets[0])
        revision = f"{holding.definition.rpartition('/')[0]}/{holding.revision}"
        hint = f'annotate DefinitionRevision {revision} with {ALLOW_DELETION}="true" to allow it'
        super().__init__(fact, hint=hint)


def _unallowed(targets: Iterable[MoveTarget]) -> Iterator[MoveTarget]:
    return (each for each in targets if not each.allows_deletion)
