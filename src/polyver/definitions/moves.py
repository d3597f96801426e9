"""Moves of an application to other releases, and the objects that a move would delete.

An application moves to a release only if its objects can be rendered and applied with that release.
Otherwise the reference keeps its current release, if that release still exists and still matches
the selector of the reference. If the current release was removed, or a user has changed the
selector so that it does not match, the reference has to move.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from polyver.core import FailedMove, PolyverError, Release, Resolution, listed
from polyver.core.plain import ReadOnlyObject
from polyver.core.replacement import Role
from polyver.core.rollout import waiting_moves
from polyver.definitions.names import ALLOW_DELETION, TYPES
from polyver.definitions.rendered_objects import rendered_from
from polyver.definitions.resolution import ChosenVersion, Homes, choose, resolution_data
from polyver.definitions.uses import DefinitionUse
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
    "one_at_a_time",
    "role_of",
]


class MoveTarget(NamedTuple):
    """A release to which references of an application would move."""

    kind: str
    definition: str
    """Namespace and name of the definition: `NAMESPACE/NAME`."""
    version: str
    revision: str
    digest: str
    allows_deletion: bool

    def __str__(self) -> str:
        return f"{self.definition.rpartition('/')[2]} {self.version}"


def allows_deletion(release: Release) -> bool:
    """Report whether a move to this release may delete objects of an application.

    That is the case if its DefinitionRevision has the annotation `polyver.dev/allow-deletion:
    "true"`.
    """
    return release.labels.get(ALLOW_DELETION) == "true"


@dataclass(frozen=True, slots=True)
class ReleaseChoice:
    """The result of resolving the references of an application, before moves have been tried.

    `chosen` has the release for each reference. If the move to this release fails, the reference
    keeps its current release if `kept` has an entry for the reference.
    """

    chosen: Sequence[ChosenVersion]
    kept: Mapping[str, ChosenVersion] = field(default_factory=dict)
    """The current releases of the references that may keep them, by the path of the reference."""
    is_waiting: bool = False
    """True if a move has to wait until the application has moved to the release of another rollout.
    """

    @property
    def targets(self) -> tuple[MoveTarget, ...]:
        """The releases in `chosen` to which a reference with an entry in `kept` would move."""
        moving = (each for each in self.chosen if each.use.dependent.at in self.kept)
        return tuple(dict.fromkeys(map(_target, moving)))

    def resolutions(
        self,
        taken: Collection[MoveTarget],
        failed: Mapping[MoveTarget, ReadOnlyObject],
        *,
        now: str,
    ) -> list[dict[str, Any]]:
        """Build the resolutions for the case that only the moves to the targets in `taken` happen.

        All other references that may keep their release keep it. If the target of a reference is in
        `failed`, that value becomes the entry `failedMove` of the resolution.
        """
        found = []
        for each in self.chosen:
            kept, target = self.kept.get(each.use.dependent.at), _target(each)
            if kept is None or target in taken:
                found.append(resolution_data(each, now=now))
                continue
            data = resolution_data(kept, now=now)
            if target in failed:
                data["failedMove"] = dict(failed[target])
            found.append(data)
        return found


def _target(chosen: ChosenVersion) -> MoveTarget:
    release = chosen.resolution.release
    return MoveTarget(
        TYPES[chosen.use.kind],
        f"{chosen.home}/{chosen.use.definition}",
        str(release.version),
        chosen.revision,
        release.digest,
        # If a release is rolled back, objects that only this release has made are deleted.
        allows_deletion(release) or is_taken_back(chosen.resolution),
    )


def is_taken_back(resolution: Resolution) -> bool:
    """Report whether a rollout rolls back the release that the dependent uses now."""
    pin = resolution.question.dependent.pin
    used = resolution.question.lineage.get(pin.release) if pin is not None else None
    return used is not None and used.gate is not None and used.gate.returns


def choice_of(chosen: Sequence[ChosenVersion], homes: Callable[[str, str], Homes]) -> ReleaseChoice:
    """Build a ReleaseChoice: find the references that keep their release if their move fails."""
    kept = {}
    for each in chosen:
        dependent, release = each.use.dependent, each.resolution.release
        if dependent.pin is None or dependent.pin == release.pin:
            continue
        # Resolve the reference as if its move to the chosen release had failed.
        failing = replace(
            each.use, dependent=replace(dependent, failed_move=FailedMove(release.pin))
        )
        stayed = choose(failing, homes(each.use.kind, each.use.definition))
        if stayed.resolution.release.pin == dependent.pin:
            kept[dependent.at] = stayed
    return ReleaseChoice(chosen, kept)


def one_at_a_time(
    choice: ReleaseChoice, uses: Iterable[DefinitionUse], *, healthy: bool
) -> ReleaseChoice:
    """Let an application move in one rollout at a time, and let its other moves wait.

    A move waits while the application moves to a release of another rollout, and until it is
    healthy with that release. `uses` are the references of the application. If a move has failed,
    other moves do not wait for it.
    """
    failed = {(x.at, x.failed_move.to) for use in uses if (x := use.dependent).failed_move}
    moving, rollouts = [], []
    for each in choice.chosen:
        dependent, release = each.use.dependent, each.resolution.release
        if release.gate is None:
            continue
        if dependent.pin == release.pin:
            rollouts += [] if healthy else [release.gate.rollout]
        elif dependent.at in choice.kept and (dependent.at, release.pin) not in failed:
            move = dependent.at, release.gate.rollout
            moving += [] if is_taken_back(each.resolution) else [move]
    waiting = waiting_moves(moving, rollouts)
    if not waiting:
        return choice
    going = min(rollouts) if rollouts else moving[0][1]
    reason = f"kept: it moves to the next version after rollout {going}"
    held = {at: choice.kept[at] for at in waiting}
    told = {
        at: replace(kept, resolution=kept.resolution._replace(reason=reason))
        for at, kept in held.items()
    }
    return ReleaseChoice(
        [told.get(each.use.dependent.at, each) for each in choice.chosen],
        {at: kept for at, kept in choice.kept.items() if at not in waiting},
        is_waiting=True,
    )


def inputs_of(application: ReadOnlyObject, targets: Iterable[MoveTarget], *, by: str) -> str:
    """Return a digest of all inputs that decide whether an application can move to the targets.

    `by` is the version of polyver. It is an input because a template that one version of polyver
    cannot render may work in another version.
    """
    seen = rendered_from(application)
    metadata = {name: seen["metadata"].get(name) or {} for name in ("labels", "annotations")}
    return digest({"spec": seen.get("spec"), **metadata, "to": [*map(list, targets)], "by": by})


def failed_before(
    application: ReadOnlyObject, targets: Iterable[MoveTarget], inputs: str
) -> dict[MoveTarget, ReadOnlyObject]:
    """Return the targets to which the application failed to move before with the same inputs.

    The values are the entries `failedMove` of its status.
    """
    status: ReadOnlyObject = application.get("status") or {}
    known = {}
    for each in status.get("resolutions") or ():
        failed = each.get("failedMove")
        if failed and failed.get("inputs") == inputs:
            key = each["kind"], each["definition"], failed["version"], failed["digest"]
            known[key] = failed
    found = {each: (each.kind, each.definition, each.version, each.digest) for each in targets}
    return {each: known[key] for each, key in found.items() if key in known}


# Objects that a move would delete.


class Piece(NamedTuple):
    """The identity of one object of an application, and the component that made it."""

    group: str
    kind: str
    namespace: str
    name: str
    component: str

    def __str__(self) -> str:
        return f"{self.kind} {'/'.join(filter(None, (self.namespace, self.name)))}"

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The identity of the object, without its component."""
        return self.group, self.kind, self.namespace, self.name


def role_of(piece: Piece) -> Role:
    """Return the role of an object: its component, its kind and its name.

    If a move deletes an object and creates an object with the same role, the new object counts as
    its replacement.
    """
    return Role(piece.component, piece.kind, piece.name)


class WouldDelete(PolyverError):
    """A move to a release would delete objects of an application without a replacement."""

    def __init__(self, targets: Sequence[MoveTarget], lost: Sequence[Piece]) -> None:
        names = " and ".join(map(str, targets))
        fact = f"{names} would delete {listed([*map(str, lost)])} without replacement"
        holding = next((each for each in targets if not each.allows_deletion), targets[0])
        revision = f"{holding.definition.rpartition('/')[0]}/{holding.revision}"
        hint = f'annotate DefinitionRevision {revision} with {ALLOW_DELETION}="true" to allow it'
        super().__init__(fact, hint=hint)
