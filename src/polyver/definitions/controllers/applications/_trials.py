"""Tries releases before an application moves to them.

In a trial, polyver renders all objects of the application with the new releases, and applies them
as a dry run. If the trial fails, polyver changes nothing: the application keeps its current
releases.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from polyver.controllers.owned_objects.inventory import noted, part_of
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.core.replacement import without_replacement
from polyver.definitions.controllers.applications._apply import (
    ApplicationApplier,
    ApplicationApplyProblem,
    part_in,
)
from polyver.definitions.controllers.applications._revisions import (
    ApplicationRecorder,
    DesiredApplication,
    MoveOptions,
)
from polyver.definitions.controllers.applications._status import applied_before
from polyver.definitions.moves import MoveTarget, Piece, WouldDelete, role_of
from polyver.definitions.rendered_objects import Placed, UnknownKind
from polyver.definitions.status import reason_of
from polyver.definitions.uses import WOULD_DELETE

__all__ = ["PASSING", "MoveFailure", "MoveTrial", "MoveTrials", "failed_moves", "failure_of"]

_LONGEST: Final = 8
_LONGEST_MESSAGE: Final = 4096
"""Maximum number of characters of a failure message in the status."""
PASSING: Final = frozenset(
    {"TookTooLong", "NotServed", "NotApplied", "EngineBroke", "EngineFailed"}
)
"""Reasons of failed moves for which a retry may succeed although no input has changed."""


@dataclass(frozen=True, slots=True)
class MoveFailure:
    """A move that failed: the reason as one word, and a message."""

    reason: str
    message: str


@dataclass(slots=True)
class MoveTrial:
    """The result of trying to move an application to new releases.

    `failed` has the releases to which the application cannot move, with the reason for each.
    """

    wanted: DesiredApplication | None = None
    """The desired state of the application, with all releases whose trial succeeded. None if no
    trial succeeded.
    """
    placed: Sequence[Placed] = ()
    unknown: Sequence[PolyverError] = ()
    """Errors about rendered objects whose kind the API server does not serve yet.

    The application itself renders the CustomResourceDefinitions of these kinds, so the errors do
    not make the trial fail.
    """
    failed: dict[MoveTarget, MoveFailure] = field(default_factory=dict)


Render = Callable[[DesiredApplication], Awaitable[tuple[list[Placed], list[PolyverError]]]]


class MoveTrials:
    """Finds out to which releases an application can move."""

    def __init__(
        self, render: Render, recording: ApplicationRecorder, applier: ApplicationApplier
    ) -> None:
        self._render = render
        self._recording = recording
        self._applier = applier

    async def best(self, found: Object, options: MoveOptions) -> MoveTrial:
        """Try to move to all targets together. If that fails, try each target separately."""
        targets = options.targets
        trial = await self._try(found, options, MoveTrial(), targets)
        if not trial.failed or len(targets) == 1:
            return trial
        trial = MoveTrial()
        for each in targets:
            taken = trial.wanted.taken if trial.wanted is not None else ()
            trial = await self._try(found, options, trial, (*taken, each))
        return trial

    async def _try(
        self, found: Object, options: MoveOptions, so_far: MoveTrial, targets: Sequence[MoveTarget]
    ) -> MoveTrial:
        """Try to move to all of these targets, and return the result.

        If the trial succeeds, the result has the new desired state. If it fails, the result is
        `so_far` with a failure for each target that `so_far` does not have.
        """
        known = so_far.wanted.taken if so_far.wanted is not None else ()
        new = [each for each in targets if each not in known]
        wanted = self._recording.variant(found, options, targets)
        placed, errors = await self._render(wanted)
        wrong = [x for x in errors if not (isinstance(x, UnknownKind) and x.is_defined_by(placed))]
        failure = _unrendered(wrong) if wrong else None
        if failure is None:
            failure = await self._deleting(found, options, so_far, new, placed)
        if failure is None:
            failure = failure_of(await self._applier.rehearse(found, placed))
        if failure is not None:
            failed = so_far.failed | {each: _about(failure, new) for each in new}
            return replace(so_far, failed=failed)
        return MoveTrial(wanted, placed, errors, so_far.failed)

    async def _deleting(
        self,
        found: Object,
        options: MoveOptions,
        so_far: MoveTrial,
        new: Sequence[MoveTarget],
        placed: Sequence[Placed],
    ) -> MoveFailure | None:
        """Return a failure if a move to the targets `new` would delete objects without replacement.

        Return None if no object would be lost, or if all targets allow deletion.
        """
        after = {each.identity: each for each in _pieces(placed)}
        there = {tuple(each) for each in noted(found)}
        there |= {tuple(part_in(each)) for each in applied_before(found)}
        if there <= after.keys() or all(each.allows_deletion for each in new):
            return None
        before = await self._without(found, options, so_far)
        gone = [x for x in before if x.identity in there and x.identity not in after]
        made = {each.identity for each in before}
        added = [x for name, x in after.items() if name not in made]
        lost = without_replacement(gone, added, role_of)
        return MoveFailure(WOULD_DELETE, str(WouldDelete(new, lost))) if lost else None

    async def _without(self, found: Object, options: MoveOptions, so_far: MoveTrial) -> list[Piece]:
        """Return the objects that the current spec renders if the application does not move.

        So an object that the user has removed from the spec is not in the result. If rendering
        fails, return the applied objects of the components that the spec still has.
        """
        if so_far.wanted is not None:
            return _pieces(so_far.placed)
        placed, errors = await self._render(self._recording.variant(found, options, ()))
        if not errors:
            return _pieces(placed)
        components = {each["name"] for each in (found.get("spec") or {}).get("components") or ()}
        known = [Piece(*part_in(x), x.get("component", "")) for x in applied_before(found)]
        return [each for each in known if each.component in components]


def _pieces(placed: Iterable[Placed]) -> list[Piece]:
    return [Piece(*part_of(each.object), each.component) for each in placed]


def _unrendered(errors: Sequence[PolyverError]) -> MoveFailure:
    first = errors[0]
    reason = "NotServed" if isinstance(first, UnknownKind) else reason_of(first)
    return MoveFailure(reason, _joined(errors))


def failure_of(problems: Sequence[ApplicationApplyProblem]) -> MoveFailure | None:
    """Combine the problems of several objects into one failure. Return None without problems.

    Raise the error of the first problem that is transient.
    """
    passing = next((each.error for each in problems if each.error is not None), None)
    if passing is not None:
        raise passing
    return MoveFailure("NotApplied", _joined(problems)) if problems else None


def failed_moves(
    found: Object, options: MoveOptions, failed: Mapping[MoveTarget, MoveFailure], *, now: str
) -> dict[MoveTarget, Mapping[str, Any]]:
    """Build the entry `failedMove` of the status for each failed move.

    An entry keeps its time `since` if the status already has a failed move with the same message.
    """
    known = (found.get("status") or {}).get("resolutions") or ()
    before = {
        each["failedMove"]["message"]: each["failedMove"]
        for each in known
        if each.get("failedMove")
    }
    told: dict[MoveTarget, Mapping[str, Any]] = {}
    for target, failure in failed.items():
        since = before.get(failure.message, {}).get("since") or now
        about = {name: getattr(target, name) for name in ("version", "revision", "digest")}
        said = {"reason": failure.reason, "message": failure.message[:_LONGEST_MESSAGE]}
        told[target] = {**about, **said, "since": since, "inputs": options.inputs}
    return told


def _joined(errors: Sequence[object]) -> str:
    more = f"; and {len(errors) - _LONGEST} more" if len(errors) > _LONGEST else ""
    return "; ".join(map(str, errors[:_LONGEST])) + more


def _about(failure: MoveFailure, targets: Sequence[MoveTarget]) -> MoveFailure:
    """Return the failure with the names of the releases `targets` added to its message.

    If the move would delete objects, the message already has these names.
    """
    if failure.reason == WOULD_DELETE:
        return failure
    names = " and ".join(map(str, targets))
    return MoveFailure(failure.reason, f"{names} cannot be used: {failure.message}")
