"""Calls functions in worker processes. Each call has its own process, which polyver can kill.

All workers are forked from the fork server, one process that has loaded all functions (see
`functions.runtime.fork_server`). polyver starts the fork server at the first call, and ends it
after five minutes without calls. A worker sends requests to the API over HTTPS, with credentials
that are valid only during its call.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from polyver.capability.capability import WorkerAccess
from polyver.functions.controllers.calls import (
    CallLog,
    FunctionCall,
    FunctionCallFailed,
    deadline_in,
    took_too_long,
)
from polyver.functions.registering import Function, Origin
from polyver.functions.runtime.calls import CallLimits
from polyver.functions.runtime.messages import (
    WorkerMessage,
    WorkerRequest,
    decode_answer,
    encode_line,
)

__all__ = ["Lend", "WorkerCalls"]

_LARGEST_ANSWER = 4 * 1024 * 1024
_START = 300.0
"""Maximum seconds for loading functions.

On a busy machine, loading may take minutes. The limit ends a process that hangs.
"""
_IDLE = 300.0
_PIECE = 64 * 1024
_SLOW = 0.05
"""Seconds between two reads of a worker's output, after the worker has exceeded its log limit."""
_OURS = ("event", "level", "timestamp")
"""Fields that polyver sets in each log line. A function cannot set them."""


Lend = Callable[[], AbstractContextManager[WorkerAccess]]
"""Creates the credentials for one call. They are revoked at the end of the `with` block."""


class WorkerCalls:
    """Makes calls in worker processes."""

    def __init__(
        self, origin: Origin, lend: Lend, command: Sequence[str], limits: CallLimits | None = None
    ) -> None:
        """Create a caller. `command` is the command line that starts the fork server."""
        self._lend = lend
        self._limits = limits or CallLimits()
        self._workers = _Workers(origin, command)

    async def call(self, call: FunctionCall) -> dict[str, Any]:
        worker = await self._workers.start()
        with self._lend() as lent:
            try:
                return await self._answer(worker, call, lent)
            finally:
                await worker.end(self._limits.grace)

    async def close(self) -> None:
        await self._workers.close()

    async def _answer(
        self, worker: _Worker, call: FunctionCall, lent: WorkerAccess
    ) -> dict[str, Any]:
        seconds = self._limits.seconds
        worker.send(encode_line(_request(call, lent, self._limits)))
        worker.follow(call)
        try:
            async with asyncio.timeout(seconds):
                answer = await asyncio.shield(worker.answered)
        except TimeoutError:
            await worker.stop(self._limits.grace)
            raise took_too_long(call.function, seconds) from None
        except asyncio.CancelledError:
            await worker.stop(self._limits.grace)
            raise
        if answer is None:
            raise FunctionCallFailed(_ended(call.function, await worker.code()))
        if answer.output is None:
            raise FunctionCallFailed(answer.failed, trace=answer.trace)
        return answer.output


def _request(call: FunctionCall, lent: WorkerAccess, limits: CallLimits) -> WorkerRequest:
    context, function = call.context, call.function
    cluster, user = lent.access.encoded
    return WorkerRequest(
        function=function.name,
        version=str(function.version),
        place=function.place,
        arguments=dict(call.arguments),
        params=dict(context.params),
        phase=context.phase,
        deadline=deadline_in(limits.seconds),
        namespace=context.namespace,
        key=context.key,
        allows=sorted(context.allows),
        cluster=msgspec.Raw(cluster),
        user=msgspec.Raw(user),
        server=lent.access.place,
        runs_pods=lent.runs_pods,
        secrets=call.masks.values,
        output=limits.output,
        log=limits.log,
    )


def _ended(function: Function, code: int | None) -> str:
    """Return the message about a worker process that ended without a result.

    It has the exit code, or the signal that killed the process.
    """
    fact = f"{function.label}: its worker process"
    if code is None:
        return f"{fact} no longer exists"
    if code >= 0:
        return f"{fact} ended with exit code {code}"
    name = signal.Signals(-code).name if -code in signal.valid_signals() else str(-code)
    memory = "; memory may have run out" if -code == signal.SIGKILL else ""
    return f"{fact} was killed by {name}{memory}"


