"""Answers `polyver why` about ActionSets, and `polyver impact` about functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from polyver.capability.subjects import ImpactQuestion, Subject, WhyQuestion
from polyver.cli.cluster import CLUSTER, object_on
from polyver.cli.exit_codes import UnknownName
from polyver.cli.output import OutputFormat, emit, print_lines, print_table, warn
from polyver.core import PolyverError, Resolution
from polyver.functions.actions import ActionSetRun, read_run, wanted_of
from polyver.functions.blueprints import (
    Blueprint,
    Phase,
    PhaseFunctionUse,
    blueprint_of,
    requests_in,
    resolution_of,
    uses_in,
)
from polyver.functions.commands.blueprints import (
    ACTION_SETS,
    BLUEPRINTS,
    blueprints_among,
    documents_in,
)
from polyver.functions.commands.catalogues import version_of
from polyver.functions.commands.served_functions import asked_functions
from polyver.functions.loading import load_known
from polyver.functions.registering import Functions, UnknownFunction

__all__ = ["SUBJECTS"]

_ACTION_SETS = ("actionset", "actionsets", "actionset.cr.kanister.io", "actionsets.cr.kanister.io")


@dataclass(frozen=True, slots=True)
class _Row:
    """One phase of an ActionSet: the version that it used, and the one that it would use now."""

    action: str
    phase: str
    function: str
    asks: str
    recorded: str
    state: str
    reason: str
    now: str
    why_now: str
    rejected: tuple[tuple[str, str], ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "action": self.action,
            "phase": self.phase,
            "function": self.function,
            "asksFor": self.asks,
            "version": self.recorded,
            "state": self.state,
            "reason": self.reason,
            "now": {"version": self.now, "why": self.why_now},
        }
        rejected = [{"version": version, "why": why} for version, why in self.rejected]
        found["now"] |= {"rejected": rejected} if rejected else {}
        return {name: value for name, value in found.items() if value}


def _why_action_set(question: WhyQuestion) -> None:
    """Print the version that each phase of an ActionSet used, and the reason.

    Also print the version that the phase would use now.
    """
    context = question.context
    known = asked_functions(
        context, question.functions, question.catalogue, traceback=question.traceback
    )
    access, found = object_on(context, ACTION_SETS, question.name, question.namespace)
    if found is None:
        inside = question.namespace or access.namespace
        raise UnknownName(f"there is no ActionSet {inside}/{question.name}", at=access.server)
    run = read_run(found)
    recorded = run is not None and bool(run.actions)
    if run and recorded:
        inside = found["metadata"]["namespace"]
        rows = list(_recorded(run, known, lambda name: _blueprint(context, name, inside)))
    else:
        rows = list(_asked(found, context, known))
    _print_phases(rows, run, question.output, explain=question.explain)


def _blueprint(context: str, name: str, namespace: str) -> Blueprint | None:
    _, obj = object_on(context, BLUEPRINTS, name, namespace)
    return blueprint_of(obj)[0] if obj is not None else None


def _recorded(
    run: ActionSetRun, known: Functions, blueprints: Callable[[str], Blueprint | None]
) -> Iterator[_Row]:
    for action in run.actions:
        blueprint = blueprints(action.blueprint)
        preferred = action.snapshot.get("spec", {}).get("preferredVersion") or ""
        for place, call in enumerate(action.calls):
            phase = action.written(place)
            now, told, rejected = _now(known, blueprint, phase, preferred)
            yield _Row(
                action.name,
                action.label(place),
                phase.function,
                phase.version or preferred,
                call.version,
                call.state.value,
                call.explanation,
                now,
                told,
                rejected,
            )


def _asked(found: dict[str, Any], context: str, known: Functions) -> Iterator[_Row]:
    """Yield a row for each phase, for an ActionSet that has not started.

    `found` is the ActionSet; its blueprints are read from the cluster.
    """
    for wanted in wanted_of(found):
        inside = found["metadata"]["namespace"]
        blueprint = _blueprint(context, wanted.blueprint, inside)
        if blueprint is None or wanted.name not in blueprint.actions:
            warn(f"blueprint {wanted.blueprint} or its action {wanted.name} does not exist")
            continue
        preferred = wanted.spec.get("preferredVersion") or ""
        for phase in blueprint.action(wanted.name).calls:
            asks = phase.version or preferred
            about = (wanted.name, phase.label, phase.function, asks, "", "", "")
            yield _Row(*about, *_now(known, blueprint, phase, preferred))


def _now(
    known: Functions, blueprint: Blueprint | None, phase: Phase, preferred: str
) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """Return the version that a phase would use now, the reason, and the versions not chosen.

    If the phase cannot be resolved, the version is empty and the reason is the error.
    """
    try:
        user = blueprint.user(phase) if blueprint is not None else None
        found = resolution_of(known, phase, preferred=preferred, user=user)
    except PolyverError as error:
        return "", str(error), ()
    rejected = tuple((each.release.name, each.why) for each in found.rejected)
    return found.release.name, "; ".join([found.reason, *found.warnings]), rejected


def _print_phases(
    rows: list[_Row], run: ActionSetRun | None, output: OutputFormat, *, explain: bool
) -> None:
    if output is not OutputFormat.TABLE:
        state = {"state": run.state.value} if run else {}
        error = {"error": run.error} if run and run.error else {}
        emit({**state, **error, "phases": [row.data for row in rows]}, output)
        return
    columns = ("ACTION", "PHASE", "FUNCTION", "REQUESTS", "USED", "STATE", "WHY", "NOW", "WHY NOW")
    print_table(
        columns,
        [
            (
                *(row.action, row.phase, row.function, row.asks or "default", row.recorded),
                *(row.state, row.reason, row.now or "unresolved", row.why_now),
            )
            for row in rows
        ],
    )
    for row in rows if explain else ():
        if row.rejected:
            print_lines("", f"{row.action}, {row.phase}: {row.function}")
            print_table(("NOT CHOSEN", "WHY"), row.rejected)
    if run is not None and run.error:
        print_lines("", f"failed: {run.error}")


def _impact_of_function(question: ImpactQuestion) -> None:
    """List each phase that uses a function, or one version of it."""
    name, at, text = question.text.partition("@")
    version = version_of(text, "NAME@VERSION") if at else None
    known = _functions(question)
    if name not in known.known:
        error = UnknownFunction(name, known)
        raise UnknownName(error.fact, hint=error.hint)
    documents = documents_in(list(question.files))
    blueprints = blueprints_among(documents)
    requests = [request for _, request in requests_in(documents)]
    uses = [use for use in uses_in(blueprints, known, requests) if use.phase.function == name]
    if version is not None:
        uses = [use for use in uses if use.concerns(version)]
    _print_uses(uses, question.output)


def _functions(question: ImpactQuestion) -> Functions:
    """Return the functions of the first cluster in `--file`, or the local functions without one."""
    clusters = [name for name in question.files if name.startswith(CLUSTER)]
    given, traceback = (question.functions, question.catalogue), question.traceback
    if not clusters:
        return load_known(*given, traceback=traceback)
    return asked_functions(clusters[0].removeprefix(CLUSTER), *given, traceback=traceback)


def _print_uses(uses: list[PhaseFunctionUse], output: OutputFormat) -> None:
    if output is not OutputFormat.TABLE:
        emit({"uses": [_use_data(use) for use in uses]}, output)
        return
    if not uses:
        print_lines("not used")
        return
    columns = ("BLUEPRINT", "ACTION", "PHASE", "ACTIONSET", "REQUESTS", "USES", "WHY")
    rows = [
        (
            use.blueprint.label,
            use.action,
            use.phase.label,
            use.asker,
            use.asked or "default",
            use.version or "unresolved",
            _why(use),
        )
        for use in uses
    ]
    print_table(columns, rows)


def _why(use: PhaseFunctionUse) -> str:
    return use.found.reason if isinstance(use.found, Resolution) else str(use.found.fact)


def _use_data(use: PhaseFunctionUse) -> dict[str, Any]:
    found: dict[str, Any] = {
        "blueprint": use.blueprint.label,
        "action": use.action,
        "phase": use.phase.label,
        "function": use.phase.function,
        "place": use.blueprint.document.place(*use.phase.path),
    }
    found |= {"actionSet": use.asker} if use.asker else {}
    found |= {"asksFor": use.asked} if use.asked else {}
    found |= {"gets": use.version} if use.version else {}
    return found | {"why": _why(use)}


SUBJECTS = (
    Subject(names=_ACTION_SETS, why=_why_action_set),
    Subject(impact=_impact_of_function),  # a function has no kind: NAME or NAME@VERSION
)
