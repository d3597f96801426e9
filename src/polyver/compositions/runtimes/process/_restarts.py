"""Decisions about child processes, from times, health probes and exit codes."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field, replace
from typing import Literal

from polyver.client import Backoff
from polyver.compositions.runtimes.interface import ServingStatus

__all__ = [
    "Ending",
    "FailureCount",
    "Life",
    "Outlook",
    "Timing",
    "ended",
    "outlook",
    "without_again",
]

_AGAIN = re.compile(r"; (?:it is started|tried) again in \d+ s")
_LINES = 5
_SAID = 600


@dataclass(frozen=True, slots=True)
class Timing:
    """Timeouts and intervals for child processes, in seconds."""

    start: float = 60.0
    """Maximum time from the start of a child to its first answer."""
    ask_every: float = 10.0
    ask_while_starting: float = 0.1
    answer: float = 10.0
    """Timeout of one health probe."""
    silence: float = 60.0
    """If a child does not answer for this time, it is treated as hung.

    The time is long, because a busy function may be slow.
    """
    stable: float = 30.0
    """If a child has served for this time, its earlier failures are no longer counted."""
    drain: float = 30.0
    """Time in which calls in progress may finish after the endpoint was replaced or removed."""
    grace: float = 10.0
    """Time in which a child must exit after a request to end. After this time, it is killed."""
    build: float = 900.0
    restarts: Backoff = field(default_factory=lambda: Backoff(first=1.0, most=60.0))
    rebuilds: Backoff = field(default_factory=lambda: Backoff(first=10.0, most=600.0))


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a program.

    `code` is its exit code or, if a signal ended it, the negative number of the signal.
    """

    code: int
    why: str = ""
    """The cause of the end, if `code` does not show it. Otherwise empty."""
    said: str = ""
    """The last part of the text that the program printed."""

    @property
    def fact(self) -> str:
        """The cause of the end as part of a sentence.

        >>> Ending(3).fact, Ending(-11).fact, Ending(-9, "took too much").fact
        ('ended with exit code 3', 'was ended by SIGSEGV', 'took too much')
        """
        if self.why:
            return self.why
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        try:
            return f"was ended by {signal.Signals(-self.code).name}"
        except ValueError:
            return f"was ended by signal {-self.code}"

    @property
    def last_lines(self) -> str:
        """The last lines that the program printed, limited in number and length."""
        lines = [line.rstrip() for line in self.said.splitlines() if line.strip()]
        return "\n".join(lines[-_LINES:])[-_SAID:]

    def __str__(self) -> str:
        lines = self.last_lines
        return f"{self.fact}: {lines}" if lines else self.fact


@dataclass(frozen=True, slots=True)
class Life:
    """The state of a running child, according to its health probes."""

    started: float
    answered: float | None = None
    """Time of the last probe that the child answered; None before its first answer."""
    problem: str = ""
    """The reason why the last probe failed. Empty if the child answered it."""

    @property
    def served_for(self) -> float:
        """Seconds from the start of the child to its last answer."""
        return 0.0 if self.answered is None else self.answered - self.started

    def heard(self, problem: str, now: float) -> Life:
        """Return the state after a health probe.

        `problem` is the reason why the probe failed; empty if the child answered it.
        """
        return replace(self, problem=problem, answered=self.answered if problem else now)


Outlook = Literal["wait", "serve", "overdue", "hung"]


def outlook(life: Life, timing: Timing, now: float) -> Outlook:
    """Decide what to do with a running child.

    The result is `wait` while it starts, `serve` while it answers, `overdue` if it did not start in
    time, and `hung` if it stopped answering. In the last two cases, the child is killed.

    >>> timing = Timing(start=10, silence=60)
    >>> outlook(Life(0), timing, 9), outlook(Life(0), timing, 10)
    ('wait', 'overdue')
    >>> outlook(Life(0, answered=5), timing, 64), outlook(Life(0, answered=5), timing, 65)
    ('serve', 'hung')
    """
    if life.answered is None:
        return "wait" if now - life.started < timing.start else "overdue"
    return "serve" if now - life.answered < timing.silence else "hung"


@dataclass(frozen=True, slots=True)
class FailureCount:
    """Number of consecutive failures of a child or of a build."""

    failures: int = 0

    def after(self, served: float, timing: Timing) -> FailureCount:
        """Return the count after one more failure.

        `served` is the number of seconds for which the child served before it failed. If this time
        was long enough, earlier failures are not counted.

        >>> FailureCount(4).after(29, Timing()), FailureCount(4).after(30, Timing())
        (FailureCount(failures=5), FailureCount(failures=1))
        """
        return FailureCount(1 if served >= timing.stable else self.failures + 1)


def ended(
    life: Life, why: Outlook, ending: Ending, timing: Timing, *, again: float
) -> ServingStatus:
    """Build the status of a function revision whose child has ended.

    `again` is the number of seconds until the next start.
    """
    next_step = f"it is started again in {again:.0f} s"
    if why == "overdue":
        said = f": {life.problem}" if life.problem else ""
        fact = f"it did not answer within {timing.start:.0f} s after its start{said}"
        return ServingStatus(reason="NotStarting", message=_told(fact, ending, next_step))
    if why == "hung":
        fact = f"it did not answer for {timing.silence:.0f} s: {life.problem}"
        return ServingStatus(reason="NotAnswering", message=_told(fact, ending, next_step))
    return ServingStatus(reason="Crashed", message=_told(f"it {ending.fact}", ending, next_step))


def _told(fact: str, ending: Ending, next_step: str) -> str:
    lines = ending.last_lines
    return f"{fact}; {next_step}" + (f"; its last lines:\n{lines}" if lines else "")


def without_again(message: str) -> str:
    """Remove the time of the next start from a status message.

    >>> without_again("it ended; it is started again in 3 s; its last lines: no")
    'it ended; its last lines: no'
    """
    return _AGAIN.sub("", message)
