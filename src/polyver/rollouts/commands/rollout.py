"""`polyver rollout`: shows the rollouts of a cluster, and lets users start, promote and abort them.

The commands need nothing but the API server: `pause`, `resume`, `promote` and `abort` write one
field of a Rollout, `start` creates a Rollout, and `freeze` creates a ConfigMap.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from cyclopts import App, Parameter

from polyver.capability.gates import SYSTEM_NAMESPACE
from polyver.cli.cluster import on_cluster
from polyver.cli.exit_codes import Misused, ProblemsFound, RequestRefused
from polyver.cli.output import OutputFormat, emit, print_lines, print_table, warn
from polyver.client import Client
from polyver.client.cluster import ClusterAccess
from polyver.core.plain import Object
from polyver.core.rollout import RolloutState
from polyver.kube.objects.status import ApiError
from polyver.kube.objects.tables import age_of
from polyver.rollouts.commands.live_view import follow, show_report
from polyver.rollouts.commands.lookup import (
    CONFIG_MAPS,
    MANAGER,
    accepted,
    again,
    all_of,
    awaited,
    change,
    closest,
    freeze_reason,
    named,
    policy_namespace,
    preflight_of,
)
from polyver.rollouts.commands.preflight import preflight_lines
from polyver.rollouts.description import state_text, step_number
from polyver.rollouts.names import (
    FREEZE,
    ROLLOUTS_ON,
    TARGET_KINDS,
    lineage_of,
    request_in,
)
from polyver.rollouts.policies import rollout_name, unused_name

app = App(
    name="rollout",
    help="""Show and control rollouts, which bring new releases to their users in steps.

Example: polyver rollout status webservice-1.2.5 -n vela-system --watch""",
)

Context = Annotated[
    str, Parameter(help="The context of the kubeconfig. Default: the current context.")
]
Namespace = Annotated[
    str,
    Parameter(
        name=["--namespace", "-n"],
        help="The namespace of the rollout. Default: the only namespace that has it.",
    ),
]
_WIDE = 120
"""Minimum width of the terminal, in characters, at which the list of rollouts shows the targets."""
Output = Annotated[OutputFormat, Parameter(name=["--output", "-o"], help="The output format.")]


@app.command(name="list")
def list_rollouts(
    *, namespace: Namespace = "", context: Context = "", output: Output = OutputFormat.TABLE
) -> None:
    """List the rollouts of all namespaces, or of one.

    Example: polyver rollout list
    """

    async def read(client: Client, access: ClusterAccess) -> tuple[list[Object], str | None]:
        del access
        return await all_of(client, ROLLOUTS_ON, namespace), await freeze_reason(client)

    found, freeze = on_cluster(context, read)
    found.sort(key=lambda each: each["metadata"].get("creationTimestamp", ""))
    if output is not OutputFormat.TABLE:
        emit({"rollouts": [_data(each) for each in found]}, output)
        return
    _warn_if_frozen(freeze)
    if not found:
        print_lines(f"there are no rollouts{f' in the namespace {namespace}' * bool(namespace)}")
        return
    rows, now = [], datetime.now(UTC)
    is_narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < _WIDE
    for each in found:
        spec, status = each["spec"], each.get("status") or {}
        target = f"{spec['target']['kind']} {spec['target']['name']}"
        names = each["metadata"]["namespace"], each["metadata"]["name"]
        state = state_text(status), status.get("step", ""), status.get("progress", "")
        age = age_of(each["metadata"].get("creationTimestamp"), now)
        rows.append((*names, spec["to"], *state, age, status.get("reason", ""), target))
    columns = ("NAMESPACE", "NAME", "TO", "STATE", "STEP", "HEALTHY", "AGE", "REASON", "TARGET")
    shown = columns[:-1] if is_narrow else columns
    print_table(shown, [row[: len(shown)] for row in rows], wrapped="REASON")


@app.command
def status(
    name: str,
    /,
    *,
    namespace: Namespace = "",
    context: Context = "",
    watch: Annotated[bool, Parameter(name=["--watch", "-w"], negative=())] = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show the steps, the followers, the checks and the preflight of a rollout.

    The followers of a release are the objects that move to new releases by themselves.

    With --watch, the command follows the rollout until it ends: live on a terminal, with one line
    for each change elsewhere. The exit code is 1 if the rollout was rolled back, aborted or held,
    or if it cannot begin; otherwise, it is 0.

    Example: polyver rollout status webservice-1.2.5 -n vela-system --watch

    Parameters
    ----------
    name
        The name of the Rollout.
    watch
        Show the rollout live, until it ends.
    """

    async def read(client: Client, access: ClusterAccess) -> Object:
        del access
        found = await (awaited if watch else named)(client, name, namespace)
        if output is OutputFormat.TABLE:
            _warn_if_frozen(await freeze_reason(client))
        return await follow(partial(again, client, found)) if watch else found

    if watch and output is not OutputFormat.TABLE:
        raise Misused("--watch has no other output format", at="--output")
    found = on_cluster(context, read)
    if output is not OutputFormat.TABLE:
        emit(_data(found), output)
    elif not watch:
        show_report(found)
    state = state_text(found.get("status") or {})
    if state in ("RolledBack", "Aborted", "Held", "Invalid"):
        reason = (found.get("status") or {}).get("reason") or state
        raise ProblemsFound(f"rollout {name} is {state}: {reason}")


