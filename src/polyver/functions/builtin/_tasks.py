"""`KubeTask`: runs a pod until it ends, and returns what it printed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from polyver.client import GroupVersionResource
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.functions.builtin._outputs import LARGEST, outputs_in, text_of
from polyver.functions.builtin._resources import create_once, name_for
from polyver.functions.registering import Alias, Description, Duration, register
from polyver.functions.runtime.context import AsyncContext
from polyver.functions.runtime.pods import NO_NODES, logs_of
from polyver.kube.objects.patch import apply_merge_patch
from polyver.kube.objects.status import ApiError

__all__: list[str] = []

_PODS = GroupVersionResource("", "v1", "pods")
_CONTAINER = "container"
_PAUSE = 0.5
_QUARTER = Duration("15m")
Mapped = dict[str, Any]


class TaskFailed(PolyverError):
    """The pod failed, or did not end before the timeout."""


@register("KubeTask", outputs=["output", ...])
async def kube_task(
    ctx: AsyncContext,
    *,
    image: Annotated[str, Description("The image to run.")],
    command: Annotated[list[str], Description("The program and its arguments.")],
    namespace: Annotated[
        str, Description("The namespace. Default: the namespace of the ActionSet.")
    ] = "",
    override: Annotated[
        Mapped,
        Alias("podOverride"),
        Description("Fields to merge into the spec of the pod; containers are matched by name."),
    ] = {},  # noqa: B006
    labels: Annotated[dict[str, str], Alias("podLabels"), Description("Labels of the pod.")] = {},  # noqa: B006
    annotations: Annotated[
        dict[str, str], Alias("podAnnotations"), Description("Annotations of the pod.")
    ] = {},  # noqa: B006
    timeout: Annotated[Duration, Description("Timeout for the pod to end.")] = _QUARTER,
) -> dict[str, Any]:
    """Run a pod until it ends, return what it printed, and delete it.

    Returned values: `output`, which is the log of the container (only the end of a long log). If
    the container prints a line `###Phase-output###: {"key": "NAME", "value": …}`, the function also
    returns this value, under the key NAME. The name of the container is `container`. The function
    needs a cluster with nodes. So it fails at its timeout on `polyver up`, which runs no pods.
    """
    inside, name = namespace or ctx.namespace, name_for(ctx.key, "polyver-task-")
    whole = merged(ctx.params.get("PodOverride") or {}, override)
    metadata = {
        "name": name,
        "labels": {**(ctx.params.get("PodLabels") or {}), **labels},
        "annotations": {**(ctx.params.get("PodAnnotations") or {}), **annotations},
    }
    container = {"name": _CONTAINER, "image": image, "command": command}
    spec = merged({"restartPolicy": "Never", "containers": [container]}, whole)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    await create_once(ctx, _PODS, pod, inside)
    try:
        ended = await _ended(ctx, name, inside, timeout)
        printed = await logs_of(ctx, inside, name, _CONTAINER, limit=LARGEST)
    finally:
        with suppress(ApiError):
            await asyncio.shield(ctx.client.delete(_PODS, name, inside, grace=0))
    if ended["status"]["phase"] == "Failed":
        said = ctx.mask(text_of(printed)).strip()[-500:]
        raise TaskFailed(f"pod {inside}/{name} failed{_why(ended)}: {said}")
    return {"output": text_of(printed), **outputs_in(printed)}


async def _ended(ctx: AsyncContext, name: str, namespace: str, timeout: Duration) -> Object:
    found: Object = {}
    try:
        async with asyncio.timeout(min(timeout, ctx.remaining)):
            while True:
                found = await ctx.client.get(_PODS, name, namespace)
                if (found.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
                    return found
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        phase = (found.get("status") or {}).get("phase") or "Pending"
        hint = (
            ""
            if (found.get("spec") or {}).get("nodeName")
            else f"it was not scheduled to a node; {NO_NODES}"
        )
        fact = f"pod {namespace}/{name} is {phase} after {timeout}"
        raise TaskFailed(fact, hint=hint) from None


def _why(pod: Object) -> str:
    states = [each.get("state") or {} for each in pod["status"].get("containerStatuses") or ()]
    ended = [each["terminated"] for each in states if "terminated" in each]
    return f" with {ended[0].get('exitCode')}" if ended else ""


def merged(spec: Mapping[str, Any], override: Mapping[str, Any]) -> Mapped:
    """Merge the spec `override` into the spec of a pod. Containers with equal names are merged.

    >>> merged({"containers": [{"name": "a", "image": "x"}]},
    ...        {"containers": [{"name": "a", "tty": True}], "hostNetwork": True})
    {'containers': [{'name': 'a', 'image': 'x', 'tty': True}], 'hostNetwork': True}
    """
    rest = {name: value for name, value in override.items() if name != "containers"}
    found = apply_merge_patch(dict(spec), rest)
    assert isinstance(found, dict)
    there = {each.get("name"): each for each in spec.get("containers") or ()}
    for each in override.get("containers") or ():
        there[each.get("name")] = apply_merge_patch(there.get(each.get("name")) or {}, each)
    return found | ({"containers": [*there.values()]} if there else {})
