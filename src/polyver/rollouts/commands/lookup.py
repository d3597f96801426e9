"""Reads and changes the rollouts that users name on the command line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Final

from polyver.capability.gates import SYSTEM_NAMESPACE
from polyver.capability.rollouts import POLICIES
from polyver.cli.cluster import list_all, on_cluster
from polyver.cli.exit_codes import (
    Misused,
    ProblemsFound,
    RequestRefused,
    UnknownName,
    UnreadableInput,
)
from polyver.client import Client, GroupVersionResource, find
from polyver.client.cluster import ClusterAccess
from polyver.core import listed
from polyver.core.plain import Object
from polyver.core.rollout import RolloutState
from polyver.kube.objects.status import ApiError
from polyver.rollouts.description import state_text
from polyver.rollouts.names import FREEZE, REPORTS_ON, ROLLOUTS_ON

__all__ = [
    "CONFIG_MAPS",
    "MANAGER",
    "accepted",
    "again",
    "all_of",
    "awaited",
    "change",
    "closest",
    "freeze_reason",
    "named",
    "policy_namespace",
    "preflight_of",
]

MANAGER: Final = "polyver-cli"
_EVERY: Final = 0.2
_ACCEPTED: Final = 10.0
"""Maximum seconds to wait until polyver has accepted or refused a new Rollout."""
_CREATED: Final = 5.0
"""Maximum seconds to wait for a Rollout that may not exist yet, because its release is new."""

CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")


def closest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the name that a user may have meant, or with all names.

    >>> closest("web-1.2.6", ["web-1.2.5", "shop-2"]), closest("x", ["web-1.2.5"])
    ('did you mean web-1.2.5?', 'known: web-1.2.5')
    """
    names = sorted({*known})
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {listed(names) if names else 'none'}"


async def awaited(client: Client, name: str, namespace: str) -> Object:
    """Return the rollout with this name, as `named` does; wait some seconds until it exists."""
    end = time.monotonic() + _CREATED
    while time.monotonic() < end:
        with suppress(UnknownName):
            return await named(client, name, namespace)
        await asyncio.sleep(_EVERY)
    return await named(client, name, namespace)


async def named(client: Client, name: str, namespace: str) -> Object:
    """Return the rollout with this name. Raise an error if there is none, or more than one.

    If `namespace` is empty, all namespaces are searched.
    """
    if namespace and (found := await find(client, ROLLOUTS_ON, name, namespace)) is not None:
        return found
    there = [each["metadata"] for each in await all_of(client, ROLLOUTS_ON)]
    spaces = [each["namespace"] for each in there if each["name"] == name]
    if len(spaces) == 1 and not namespace:
        return await client.get(ROLLOUTS_ON, name, spaces[0])
    if namespace:
        known = [each["name"] for each in there if each["namespace"] == namespace]
        hint = f"it is in {listed(spaces)}" if spaces else closest(name, known)
        raise UnknownName(f"there is no rollout {name} in the namespace {namespace}", hint=hint)
    if spaces:
        fact = f"{name} is in several namespaces: {', '.join(spaces)}"
        raise Misused(fact, hint="pass --namespace")
    hint = closest(name, [each["name"] for each in there])
    raise UnknownName(f"there is no rollout {name}", hint=hint)


def change(
    name: str, namespace: str, context: str, changed: Callable[[Object], Mapping[str, Any]]
) -> Object:
    """Update fields in the spec of a rollout; return the rollout as it was before the update.

    `changed` returns the fields to write. Raise RequestRefused if the rollout has ended.
    """

    async def write(client: Client, access: ClusterAccess) -> Object:
        del access
        found = await named(client, name, namespace)
        state = (found.get("status") or {}).get("state")
        if state and RolloutState(state).is_final:
            raise RequestRefused(f"rollout {name} has ended: {state}")
        inside = found["metadata"]["namespace"]
        spec = {"spec": dict(changed(found))}
        await client.patch(ROLLOUTS_ON, name, inside, change=spec, manager=MANAGER)
        return found

    return on_cluster(context, write)


