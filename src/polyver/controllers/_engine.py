"""All controllers of a process: their loops, and the informers that they share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Self

from polyver.client import Backoff, Client, Clock, SystemClock
from polyver.controllers._loop import Loop, LoopMetrics
from polyver.controllers._sources import SharedInformers
from polyver.controllers.controller import Controller

__all__ = ["ControllerManager"]


class ControllerManager:
    """Runs controllers while it is open: `async with ControllerManager(client, [...]): ...`."""

    def __init__(
        self,
        client: Client,
        controllers: Sequence[Controller[Any]],
        *,
        clock: Clock | None = None,
        workers: int = 4,
        backoff: Backoff | None = None,
        patience: float = 5.0,
        grace: float = 5.0,
        linger: float = 1.0,
    ) -> None:
        self._clock = clock or SystemClock()
        self._patience = patience
        self._grace = grace
        self._loops = {
            controller.name: Loop(
                controller,
                clock=self._clock,
                workers=controller.workers or workers,
                backoff=backoff,
            )
            for controller in controllers
        }
        loops = list(self._loops.values())
        self._sources = SharedInformers(client, loops, clock=self._clock, linger=linger)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def metrics(self) -> Mapping[str, LoopMetrics]:
        """The metrics of each controller, by its name."""
        return {name: loop.metrics for name, loop in self._loops.items()}

    @property
    def controllers(self) -> list[Controller[Any]]:
        """The controllers that it runs."""
        return [loop.controller for loop in self._loops.values()]

    @property
    def problems(self) -> Mapping[str, str]:
        """The resources that cannot be watched at the moment, with the reasons."""
        return self._sources.problems

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._sources.run())]
        self._tasks += [asyncio.create_task(self._run(loop)) for loop in self._loops.values()]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def ready(self) -> None:
        """Wait until every controller has read all that it watches."""
        for loop in self._loops.values():
            await loop.ready.wait()

    async def stop(self) -> None:
        """Stop watching, let running work end within the grace period, cancel the rest."""
        tasks, self._tasks = self._tasks, []
        stops = [loop.stop(grace=self._grace) for loop in self._loops.values()]
        for task in tasks[:1]:
            task.cancel()
        await asyncio.gather(*stops)
        await asyncio.gather(*(loop.controller.close() for loop in self._loops.values()))
        # Not the first one again: a second cancellation would interrupt its clean-up.
        for task in tasks[1:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, loop: Loop[Any]) -> None:
        # A kind that cannot be listed delays the start, but only up to this timeout.
        timer = self._clock.call_later(self._patience, loop.begin.set)
        try:
            await loop.run()
        finally:
            timer.cancel()
