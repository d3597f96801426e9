"""Users of revisions: resolution of the steps of compositions, by the core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from polyver.compositions._policy import REVISIONS
from polyver.core import Dependent, Index, Lineage, Move, Selector, Stage, affected

__all__ = ["StepFunctionUse", "selected_in"]


@dataclass(frozen=True, slots=True)
class StepFunctionUse:
    """A step of a composition that calls a function, and its selector."""

    dependent: Dependent
    """`CompositionRevision NAME`, and the path of the step."""
    function: str
    selector: Selector


def selected_in(uses: Iterable[StepFunctionUse], lineage: Lineage) -> Mapping[str, tuple[str, ...]]:
    """Return the dependents that select each revision, by the revision's name.

    A dependent that matches no active revision counts for the revision that it would get if all
    were active: that one must not be deleted.
    """
    index = Index.of(
        # A step resolves again in each run: its last resolution does not keep a revision.
        (replace(use.dependent, pin=None), lineage.name, use.selector, REVISIONS)
        for use in uses
        if use.function == lineage.name
    )
    if not len(index):
        return {}
    every = Lineage(lineage.name, [replace(each, stage=Stage.ACTIVE) for each in lineage])
    now = affected(index, every, lineage)
    without = {_place(loss.dependent) for loss in now.losses}
    instead = affected(index, every, every).moves if without else ()
    moves = [*now.moves, *(move for move in instead if _place(move.dependent) in without)]
    return _by_release(moves)


def _place(dependent: Dependent) -> tuple[str, str]:
    return dependent.name, dependent.at


def _by_release(moves: Iterable[Move]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for move in moves:
        found.setdefault(move.to.name, set()).add(move.dependent.name)
    return {name: tuple(sorted(dependents)) for name, dependents in found.items()}