async def again(client: Client, rollout: Object) -> Object:
    """Read a rollout again. Raise ProblemsFound if it was deleted."""
    metadata = rollout["metadata"]
    found = await find(client, ROLLOUTS_ON, metadata["name"], metadata["namespace"])
    if found is None:
        raise ProblemsFound(f"rollout {metadata['name']} was deleted")
    return found


async def accepted(client: Client, created: Object) -> Object:
    """Wait until polyver has started a new rollout, and return `created`.

    If polyver reports that the rollout cannot start, delete it and raise RequestRefused.
    """
    metadata, end = created["metadata"], time.monotonic() + _ACCEPTED
    while time.monotonic() < end:
        found = await again(client, created)
        state, status = state_text(found.get("status") or {}), found.get("status") or {}
        if state == "Invalid":
            await client.delete(ROLLOUTS_ON, metadata["name"], metadata["namespace"])
            raise RequestRefused(f"the rollout cannot begin: {status['reason']}")
        if status.get("state"):
            break
        await asyncio.sleep(_EVERY)
    return created


async def all_of(client: Client, kind: GroupVersionResource, namespace: str = "") -> list[Object]:
    """List the objects of a kind, in one namespace or, if `namespace` is empty, in all.

    Raise UnreadableInput if the control plane does not serve the kind.
    """
    try:
        return await list_all(client, kind, namespace)
    except ApiError as error:
        if error.code != 404:
            raise
        fact = "rollouts are not enabled on this control plane"
        raise UnreadableInput(
            fact, hint="the capabilities definitions, compositions and functions enable them"
        ) from None


async def freeze_reason(client: Client) -> str | None:
    """Return the reason that was passed to `polyver rollout freeze`; empty if none was passed.

    Return None if rollouts are not frozen, or if the ConfigMap cannot be read.
    """
    try:
        found = await find(client, CONFIG_MAPS, FREEZE, SYSTEM_NAMESPACE)
    except ApiError:
        return None
    return None if found is None else str((found.get("data") or {}).get("reason") or "")


async def preflight_of(client: Client, rollout: Object) -> tuple[Object, str]:
    """Return the result of a rollout's preflight, and a message if the result is not complete.

    The message is empty if the result is complete.
    """
    metadata = rollout["metadata"]
    data: Object | None = (rollout.get("status") or {}).get("preflight")
    if data is None:
        raise UnknownName(f"rollout {metadata['name']} has no result of its preflight yet")
    report, reason = data.get("report"), data.get("note") or "there is no report"
    if report:
        try:
            found = await find(client, REPORTS_ON, report, metadata["namespace"])
        except ApiError as error:
            found, reason = None, f"RolloutReport {report} cannot be read: {error}"
        else:
            reason = f"there is no RolloutReport {report}"
        if found is not None:
            return found["preflight"], found["preflight"].get("note") or ""
    return data, f"this is only the beginning of the result: {reason}"


async def policy_namespace(client: Client, policy: str, namespace: str, usual: str) -> str:
    """Return the namespace of the policy with this name.

    If several namespaces have such a policy, return `usual` if it is one of them, and otherwise
    raise an error. If `namespace` is not empty, only this namespace is searched.
    """
    there = [each["metadata"] for each in await all_of(client, POLICIES, namespace)]
    spaces: list[str] = [each["namespace"] for each in there if each["name"] == policy]
    if len(spaces) == 1:
        return spaces[0]
    if usual in spaces:
        return usual
    if spaces:
        fact = f"the policy {policy} is in several namespaces: {', '.join(spaces)}"
        raise Misused(fact, hint="pass --namespace")
    where = f" in the namespace {namespace}" if namespace else ""
    hint = closest(policy, [each["name"] for each in there])
    raise UnknownName(f"there is no RolloutPolicy {policy}{where}", hint=hint)
