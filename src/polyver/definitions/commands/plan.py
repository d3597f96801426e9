"""`polyver plan`: shows the effects of definitions and applications before they are applied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from polyver.capability.preflight_examples import example_diff, object_label
from polyver.cli.cluster import on_cluster
from polyver.cli.exit_codes import RequestRefused, UnknownName
from polyver.cli.files import read_manifests
from polyver.cli.output import OutputFormat, emit, print_lines, print_table, printable, warn
from polyver.core import listed
from polyver.definitions._manifests import applications_in, definitions_in
from polyver.definitions.commands.state import Context
from polyver.definitions.planning import (
    DefinitionsPlan,
    PlannedApplication,
    PlannedDefinition,
    plan_on,
)

if TYPE_CHECKING:
    from polyver.client import Client
    from polyver.client.cluster import ClusterAccess
    from polyver.core.preflight import ChangeGroup, FailureGroup, FieldChange, OutcomeCounts
    from polyver.definitions.plan import PlannedLoss, PlannedMove

app = App(name="plan")

_COLUMNS = ("DEFINITION", "FROM", "TO", "WHY", "APPLICATIONS")
_MOST_GROUPS, _MOST_NAMES, _MOST_LINES = 20, 10, 40
"""Limits of the output without --all.

The command prints at most 20 groups of changes, the names of 10 applications in each group, and 40
lines of each diff.
"""
_ALL = 1_000_000_000


@app.default
def plan(
    *,
    file: Annotated[
        list[str], Parameter(name=["--file", "-f"], negative=(), allow_leading_hyphen=True)
    ],
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"])] = "",
    context: Context = "",
    semver_gate: Literal["refuse", "warn"] = "refuse",
    allow_deletion: Annotated[bool, Parameter(negative=())] = False,
    everything: Annotated[bool, Parameter(name="--all", negative=())] = False,
    output: Annotated[OutputFormat, Parameter(name=["--output", "-o"])] = OutputFormat.TABLE,
) -> None:
    """Show what would change if definitions or applications were applied to a cluster.

    The command itself changes nothing.

    The first line counts the affected applications by outcome: unchanged, changed, would lose
    objects, would fail. Then the command prints the objects that the API server would refuse, the
    moves to other versions, the failures grouped by message, and the changes. Similar changes form
    a group, which has one example and the names of its applications. The command never shows the
    data of Secrets.

    The exit code is 1 if an object would be refused, or if an application would fail or lose
    objects.

    Example: polyver plan -f webservice.yaml --context staging

    Parameters
    ----------
    file
        A file, a folder, or '-' (standard input), with definitions and applications; repeatable.
    namespace
        The namespace of the objects that do not have a namespace in the files. Default: the
        namespace of the context.
    semver_gate
        An incompatible change of a definition's parameters needs a new major version; in 0.x, it
        needs a new minor version. Set this option to the value of the control plane's
        --semver-gate, which decides what the control plane does with a new version that breaks this
        rule: refuse it, or accept it and warn.
    allow_deletion
        Do not exit with code 1 only because applications would lose objects. Use this option if the
        loss is intended. It does not set the annotation polyver.dev/allow-deletion, which allows
        the control plane to delete the objects.
    everything
        Print all groups of changes, the names of all applications, and complete diffs. Without this
        option, the command prints only the first ones.
    output
        The output format. The formats json and yaml are always complete, even without --all.
    """
    documents = read_manifests(file)

    async def ask(client: Client, access: ClusterAccess) -> DefinitionsPlan:
        where = namespace or access.namespace
        definitions = [each for _, each in definitions_in(documents, where)]
        applications = [each for _, each in applications_in(documents, where)]
        if not definitions and not applications:
            raise UnknownName("there is no definition and no application in the files")
        return await plan_on(client, definitions, applications, semver_gate)

    made = on_cluster(context, ask)
    if output is OutputFormat.TABLE:
        _print(made, everything=everything)
    else:
        emit(_data(made), output)
    problems = [*_problems(made, allow_deletion=allow_deletion)]
    if problems:
        raise RequestRefused("; ".join(problems))


def _problems(made: DefinitionsPlan, *, allow_deletion: bool) -> Iterator[str]:
    """Yield the reasons why the command exits with code 1, as sentences."""
    refused = [each.name for each in made.definitions if each.refused]
    refused += [f"Application {each.name}" for each in made.applications if each.refused]
    if refused:
        yield f"{listed(refused)} would be refused"
    counts = made.report.counts
    if counts.fails:
        yield f"{_count(counts.fails)} would fail"
    losing = [e for e in made.applications if e.outcome == "loses" and not e.may_lose]
    if losing and not allow_deletion:
        yield f"{_count(len(losing))} would lose objects"


def _count(number: int) -> str:
    return "1 application" if number == 1 else f"{number} applications"


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


# Table output.


def _print(made: DefinitionsPlan, *, everything: bool) -> None:
    names = _ALL if everything else _MOST_NAMES
    counts = made.report.counts
    print_lines(f"{_count(counts.total)}: {counts}")
    for each in made.definitions:
        _print_definition(each)
    _print_moves(made, names)
    for failure in made.report.failures:
        _print_failure(failure, "would fail", names)
    for failure in made.failing.failures:
        _print_failure(failure, "fail already, independent of the plan", names)
    groups = made.report.groups
    shown = groups if everything else groups[:_MOST_GROUPS]
    for group in shown:
        _print_group(group, names, _ALL if everything else _MOST_LINES)
    if len(shown) < len(groups):
        print_lines(
            "", f"{len(groups) - len(shown)} more groups of changes; use --all to print them"
        )
    for application in made.applications:
        for problem in application.not_compared:
            warn(f"the objects of {application.name} cannot be compared: {problem}")


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


def _print_moves(made: DefinitionsPlan, names: int) -> None:
    """Print the moves to other versions.

    Applications with the same move are printed in one line.
    """
    found: dict[tuple[str, str, str, str], set[str]] = {}
    for move in _moves(made):
        row = move.definition, move.was, move.to, move.reason
        found.setdefault(row, set()).add(move.application)
    for loss in _losses(made):
        row = loss.definition, loss.was, "nothing", loss.error.fact
        found.setdefault(row, set()).add(loss.application)
    if not found:
        print_lines("no application moves")
        return
    rows = [(*row, f"{len(found[row])}: {listed(sorted(found[row]), most=names)}") for row in found]
    print_table(_COLUMNS, rows)


def _print_failure(failure: FailureGroup, verb: str, names: int) -> None:
    more = " (and others like it)" if failure.is_varied else ""
    count = len(failure.dependents)
    if count == 1:
        verb = verb.replace("fail already", "fails already")
    print_lines("", f"{_count(count)} {verb}: {printable(failure.message)}{more}")
    print_lines(f"  {listed(failure.dependents, most=names)}")


def _print_group(group: ChangeGroup, names: int, lines: int) -> None:
    print_lines("", printable(str(group)), f"  {listed(group.dependents, most=names)}")
    diff = example_diff(group.example)
    print_lines(f"  example: {object_label(group.example)} of {group.example.dependent}")
    print_lines(*diff[:lines])
    if len(diff) > lines:
        print_lines(f"  {len(diff) - lines} more lines; use --all to print them")


# JSON and YAML output.


def _data(made: DefinitionsPlan) -> dict[str, Any]:
    return {
        "summary": _summary(made.report.counts),
        "definitions": [_definition(each) for each in made.definitions],
        "moves": [{**_place(each), "to": each.to, "reason": each.reason} for each in _moves(made)],
        "losses": [{**_place(each), "error": str(each.error)} for each in _losses(made)],
        "failures": _failures(made.report.failures),
        "failing": _failures(made.failing.failures),
        "changes": [_group(each) for each in made.report.groups],
        "applications": [_application(each) for each in made.applications],
    }


def _summary(counts: OutcomeCounts) -> dict[str, int]:
    return {
        "applications": counts.total,
        "unchanged": counts.unchanged,
        "changed": counts.changed,
        "wouldLoseObjects": counts.loses,
        "wouldFail": counts.fails,
    }


def _failures(found: Sequence[FailureGroup]) -> list[dict[str, Any]]:
    return [{"message": each.message, "applications": [*each.dependents]} for each in found]


def _group(each: ChangeGroup) -> dict[str, Any]:
    example = each.example
    return {
        "kind": each.kind,
        "change": each.change,
        "fields": [_field(one) for one in each.fields],
        "moreFields": each.more_fields,
        "objects": each.objects,
        "applications": [*each.dependents],
        "example": {
            "application": example.dependent,
            "object": object_label(example),
            "diff": "\n".join(example_diff(example)),
        },
    }


def _field(each: FieldChange) -> dict[str, Any]:
    if each.is_secret or each.is_varied:
        return {"path": each.path, "values": "secret" if each.is_secret else "different"}
    sides = {"before": each.before, "after": each.after}
    return {"path": each.path} | {name: text for name, text in sides.items() if text is not None}


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
        "outcome": _OUTCOMES[each.outcome],
        "errors": [*each.errors],
        "notCompared": [*each.not_compared],
    }


_OUTCOMES = {
    "unchanged": "unchanged",
    "changed": "changed",
    "loses": "wouldLoseObjects",
    "fails": "wouldFail",
}
