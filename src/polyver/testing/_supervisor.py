"""Run servers until the process that started this supervisor (the owner) ends.

The supervisor is a separate process for two reasons. If the test process gets SIGKILL, none of its
code can end the servers. And on Linux, a process gets the parent-death signal when the *thread*
that started the process ends; in a test, this may be a worker thread.

    python _supervisor.py OWNER_PID [FOLDER_TO_REMOVE_AT_THE_END]

Each line on stdin describes a server to start: {"name": ..., "argv": [...], "log": ...}. A running
server with the same name is ended first. At the end of stdin, all servers are ended. When a server
ends by itself, a line with its name and exit code is written to stdout.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO

PR_SET_PDEATHSIG = 1
LOOK_EVERY = 0.2


def main(owner: int, *folders: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    servers: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for line in _lines_while_alive(owner):
            if line:
                order = json.loads(line)
                if order["name"] in servers:
                    _end(servers.pop(order["name"]))
                servers[order["name"]] = _start(order["argv"], order["log"])
            for name in [name for name, server in servers.items() if server.poll() is not None]:
                print(name, servers.pop(name).returncode, flush=True)
    finally:
        for server in servers.values():
            _end(server)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def _lines_while_alive(owner: int) -> Iterator[bytes]:
    """Yield the lines of stdin, and an empty line after each interval without a line.

    Stop when stdin or the owner ends. Both must be watched: if the owner ends, a fork of the owner
    may keep stdin open, and on systems other than Linux, the parent of this process may not change
    immediately.
    """
    buffer = b""
    while os.getppid() == owner:
        if not select.select([0], [], [], LOOK_EVERY)[0]:
            yield b""
            continue
        chunk = os.read(0, 65536)
        if not chunk:
            return
        *lines, buffer = (buffer + chunk).split(b"\n")
        yield from lines


def _end(server: subprocess.Popen[bytes]) -> None:
    server.kill()
    server.wait()


def _start(argv: list[str], log: str) -> subprocess.Popen[bytes]:
    with open(log, "wb") as output:
        try:
            return _popen(argv, output)
        except OSError as error:
            # If a program cannot be executed, start a process that writes the reason to the log and
            # ends.
            return _popen(
                [sys.executable, "-ISc", "import sys; sys.exit(sys.argv[1])", str(error)], output
            )


def _popen(argv: list[str], output: BinaryIO) -> subprocess.Popen[bytes]:
    # preexec_fn is unsafe in a process with several threads, but this process has one thread.
    dying = _die_with(os.getpid())
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=dying
    )


def _die_with(supervisor: int) -> Callable[[], None] | None:
    """Build a function for a new server process, which makes it end together with the supervisor.

    It works even if the supervisor gets SIGKILL, but only on Linux; elsewhere, return None.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def in_the_child() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)

    return in_the_child


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