class _Worker:
    """A worker process, with polyver's ends of the two sockets that connect them."""

    def __init__(self, messages: _Stream, output: _Stream, ended: asyncio.Future[int | None]):
        self._messages = messages
        self._output = output
        self._ended = ended
        self._tasks: list[asyncio.Task[None]] = []
        self.answered: asyncio.Future[WorkerMessage | None] = ended.get_loop().create_future()
        self.kill: Callable[[], None] = lambda: None

    def send(self, line: bytes) -> None:
        self._messages.writer.write(line)

    def follow(self, call: FunctionCall) -> None:
        """Start to read the messages and the printed text of the worker."""
        reading = (self._read_messages(call), self._read_output(call.log))
        self._tasks = [asyncio.create_task(each) for each in reading]

    async def stop(self, grace: float) -> None:
        """Ask the worker to end its function, and wait at most `grace` seconds for that."""
        self.send(encode_line({"stop": True}))
        await asyncio.wait({self._ended}, timeout=grace)

    async def end(self, grace: float) -> None:
        """End the process, and kill it if necessary. Then read the rest of what it printed.

        `grace` is the time in seconds to wait in each step.
        """
        try:
            if not self._ended.done():
                await asyncio.wait({self._ended}, timeout=grace if self.answered.done() else 0)
        finally:
            self.kill()
        await asyncio.wait({self._ended}, timeout=grace)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in self._tasks:
            task.cancel()
        for stream in (self._messages, self._output):
            stream.writer.close()

    async def code(self) -> int | None:
        await asyncio.wait({self._ended}, timeout=_START)
        return self._ended.result() if self._ended.done() else None

    async def _read_messages(self, call: FunctionCall) -> None:
        """Read the messages of the worker until it sends a result.

        Log lines of the function among these messages go to the log of the call.
        """
        answer: WorkerMessage | None = None
        try:
            while answer is None and (line := await self._messages.reader.readline()):
                message = decode_answer(line)
                for each in message.secrets:
                    call.masks.add(each)
                if message.level:
                    facts = {k: v for k, v in message.facts.items() if k not in _OURS}
                    log = call.log.warning if message.level == "warning" else call.log.info
                    log(message.event, **facts)
                if message.output is not None or message.failed:
                    answer = message
                if call.log.is_full:
                    await asyncio.sleep(_SLOW)
        except (ValueError, ConnectionError, msgspec.MsgspecError) as error:
            answer = WorkerMessage(failed=f"its worker process sent an invalid report: {error}")
        finally:
            if not self.answered.done():
                self.answered.set_result(answer)

    async def _read_output(self, log: CallLog) -> None:
        """Log the text that the function prints.

        If the log is full, read slowly, so that the function cannot print faster.
        """
        rest = b""
        with suppress(ConnectionError):
            while piece := await self._output.reader.read(_PIECE):
                *lines, rest = (rest + piece).split(b"\n")
                lines, rest = (lines, rest) if len(rest) < _PIECE else ([*lines, rest], b"")
                for line in lines:
                    log.info("a function prints", line=line.decode(errors="replace"))
                if log.is_full:
                    await asyncio.sleep(_SLOW)
        if rest:
            log.info("a function prints", line=rest.decode(errors="replace"))


@dataclass(frozen=True, slots=True)
class _Stream:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def of(cls, end: socket.socket, *, limit: int) -> _Stream:
        return cls(*await asyncio.open_connection(sock=end, limit=limit))


