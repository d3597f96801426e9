"""`polyver plan`: what would happen if definitions or applications were applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from polyver.capabilities.definitions import applications_in, definitions_in
from polyver.cli._exit import Refused, UnknownName
from polyver.cli._files import read_manifests
from polyver.cli._output import Format, emit, print_lines, print_table, warn
from polyver.cli._planning import Plan, PlannedApplication, PlannedDefinition, plan_on
from polyver.cli._resolving import Context, on_cluster

if TYPE_CHECKING:
    from polyver.capabilities.definitions.planning import PlannedLoss, PlannedMove
    from polyver.client import Client
    from polyver.client.cluster import Access

app = App(name="plan")

_COLUMNS = ("APPLICATION", "PLACE", "DEFINITION", "FROM", "TO", "WHY")


@app.default
def plan(
    *,
    file: Annotated[
        list[str], Parameter(name=["--file", "-f"], negative=(), allow_leading_hyphen=True)
    ],
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"])] = "",
    context: Context = "",
    semver_gate: Literal["refuse", "warn"] = "refuse",
    output: Annotated[Format, Parameter(name=["--output", "-o"])] = Format.TABLE,
) -> None:
    """Say what would happen if definitions or applications were applied; nothing is written.

    What would be refused, by the rules of publishing and by the server itself; which applications
    would move, which would lose what they use, and the difference in what they render to.

    Example: polyver plan -f webservice.yaml --context staging

    Parameters
    ----------
    file
        A file, a folder, or - for standard input, with definitions and applications; repeatable.
    namespace
        Where those are that name no namespace: by default that of the context.
    semver_gate
        What the control plane does with parameters that break users: refuse, or warn.
    output
        What to print.
    """
    documents = read_manifests(file)

    async def ask(client: Client, access: Access) -> Plan:
        where = namespace or access.namespace
        definitions = [each for _, each in definitions_in(documents, where)]
        applications = [each for _, each in applications_in(documents, where)]
        if not definitions and not applications:
            raise UnknownName("there is no definition and no application in the files")
        return await plan_on(client, definitions, applications, semver_gate)

    made = on_cluster(context, ask)
    if output is Format.TABLE:
        _print(made)
    else:
        emit(_data(made), output)
    refused = [*_refusals(made)]
    if refused:
        raise Refused(refused[0] if len(refused) == 1 else f"{len(refused)} are refused")


def _refusals(made: Plan) -> Iterator[str]:
    yield from (f"{each.name} is refused" for each in made.definitions if each.refused)
    for each in made.applications:
        if each.written and (each.refused or each.errors):
            yield f"Application {each.name} {'is refused' if each.refused else 'would fail'}"


def _moves(made: Plan) -> Iterator[PlannedMove]:
    """All places that would use another version, each once."""
    written = {each.name for each in made.applications if each.written}
    for definition in made.definitions:
        if not definition.refused:
            yield from (each for each in definition.moves if each.application not in written)
    for application in made.applications:
        yield from application.moves


def _losses(made: Plan) -> Iterator[PlannedLoss]:
    for each in made.definitions:
        yield from each.losses


def _print(made: Plan) -> None:
    for each in made.definitions:
        _print_definition(each)
    moves = [(e.application, e.at, e.definition, e.was, e.to, e.reason) for e in _moves(made)]
    lost = [
        (e.application, e.at, e.definition, e.was, "nothing", str(e.error.fact))
        for e in _losses(made)
    ]
    if moves or lost:
        print_table(_COLUMNS, [*moves, *lost])
    else:
        print_lines("no application moves")
    for application in made.applications:
        _print_application(application)


def _print_definition(each: PlannedDefinition) -> None:
    decision = each.decision
    for refusal in each.refused:
        print_lines(f"{each.name} is refused: {refusal}")
    for warning in (*decision.warnings, *map(str, decision.forced)):
        warn(warning)
    if each.refused:
        return
    new = ", ".join(str(new.version) for new in decision.create)
    gone = ", ".join(str(known.version) for known in decision.remove)
    said = [f"publishes {new}" if new else "", f"removes {gone}" if gone else ""]
    print_lines(f"{each.name} {' and '.join(filter(None, said)) or 'publishes nothing new'}")


def _print_application(each: PlannedApplication) -> None:
    for error in (each.refused, *each.errors):
        if error:
            print_lines(f"Application {each.name} would fail: {error}")
    for problem in each.unrendered:
        warn(f"what {each.name} renders to cannot be compared: {problem}")
    for change in each.changes:
        print_lines("", f"{change.object} of {each.name} is {change.change}:", *change.diff)


def _data(made: Plan) -> dict[str, Any]:
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
        "errors": [*filter(None, (each.refused, *map(str, each.errors)))],
        "notCompared": [*map(str, each.unrendered)],
        "changes": [
            {"object": one.object, "change": one.change, "diff": "\n".join(one.diff)}
            for one in each.changes
        ],
    }
