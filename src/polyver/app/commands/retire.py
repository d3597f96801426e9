"""`polyver retire`: plan the removal of a version of a kind, start it, follow it, or abort it.

The command writes only Retirements. A controller of polyver executes them, so the removal goes on
if the command ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from cyclopts import App, Parameter

from polyver.apis.commands.retirement_view import (
    counting,
    follow,
    plan_lines,
    refuse_unfinished,
    summary_lines,
)
from polyver.apis.controllers.retirement_observing import (
    RETIREMENTS_ON,
    VersionUsers,
    count_objects,
    observe,
)
from polyver.apis.retirement import (
    FIXED_REASONS,
    ObjectCounts,
    RetirementPlan,
    RetirementState,
    plan_retirement,
)
from polyver.app.capabilities import CAPABILITIES, Choices
from polyver.cli.cluster import list_all, on_cluster
from polyver.cli.exit_codes import Misused, ProblemsFound, RequestRefused, UnknownName
from polyver.cli.output import OutputFormat, emit, print_lines, warn
from polyver.client import CRDS, Client, find
from polyver.client.cluster import ClusterAccess
from polyver.core import listed
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.languages.values.durations import nanoseconds

app = App(name="retire")
_MANAGER = "polyver-retire"


@app.default
def retire(
    kind: str,
    version: str,
    /,
    *,
    confirm: Annotated[bool, Parameter(negative=())] = False,
    abort: Annotated[bool, Parameter(negative=())] = False,
    ignore_clients: Annotated[bool, Parameter(negative=())] = False,
    ignore_dependents: Annotated[bool, Parameter(negative=())] = False,
    take_over: Annotated[bool, Parameter(negative=())] = False,
    quiet_period: str = "24h",
    wait: bool = True,
    context: str = "",
    output: Annotated[OutputFormat, Parameter(name=["--output", "-o"])] = OutputFormat.TABLE,
) -> None:
    """Remove a version of a kind from a cluster, without losing data and without breaking clients.

    By default, the command prints a plan and changes nothing: who still uses the version, and the
    steps with their numbers of objects. With --confirm, polyver executes the plan: it stops serving
    the version, rewrites all stored objects, verifies this, rewrites the managedFields, purges
    preserved fields that only the version can restore, and drops the version from the
    CustomResourceDefinition and from the Conversion. Each step waits while something needs the
    version. The command follows the steps; if it is interrupted, polyver continues.

    The exit code is 1 if something blocks the removal, or if it was aborted; otherwise, it is 0.

    Example: polyver retire crontabs.stable.example.com v1

    Parameters
    ----------
    kind
        The kind: the name of its CustomResourceDefinition, or its kind, plural or short name if no
        other CustomResourceDefinition has the same name.
    version
        The version to remove, such as v1.
    confirm
        Execute the plan. If the removal is blocked or was aborted, this tries it again.
    abort
        Stop the removal, and serve the version again. This is possible until the version is dropped
        from the CustomResourceDefinition.
    ignore_clients
        Stop serving the version although clients have recently used it.
    ignore_dependents
        Stop serving the version although objects of polyver use it, such as Applications.
    take_over
        Change the CustomResourceDefinition and the Conversion although another field manager, such
        as a GitOps tool, applies them. Without a change in its source, it undoes the removal.
    quiet_period
        The time without a request for the version that polyver requires before it stops serving
        the version, such as 24h or 30m.
    wait
        Wait until the removal has ended or is blocked.
    context
        The context of the kubeconfig. Default: the current context.
    output
        The output format.
    """
    if confirm and abort:
        raise Misused("--confirm and --abort exclude each other", hint="pass one of them")
    if nanoseconds(quiet_period) is None:
        raise Misused(f"{quiet_period!r} is not a duration", at="--quiet-period", hint="write 24h")
    spec = {
        "ignoreClients": ignore_clients or None,
        "ignoreDependents": ignore_dependents or None,
        "takeOver": take_over or None,
        "quietPeriod": quiet_period if quiet_period != "24h" else None,
    }
    if abort:
        _finish(on_cluster(context, partial(_abort, kind, version, wait)), output)
    elif confirm:
        found = on_cluster(context, partial(_confirm, kind, version, spec))
        if wait:
            shown = output is OutputFormat.TABLE
            found = on_cluster(context, lambda client, _: follow(client, found, shown=shown))
        _finish(found, output, refuses=wait)
    else:
        _show_plan(on_cluster(context, partial(_plan, kind, version, spec)), output)


def _show_plan(plan: RetirementPlan, output: OutputFormat) -> None:
    if output is OutputFormat.TABLE:
        print_lines(*plan_lines(plan))
    else:
        emit(plan.data, output)
    for each in plan.warnings:
        warn(each)
    if plan.blockers:
        text = "; ".join(each.message for each in plan.blockers)
        raise ProblemsFound(f"{plan.version} cannot be retired now: {text}")


def _finish(retirement: Object, output: OutputFormat, *, refuses: bool = False) -> None:
    if output is not OutputFormat.TABLE:
        status = {k: v for k, v in (retirement.get("status") or {}).items() if k != "checked"}
        emit({"name": retirement["metadata"]["name"], **status}, output)
    if refuses:
        refuse_unfinished(retirement)
        if output is OutputFormat.TABLE:
            print_lines(*summary_lines(retirement))


async def _plan(
    kind: str, version: str, spec: Mapping[str, Any], client: Client, access: ClusterAccess
) -> RetirementPlan:
    del access
    crd = await _definition(client, kind)
    return await _planned(client, _retirement(crd, version, spec))


async def _planned(client: Client, retirement: Object) -> RetirementPlan:
    observed = await observe(client, retirement, users=_users(), now=datetime.now(UTC))
    counts, snapshot = ObjectCounts(), observed.snapshot
    if any(served for name, served in snapshot.served.items() if name != snapshot.version):
        with counting(retirement["spec"]["definition"]) as progress:
            counts = await count_objects(client, observed, progress)
    return plan_retirement(retirement["spec"]["definition"], snapshot, counts, observed.clients)


def _users() -> list[VersionUsers]:
    """Return the functions of all capabilities that find users of a version of a kind."""
    every = Choices(frozenset(each.name for each in CAPABILITIES))
    return [users for each in every.contributions() for users in each.version_users]


async def _definition(client: Client, kind: str) -> Object:
    """Return the CustomResourceDefinition of a kind, which the user has named in some way."""
    exact = await find(client, CRDS, kind)
    if exact is not None:
        return exact
    crds = await list_all(client, CRDS)
    named = [each for each in crds if kind.lower() in _names(each)]
    if len(named) == 1:
        return named[0]
    if named:
        found = listed(sorted(each["metadata"]["name"] for each in named))
        raise UnknownName(f"{kind!r} names several kinds", hint=f"write one of {found}")
    raise UnknownName(f"there is no CustomResourceDefinition for {kind!r}")


def _names(crd: Object) -> set[str]:
    names, group = crd["spec"]["names"], crd["spec"]["group"]
    found = [names.get(each, "") for each in ("kind", "plural", "singular")]
    found += names.get("shortNames") or ()
    return {text for name in found if name for text in (name.lower(), f"{name}.{group}".lower())}


def _retirement(crd: Object, version: str, spec: Mapping[str, Any]) -> Object:
    name = crd["metadata"]["name"]
    wanted = {"definition": name, "version": version, "attempt": 1}
    return {
        "apiVersion": "polyver.dev/v1alpha1",
        "kind": "Retirement",
        "metadata": {"name": f"{name}-{version}"},
        "spec": {**wanted, **{key: value for key, value in spec.items() if value is not None}},
    }


async def _confirm(
    kind: str, version: str, spec: Mapping[str, Any], client: Client, access: ClusterAccess
) -> Object:
    """Create the Retirement, or confirm it again; return it."""
    del access
    crd = await _definition(client, kind)
    wanted = _retirement(crd, version, spec)
    known = await find(client, RETIREMENTS_ON, wanted["metadata"]["name"])
    exists = version in {each["name"] for each in crd["spec"]["versions"]}
    if known is not None and exists and _state(known) == RetirementState.COMPLETED:
        # It removed an earlier version of this name.
        await client.delete(RETIREMENTS_ON, known["metadata"]["name"])
        known = None
    if known is None:
        observed = await observe(client, wanted, now=datetime.now(UTC))
        first = plan_retirement(
            crd["metadata"]["name"], observed.snapshot, ObjectCounts(), observed.clients
        )
        if problems := [each.message for each in first.blockers if each.reason in FIXED_REASONS]:
            raise RequestRefused(f"{version} cannot be retired now: {'; '.join(problems)}")
        return await _created(client, wanted)
    if _state(known) == RetirementState.COMPLETED:
        return known
    again = {**spec, "aborted": None, "attempt": known["spec"].get("attempt", 0) + 1}
    return await _changed(client, known, again)


async def _abort(
    kind: str, version: str, wait: bool, client: Client, access: ClusterAccess
) -> Object:
    del access
    crd = await _definition(client, kind)
    known = await find(client, RETIREMENTS_ON, f"{crd['metadata']['name']}-{version}")
    if known is None:
        raise UnknownName(f"no retirement of {version} of {crd['metadata']['name']} was started")
    if version not in {each["name"] for each in crd["spec"]["versions"]}:
        raise RequestRefused(f"{version} is already dropped, so it cannot be served again")
    made = await _changed(client, known, {"aborted": True})
    if not wait:
        return made
    final = await follow(client, made, shown=False)
    if _state(final) != RetirementState.ABORTED:
        raise RequestRefused(f"{version} was dropped before the abort")
    print_lines(f"{version} of {crd['metadata']['name']} is served again")
    return final


def _state(retirement: Object) -> str:
    return str((retirement.get("status") or {}).get("state") or "")


async def _created(client: Client, wanted: Object) -> Object:
    try:
        return await client.create(RETIREMENTS_ON, wanted, manager=_MANAGER)
    except ApiError as error:
        if error.code != 404:
            raise
        hint = "run `polyver install`, or start `polyver up`"
        raise RequestRefused("the server has no kind Retirement", hint=hint) from None


async def _changed(client: Client, known: Object, spec: Mapping[str, Any]) -> Object:
    name = known["metadata"]["name"]
    change = {"spec": {**spec}}
    return await client.patch(RETIREMENTS_ON, name, change=change, manager=_MANAGER)
