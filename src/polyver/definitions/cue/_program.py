"""Runs the program `cue` in isolation, and caches the results.

The program gets its input and an empty working folder. It gets no environment variables of polyver
and no access to a registry of CUE modules. Its time, its memory and the length of its output are
limited.
"""

from __future__ import annotations

import hashlib
import os
import resource
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Final

from polyver.core import PolyverError

__all__ = ["INSTALL", "VERSION", "CueFailed", "CueOutputCache", "Printed", "find_cue", "run_cue"]

VERSION: Final = "v0.14.1"
"""The version of cue that KubeVela uses, and for which KubeVela's definitions are written."""
INSTALL: Final = f"go install cuelang.org/go/cmd/cue@{VERSION}"
_VARIABLE: Final = "POLYVER_CUE"
_MEMORY: Final = 512 << 20
_LARGEST: Final = 8 << 20
_LARGEST_CACHE: Final = 32 << 20
_PIECE: Final = 65536
_ENVIRONMENT: Final = {"CUE_REGISTRY": "none", "GOMAXPROCS": "1"}


class CueFailed(PolyverError):
    """The program `cue` is missing, or it gave no result: it crashed or exceeded a limit."""


@dataclass(frozen=True, slots=True)
class Printed:
    """The result of one run: the exit code, standard output and standard error of `cue`."""

    code: int
    out: bytes
    err: str


def find_cue() -> Path:
    """Return the path of the program `cue`. Raise CueFailed if there is no such program.

    The path is the value of the environment variable POLYVER_CUE. If the variable is not set, the
    program is searched on PATH.
    """
    named = os.environ.get(_VARIABLE, "")
    if named:
        if os.access(named, os.X_OK) and Path(named).is_file():
            return Path(named)
        raise CueFailed(f"{_VARIABLE} is {named}, which is not a program", hint=_install("set it"))
    found = shutil.which("cue")
    if found is None:
        raise CueFailed("cue is not installed", hint=_install("put it on PATH"))
    return Path(found)


def _install(then: str) -> str:
    return f"install it with `{INSTALL}`, and {then}"


def run_cue(program: Path, *arguments: str, text: str, seconds: float) -> Printed:
    """Run the program with `text` as standard input. Kill the program after `seconds`.

    Raise CueFailed if the program did not finish in this time.
    """
    try:
        with TemporaryDirectory(prefix="polyver-cue-") as folder, TemporaryFile() as given:
            given.write(text.encode("utf-8", "surrogatepass"))
            given.seek(0)
            process = subprocess.Popen(  # noqa: S603 - the program is the operator's choice
                [program, *arguments],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                # GOMAXPROCS=1 limits the threads of a process, because several processes may run at
                # the same time.
                env=_ENVIRONMENT | {"CUE_CACHE_DIR": folder, "CUE_CONFIG_DIR": folder},
                start_new_session=True,
            )
            try:
                return _followed(process, seconds)
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
    except OSError as error:
        raise CueFailed(f"{program} cannot be run: {error.strerror or error}") from None


def _followed(process: subprocess.Popen[bytes], seconds: float) -> Printed:
    if hasattr(resource, "prlimit"):
        with suppress(ProcessLookupError, PermissionError):
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    end = time.monotonic() + seconds
    out, err = _read(process, end, seconds)
    try:
        code = process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _late(seconds) from None
    if b"cannot allocate memory" in err or b"out of memory" in err:
        raise CueFailed(f"cue needs more than {_MEMORY >> 20} MiB", hint="render fewer objects")
    said = err.decode(errors="replace")
    if code not in (0, 1):  # exit code 1 means that the input has problems
        first = said.strip().partition("\n")[0][:200]
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise CueFailed(f"cue ended with {ended}{': ' if first else ''}{first}")
    return Printed(code, out, said)


def _read(process: subprocess.Popen[bytes], end: float, seconds: float) -> list[bytes]:
    """Read standard output and standard error of the program. Raise CueFailed at the timeout."""
    assert process.stdout
    assert process.stderr
    read = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    with selectors.DefaultSelector() as waiting:
        for each in read:
            waiting.register(each, selectors.EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(max(0.0, end - time.monotonic()))
            if not ready:
                raise _late(seconds)
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE)
                read[key.fd] += piece
                if not piece:
                    waiting.unregister(key.fd)
                if len(read[key.fd]) > _LARGEST:
                    fact = f"cue prints more than {_LARGEST >> 20} MiB"
                    raise CueFailed(fact, hint="render fewer objects")
    return [*map(bytes, read.values())]


def _late(seconds: float) -> CueFailed:
    return CueFailed(f"cue did not finish within {seconds:.2g} s", hint="simplify the template")


class CueOutputCache:
    """Cache of the results of `cue`, by the input of each run.

    If the cache is full, it removes the results that were not used for the longest time.
    """

    def __init__(self, largest: int = _LARGEST_CACHE) -> None:
        self._largest = largest
        self._size = 0
        self._known: OrderedDict[bytes, Printed] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, *given: str) -> Printed | None:
        key = _key(given)
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def put(self, printed: Printed, *given: str) -> None:
        key = _key(given)
        with self._lock:
            if key in self._known:
                return
            self._known[key] = printed
            self._size += _size(printed)
            while self._size > self._largest:
                self._size -= _size(self._known.popitem(last=False)[1])


def _size(printed: Printed) -> int:
    return 500 + len(printed.out) + len(printed.err)


def _key(given: tuple[str, ...]) -> bytes:
    hashed = hashlib.sha256()
    for each in given:
        hashed.update(each.encode("utf-8", "surrogatepass"))
        hashed.update(b"\0")
    return hashed.digest()
