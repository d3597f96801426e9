"""Who uses which revision: what the steps of compositions select, asked of the core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from polyver.compositions._policy import REVISIONS
from polyver.core import Dependent, Index, Lineage, Move, Selector, Stage, affected

__all__ = ["StepFunctionUse", "selected_in"]


@dataclass(frozen=True, slots=True)
class StepFunctionUse:
    """One step of a composition that calls a function, and what it asks for."""

    dependent: Dependent
    """`CompositionRevision NAME`, and the step."""
    function: str
    selector: Selector


def selected_in(uses: Iterable[StepFunctionUse], lineage: Lineage) -> Mapping[str, tuple[str, ...]]:
    """For each revision that is selected, by its name: the dependents that select it.

    Who selects nothing that is active counts for the revision that it would get if all were: that
    one is not to be taken away for good.
    """
    index = Index.of(
        # Each time a step runs it chooses anew: what it chose last is no reason to keep anything.
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
