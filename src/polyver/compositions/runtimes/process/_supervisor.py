"""Runs one program while its owner process lives, then ends the program and its descendants.

The supervisor is a separate process, because a process that is killed cannot end its children. On
Linux, the supervisor is the subreaper of the program: if a descendant loses its parent, it becomes
a child of the supervisor, which can then end it too.

python -IS _supervisor.py OWNER_PID

The first line on stdin is a JSON object with the fields "argv", "env", "folder", "log",
"log_bytes", "grace", "memory" and "look". Any further line on stdin makes the supervisor end the
program, with the grace period. When stdin is closed, the supervisor kills the program immediately.
On stdout, the supervisor writes {"pid"} when the program runs, and {"code", "why", "said"} when the
program and all its descendants have ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform == "linux"
SAID = 4096
ENDED_BY_FORCE = 5.0


def main(owner: int) -> None:
    if LINUX:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    order = json.loads(_first_line())
    woken = _woken_by_signals()
    log = _ProgramLog(order["log"], order["log_bytes"])
    try:
        program = _SupervisedProgram(order, log)
    except (OSError, ValueError) as error:
        _report({"code": 127, "why": f"cannot be run: {error}", "said": ""})
        return
    _report({"pid": program.pid})
    log.note(f"started as process {program.pid}")
    program.watch(owner, woken)
    log.note(program.why or f"ended with {program.code}")
    _report({"code": program.code, "why": program.why, "said": log.said})


class _SupervisedProgram:
    """The supervised program, its output, and its descendants."""

    def __init__(self, order: dict[str, Any], log: _ProgramLog) -> None:
        self.code: int | None = None
        self.why = ""
        self._order = order
        self._log = log
        self._output: int | None
        self._output, writing = os.pipe()
        try:
            self.pid = _popen(order, writing)
        finally:
            os.close(writing)

    def watch(self, owner: int, woken: int) -> None:
        """Run until the program has ended, or must be ended. Then kill the remaining processes."""
        ends_at, looks_at = float("inf"), time.monotonic() + self._order["look"]
        while self.code is None and time.monotonic() < ends_at:
            ready = self._ready(woken)
            signals = os.read(woken, 4096) if woken in ready else b""
            told = os.read(0, 65536) if 0 in ready else None
            if told == b"" or os.getppid() != owner:
                break
            if (told or b"T" in signals) and ends_at == float("inf"):
                ends_at = time.monotonic() + self._order["grace"]
                self._send(signal.SIGTERM)
            self._reap()
            if time.monotonic() >= looks_at:
                looks_at = time.monotonic() + self._order["look"]
                if self._takes_too_much():
                    break
        self._end_by_force()

    def _ready(self, woken: int) -> list[int]:
        """Wait for at most half a second. Return the descriptors that have become readable.

        If the program has printed something, read it.
        """
        printing = [] if self._output is None else [self._output]
        ready, _, _ = select.select([0, woken, *printing], [], [], 0.5)
        if self._output in ready:
            self._read_output()
        return ready

    def _read_output(self) -> None:
        assert self._output is not None
        printed = os.read(self._output, 65536)
        self._log.write(printed)
        if not printed:
            os.close(self._output)
            self._output = None

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _reap(self) -> bool:
        """Reap the processes that have ended. Return True if other processes still run."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            if pid == self.pid:
                self.code = os.waitstatus_to_exitcode(status)

    def _end_by_force(self) -> None:
        until = time.monotonic() + ENDED_BY_FORCE
        while True:
            self._send(signal.SIGKILL)
            for pid in _descendants():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not self._reap() or time.monotonic() > until:
                break
            time.sleep(0.005)
        self.code = -signal.SIGKILL if self.code is None else self.code
        while self._output is not None and select.select([self._output], [], [], 0)[0]:
            self._read_output()

    def _takes_too_much(self) -> bool:
        most = self._order["memory"]
        if most and sum(_resident(pid) for pid in _descendants()) > most:
            self.why = f"took more than {most >> 20} MiB of memory"
        return bool(self.why)


class _ProgramLog:
    """Writes the output of a program to two limited files, and keeps the last part in memory."""

    def __init__(self, path: str, most: int) -> None:
        self._path = path
        self._most = most
        self._said = b""
        self._file: BinaryIO | None = None

    @property
    def said(self) -> str:
        """The last part of the text that the program printed."""
        return self._said.decode(errors="replace")

    def note(self, words: str) -> None:
        """Write a message of the supervisor into the log of the program, in its own line."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._append(f"--- {now} polyver: {words}\n".encode())

    def write(self, printed: bytes) -> None:
        self._said = (self._said + printed)[-SAID:]
        self._append(printed)

    def _append(self, text: bytes) -> None:
        text = text[-self._most :]
        # If the disk is full, the log is not written, but the program must continue.
        with suppress(OSError):
            if self._file is None:
                self._file = open(self._path, "ab", buffering=0, opener=_private)
            if self._file.tell() + len(text) > self._most:
                self._file.close()
                self._file = None
                os.replace(self._path, f"{self._path}.1")
                self._file = open(self._path, "ab", buffering=0, opener=_private)
            self._file.write(text)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _first_line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        # Read one byte at a time: the main loop must be able to read the following lines.
        piece = os.read(0, 1)
        if not piece:
            sys.exit()
        line += piece
    return line


def _woken_by_signals() -> int:
    """Return a descriptor that becomes readable when a signal arrives.

    The signals are SIGCHLD, for a child that has ended, and those that end this process.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.set_blocking(reading, False)

    def tell(number: int, _: object) -> None:
        with suppress(BlockingIOError):
            os.write(writing, b"C" if number == signal.SIGCHLD else b"T")

    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, tell)
    return reading


def _report(what: dict[str, object]) -> None:
    with suppress(OSError):
        os.write(1, json.dumps(what).encode() + b"\n")


def _popen(order: dict[str, Any], output: int) -> int:
    # preexec_fn is unsafe in a process with several threads. This process has only one thread.
    started = subprocess.Popen(
        order["argv"],
        env=order["env"],
        cwd=order["folder"],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=_dies_with(os.getpid()),
    )
    started.returncode = 0  # `_reap` reaps this process, so Popen must not wait for it
    return started.pid


def _dies_with(supervisor: int) -> Callable[[], None]:
    """Return a function for `preexec_fn`, which runs in the new process before the program.

    It asks Linux to kill the program when the supervisor is killed.
    """
    prctl = ctypes.CDLL(None).prctl if LINUX else None

    def in_the_child() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != supervisor:
                os._exit(1)

    return in_the_child


def _descendants() -> Iterator[int]:
    """Yield the process ids of all descendants of this process. Without Linux, yield none."""
    if not LINUX:
        return
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            children.setdefault(_parent(name), []).append(int(name))
    waiting = [os.getpid()]
    while waiting:
        found = children.get(waiting.pop(), [])
        waiting += found
        yield from found


def _parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


if __name__ == "__main__":
    main(int(sys.argv[1]))
