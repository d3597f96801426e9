"""The contribution of definitions and applications to `polyver plan`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from polyver.capability.planning import (
    OUTCOME_KEYS,
    DependentNoun,
    PlannedChanges,
    PlannedRow,
    Planner,
    PlanQuestion,
)
from polyver.definitions._manifests import GROUP, KINDS, applications_in, definitions_in
from polyver.definitions.planning import (
    DefinitionsPlan,
    PlannedApplication,
    PlannedDefinition,
    plan_on,
)

if TYPE_CHECKING:
    from polyver.client import Client
    from polyver.client.cluster import ClusterAccess
    from polyver.definitions.plan import PlannedLoss, PlannedMove

__all__ = ["PLANNER"]

_APPLICATIONS = DependentNoun("application", "applications", "applications")


async def _plan(
    client: Client, access: ClusterAccess, question: PlanQuestion
) -> PlannedChanges | None:
    del access
    documents, where = question.documents, question.namespace
    definitions = [each for _, each in definitions_in(documents, where)]
    applications = [each for _, each in applications_in(documents, where)]
    if not definitions and not applications:
        return None
    gate = question.options.semver_gate
    return _changes(await plan_on(client, definitions, applications, gate))


PLANNER = Planner(
    kinds=frozenset((GROUP, kind) for kind in (*KINDS, "Application")),
    plan=_plan,
)


def _changes(made: DefinitionsPlan) -> PlannedChanges:
    refused = [each.name for each in made.definitions if each.refused]
    refused += [f"Application {each.name}" for each in made.applications if each.refused]
    losing = [e for e in made.applications if e.outcome == "loses" and not e.may_lose]
    return PlannedChanges(
        noun=_APPLICATIONS,
        report=made.report,
        failing=made.failing,
        published=[line for each in made.definitions for line in _lines(each)],
        warnings=[*_warnings(made)],
        column="DEFINITION",
        moves=_rows(made),
        refused=refused,
        losing=len(losing),
        data=_data(made),
    )


def _moves(made: DefinitionsPlan) -> Iterator[PlannedMove]:
    """Yield each move of a reference to another version once.

    If both the application and the definition are in the files, both may have the same move: this
    function then yields only the move of the application.
    """
    written = {each.name for each in made.applications if each.written}
    for definition in made.definitions:
        if not definition.refused:
            yield from (each for each in definition.moves if each.application not in written)
    for application in made.applications:
        yield from application.moves


def _losses(made: DefinitionsPlan) -> Iterator[PlannedLoss]:
    for each in made.definitions:
        yield from each.losses


def _lines(each: PlannedDefinition) -> Iterator[str]:
    for refusal in each.refused:
        yield f"{each.name} is refused: {refusal}"
    if each.refused:
        return
    decision = each.decision
    new = ", ".join(str(new.version) for new in decision.create)
    gone = ", ".join(str(known.version) for known in decision.remove)
    said = [f"publishes {new}" if new else "", f"removes {gone}" if gone else ""]
    yield f"{each.name} {' and '.join(filter(None, said)) or 'publishes nothing new'}"


def _warnings(made: DefinitionsPlan) -> Iterator[str]:
    for each in made.definitions:
        yield from (*each.decision.warnings, *map(str, each.decision.forced))
    for application in made.applications:
        for problem in application.not_compared:
            yield f"the objects of {application.name} cannot be compared: {problem}"


def _rows(made: DefinitionsPlan) -> dict[PlannedRow, set[str]]:
    """Return the moves to other versions, each move with its applications."""
    found: dict[PlannedRow, set[str]] = {}
    for move in _moves(made):
        row = move.definition, move.was, move.to, move.reason
        found.setdefault(row, set()).add(move.application)
    for loss in _losses(made):
        row = loss.definition, loss.was, "nothing", loss.error.fact
        found.setdefault(row, set()).add(loss.application)
    return found


# JSON and YAML output.


def _data(made: DefinitionsPlan) -> dict[str, Any]:
    return {
        "definitions": [_definition(each) for each in made.definitions],
        "moves": [{**_place(each), "to": each.to, "reason": each.reason} for each in _moves(made)],
        "losses": [{**_place(each), "error": str(each.error)} for each in _losses(made)],
        "applications": [_application(each) for each in made.applications],
    }


def _place(each: PlannedMove | PlannedLoss) -> dict[str, Any]:
    said = {"application": each.application, "at": each.at, "definition": each.definition}
    return said | ({"from": each.was} if each.was else {})


def _definition(each: PlannedDefinition) -> dict[str, Any]:
    decision = each.decision
    created = () if each.refused else decision.create
    removed = () if each.refused else decision.remove
    return {
        "definition": each.name,
        "refusals": [*each.refused],
        "publishes": [str(new.version) for new in created],
        "removes": [str(known.version) for known in removed],
        "removesByForce": [str(forced) for forced in decision.forced],
        "warnings": [*decision.warnings],
    }


def _application(each: PlannedApplication) -> dict[str, Any]:
    return {
        "application": each.name,
        "outcome": OUTCOME_KEYS[each.outcome],
        "errors": [*each.errors],
        "notCompared": [*each.not_compared],
    }
