"""`polyver why`: print which versions an object on a cluster got, why, and would get now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import App, Parameter

from polyver.cli.cluster import object_on
from polyver.cli.exit_codes import Misused, UnknownName
from polyver.cli.output import OutputFormat, emit, print_lines, print_table, warn
from polyver.compositions.settings import PACKAGE_NAMES
from polyver.core import PolyverError
from polyver.functions.actions import ActionSetRun, read_run, wanted_of
from polyver.functions.blueprints import Phase, blueprint_of, resolution_of
from polyver.functions.commands.blueprints import ACTION_SETS, BLUEPRINTS
from polyver.functions.commands.functions import CatalogueFiles, FunctionFiles, Output, Traceback
from polyver.functions.commands.served_functions import asked_functions
from polyver.functions.registering import Functions

_NAMES = ("actionset", "actionsets", "actionset.cr.kanister.io", "actionsets.cr.kanister.io")

APPLICATION_NAMES = ("app", "apps", "application", "applications", "applications.core.oam.dev")
COMPOSITION_NAMES = ("composition", "compositions", "compositions.apiextensions.crossplane.io")

app = App(name="why")


@dataclass(frozen=True, slots=True)
class _Row:
    """One phase: the recorded version, and the one it would get now."""

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


@app.default
def why(
    name: str,
    /,
    *,
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"])] = "",
    context: str = "",
    functions: FunctionFiles = None,
    catalogue: CatalogueFiles = None,
    explain: Annotated[bool, Parameter(negative=())] = False,
    output: Output = OutputFormat.TABLE,
    traceback: Traceback = False,
) -> None:
    """Show which versions an ActionSet, application, package or composite resource uses, and why.

    For an ActionSet, shows the version that each phase used, and the version that it would use now
    with the functions of the server, or with those of --functions and --catalogue. For an
    application, shows the version of each definition that it references. For a package, shows the
    revision that each step of a composition uses. For a composite resource, shows the composition,
    its revision and the revision of each function that it uses and would use now.

    Example: polyver why actionset/backup-1 -n shop --catalogue catalogue.yaml

    Parameters
    ----------
    name
        An ActionSet (actionset/NAME), an application (app/NAME), a function that compositions call
        (package/NAME) or a composite resource (xr/NAME or KIND/NAME).
    namespace
        The namespace of the object. Default: the namespace of the context.
    context
        The context of the kubeconfig. Default: the current context.
    explain
        Also show why each other version would not be chosen now.
    """
    kind, slash, wanted = name.partition("/")
    if kind.lower() in APPLICATION_NAMES and wanted:
        from polyver.definitions.commands.applications import why_application

        why_application(wanted, namespace, context, output, explain=explain)
        return
    if kind.lower() in PACKAGE_NAMES and wanted:
        from polyver.compositions.commands.functions_on_cluster import why_package

        why_package(wanted, context, output, explain=explain)
        return
    if not slash or not kind or not wanted or "/" in wanted:
        fact = f"{name!r} is not an ActionSet, application, package or composite resource"
        raise Misused(fact, hint="write actionset/NAME, app/NAME, package/NAME or xr/NAME")
    if kind.lower() not in _NAMES:
        from polyver.compositions.commands.composites import why_composite

        why_composite(kind, wanted, namespace, context, output, explain=explain)
        return
    known = asked_functions(context, functions, catalogue, traceback=traceback)
    access, found = object_on(context, ACTION_SETS, wanted, namespace)
    if found is None:
        inside = namespace or access.namespace
        raise UnknownName(f"there is no ActionSet {inside}/{wanted}", at=access.server)
    run = read_run(found)
    recorded = run is not None and bool(run.actions)
    rows = list(_recorded(run, known) if run and recorded else _asked(found, context, known))
    _print(rows, run, output, explain=explain)


def _recorded(run: ActionSetRun, known: Functions) -> Iterator[_Row]:
    for action in run.actions:
        preferred = action.snapshot.get("spec", {}).get("preferredVersion") or ""
        for place, call in enumerate(action.calls):
            phase = action.written(place)
            now, told, rejected = _now(known, phase, preferred)
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
    """Yield a row for each phase of an ActionSet that has not started."""
    for wanted in wanted_of(found):
        inside = found["metadata"]["namespace"]
        _, obj = object_on(context, BLUEPRINTS, wanted.blueprint, inside)
        blueprint = blueprint_of(obj)[0] if obj is not None else None
        if blueprint is None or wanted.name not in blueprint.actions:
            warn(f"blueprint {wanted.blueprint} or its action {wanted.name} does not exist")
            continue
        preferred = wanted.spec.get("preferredVersion") or ""
        for phase in blueprint.action(wanted.name).calls:
            asks = phase.version or preferred
            about = (wanted.name, phase.label, phase.function, asks, "", "", "")
            yield _Row(*about, *_now(known, phase, preferred))


def _now(
    known: Functions, phase: Phase, preferred: str
) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """Return the version that a phase would get now, the reason, and the rejected versions."""
    try:
        found = resolution_of(known, phase, preferred=preferred)
    except PolyverError as error:
        return "", str(error), ()
    rejected = tuple((each.release.name, each.why) for each in found.rejected)
    return found.release.name, "; ".join([found.reason, *found.warnings]), rejected


def _print(
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
