"""The main program of the fork server: `python -m polyver.functions.worker_process FD`.

polyver starts this process. Over the socket with the file descriptor FD, polyver first sends the
names of the functions to load. Later it sends a request for each call, for which this process forks
a worker process.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import socket
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, suppress
from functools import partial
from pathlib import Path
from typing import Any

from polyver.core import PolyverError
from polyver.functions.loading import registered_functions
from polyver.functions.registering import Function
from polyver.functions.runtime.fork_server import ForkServer
from polyver.functions.runtime.messages import WorkerRequest
from polyver.functions.runtime.worker import work

__all__ = ["COMMAND", "main"]

COMMAND = (sys.executable, "-m", "polyver.functions.worker_process")
_NEEDED = (
    "httpcore2",
    "h11",
    "truststore",
    "anyio._backends._asyncio",
    "polyver.languages.gotemplate",
)
"""Modules that the first API request of a worker needs.

The fork server imports them once for all workers.
"""


def main(number: str) -> None:
    """Load the functions, and fork workers until polyver closes the socket."""
    control = socket.socket(fileno=int(number))
    with control.makefile("rb") as lines:
        line = lines.readline()
    if not line:
        return
    known, problem = _loaded(json.loads(line))
    for name in _NEEDED:
        with suppress(ImportError):
            importlib.import_module(name)
    control.sendall(json.dumps({"problem": problem}).encode() + b"\n")
    if not problem:
        ForkServer(control, partial(work, find=partial(_find, known))).run()


Known = Mapping[tuple[str, str, str], Function]


def _loaded(wanted: Mapping[str, Any]) -> tuple[Known, str]:
    """Load the functions. Return them, and an error message; it is empty if loading succeeded."""
    sys.path[:] = wanted["path"]
    for file, digest in wanted["files"].items():
        if _digest(Path(file)) != digest:
            return {}, f"{file} was changed after polyver started; restart polyver to use it"
    try:
        # Discard the messages that modules print during the import. polyver has already printed
        # them.
        with redirect_stderr(io.StringIO()):
            found = registered_functions(wanted["names"], Path(wanted["folder"]))
    except PolyverError as error:
        return {}, str(error)
    return {(each.name, str(each.version), each.place): each for each in found}, ""


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _find(known: Known, request: WorkerRequest) -> Function:
    found = known.get((request.function, request.version, request.place))
    if found is None:
        fact = f"{request.function} v{request.version} ({request.place}) no longer exists"
        raise PolyverError(fact, hint="restart polyver")
    return found


if __name__ == "__main__":
    main(sys.argv[1])
