"""All controllers of a process: their loops, and the informers that they share.

Controllers share one informer for each kind. The informer runs while the kind is served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self

from polyver.client import (
    Backoff,
    Change,
    Client,
    Clock,
    Discovery,
    GroupVersionResource,
    Informer,
    SystemClock,
    chance,
    sleep,
)
from polyver.controllers._loop import Loop, LoopMetrics
from polyver.controllers.controller import Controller, Watch
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind

__all__ = ["ControllerManager", "SharedInformers"]

_BACKOFF = Backoff(first=0.1, most=30.0)


class _Place(NamedTuple):
    """The key of a shared informer.

    Watches with the same key share one informer: they watch the same objects, and keep the same
    data of each object.
    """

    resource: GroupVersionResource
    keep: Callable[[ResourceKind, Object], Any]
    metadata: bool
    labels: str

    @property
    def unversioned(self) -> Hashable:
        return self.resource.group, self.resource.plural, self.keep, self.metadata, self.labels


class _Subscriber(NamedTuple):
    loop: Loop[Any]
    watch: Watch[Any, Any]

    async def bring(self, keys: Iterable[Any]) -> None:
        for key in keys:
            await self.loop.queue.put(key)


@dataclass(slots=True)
class _Source:
    place: _Place
    kind: ResourceKind
    subscribers: list[_Subscriber]
    informer: Informer[Any]
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


_Wanted = dict[_Place, tuple[ResourceKind, list[_Subscriber]]]


class SharedInformers:
    """Runs the informers that controllers need, and passes the changes of objects to controllers.

    It starts and stops informers when the kinds that the server serves change.
    """

    def __init__(
        self, client: Client, loops: Sequence[Loop[Any]], *, clock: Clock, linger: float = 1.0
    ) -> None:
        self._client = client
        self._loops = loops
        self._clock = clock
        self._linger = linger
        self._running: dict[_Place, _Source] = {}
        self._retiring: dict[_Place, tuple[_Source, asyncio.Task[None]]] = {}
        self._served: Discovery | None = None
        self._anew = asyncio.Event()
        self._adapting = asyncio.Lock()
        for loop in loops:
            loop.controller.watch_anew = self._anew.set
        self.problem: Exception | None = None
        """The error of the last discovery request; None if it succeeded."""

    @property
    def problems(self) -> dict[str, str]:
        """The current errors of informers and of discovery, by the URL path of their requests."""
        sources = {
            source.place.resource.path(): source.informer.problem
            for source in self._running.values()
        }
        found = sources | {"/apis": self.problem}
        return {path: str(problem) for path, problem in found.items() if problem}

    async def run(self) -> None:
        """Watch the kinds that the server serves, and adapt the informers, until cancelled."""
        failures, asked = 0, asyncio.create_task(self._follow_controllers())
        try:
            while True:
                try:
                    failures = await self._follow()
                except Exception as error:
                    self.problem, failures = error, failures + 1
                await sleep(self._clock, _BACKOFF.delay(failures, spread=chance()))
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            await self._stop()

    async def _follow_controllers(self) -> None:
        """Start and stop informers when the watches of controllers select other kinds."""
        while True:
            await self._anew.wait()
            self._anew.clear()
            if self._served is not None:
                await self._adapt(self._served)

    async def _follow(self) -> int:
        async with aclosing(self._client.watch_kinds()) as found:
            async for discovery in found:
                self.problem, self._served = None, discovery
                for loop in self._loops:
                    for key in loop.controller.discovered(discovery):
                        await loop.queue.put(key)
                await self._adapt(discovery)
        return 0

    async def _adapt(self, discovery: Discovery) -> None:
        async with self._adapting:
            wanted = self._wanted(discovery)
            # Stop informers that are not needed. An informer is kept if discovery of its group
            # version fails at the moment.
            gone = [
                place
                for place, source in self._running.items()
                if place not in wanted and source.kind.api_version not in discovery.failures
            ]
            new = {place.unversioned for place in wanted if place not in self._running}
            for place in gone:
                if place.unversioned not in new:
                    # The informer is stopped after a delay, so that the last events of its watch
                    # are processed.
                    source = self._running.pop(place)
                    self._retiring[place] = source, asyncio.create_task(self._end(source))
            for place, (kind, subscribers) in wanted.items():
                if place not in self._running:
                    await self._start(place, kind, subscribers)
            for loop in self._loops:
                loop.settle()

    def _wanted(self, discovery: Discovery) -> _Wanted:
        wanted: _Wanted = {}
        for loop in self._loops:
            for watch in loop.controller.watches:
                for kind in watch.kinds(discovery):
                    place = _Place(
                        GroupVersionResource.of(kind), watch.keep, watch.metadata, watch.labels
                    )
                    wanted.setdefault(place, (kind, []))[1].append(_Subscriber(loop, watch))
        return wanted

    async def _start(
        self, place: _Place, kind: ResourceKind, subscribers: list[_Subscriber]
    ) -> None:
        """Start an informer for a kind in one version.

        If an informer for another version of the kind runs, stop it. The new informer then begins
        with the objects that the stopped informer knew. So it also reports the objects that are
        deleted before it starts to watch.
        """
        before = await self._predecessor(place)
        informer = Informer[Any](
            self._client,
            place.resource,
            keep=partial(place.keep, kind),
            handler=partial(_tell, kind, subscribers),
            metadata=place.metadata,
            labels=place.labels,
            clock=self._clock,
            known=before.informer.known if before else None,
        )
        source = _Source(place, kind, subscribers, informer)
        for subscriber in subscribers:
            if subscriber.watch.needed:
                subscriber.loop.wait_for(place)
        source.tasks = [
            asyncio.create_task(informer.run()),
            asyncio.create_task(_settle(source)),
        ]
        self._running[place] = source

    async def _predecessor(self, place: _Place) -> _Source | None:
        """Stop and return the informer for another version of the kind; None if there is none."""
        for other in [*self._running, *self._retiring]:
            if other.unversioned != place.unversioned:
                continue
            if other in self._retiring:
                source, task = self._retiring.pop(other)
                task.cancel()
            else:
                source = self._running.pop(other)
            await source.stop()
            _unsubscribe(source)
            return source
        return None

    async def _end(self, source: _Source) -> None:
        await sleep(self._clock, self._linger)
        self._retiring.pop(source.place, None)
        await source.stop()
        _unsubscribe(source)
        for subscriber in source.subscribers:
            known = list(source.informer.known.values())
            await subscriber.bring(subscriber.watch.forget(source.kind, known))

    async def _stop(self) -> None:
        for source, task in self._retiring.values():
            task.cancel()
            await source.stop()
        for source in self._running.values():
            await source.stop()
        self._running.clear()
        self._retiring.clear()


async def _tell(kind: ResourceKind, subscribers: list[_Subscriber], change: Change[Any]) -> None:
    for subscriber in subscribers:
        await subscriber.bring(subscriber.watch.observe(kind, change))


async def _settle(source: _Source) -> None:
    await source.informer.synced.wait()
    for subscriber in source.subscribers:
        subscriber.watch.complete(source.kind)
    _unsubscribe(source)


def _unsubscribe(source: _Source) -> None:
    """Make all loops that use an informer stop waiting for its first list of objects."""
    for subscriber in source.subscribers:
        subscriber.loop.settle(source.place)


# The manager of all controllers.


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
        """The controllers that this manager runs."""
        return [loop.controller for loop in self._loops.values()]

    @property
    def problems(self) -> Mapping[str, str]:
        """The errors of resources that cannot be watched now, by URL path."""
        return self._sources.problems

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._sources.run())]
        self._tasks += [asyncio.create_task(self._run(loop)) for loop in self._loops.values()]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def ready(self) -> None:
        """Wait until every controller has read all objects that it watches."""
        for loop in self._loops.values():
            await loop.ready.wait()

    async def stop(self) -> None:
        """Stop watching; cancel reconciles that have not ended after the shutdown grace period."""
        tasks, self._tasks = self._tasks, []
        stops = [loop.stop(grace=self._grace) for loop in self._loops.values()]
        for task in tasks[:1]:
            task.cancel()
        await asyncio.gather(*stops)
        await asyncio.gather(*(loop.controller.close() for loop in self._loops.values()))
        # The first task is not cancelled again, because that would interrupt its clean-up.
        for task in tasks[1:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, loop: Loop[Any]) -> None:
        # If a kind cannot be listed, the loop starts nevertheless after this timeout.
        timer = self._clock.call_later(self._patience, loop.begin.set)
        try:
            await loop.run()
        finally:
            timer.cancel()
