"""Run the preflights of rollouts in the background, and keep their results until they are used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from polyver.client import Client, Clock
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.rollouts.reporting import store_report
from polyver.rollouts.reports import preflight_data, preflight_summary

if TYPE_CHECKING:
    from polyver.rollouts.known import RolloutKey
    from polyver.rollouts.metrics import RolloutMetrics
    from polyver.rollouts.rollout_case import RolloutCase

__all__ = ["PreflightRunner"]


class PreflightRunner:
    """Runs at most one preflight for each rollout."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        metrics: RolloutMetrics,
        ended: Callable[[RolloutKey], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._metrics = metrics
        self._ended = ended
        self._tasks: dict[RolloutKey, asyncio.Task[None]] = {}
        self._results: dict[RolloutKey, tuple[str, Object]] = {}
        """The results that are not in the status yet: the name of the release, and the result."""

    def start(self, case: RolloutCase) -> None:
        """Start a preflight in the background, unless one is running for this rollout."""
        if case.key not in self._tasks:
            self._tasks[case.key] = asyncio.create_task(self._run(case))

    def take(self, key: RolloutKey, release: str) -> Object | None:
        """Remove and return the result for a release; None if there is no new result."""
        name, result = self._results.pop(key, ("", None))
        return result if name == release else None

    def forget(self, key: RolloutKey) -> None:
        """Cancel the preflight of a rollout, and drop its result."""
        self._results.pop(key, None)
        if (task := self._tasks.pop(key, None)) is not None:
            task.cancel()

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _run(self, case: RolloutCase) -> None:
        key, request, began = case.key, case.request, self._clock.time()
        try:
            report = await case.targets.preflight(request.lineage, request.to, case.rules.sample)
            data = await asyncio.to_thread(preflight_data, report)
            stored = await store_report(self._client, case.obj, data)
            self._results[key] = request.to, preflight_summary(data) | stored
        except (ApiError, PolyverError) as error:
            failure = {"message": f"the preflight failed: {error}", "dependents": 0, "names": []}
            counts = {"unchanged": 0, "changed": 0, "loses": 0, "fails": 1}
            self._results[key] = request.to, {**counts, "failures": [failure]}
        finally:
            self._metrics.preflights.observe(self._clock.time() - began)
            self._tasks.pop(key, None)
            self._ended(key)
