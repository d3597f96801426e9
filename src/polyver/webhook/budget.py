"""A limit for the memory that all reviews together use.

A received body needs memory of its own size. Decoding and converting the body needs several times
as much, depending on the content: a megabyte of text needs three megabytes, and a megabyte of empty
objects needs thirty. So the memory is divided into two shares. A body is read only when the first
share has enough free memory for the body. The body is decoded only when the second share has enough
free memory for decoding and converting it. Each review of an allowed size fits into each share, and
waiting reviews get memory in the order of their requests. So reviews cannot block each other for
ever.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import TypeVar

from polyver.kube.objects.status import ApiError

__all__ = [
    "MemoryBudget",
    "MemoryBudgetExceeded",
    "MemoryReservation",
    "MemoryShare",
    "estimated",
    "memory_limit",
]

T = TypeVar("T")
_MIB = 1 << 20
_RESERVED = 160 * _MIB
"""Bytes for the process itself, and for the small reviews that are answered on the event loop.

These bytes are not part of the two shares.
"""
_LEAST = 32 * _MIB
_BODIES = 4
"""The share for received bodies is the divisible memory divided by this number. The rest is the
share for decoding and converting.
"""
_MOST_WAITING = 256
_COPIES = 3
"""The number of copies of a body that a conversion needs, in addition to the body."""
_OBJECT = 160
"""The number of bytes that an object or a list takes in Python, without its content."""
_VALUE = 40
"""The number of bytes that a value inside an object or a list takes in Python."""
_NO_LIMIT = 1 << 60
"""The value above which a number from control groups version 1 means that there is no limit."""
_MACHINE_SHARE = 4
"""Without a limit, the process may use the memory of the machine divided by this number."""


class MemoryBudgetExceeded(ApiError):
    """The server refuses a review with the status 429, because not enough memory is free."""

    def __init__(self) -> None:
        super().__init__(429, "TooManyRequests", "too many reviews are in progress; try again")


class MemoryShare:
    """A share of the memory, from which reviews take memory in the order of their requests."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0
        self.waited = 0
        """The number of reviews so far that had to wait for memory."""
        self.refused = 0
        """The number of reviews so far that did not get memory in time."""
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def give(self, size: int) -> None:
        """Return `size` bytes to the share; waiting reviews may then get them."""
        self.used -= size
        self._wake()

    async def take(self, size: int, until: float) -> None:
        """Take `size` bytes from the share; wait if they are not free.

        Raise MemoryBudgetExceeded if they are not free at the time `until`.
        """
        if not self._waiting and self.used + size <= self.size:
            self.used += size
            return
        if len(self._waiting) >= _MOST_WAITING:
            self.refused += 1
            raise MemoryBudgetExceeded
        self.waited += 1
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size, turn)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(until - monotonic()):
                await turn
        except BaseException as error:
            if entry in self._waiting:
                self._waiting.remove(entry)
            else:  # its turn came at the same moment
                self.used -= size
            self._wake()
            if isinstance(error, TimeoutError):
                self.refused += 1
                raise MemoryBudgetExceeded from None
            raise

    def _wake(self) -> None:
        while self._waiting and self.used + self._waiting[0][0] <= self.size:
            size, turn = self._waiting.popleft()
            self.used += size
            if not turn.done():
                turn.set_result(None)


class MemoryReservation:
    """The memory of one review, freed when no thread works on the review any more.

    A thread may continue after the deadline of the review, and its objects then stay in memory.
    """

    def __init__(self, share: MemoryShare, size: int) -> None:
        self._give = partial(share.give, size)
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._running = 0
        self._closed = False

    def run(self, work: Callable[[], T]) -> T:
        """Do work of the review in a worker thread; its memory stays reserved until the end."""
        with self._lock:
            self._running += 1
        try:
            return work()
        finally:
            with self._lock:
                self._running -= 1
                last = self._closed and not self._running
            if last:
                with suppress(RuntimeError):  # the event loop has ended
                    self._loop.call_soon_threadsafe(self._give)

    def close(self) -> None:
        """Free the memory now, or when the last thread that works on the review has ended."""
        with self._lock:
            self._closed = True
            idle = not self._running
        if idle:
            self._give()


class MemoryBudget:
    """The memory for all reviews, in two shares: for received bodies, and for decoding them."""

    def __init__(self, memory: int, most_body: int) -> None:
        """Divide the memory of the process, `memory` bytes, into the two shares.

        `most_body` is the desired maximum size of a body in bytes.
        """
        whole = max(memory - _RESERVED, _LEAST)
        self.bodies = MemoryShare(whole // _BODIES)
        self.work = MemoryShare(whole - self.bodies.size)
        self.most_body = min(most_body, self.bodies.size)
        """The maximum size of a body in bytes; smaller than desired if the share for bodies is
        smaller.
        """

    @property
    def waited(self) -> int:
        return self.bodies.waited + self.work.waited

    @property
    def refused(self) -> int:
        return self.bodies.refused + self.work.refused

    @property
    def used(self) -> int:
        return self.bodies.used + self.work.used


def estimated(body: bytes | bytearray) -> int:
    """Estimate how many bytes decoding and converting a body needs, in addition to the body itself.

    >>> estimated(b'{"a": [1, 2]}')
    399
    """
    objects = body.count(b"{") + body.count(b"[")
    return _COPIES * len(body) + _OBJECT * objects + _VALUE * body.count(b",")


def memory_limit(root: Path = Path("/")) -> int:
    """Return the number of bytes of memory that this process may use.

    This is the smallest limit of the process's control group and its parent groups. Control groups
    of version 1 and version 2 are read. In a container, the folder /sys/fs/cgroup itself may be the
    group of the container, so the limit in this folder also counts.
    """
    limits = [
        int(text)
        for file in _limit_files(root)
        if (text := _read_file(file)).isdecimal() and int(text) < _NO_LIMIT
    ]
    return min(limits, default=_machine_memory(root) // _MACHINE_SHARE)


def _limit_files(root: Path) -> Iterator[Path]:
    groups = root / "sys/fs/cgroup"
    for line in _read_file(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            base, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = PurePosixPath(path.lstrip("/"))
        yield from (base / each / name for each in (own, *own.parents))


def _machine_memory(root: Path) -> int:
    for line in _read_file(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 4 << 30


def _read_file(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
