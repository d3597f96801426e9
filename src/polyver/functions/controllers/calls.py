"""The interface for calls of functions, and an implementation with threads, for tests.

polyver makes calls in worker processes (see `workers`), because it can kill a process. Some tests
define functions in their own process; `ThreadCalls` calls these functions in threads of this
process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from polyver.client import Client
from polyver.functions.registering import Duration, Function
from polyver.functions.runtime.calls import CallLimits, FunctionCallFailed, ThreadCall, output_of
from polyver.functions.runtime.context import FunctionContext, FunctionLog
from polyver.kube.http.logs import Log
from polyver.kube.objects.masking import Masks

__all__ = [
    "CallLog",
    "FunctionCall",
    "FunctionCallFailed",
    "FunctionCaller",
    "ThreadCalls",
    "deadline_in",
    "took_too_long",
]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One call of a function."""

    function: Function
    arguments: Mapping[str, object]
    context: FunctionContext[Any]
    """The context of the call.

    The FunctionCaller sets its own client, log and deadline in this context.
    """
    masks: Masks
    """Values to mask. If the function reads Secrets during the call, their values are added."""
    log: CallLog


class FunctionCaller(Protocol):
    """Makes calls of functions."""

    async def call(self, call: FunctionCall) -> dict[str, Any]:
        """Call a function and return its output; raise FunctionCallFailed if the call fails."""

    async def close(self) -> None:
        """End the processes and threads of calls. A thread with a hung function cannot be ended."""


class CallLog:
    """The log of one call. polyver masks values in its lines, and limits their total size."""

    def __init__(self, log: Log, masks: Masks, *, most: int, about: Mapping[str, object]) -> None:
        self._log = log
        self._masks = masks
        self._left = most
        self._about = about
        self._left_out = 0

    @property
    def is_full(self) -> bool:
        return self._left <= 0

    def info(self, event: str, **facts: object) -> None:
        if self._takes(event, facts):
            self._log.info(self._masks.mask(event), **self._shown(facts))

    def warning(self, event: str, **facts: object) -> None:
        if self._takes(event, facts):
            self._log.warning(self._masks.mask(event), **self._shown(facts))

    def close(self) -> None:
        """Log how many lines were dropped because the log was too long."""
        if self._left_out:
            fact = "a function writes more than the log can hold; further lines are dropped"
            self._log.warning(fact, lines=self._left_out, **self._about)

    def _takes(self, event: str, facts: Mapping[str, object]) -> bool:
        if self._left <= 0:
            self._left_out += 1
            return False
        self._left -= len(event) + sum(len(str(each)) for each in facts.values())
        return True

    def _shown(self, facts: Mapping[str, object]) -> dict[str, Any]:
        return {**self._about, **{k: self._masks.mask_all(v) for k, v in facts.items()}}


class ThreadCalls:
    """Makes calls in threads of this process.

    Only tests use this class, because a function that hangs in a thread cannot be ended.
    """

    def __init__(self, client: Client, limits: CallLimits | None = None) -> None:
        self._client = client
        self._limits = limits or CallLimits()

    async def call(self, call: FunctionCall) -> dict[str, Any]:
        seconds, grace = self._limits.seconds, self._limits.grace
        about = replace(
            call.context,
            deadline=deadline_in(seconds),
            log=FunctionLog(call.log),
            mask=call.masks.mask,
        )
        loop = asyncio.get_running_loop()
        running = ThreadCall(call.function, call.arguments, about, self._client, loop)
        running.start()
        try:
            async with asyncio.timeout(seconds):
                result = await asyncio.shield(running.done)
        except TimeoutError:
            await _stop(running, grace)
            raise took_too_long(call.function, seconds) from None
        except asyncio.CancelledError:
            await _stop(running, grace)
            raise
        return output_of(result, call.function, largest=self._limits.output)

    async def close(self) -> None:
        """Do nothing: threads end with the process."""


async def _stop(call: ThreadCall, grace: float) -> None:
    call.stop()
    await asyncio.wait({call.done}, timeout=grace)


def deadline_in(seconds: float) -> datetime:
    """Return the time `seconds` from now, by which a call that starts now must have ended."""
    return datetime.now(UTC) + timedelta(seconds=seconds)


def took_too_long(function: Function, seconds: float) -> FunctionCallFailed:
    """Build the error for a call that did not end before its deadline."""
    return FunctionCallFailed(f"{function.label} took longer than {Duration(seconds)}")
