"""`Command`: runs a program on the machine of the controller, if the operator allows this."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import Annotated, Any

from polyver.core import PolyverError
from polyver.functions.builtin._outputs import LARGEST, BadOutput, outputs_in, text_of
from polyver.functions.registering import Description, Duration, register
from polyver.functions.runtime.context import AsyncContext

__all__: list[str] = []

_MINUTES = Duration("10m")


class _ProgramFailed(PolyverError):
    """A program could not be started, failed, or did not end in time."""


@register("Command", outputs=["stdout", "stderr", ...])
async def command(
    ctx: AsyncContext,
    *,
    command: Annotated[
        list[str], Description("The program and its arguments, run without a shell.")
    ],
    env: Annotated[
        dict[str, str], Description("Environment variables in addition to PATH and HOME.")
    ] = {},  # noqa: B006
    stdin: Annotated[str, Description("Standard input of the program.")] = "",
    timeout: Annotated[Duration, Description("The program is killed after this time.")] = _MINUTES,
) -> dict[str, Any]:
    """Run a program on the machine, or in the container, of the controller.

    The option `--allow-command` of polyver enables this function. It is disabled by default:
    otherwise, everyone who may write blueprints could do everything that the controller may do.

    Returned values: `stdout` and `stderr` (only the end of a long text). If the program prints a
    line `###Phase-output###: {"key": "NAME", "value": …}` to standard output, the function also
    returns this value, under the key NAME.
    """
    if "command" not in ctx.allows:
        hint = "start polyver with --allow-command to allow it"
        raise _ProgramFailed("Command is not allowed", hint=hint)
    if not command:
        raise _ProgramFailed("there is no program to run")
    usual = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    process = await _started(command, usual | env)
    try:
        async with asyncio.timeout(min(timeout, ctx.remaining)):
            out, err = await _printed(process, stdin.encode())
            code = await process.wait()
    except TimeoutError:
        raise _ProgramFailed(f"{command[0]} took longer than {timeout}") from None
    finally:
        await asyncio.shield(_end(process))
    if code:
        said = ctx.mask(text_of(err or out)).strip()[-500:]
        raise _ProgramFailed(f"{command[0]} exited with code {code}: {said}")
    return {"stdout": text_of(out), "stderr": text_of(err), **outputs_in(out)}


async def _started(command: list[str], env: dict[str, str]) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    try:
        return await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, start_new_session=True
        )
    except (OSError, ValueError) as error:
        said = (error.strerror if isinstance(error, OSError) else "") or error
        raise _ProgramFailed(f"{command[0]} cannot be run: {said}") from None


async def _printed(process: asyncio.subprocess.Process, given: bytes) -> tuple[bytes, bytes]:
    assert process.stdin
    assert process.stdout
    assert process.stderr
    out, err, _ = await asyncio.gather(
        _read(process.stdout, process), _read(process.stderr, process), _give(process.stdin, given)
    )
    if max(len(out), len(err)) > LARGEST:
        raise BadOutput(f"the program prints more than {LARGEST >> 20} MiB")
    return out, err


async def _read(stream: asyncio.StreamReader, process: asyncio.subprocess.Process) -> bytes:
    """Read what a program prints. If it prints too much, kill it and discard the rest."""
    read = bytearray()
    while piece := await stream.read(65536):
        if len(read) <= LARGEST:
            read += piece
        else:
            _kill(process)
    return bytes(read)


async def _give(stream: asyncio.StreamWriter, given: bytes) -> None:
    with suppress(ConnectionError):  # the program does not read its standard input
        stream.write(given)
        await stream.drain()
    stream.close()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process group of a program, and close the pipes to the program."""
    _kill(process)
    with suppress(TimeoutError):
        async with asyncio.timeout(5):
            await process.communicate()


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
