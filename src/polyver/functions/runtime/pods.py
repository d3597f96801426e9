"""Runs commands in pods and reads logs of pods, for functions.

If the API server has no nodes, and so runs no pods, all calls raise NoNodes.
"""

from __future__ import annotations

from typing import Any

from polyver.client import Executed, GroupVersionResource, PodClient
from polyver.core import PolyverError
from polyver.functions.runtime.context import NO_NODES, AsyncContext, NoNodes
from polyver.kube.objects.status import ApiError

__all__ = ["NO_NODES", "executed_in", "logs_of"]

_PODS = GroupVersionResource("", "v1", "pods")
_DEFAULT = "kubectl.kubernetes.io/default-container"


async def executed_in(
    ctx: AsyncContext,
    namespace: str,
    pod: str,
    container: str,
    command: list[str],
    *,
    limit: int,
) -> Executed:
    """Run a command in a container of a pod, and return the result.

    If `container` is empty, use the default container of the pod: the one that an annotation names,
    or the first one.
    """
    try:
        found = await ctx.client.get(_PODS, pod, namespace)
    except ApiError as error:
        if error.code != 404:
            raise
        raise PolyverError(f"there is no pod {namespace}/{pod}") from None
    chosen = container or _first(found)
    return await _pods(ctx).execute(pod, namespace, container=chosen, command=command, limit=limit)


def _first(pod: dict[str, Any]) -> str:
    said = (pod["metadata"].get("annotations") or {}).get(_DEFAULT)
    names = [each["name"] for each in (pod.get("spec") or {}).get("containers") or ()]
    return str(said or next(iter(names), ""))


async def logs_of(
    ctx: AsyncContext, namespace: str, pod: str, container: str, *, limit: int
) -> bytes:
    """Read the log of a container; `limit` is the maximum number of bytes."""
    return await _pods(ctx).logs(pod, namespace, container=container, limit=limit)


def _pods(ctx: AsyncContext) -> PodClient:
    if not isinstance(ctx.client, PodClient):
        raise NoNodes
    return ctx.client
