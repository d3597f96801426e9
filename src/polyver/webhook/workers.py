"""Worker threads for reviews that call conversion functions of users.

A function may block for any time, even for ever, so it never runs on the event loop. Each kind has
a few threads of its own. If all threads of a kind are blocked, only reviews of this kind wait, each
until its own deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TypeVar

from polyver.kube.http.worker_threads import DaemonThreadPool
from polyver.kube.objects.status import ApiError
from polyver.webhook.conversion import Converters
from polyver.webhook.reviews import Key

__all__ = ["FunctionKinds", "Workers"]

T = TypeVar("T")
_THREADS = 8
"""The number of threads for the functions of one kind."""
_BEGINNING = 1024


class FunctionKinds:
    """The kinds whose conversion calls functions of users."""

    def __init__(self, converters: Converters) -> None:
        self._kinds: Mapping[bytes, Key] = {
            b'"%b"' % kind.encode(): (group, kind)
            for (group, kind), converter in converters.items()
            if converter.calls_functions
        }

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def named_early(self, body: bytes | bytearray) -> tuple[Key, ...]:
        """Guess from the beginning of a body which kind with conversion functions it contains.

        Return a tuple with this kind, or an empty tuple. With this guess, most reviews are decoded
        only once. If no kind is found, the caller first answers the review without calling
        functions. If the review then needs functions, the caller repeats it in a thread.
        """
        if self._kinds:
            start = bytes(body[:_BEGINNING])
            for text, kind in self._kinds.items():
                if text in start:
                    return (kind,)
        return ()


class Workers:
    """Worker threads, a group for each kind."""

    def __init__(self) -> None:
        self._threads: dict[Key | None, DaemonThreadPool] = {}

    async def run(self, kinds: Sequence[Key], work: Callable[[], T], until: float) -> T:
        """Run work in a thread of these kinds; raise an ApiError 504 at the deadline `until`.

        After the deadline, the thread stays in use until the work ends.
        """
        # A review of several kinds, or of no kind, must not use up the threads of a single kind.
        key = kinds[0] if len(kinds) == 1 else None
        threads = self._threads.setdefault(key, DaemonThreadPool(_THREADS))
        try:
            return await threads.run_within(until - monotonic(), work)
        except TimeoutError:
            raise ApiError(504, "Timeout", "the conversion timed out") from None
