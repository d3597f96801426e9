"""Computes how a change of definitions would affect references, before the change is made.

The packages `publishing` and `resolution` make the decisions; this module combines them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from polyver.core import Loss, Move, NoMatch, PolyverError
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.publishing import Decision, DesiredDefinition, revision_object
from polyver.definitions.resolution import choose
from polyver.definitions.uses import DefinitionUse, home_of, moves_of, settled

__all__ = [
    "PlannedLoss",
    "PlannedMove",
    "moved",
    "new_revisions",
]


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A reference that would use another version after the change."""

    application: str
    at: str
    definition: str
    was: str
    """The current version; empty if the reference uses no version yet."""
    to: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlannedLoss:
    """A reference that would no longer resolve after the change."""

    application: str
    at: str
    definition: str
    was: str
    error: PolyverError


def moved(
    kind: str,
    namespace: str,
    decision: Decision,
    uses: Iterable[DefinitionUse],
    homes: Iterable[str],
) -> tuple[list[PlannedMove], list[PlannedLoss]]:
    """Return the references that would move, or lose their release, because of a decision.

    `decision` is about the definition with this kind and namespace. `uses` are the references of
    all applications; `homes` are the namespaces that have a definition with the same kind and name.
    """
    name = decision.after.name
    there = {*homes, namespace}
    mine = [
        use
        for use in uses
        if (use.kind, use.definition) == (kind, name) and home_of(use, there) == namespace
    ]
    pins = {(use.dependent.name, use.dependent.at): use for use in mine}
    found = moves_of([settled(use, namespace) for use in mine], decision.before, decision.after)

    def about(each: Move | Loss) -> tuple[str, str, str, str]:
        use = pins[each.dependent.name, each.dependent.at]
        application = each.dependent.name.removeprefix("Application ")
        return application, each.dependent.at, f"{namespace}/{name}", _was(use, namespace)

    moves = [PlannedMove(*about(each), each.to.name, each.reason) for each in found.moves]
    losses = [PlannedLoss(*about(each), each.error) for each in found.losses]
    losses += (
        PlannedLoss(*about(each), each.error) for each in _shadowed(mine, namespace, decision)
    )
    return sorted(moves, key=_order), sorted(losses, key=_order)


def _shadowed(uses: Iterable[DefinitionUse], namespace: str, decision: Decision) -> Iterator[Loss]:
    """Yield the references that cannot be resolved with the new definition in `namespace`.

    Until now, they have used a definition with the same name in another namespace, and their pins
    name that definition.
    """
    for use in uses:
        if use.dependent.pin is not None and use.pinned_in != namespace:
            try:
                choose(use, {namespace: decision.after})
            except NoMatch as error:
                yield Loss(use.dependent, error)


def _was(use: DefinitionUse, namespace: str) -> str:
    pin = use.dependent.pin
    if pin is None:
        return ""
    return pin.release if use.pinned_in == namespace else f"{use.pinned_in} {pin.release}"


def _order(each: PlannedMove | PlannedLoss) -> tuple[str, str]:
    return each.application, each.at


def new_revisions(
    definition: DesiredDefinition, decision: Decision
) -> dict[tuple[str, str], ReadOnlyObject]:
    """Return the DefinitionRevisions that a decision would create, by namespace and name."""
    owner = {"metadata": {"name": definition.name, "uid": ""}}
    return {
        (definition.namespace, each.name): revision_object(definition, each, owner)
        for each in decision.create
    }