def _warn_if_frozen(reason: str | None) -> None:
    if reason is not None:
        told = f" ({reason})" if reason else ""
        warn(f"rollouts are frozen{told}; `polyver rollout unfreeze` continues them")


@app.command
def start(
    target: str,
    /,
    *,
    to: str,
    policy: str,
    namespace: Namespace = "",
    context: Context = "",
) -> None:
    """Start a rollout of a release that has no active rollout, with the rules of a policy.

    If the release had a rollout before, the name of the new one ends with -2, -3 and so on.

    Example: polyver rollout start ComponentDefinition/webservice --to 1.2.5 --policy careful

    Parameters
    ----------
    target
        The lineage: KIND/NAME.
    to
        The release: a version, or the name of a revision.
    policy
        The RolloutPolicy whose steps and checks the rollout uses.
    namespace
        The namespace of the policy and of the rollout. Default: the only namespace that has the
        policy.
    """
    kind, _, name = target.partition("/")
    groups = [group for group, each in TARGET_KINDS if each == kind]
    if not groups or not name:
        hint = closest(kind, [each for _, each in TARGET_KINDS])
        example = "write for example ComponentDefinition/webservice"
        raise Misused(f"{target!r} is not KIND/NAME", hint=example if groups else hint)

    async def create(client: Client, access: ClusterAccess) -> Object:
        inside = await policy_namespace(client, policy, namespace, access.namespace)
        spec = {"group": groups[0], "kind": kind, "name": name}
        lineage = lineage_of(spec, inside)
        there = await all_of(client, ROLLOUTS_ON, inside)
        for each in there:
            if request_in(each).lineage == lineage and request_in(each).to == to:
                state = (each.get("status") or {}).get("state")
                if not state or not RolloutState(state).is_final:
                    raise RequestRefused(f"rollout {each['metadata']['name']} of {to} is active")
        used = [each["metadata"]["name"] for each in there]
        made = {
            "apiVersion": "polyver.dev/v1alpha1",
            "kind": "Rollout",
            "metadata": {"name": unused_name(rollout_name(lineage, to), used), "namespace": inside},
            "spec": {"target": spec, "to": to, "policyRef": {"name": policy}},
        }
        return await accepted(client, await client.create(ROLLOUTS_ON, made, manager=MANAGER))

    metadata = on_cluster(context, create)["metadata"]
    started = f"{metadata['name']} -n {metadata['namespace']}"
    print_lines(
        f"rollout {metadata['namespace']}/{metadata['name']} is started",
        f"to follow it: polyver rollout status {started} --watch",
    )


@app.command
def pause(name: str, /, *, namespace: Namespace = "", context: Context = "") -> None:
    """Stop a rollout from starting further steps; checks go on, and can still cause a rollback.

    Example: polyver rollout pause webservice-1.2.5

    Parameters
    ----------
    name
        The name of the Rollout.
    """
    change(name, namespace, context, lambda _: {"paused": True})
    print_lines(f"rollout {name} is paused: no step starts; checks and the rollback go on")


@app.command
def resume(name: str, /, *, namespace: Namespace = "", context: Context = "") -> None:
    """Continue a rollout after `polyver rollout pause`.

    Example: polyver rollout resume webservice-1.2.5

    Parameters
    ----------
    name
        The name of the Rollout.
    """
    change(name, namespace, context, lambda _: {"paused": None})
    print_lines(f"rollout {name} continues")


