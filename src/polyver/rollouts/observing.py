"""Sends the requests of the checks `prometheus` and `http`, and keeps their latest results.

Each check has its own task. A decision uses the latest results, so it never waits for a server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote

import msgspec

from polyver.client import Clock
from polyver.controllers.outgoing import HttpRequests
from polyver.core import PolyverError
from polyver.core.rollout import CheckResult
from polyver.core.rollout_checks import (
    HttpCheck,
    NotObserved,
    PrometheusCheck,
    check_http,
    check_values,
    confirmed_result,
    failures_after,
    prometheus_values,
)
from polyver.kube.http.logs import Log
from polyver.rollouts.rules import RolloutCheck

__all__ = ["CheckObserver"]

EVERY: Final = 5.0
"""Minimum seconds between two requests for one check."""
_LARGEST: Final = 1 << 20
"""Maximum size of a response of Prometheus, in bytes."""
_LONGEST: Final = 500
"""Maximum number of characters of a check's message in the status. A longer message is cut."""


@dataclass(slots=True)
class _Last:
    """The latest result of one check."""

    result: CheckResult
    failures: int = 0
    """Number of consecutive failures up to this result."""


@dataclass(slots=True)
class _Observed:
    """The results and running requests of all checks of one rollout, in its current step."""

    step: int
    has_moved: bool = False
    """True if each follower in the cohort has tried the release."""
    last: dict[int, _Last] = field(default_factory=dict)
    asked_at: dict[int, float] = field(default_factory=dict)
    tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    def observe_anew(self) -> None:
        """Cancel running requests, and delete the results `Passed`; failures still count."""
        self.cancel()
        self.asked_at.clear()
        self.last = {
            number: each for number, each in self.last.items() if each.result.verdict != "Passed"
        }

    def cancel(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        self.tasks.clear()


class CheckObserver:
    """Evaluates the checks `prometheus` and `http` of all rollouts in the background."""

    def __init__(self, requests: HttpRequests, clock: Clock, log: Log) -> None:
        self._requests = requests
        self._clock = clock
        self._log = log
        self._observed: dict[object, _Observed] = {}

    def results(
        self,
        key: object,
        checks: Sequence[RolloutCheck],
        *,
        step: int,
        has_moved: bool,
        wake: Callable[[], None],
    ) -> Mapping[int, CheckResult]:
        """Return the latest results in a step, by the index of the check, and start due requests.

        `has_moved` is True if each follower in the cohort has tried the release; a check passes
        only with a request that was sent after that. `wake` is called after each request.
        """
        known = self._observed.get(key)
        if known is None or known.step != step:
            self.forget(key)
            known = self._observed[key] = _Observed(step)
        if has_moved and not known.has_moved:
            known.observe_anew()
        known.has_moved = has_moved
        for number, check in enumerate(checks):
            if isinstance(check, PrometheusCheck | HttpCheck):
                self._start(known, number, check, wake)
        return {
            number: confirmed_result(each.result, each.failures)
            for number, each in known.last.items()
        }

    def forget(self, key: object) -> None:
        """Cancel the requests for a rollout, and delete its results."""
        known = self._observed.pop(key, None)
        if known is not None:
            known.cancel()

    async def close(self) -> None:
        """Cancel all requests."""
        tasks = [task for each in self._observed.values() for task in each.tasks.values()]
        for key in [*self._observed]:
            self.forget(key)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(
        self,
        known: _Observed,
        number: int,
        check: PrometheusCheck | HttpCheck,
        wake: Callable[[], None],
    ) -> None:
        now = self._clock.time()
        if number in known.tasks or now - known.asked_at.get(number, -EVERY) < EVERY:
            return
        known.asked_at[number] = now
        observing = self._observe(known, number, check, wake)
        known.tasks[number] = asyncio.create_task(observing)

    async def _observe(
        self,
        known: _Observed,
        number: int,
        check: PrometheusCheck | HttpCheck,
        wake: Callable[[], None],
    ) -> None:
        """Send the request of a check once, and store the result."""
        try:
            result = await self._result(check)
        except Exception as error:
            # Without a result, the rollout would wait and never observe the check again.
            self._log.failure("a check of a rollout could not be observed", error)
            reason = f"an internal error: {type(error).__name__}"
            result = CheckResult(_name(check), "Waiting", reason)
        result = replace(result, message=result.message[:_LONGEST])
        before = known.last.get(number, _Last(result)).failures
        known.last[number] = _Last(result, failures_after(before, result))
        known.tasks.pop(number, None)
        wake()

    async def _result(self, check: PrometheusCheck | HttpCheck) -> CheckResult:
        if isinstance(check, HttpCheck):
            return check_http(check, await self._status(check))
        return check_values(check, await self._values(check))

    async def _status(self, check: HttpCheck) -> int | NotObserved:
        try:
            return (await self._requests.send("GET", check.url)).status
        except PolyverError as error:
            return NotObserved(str(error))

    async def _values(self, check: PrometheusCheck) -> tuple[float, ...] | NotObserved:
        url = f"{check.address.rstrip('/')}/api/v1/query?query={quote(check.query, safe='')}"
        try:
            answer = await self._requests.send("GET", url, largest=_LARGEST)
        except PolyverError as error:
            return NotObserved(str(error))
        try:
            return prometheus_values(msgspec.json.decode(answer.body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return NotObserved(f"status {answer.status}, and the answer is not JSON")


def _name(check: PrometheusCheck | HttpCheck) -> str:
    return "http" if isinstance(check, HttpCheck) else "prometheus"