class _Workers:
    """Starts workers, and the fork server for them. Ends the fork server when it has no workers."""

    def __init__(self, origin: Origin, command: Sequence[str]) -> None:
        self._origin = origin
        self._command = command
        self._server: _ForkServer | None = None
        self._starting = asyncio.Lock()
        self._alive = 0
        self._timer: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def start(self) -> _Worker:
        """Let the fork server fork a worker, and return it.

        The worker waits until it gets the request for its call.
        """
        self._alive += 1
        if self._timer is not None:
            self._timer.cancel()
        try:
            async with self._starting:
                if self._server is not None and self._server.is_gone:
                    await self._server.close()  # else the process would stay a zombie
                    self._server = None
                if self._server is None:
                    self._server = await _ForkServer.start(self._origin, self._command)
            worker, ended = await self._server.fork()
        except BaseException as error:
            self._done()
            if isinstance(error, OSError):
                fact = f"a worker process cannot be started: {error.strerror or error}"
                raise FunctionCallFailed(fact) from None
            raise
        ended.add_done_callback(lambda _: self._done())
        return worker

    def _done(self) -> None:
        self._alive -= 1
        if not self._alive:
            with suppress(RuntimeError):  # the loop is closed: polyver ends
                self._timer = asyncio.get_running_loop().call_later(_IDLE, self._end_idle)

    def _end_idle(self) -> None:
        if not self._alive:
            task = asyncio.get_running_loop().create_task(self.close())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End the fork server and all workers."""
        if self._timer is not None:
            self._timer.cancel()
        server, self._server = self._server, None
        if server is not None:
            await server.close()


class _ForkServer:
    """The fork server process, and polyver's end of its control socket."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._ended: dict[int, asyncio.Future[int | None]] = {}
        self._buffer = b""
        self.is_gone = False

    @classmethod
    async def start(cls, origin: Origin, command: Sequence[str]) -> _ForkServer:
        ours, theirs = socket.socketpair()
        with theirs:
            # The process has its own session, so an interrupt from the terminal reaches only
            # polyver.
            process = subprocess.Popen(  # noqa: S603 - the command is our own
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.setblocking(False)
        server = cls(process, ours)
        try:
            async with asyncio.timeout(_START):
                await server._load(origin)
        except BaseException as error:
            await server.close()
            if isinstance(error, TimeoutError):
                raise FunctionCallFailed("worker processes cannot be started in time") from None
            raise
        return server

    async def _load(self, origin: Origin) -> None:
        """Send the names of the functions to load, and wait for the answer of the fork server.

        Raise FunctionCallFailed if loading fails.
        """
        wanted = {
            "names": origin.names,
            "folder": origin.folder,
            "files": dict(origin.files),
            "path": sys.path,
        }
        told = b""
        with suppress(ConnectionError):
            await self._loop.sock_sendall(self._control, json.dumps(wanted).encode() + b"\n")
            while not told.endswith(b"\n"):
                piece = await self._loop.sock_recv(self._control, _PIECE)
                if not piece:
                    break
                told += piece
        problem = json.loads(told)["problem"] if told else "the process has ended"
        if problem:
            raise FunctionCallFailed(f"worker processes cannot be started: {problem}")
        self._loop.add_reader(self._control.fileno(), self._read)

    async def fork(self) -> tuple[_Worker, asyncio.Future[int | None]]:
        """Fork a worker. Return the worker, and a future for its exit code."""
        number = next(self._numbers)
        ended = self._ended[number] = self._loop.create_future()
        (messages, theirs), (output, printed) = socket.socketpair(), socket.socketpair()
        with theirs, printed:
            try:
                self._order({"start": number}, theirs.fileno(), printed.fileno())
            except OSError:
                del self._ended[number]
                raise
        limits = {"limit": _LARGEST_ANSWER}
        streams = await _Stream.of(messages, **limits), await _Stream.of(output, **limits)
        worker = _Worker(*streams, ended)

        def kill() -> None:
            if number in self._ended:
                with suppress(OSError):
                    self._order({"kill": number})

        worker.kill = kill
        return worker, ended

    def _order(self, what: Mapping[str, int], *ends: int) -> None:
        socket.send_fds(self._control, [json.dumps(what).encode() + b"\n"], list(ends))

    def _read(self) -> None:
        try:
            data = self._control.recv(_PIECE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._gone()
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            told = json.loads(line)
            self._end(told["ended"], told["code"])

    def _end(self, number: int, code: int | None) -> None:
        ended = self._ended.pop(number, None)
        if ended is not None and not ended.done():
            ended.set_result(code)

    def _gone(self) -> None:
        """Record that the fork server has ended. All of its workers have then ended too."""
        if not self.is_gone:
            self.is_gone = True
            self._loop.remove_reader(self._control.fileno())
            self._control.close()
        for number in list(self._ended):
            self._end(number, None)

    async def close(self) -> None:
        """Close the socket, and wait until the fork server has ended.

        The fork server kills its workers before it ends.
        """
        self._gone()
        try:
            await asyncio.wait_for(asyncio.to_thread(self._process.wait, 10), None)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
