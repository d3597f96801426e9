"""`polyver plan`: shows the effects of manifests on a cluster before they are applied."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import make_dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from polyver.app.capabilities import CAPABILITIES
from polyver.capability.planning import PlanQuestion
from polyver.capability.preflight_examples import example_diff, object_label
from polyver.cli.cluster import on_cluster
from polyver.cli.exit_codes import Misused, RequestRefused, UnknownName
from polyver.cli.loading import documents_of
from polyver.cli.output import OutputFormat, emit, print_lines, print_table, printable, warn
from polyver.core import listed
from polyver.kube.objects import type_of

if TYPE_CHECKING:
    from polyver.capability.planning import DependentNoun, PlannedChanges
    from polyver.client import Client
    from polyver.client.cluster import ClusterAccess
    from polyver.core.preflight import ChangeGroup, FailureGroup, FieldChange
    from polyver.kube.objects import Document

app = App(name="plan")

_MOST_GROUPS, _MOST_NAMES, _MOST_LINES = 20, 10, 40
"""Limits of the output without --all.

The command prints at most 20 groups of changes, the names of 10 dependents in each group, and 40
lines of each diff.
"""
_ALL = 1_000_000_000

if TYPE_CHECKING:

    class CapabilityPlanOptions:
        """The options of `polyver plan` that capabilities add."""
else:
    # The class gets one field for each capability that has options for this command.
    CapabilityPlanOptions = Parameter(name="*")(
        make_dataclass(
            "CapabilityPlanOptions",
            [
                (f"of_{each.name}", each.plan_options, each.plan_options())
                for each in CAPABILITIES
                if each.plan_options is not None
            ],
            namespace={"__module__": __name__},
            frozen=True,
            kw_only=True,
        )
    )


@app.default
def plan(
    *,
    file: Annotated[
        list[str], Parameter(name=["--file", "-f"], negative=(), allow_leading_hyphen=True)
    ],
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"])] = "",
    context: str = "",
    sample: str = "1000",
    allow_deletion: Annotated[bool, Parameter(negative=())] = False,
    everything: Annotated[bool, Parameter(name="--all", negative=())] = False,
    output: Annotated[OutputFormat, Parameter(name=["--output", "-o"])] = OutputFormat.TABLE,
    options: CapabilityPlanOptions = CapabilityPlanOptions(),  # noqa: B008 - it is immutable
) -> None:
    """Show what would change if definitions, applications, Compositions or Functions were applied.

    The command itself changes nothing on the cluster.

    The first lines count the affected applications and composite resources by outcome: unchanged,
    changed, would lose objects, would fail. Then the command prints the objects that the API server
    would refuse, the moves to other versions, the failures grouped by message, and the changes.
    Similar changes form a group, which has one example and the names of its applications or
    composite resources. The command never shows the data of Secrets.

    To compose composite resources, the command runs the functions of their pipelines on this
    machine, as `polyver render` does (see --packages), and passes them the live objects that you
    may read on the cluster.

    The exit code is 1 if an object would be refused, or if an application or a composite resource
    would fail or lose objects.

    Example: polyver plan -f webservice.yaml --context staging

    Parameters
    ----------
    file
        A file, a folder, or '-' (standard input), with definitions, applications, Compositions and
        Functions; repeatable.
    namespace
        The namespace of the objects that do not have a namespace in the files. Default: the
        namespace of the context.
    context
        The context of the kubeconfig. Default: the current context.
    sample
        The maximum number of composite resources to compose, or `all`. If more composite resources
        would move, the command composes those that a rollout would move first.
    allow_deletion
        Do not exit with code 1 only because applications or composite resources would lose objects.
        Use this option if the loss is intended. It does not set the annotation
        polyver.dev/allow-deletion, which allows the control plane to delete the objects.
    everything
        Print all groups of changes, the names of all applications and composite resources, and
        complete diffs. Without this option, the command prints only the first ones.
    output
        The output format. The formats json and yaml are always complete, even without --all.
    """
    documents, most = documents_of(file), _read_sample(sample)
    planners = {each.name: each.planner() for each in CAPABILITIES if each.planner is not None}
    kinds = {named for each in planners.values() for named in each.kinds}
    if len(_others(documents, kinds)) == len(documents):
        hint = f"the command plans {listed(sorted({kind for _, kind in kinds}), most=_ALL)}"
        raise UnknownName("there is no object in the files that can be planned", hint=hint)

    async def ask(client: Client, access: ClusterAccess) -> list[PlannedChanges]:
        found = []
        for name, each in planners.items():
            question = PlanQuestion(
                documents=documents,
                namespace=namespace or access.namespace,
                sample=most,
                options=getattr(options, f"of_{name}", None),
            )
            found.append(await each.plan(client, access, question))
        return [each for each in found if each is not None]

    made = _whole(context, ask)
    for document in _others(documents, kinds.union(*(each.kinds for each in made))):
        kind = type_of(document)[1] or "a document without a kind"
        warn(f"{kind} is not part of the plan ({document.place()})")
    if output is OutputFormat.TABLE:
        _print(made, everything=everything)
    else:
        emit(_data(made), output)
    problems = [text for each in made for text in _problems(each, allow_deletion=allow_deletion)]
    if problems:
        raise RequestRefused("; ".join(problems))


def _read_sample(text: str) -> int | None:
    """Parse `--sample`. Return None for `all`."""
    if text == "all":
        return None
    if not text.isascii() or not text.isdecimal() or not int(text[:18]):
        fact = f"{text!r} is not a number of composite resources"
        raise Misused(fact, at="--sample", hint="write a positive number, or all")
    return int(text)


def _others(documents: Sequence[Document], kinds: Collection[tuple[str, str]]) -> list[Document]:
    return [each for each in documents if type_of(each) not in kinds]


def _whole(
    context: str, ask: Callable[[Client, ClusterAccess], Awaitable[list[PlannedChanges]]]
) -> list[PlannedChanges]:
    """Compute the changes. If the command is terminated, end the processes of functions first."""

    async def asked(client: Client, access: ClusterAccess) -> list[PlannedChanges]:
        task = asyncio.current_task()
        assert task is not None
        with suppress(NotImplementedError, ValueError, RuntimeError):  # not in the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await ask(client, access)

    try:
        return on_cluster(context, asked)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _problems(made: PlannedChanges, *, allow_deletion: bool) -> Iterator[str]:
    """Yield the reasons why the command exits with code 1, as sentences."""
    if made.refused:
        yield f"{listed(made.refused)} would be refused"
    if made.report.counts.fails:
        yield f"{made.noun.count(made.report.counts.fails)} would fail"
    if made.losing and not allow_deletion:
        yield f"{made.noun.count(made.losing)} would lose objects"


# Table output.


def _print(made: Sequence[PlannedChanges], *, everything: bool) -> None:
    for each in made:
        print_lines(f"{each.noun.count(each.report.counts.total)}: {each.report.counts}")
    for each in made:
        _print_one(each, everything=everything)


def _print_one(made: PlannedChanges, *, everything: bool) -> None:
    names, noun, report = _ALL if everything else _MOST_NAMES, made.noun, made.report
    print_lines(*made.notes, *made.published)
    for warning in made.warnings:
        warn(warning)
    _print_moves(made, names)
    for failure in report.failures:
        _print_failure(failure, noun, "would fail", names)
    for failure in made.failing.failures:
        _print_failure(failure, noun, "fail already, independent of the plan", names)
    shown = report.groups if everything else report.groups[:_MOST_GROUPS]
    for group in shown:
        _print_group(group, names, _ALL if everything else _MOST_LINES)
    if more := len(report.groups) - len(shown):
        print_lines("", f"{more} more groups of changes; use --all to print them")


def _print_moves(made: PlannedChanges, names: int) -> None:
    """Print the moves to other versions, each move with its dependents in one line."""
    if not made.moves:
        print_lines(f"no {made.noun.singular} moves")
        return
    columns = (made.column, "FROM", "TO", "WHY", made.noun.plural.upper())
    rows = [
        (*row, f"{len(found)}: {listed(sorted(found), most=names)}")
        for row, found in made.moves.items()
    ]
    print_table(columns, rows)


def _print_failure(failure: FailureGroup, noun: DependentNoun, verb: str, names: int) -> None:
    more = " (and others like it)" if failure.is_varied else ""
    count = len(failure.dependents)
    if count == 1:
        verb = verb.replace("fail already", "fails already")
    print_lines("", f"{noun.count(count)} {verb}: {printable(failure.message)}{more}")
    print_lines(f"  {listed(failure.dependents, most=names)}")


def _print_group(group: ChangeGroup, names: int, lines: int) -> None:
    print_lines("", printable(str(group)), f"  {listed(group.dependents, most=names)}")
    diff = example_diff(group.example)
    print_lines(f"  example: {object_label(group.example)} of {group.example.dependent}")
    print_lines(*diff[:lines])
    if len(diff) > lines:
        print_lines(f"  {len(diff) - lines} more lines; use --all to print them")


# JSON and YAML output.


def _data(made: Sequence[PlannedChanges]) -> dict[str, Any]:
    whole: dict[str, Any] = {"summary": _summary(made)}
    for each in made:
        whole |= each.data
    whole["failures"] = [one for each in made for one in _failures(each, each.report.failures)]
    whole["failing"] = [one for each in made for one in _failures(each, each.failing.failures)]
    whole["changes"] = [_group(each, one) for each in made for one in each.report.groups]
    return whole


def _summary(made: Sequence[PlannedChanges]) -> dict[str, int]:
    counts = [each.report.counts for each in made]
    return {
        **{each.noun.key: each.report.counts.total for each in made},
        "unchanged": sum(each.unchanged for each in counts),
        "changed": sum(each.changed for each in counts),
        "wouldLoseObjects": sum(each.loses for each in counts),
        "wouldFail": sum(each.fails for each in counts),
    }


def _failures(made: PlannedChanges, found: Sequence[FailureGroup]) -> list[dict[str, Any]]:
    key = made.noun.key
    return [{"message": each.message, key: [*each.dependents]} for each in found]


def _group(made: PlannedChanges, each: ChangeGroup) -> dict[str, Any]:
    example = each.example
    return {
        "kind": each.kind,
        "change": each.change,
        "fields": [_field(one) for one in each.fields],
        "moreFields": each.more_fields,
        "objects": each.objects,
        made.noun.key: [*each.dependents],
        "example": {
            made.noun.key[:-1]: example.dependent,
            "object": object_label(example),
            "diff": "\n".join(example_diff(example)),
        },
    }


def _field(each: FieldChange) -> dict[str, Any]:
    if each.is_secret or each.is_varied:
        return {"path": each.path, "values": "secret" if each.is_secret else "different"}
    sides = {"before": each.before, "after": each.after}
    return {"path": each.path} | {name: text for name, text in sides.items() if text is not None}
