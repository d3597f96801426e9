"""The fork server: the process from which worker processes are forked.

The fork server has loaded all functions, has one thread and calls no function itself. So a fork is
quick and safe, and a worker shares the memory of the loaded functions. Each call of a function gets
its own worker process, which is not used again. So threads, changed modules and open files that a
function leaves behind end with the worker.

polyver and the fork server communicate over a socket, in lines of JSON. polyver sends `{"start":
ID}` together with two sockets: one for the messages of the call, and one for the text that the
worker prints. polyver sends `{"kill": ID}` to kill a worker. The fork server sends `{"ended": ID,
"code": CODE}`. When polyver ends, the socket closes, and the fork server kills all workers. When
the fork server dies, the kernel kills the workers (PR_SET_PDEATHSIG).

Each worker has its own session. The fork server kills the child processes of a worker together with
the worker. If a child process has left the session, it becomes a child of the fork server when the
worker ends (PR_SET_CHILD_SUBREAPER), and the fork server kills it then. Only Linux has these two
features. On other systems, workers continue if the fork server dies, and a child process that has
left the session of its worker is not killed.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["ForkServer"]

_LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_FDS = 16


class ForkServer:
    """Forks workers until polyver closes the socket, and reports their exit codes to polyver."""

    def __init__(self, control: socket.socket, work: Callable[[socket.socket], None]) -> None:
        """Create a fork server. Each worker process calls `work` to make its one call."""
        self._control = control
        self._work = work
        self._workers: dict[int, int] = {}
        """Process ids of the workers, by the ids of their calls."""
        self._received: deque[int] = deque()
        self._buffer = b""
        self._woken, self._wake = os.pipe()
        # Loaded before any fork.
        self._prctl = ctypes.CDLL(None).prctl if _LINUX else None

    def run(self) -> None:
        """Serve until polyver closes the socket or dies; then kill all workers."""
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        if self._prctl is not None:
            self._prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # Exclude the existing objects from garbage collection. A collection in a worker would write
        # to these objects, and so copy the memory that workers share with the fork server.
        gc.collect()
        gc.freeze()
        try:
            while self._step():
                pass
        finally:
            self._end_all()

    def _step(self) -> bool:
        control = self._control.fileno()
        ready, _, _ = select.select([control, self._woken], [], [])
        if self._woken in ready:
            with suppress(BlockingIOError):
                os.read(self._woken, 4096)
            self._reap()
        if control not in ready:
            return True
        try:
            data, received, _, _ = socket.recv_fds(self._control, 65536, _FDS)
        except ConnectionError:
            return False
        self._received += received
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))
        return bool(data)

    def _obey(self, order: dict[str, Any]) -> None:
        if "start" in order:
            self._start(order["start"])
        elif order["kill"] in self._workers:
            self._kill(self._workers[order["kill"]])

    def _start(self, call: int) -> None:
        ends = self._received.popleft(), self._received.popleft()
        try:
            pid = os.fork()
        except OSError as error:
            self._report({"ended": call, "code": None, "error": error.strerror})
        else:
            if not pid:
                self._become_worker(*ends)
            self._workers[call] = pid
        for end in ends:
            os.close(end)

    def _become_worker(self, messages: int, output: int) -> None:
        """Make one call of a function and exit. This code runs in the new worker process."""
        try:
            parent = os.getppid()
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if self._prctl is not None:
                self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                if os.getppid() != parent:
                    os._exit(1)
            for number in (1, 2):
                os.dup2(output, number)
            for end in (output, self._woken, self._wake, *self._received):
                os.close(end)
            self._control.close()
            self._work(socket.socket(fileno=messages))
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            # Exit without waiting for threads that the function has left running.
            os._exit(0)

    def _kill(self, pid: int) -> None:
        """Kill a worker and its process group.

        The process id cannot belong to another process yet, because waitpid was not called for it.
        """
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        ended = {}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            ended[pid] = os.waitstatus_to_exitcode(status)
        for call, pid in list(self._workers.items()):
            if pid in ended:
                # Kill the processes that the worker started in its process group.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
                del self._workers[call]
                self._report({"ended": call, "code": ended[pid]})
        self._kill_orphans()

    def _kill_orphans(self) -> None:
        """Kill the child processes of workers that have ended."""
        for pid in _children() - set(self._workers.values()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _end_all(self) -> None:
        while True:
            for pid in (*self._workers.values(), *_children()):
                self._kill(pid)
            try:
                pid, _ = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            for call in [call for call, each in self._workers.items() if each == pid]:
                del self._workers[call]

    def _report(self, what: dict[str, Any]) -> None:
        with suppress(OSError):  # polyver has ended, which the next read shows
            self._control.sendall(json.dumps(what).encode() + b"\n")


def _children() -> set[int]:
    """Return the ids of all child processes of this process.

    Return an empty set if the operating system does not report them.
    """
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    except OSError:
        return set()
    return {int(each) for each in text.split()}
