"""Digests of Function packages, computed in tasks because reading a package may take minutes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from polyver.client import Backoff, Clock, chance
from polyver.compositions.runtimes import Runtime
from polyver.core import PolyverError
from polyver.kube.http.logs import Log

__all__ = ["DigestLimits", "DigestLookup", "DigestRequest", "Digests"]


@dataclass(frozen=True, slots=True)
class DigestLimits:
    """Limits for computing digests; times are in seconds."""

    seconds: float = 300.0
    at_once: int = 16
    every: float = 60.0
    """Interval between two checks for changed content, with the pull policy Always."""
    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, most=120.0))
    """Back-off between tries to compute a digest that could not be computed."""


@dataclass(frozen=True, slots=True)
class DigestRequest:
    """A package whose digest is requested."""

    package: str
    address: str = ""
    repeated: bool = False
    """True if the content may change, so that the digest must be computed regularly."""


@dataclass(frozen=True, slots=True)
class DigestLookup:
    """The digest of a package, or the problem with the package.

    Both are empty until the digest is computed.
    """

    digest: str | None = None
    problem: str = ""
    reason: str = ""
    """The reason of the problem as one word. Empty if there is no problem."""
    again: float | None = None
    """Seconds after which `Digests.answer` must be called again. None if no further call is needed.
    """


@dataclass(slots=True)
class _Asked:
    question: DigestRequest
    digest: str | None = None
    problem: str = ""
    reason: str = ""
    failures: int = 0
    due: float | None = None
    task: asyncio.Task[None] | None = None


class Digests:
    """Uses a runtime to compute the digests of packages.

    Wakes a Function when its digest is known.
    """

    def __init__(
        self,
        runtime: Runtime,
        wake: Callable[[str], None],
        *,
        clock: Clock,
        limits: DigestLimits,
        log: Log,
    ) -> None:
        self._runtime = runtime
        self._wake = wake
        self._clock = clock
        self._limits = limits
        self._log = log
        self._free = asyncio.Semaphore(limits.at_once)
        self._asked: dict[str, _Asked] = {}

    def answer(self, function: str, question: DigestRequest) -> DigestLookup:
        """Return the digest of a package if it is known.

        Start to compute the digest if this is due.
        """
        asked = self._asked.get(function)
        if asked is None or asked.question != question:
            self.forget(function)
            asked = self._asked[function] = _Asked(question, due=0.0)
        now = self._clock.time()
        if asked.task is None and asked.due is not None and asked.due <= now:
            asked.due = None
            asked.task = asyncio.create_task(self._ask(function, asked))
        again = asked.due - now if asked.due is not None else None
        return DigestLookup(asked.digest, asked.problem, asked.reason, again)

    def forget(self, function: str) -> None:
        """Cancel the computation for a Function, and remove its result."""
        asked = self._asked.pop(function, None)
        if asked is not None and asked.task is not None:
            asked.task.cancel()

    async def close(self) -> None:
        """Cancel all computations."""
        tasks = [asked.task for asked in self._asked.values() if asked.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, function: str, asked: _Asked) -> None:
        question = asked.question
        try:
            async with self._free:
                work = self._runtime.digest(question.package, address=question.address)
                asked.digest = await asyncio.wait_for(work, self._limits.seconds)
            asked.problem, asked.reason, asked.failures = "", "", 0
            asked.due = self._clock.time() + self._limits.every if question.repeated else None
        except TimeoutError:
            self._fail(asked, f"its content is still unknown after {self._limits.seconds:g} s")
        except PolyverError as error:
            self._fail(asked, str(error), getattr(error, "reason", ""))
        except Exception as error:
            self._log.warning(
                "the content of a package cannot be read", function=function, error=repr(error)
            )
            self._fail(asked, f"its content cannot be read: {error!r}")
        finally:
            asked.task = None
        self._wake(function)

    def _fail(self, asked: _Asked, problem: str, reason: str = "") -> None:
        asked.problem, asked.reason = problem, reason
        asked.failures += 1
        delay = self._limits.backoff.delay(asked.failures, spread=chance())
        asked.due = self._clock.time() + delay
