"""The loop around a controller: what wakes it, what it does when that fails, how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.client.fake import CONFIG_MAP, NAMESPACE, WIDGET, FakeApi
from tests.client.virtual import VirtualClock, settle
from tests.deadlines import HANG

from polyver.client import Backoff, Change, Client, GroupVersionResource
from polyver.client.in_process import DirectClient
from polyver.controllers import (
    Controller,
    ControllerManager,
    ObjectIdentity,
    Requeue,
    Watch,
    every,
    exactly,
    identity_of,
)
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.kube.server.http import HttpRequest, User

MAPS = GroupVersionResource.of(CONFIG_MAP)
WIDGETS = GroupVersionResource.of(WIDGET)


class Noting(Controller[str]):
    """Works on names, and notes all that is asked of it."""

    name = "noting"

    def __init__(self) -> None:
        self.worked: list[str] = []
        self.running: set[str] = set()
        self.most = 0
        self.gone: list[str] = []
        self.work: Callable[[str], Awaitable[Requeue | None]] = self._nothing
        self.kinds = exactly(MAPS)
        self.needed = True
        self.complete: list[str] = []

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return [
            Watch(
                kinds=self.kinds,
                observe=self.observe,
                keep=identity_of,
                metadata=True,
                forget=self.forget,
                needed=self.needed,
                complete=lambda kind: self.complete.append(kind.plural),
            )
        ]

    def observe(self, kind: ResourceKind, change: Change[ObjectIdentity]) -> list[str]:
        return [change.key.name]

    def forget(self, kind: ResourceKind, known: Any) -> list[str]:
        self.gone += [each.name for each in known]
        return []

    async def _nothing(self, key: str) -> Requeue | None:
        return None

    async def reconcile(self, key: str) -> Requeue | None:
        assert key not in self.running
        self.running.add(key)
        self.most = max(self.most, len(self.running))
        self.worked.append(key)
        try:
            return await self.work(key)
        finally:
            self.running.discard(key)


class World:
    """A server with a namespace, and an engine around one controller."""

    def __init__(self, controller: Noting) -> None:
        self.api = FakeApi()
        self.clock = VirtualClock()
        self.client: Client = DirectClient(self.api, User("me"), clock=self.clock)
        self.controller = controller
        self.engine = ControllerManager(
            self.client,
            [controller],
            clock=self.clock,
            workers=2,
            backoff=Backoff(first=1, most=8, jitter=0),
        )

    async def make(self, name: str, resource: GroupVersionResource = MAPS) -> Object:
        return await self.client.create(resource, {"metadata": {"name": name}}, "a")

    def tell_kinds(self) -> None:
        assert isinstance(self.client, DirectClient)
        self.client.kinds_changed()


@asynccontextmanager
async def world(controller: Noting | None = None) -> AsyncGenerator[World, None]:
    found = World(controller or Noting())
    await found.client.create(GroupVersionResource.of(NAMESPACE), {"metadata": {"name": "a"}})
    async with found.engine:
        await found.engine.ready()
        yield found


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        await asyncio.wait_for(scenario(), HANG)

    asyncio.run(within())


def test_a_change_wakes_the_controller() -> None:
    async def scenario() -> None:
        async with world() as found:
            await found.make("m")
            await settle()
            assert found.controller.worked == ["m"]

    run(scenario)


def test_after_a_restart_everything_is_looked_at() -> None:
    async def scenario() -> None:
        async with world() as found:
            for name in "mno":
                await found.make(name)
            await settle()
            again = Noting()
            async with ControllerManager(found.client, [again], clock=found.clock) as engine:
                await engine.ready()
                await settle()
                assert sorted(again.worked) == ["m", "n", "o"]

    run(scenario)


def test_a_controller_may_watch_other_kinds_than_before() -> None:
    async def scenario() -> None:
        async with world() as found:
            found.api.kinds.append(WIDGET)
            found.tell_kinds()
            await found.make("m")
            await found.make("w", WIDGETS)
            await settle()
            assert found.controller.worked == ["m"]
            found.controller.kinds = every()
            found.controller.watch_anew()
            await settle()
            assert "w" in found.controller.worked

    run(scenario)


def test_what_is_not_needed_holds_nobody_up() -> None:
    async def scenario() -> None:
        controller = Noting()
        controller.kinds, controller.needed = every(), False
        found = World(controller)
        await found.client.create(GroupVersionResource.of(NAMESPACE), {"metadata": {"name": "a"}})
        await found.make("m")
        found.api.breaks = _secrets_fail
        async with found.engine:
            await settle()
            assert sorted(controller.worked) == ["a", "m"]
            assert controller.synced
            assert "configmaps" in controller.complete
            assert "secrets" not in controller.complete

    run(scenario)


def test_work_begins_when_all_is_known() -> None:
    async def scenario() -> None:
        controller = Noting()
        synced: list[bool] = []

        async def note(_: str) -> None:
            synced.append(controller.synced)

        controller.work = note
        found = World(controller)
        await found.client.create(GroupVersionResource.of(NAMESPACE), {"metadata": {"name": "a"}})
        await found.make("m")
        async with found.engine:
            await settle()
        assert synced == [True]

    run(scenario)


def test_a_kind_that_cannot_be_listed_holds_up_the_start_only_for_so_long() -> None:
    async def scenario() -> None:
        controller = Noting()
        controller.kinds = every()
        found = World(controller)
        await found.client.create(GroupVersionResource.of(NAMESPACE), {"metadata": {"name": "a"}})
        await found.make("m")
        found.api.breaks = _secrets_fail
        async with found.engine:
            await settle()
            assert controller.worked == []
            await found.clock.advance(6)
            assert sorted(controller.worked) == ["a", "m"]
            assert _state(found) == (False, {"/api/v1/secrets": "broken"})
            found.api.breaks = lambda _: None
            await found.clock.advance(60)
            assert _state(found) == (True, {})

    run(scenario)


def _state(found: World) -> tuple[bool, object]:
    return found.controller.synced, found.engine.problems


def _secrets_fail(request: HttpRequest) -> ApiError | None:
    return ApiError(500, "", "broken") if request.path.endswith("/secrets") else None


def test_what_fails_is_tried_again_later_and_later() -> None:
    async def scenario() -> None:
        async with world() as found:
            times: list[float] = []

            async def fail(_: str) -> None:
                times.append(found.clock.time())
                raise RuntimeError("no")

            found.controller.work = fail
            await found.make("m")
            await found.clock.advance(20)
            assert times == [0, 1, 3, 7, 15]
            assert found.engine.metrics["noting"].failed == 5

    run(scenario)


def test_after_a_success_patience_is_as_at_first() -> None:
    async def scenario() -> None:
        async with world() as found:
            times: list[float] = []

            async def fail_but_for_the_third(_: str) -> None:
                times.append(found.clock.time())
                if len(times) != 3:
                    raise RuntimeError("no")

            found.controller.work = fail_but_for_the_third
            await found.make("m")
            await found.clock.advance(10)
            assert times == [0, 1, 3]
            await found.client.patch(MAPS, "m", "a", change={"data": {"k": "1"}})
            await found.clock.advance(2)
            assert times == [0, 1, 3, 10, 11]

    run(scenario)


def test_a_failure_holds_up_nobody_else() -> None:
    async def scenario() -> None:
        async with world() as found:

            async def fail_m(key: str) -> None:
                if key == "m":
                    raise RuntimeError("no")

            found.controller.work = fail_m
            for name in "mno":
                await found.make(name)
            await settle()
            assert found.engine.metrics["noting"].worked == 2

    run(scenario)


def test_a_result_asks_for_another_look() -> None:
    async def scenario() -> None:
        async with world() as found:
            times: list[float] = []

            async def again(_: str) -> Requeue:
                times.append(found.clock.time())
                return Requeue(after=10)

            found.controller.work = again
            await found.make("m")
            await found.clock.advance(25)
            assert times == [0, 10, 20]

    run(scenario)


def test_no_more_work_at_once_than_there_are_workers() -> None:
    async def scenario() -> None:
        async with world() as found:
            go = asyncio.Event()

            async def wait(_: str) -> None:
                await go.wait()

            found.controller.work = wait
            for number in range(6):
                await found.make(f"m{number}")
            await settle()
            metrics = found.engine.metrics["noting"]
            assert (metrics.active, metrics.depth) == (2, 4)
            go.set()
            await settle()
            assert found.controller.most == 2
            assert len(found.controller.worked) == 6

    run(scenario)


def test_a_change_during_work_is_not_missed() -> None:
    async def scenario() -> None:
        async with world() as found:
            go = asyncio.Event()

            async def wait(_: str) -> None:
                await go.wait()

            found.controller.work = wait
            await found.make("m")
            await settle()
            for value in "123":
                await found.client.patch(MAPS, "m", "a", change={"data": {"k": value}})
            await settle()
            assert found.controller.worked == ["m"]
            go.set()
            await settle()
            assert found.controller.worked == ["m", "m"]

    run(scenario)


@pytest.mark.parametrize("ends", [True, False])
def test_stopping_waits_for_running_work_but_not_for_ever(ends: bool) -> None:
    async def scenario() -> None:
        async with world() as found:
            go = asyncio.Event()
            outcome: list[str] = []

            async def wait(_: str) -> None:
                try:
                    await go.wait()
                    outcome.append("ended")
                except asyncio.CancelledError:
                    outcome.append("cancelled")
                    raise

            found.controller.work = wait
            await found.make("m")
            await found.make("n")
            await settle()
            stopping = asyncio.create_task(found.engine.stop())
            await settle()
            assert not stopping.done()
            if ends:
                go.set()
            else:
                await found.clock.advance(6)
            await stopping
            assert set(outcome) == {"ended" if ends else "cancelled"}

    run(scenario)


def test_kinds_come_and_go() -> None:
    async def scenario() -> None:
        controller = Noting()
        controller.kinds = every(but=[("", "namespaces")])
        async with world(controller) as found:
            found.api.kinds.append(WIDGET)
            found.tell_kinds()
            await settle()
            await found.make("w", WIDGETS)
            await settle()
            assert controller.worked == ["w"]
            found.api.kinds.remove(WIDGET)
            found.tell_kinds()
            await found.clock.advance(5)
            assert controller.gone == ["w"]
            assert _state(found) == (True, {})

    run(scenario)


def test_what_a_kind_still_has_to_tell_is_heard_before_it_goes() -> None:
    async def scenario() -> None:
        controller = Noting()
        controller.kinds = every(but=[("", "namespaces")])
        async with world(controller) as found:
            found.api.kinds.append(WIDGET)
            found.tell_kinds()
            await settle()
            await found.make("w", WIDGETS)
            await settle()
            controller.worked.clear()
            await found.client.delete(WIDGETS, "w", "a")
            found.api.kinds.remove(WIDGET)
            found.tell_kinds()
            await found.clock.advance(5)
            assert controller.worked == ["w"]
            assert controller.gone == []

    run(scenario)


def test_a_kind_that_comes_back_at_once_is_followed_as_before() -> None:
    async def scenario() -> None:
        controller = Noting()
        controller.kinds = every(but=[("", "namespaces")])
        async with world(controller) as found:
            found.api.kinds.append(WIDGET)
            found.tell_kinds()
            await settle()
            await found.make("w", WIDGETS)
            await settle()
            found.api.kinds.remove(WIDGET)
            found.tell_kinds()
            await settle()
            found.api.kinds.append(WIDGET)
            found.tell_kinds()
            await found.clock.advance(5)
            await found.make("x", WIDGETS)
            await settle()
            assert controller.worked == ["w", "x"]
            assert controller.gone == []

    run(scenario)


def test_a_kind_that_cannot_be_asked_about_has_not_gone() -> None:
    async def scenario() -> None:
        controller = Noting()
        controller.kinds = every(but=[("", "namespaces")])
        async with world(controller) as found:
            found.api.kinds.append(WIDGET)
            found.tell_kinds()
            await settle()
            found.api.stale.add("ex.io/v1")
            found.tell_kinds()
            await found.clock.advance(5)
            await found.make("w", WIDGETS)
            await settle()
            assert (controller.worked, controller.gone) == (["w"], [])

    run(scenario)


def test_a_kind_in_another_version_is_the_same_kind() -> None:
    async def scenario() -> None:
        controller = Noting()
        controller.kinds = every(but=[("", "namespaces")])
        async with world(controller) as found:
            found.api.kinds.append(WIDGET)
            found.tell_kinds()
            await settle()
            await found.make("w", WIDGETS)
            await found.make("x", WIDGETS)
            await settle()
            controller.worked.clear()
            found.api.kinds.remove(WIDGET)
            newer = replace(WIDGET, version="v2")
            found.api.kinds.append(newer)
            found.api.end_watches()
            await settle()
            await found.client.delete(
                GroupVersionResource.of(newer), "w", "a"
            )  # while nobody looks
            found.tell_kinds()
            await found.clock.advance(5)
            assert sorted(controller.worked) == ["w", "x"]
            assert controller.gone == []
            await found.make("y", GroupVersionResource.of(newer))
            await settle()
            assert controller.worked[-1] == "y"

    run(scenario)


def test_controllers_share_what_they_watch_alike() -> None:
    async def scenario() -> None:
        found = World(Noting())
        await found.client.create(GroupVersionResource.of(NAMESPACE), {"metadata": {"name": "a"}})
        other = Noting()
        other.name = "other"
        async with ControllerManager(
            found.client, [found.controller, other], clock=found.clock
        ) as engine:
            await engine.ready()
            await found.make("m")
            await settle()
            assert (found.controller.worked, other.worked) == (["m"], ["m"])
            assert found.api.requests.count("GET /api/v1/configmaps") == 2  # a list and a watch

    run(scenario)