@app.command
def promote(
    name: str,
    /,
    *,
    full: Annotated[bool, Parameter(negative=())] = False,
    namespace: Namespace = "",
    context: Context = "",
) -> None:
    """Approve the current step of a rollout, so that its pause ends.

    The command also starts a rollout in spite of the result of its preflight, and continues a
    rollout that is paused because a check failed (onFailure: Pause).

    Example: polyver rollout promote webservice-1.2.5

    Parameters
    ----------
    name
        The name of the Rollout.
    full
        Approve all steps: no pause stops the rollout any more. Its checks go on.
    """

    def approve(found: Object) -> Mapping[str, Any]:
        status, approved = found.get("status") or {}, found["spec"].get("approvedStep", -1)
        done, _, steps = (status.get("step") or "0/0").partition("/")
        if (status.get("memory") or {}).get("failure"):
            approved += 1  # an approval from before the failure does not count
        return {"approvedStep": max(approved, int(steps if full else done))}

    done = step_number(change(name, namespace, context, approve).get("status") or {})
    approved = "all steps are" if full else f"step {done} is" if done else "the preflight is"
    print_lines(f"rollout {name} is promoted: {approved} approved")


@app.command
def abort(name: str, /, *, namespace: Namespace = "", context: Context = "") -> None:
    """Abort a rollout: each follower of its release returns to the release that it used before.

    Example: polyver rollout abort webservice-1.2.5

    Parameters
    ----------
    name
        The name of the Rollout.
    """
    change(name, namespace, context, lambda _: {"aborted": True})
    print_lines(f"rollout {name} is aborted: its followers return to the release before")


@app.command
def history(
    name: str,
    /,
    *,
    namespace: Namespace = "",
    context: Context = "",
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the states and steps that a rollout has gone through.

    Example: polyver rollout history webservice-1.2.5

    Parameters
    ----------
    name
        The name of the Rollout.
    """
    found = on_cluster(context, lambda client, _: named(client, name, namespace))
    entries = (found.get("status") or {}).get("history") or []
    if output is not OutputFormat.TABLE:
        emit({"history": entries}, output)
        return
    rows = [(e["time"], e["state"], str(e["step"]), e.get("message", "")) for e in entries]
    print_table(("TIME", "STATE", "STEP", "REASON"), rows)


@app.command
def preflight(
    name: str,
    /,
    *,
    namespace: Namespace = "",
    context: Context = "",
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show the result of the preflight: how the release would change the objects that follow it.

    The command prints all failures and all changes, grouped, with the names of all followers and
    one example of each change. It never shows the data of Secrets.

    Example: polyver rollout preflight webservice-1.2.5

    Parameters
    ----------
    name
        The name of the Rollout.
    """

    async def read(client: Client, access: ClusterAccess) -> tuple[Object, str]:
        del access
        return await preflight_of(client, await named(client, name, namespace))

    data, missing = on_cluster(context, read)
    if missing:
        warn(missing)
    if output is not OutputFormat.TABLE:
        emit(data, output)
    else:
        print_lines(*preflight_lines(data))


@app.command
def freeze(*, reason: str = "", context: Context = "") -> None:
    """Stop all rollouts from starting steps, for example during an incident; checks go on.

    Example: polyver rollout freeze --reason "incident 42"

    Parameters
    ----------
    reason
        The reason. `polyver rollout list` and `polyver rollout status` show it.
    """

    async def write(client: Client, access: ClusterAccess) -> None:
        del access
        made = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": FREEZE, "namespace": SYSTEM_NAMESPACE},
            "data": {"reason": reason},
        }
        await client.apply(CONFIG_MAPS, made, manager=MANAGER, force=True)

    on_cluster(context, write)
    print_lines("rollouts are frozen: no step starts")


@app.command
def unfreeze(*, context: Context = "") -> None:
    """Continue all rollouts after `polyver rollout freeze`.

    Example: polyver rollout unfreeze
    """

    async def delete(client: Client, access: ClusterAccess) -> bool:
        del access
        try:
            await client.delete(CONFIG_MAPS, FREEZE, SYSTEM_NAMESPACE)
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return True

    was = on_cluster(context, delete)
    print_lines("rollouts continue" if was else "rollouts were not frozen")


def _data(obj: Object) -> Object:
    names = {name: obj["metadata"][name] for name in ("namespace", "name")}
    status = {k: v for k, v in (obj.get("status") or {}).items() if k != "memory"}
    return {**names, "spec": obj["spec"], "status": status}
