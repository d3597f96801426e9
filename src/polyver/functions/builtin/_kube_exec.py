"""`KubeExec`: runs a command in a running container. There are three versions of it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from polyver.client import Executed
from polyver.core import PolyverError
from polyver.functions.builtin._outputs import LARGEST, outputs_in, text_of
from polyver.functions.registering import Description, Duration, register
from polyver.functions.runtime.context import AsyncContext
from polyver.functions.runtime.pods import executed_in

__all__: list[str] = []

Namespace = Annotated[str, Description("The namespace of the pod.")]
Pod = Annotated[str, Description("The pod.")]
Container = Annotated[
    str | None, Description("The container. Default: the first container of the pod.")
]
Words = Annotated[list[str], Description("The program and its arguments.")]
Timeout = Annotated[Duration, Description("Timeout of the command.")]


_MINUTES = Duration("10m")


class _PodCommandFailed(PolyverError):
    """A command in a container failed, or did not end before its timeout."""


@register("KubeExec", outputs=["output", ...])
async def kube_exec(
    ctx: AsyncContext, namespace: Namespace, pod: Pod, container: Container, command: Words
) -> dict[str, Any]:
    """Run a command in a running container, as `kubectl exec` does.

    Returned values: `output`, which is standard output and standard error together (only the end of
    a long text). If the command prints a line `###Phase-output###: {"key": "NAME", "value": …}` to
    standard output, the function also returns this value, under the key NAME. The function needs a
    cluster with nodes. So it fails on `polyver up`, which runs no pods.
    """
    ran = await _ran(ctx, namespace, pod, container, command)
    return {"output": text_of(ran.output), **outputs_in(ran.stdout)}


@register("KubeExec", version="v0.1.0", outputs=["output", ...])
async def kube_exec_v010(
    ctx: AsyncContext,
    *,
    namespace: Namespace,
    pod: Pod,
    container: Container,
    command: Words,
    timeout: Timeout = _MINUTES,
) -> dict[str, Any]:
    """Run a command in a running container, with a timeout.

    Except for the timeout, this version does the same as v0.0.0.
    """
    ran = await _within(
        ctx, timeout, namespace=namespace, pod=pod, container=container, command=command
    )
    return {"output": text_of(ran.output), **outputs_in(ran.stdout)}


@register("KubeExec", version="v0.2.0", outputs=["stdout", "stderr", ...])
async def kube_exec_v020(
    ctx: AsyncContext,
    *,
    namespace: Namespace,
    pod: Pod,
    container: Container,
    command: Words,
    timeout: Timeout = _MINUTES,
) -> dict[str, Any]:
    """Run a command in a running container, and return standard output and error separately.

    Returned values: `stdout` and `stderr` instead of `output`. Otherwise, this version does the
    same as v0.1.0.
    """
    ran = await _within(
        ctx, timeout, namespace=namespace, pod=pod, container=container, command=command
    )
    return {"stdout": text_of(ran.stdout), "stderr": text_of(ran.stderr), **outputs_in(ran.stdout)}


async def _within(
    ctx: AsyncContext,
    timeout: Duration,
    *,
    namespace: str,
    pod: str,
    container: str | None,
    command: list[str],
) -> Executed:
    try:
        async with asyncio.timeout(min(timeout, ctx.remaining)):
            return await _ran(ctx, namespace, pod, container, command)
    except TimeoutError:
        raise _PodCommandFailed(
            f"{command[0]} in {namespace}/{pod} took longer than {timeout}"
        ) from None


async def _ran(
    ctx: AsyncContext, namespace: str, pod: str, container: str | None, command: list[str]
) -> Executed:
    if not command:
        raise _PodCommandFailed("there is no command to run")
    ran = await executed_in(ctx, namespace, pod, container or "", command, limit=LARGEST)
    ctx.log.info("command ended", pod=f"{namespace}/{pod}", code=ran.code)
    if ran.code:
        said = ctx.mask(text_of(ran.stderr or ran.stdout)).strip()[-500:]
        raise _PodCommandFailed(
            f"{command[0]} in {namespace}/{pod} exited with code {ran.code}: {said}"
        )
    return ran
