"""An informer: whatever happens to its watch, what it tells adds up to what is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.client.fake import NAMESPACE, FakeApi
from tests.client.virtual import VirtualClock, settle

from polyver.client import Change, GroupVersionResource, Informer, Key
from polyver.client.in_process import DirectClient
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.kube.server.http import HttpRequest, User

MAPS = GroupVersionResource("", "v1", "configmaps")
SPACES = GroupVersionResource.of(NAMESPACE)


@dataclass
class World:
    """A server with a namespace, and an informer of ConfigMaps whose tale is written down."""

    api: FakeApi = field(default_factory=FakeApi)
    clock: VirtualClock = field(default_factory=VirtualClock)
    told: list[Change[str]] = field(default_factory=list)
    shown: dict[Key, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client = DirectClient(self.api, User("me"))

    async def tell(self, change: Change[str]) -> None:
        assert change.before == self.shown.get(change.key)
        self.told.append(change)
        if change.after is None:
            del self.shown[change.key]
        else:
            self.shown[change.key] = change.after

    @property
    def there(self) -> dict[Key, str]:
        return {
            Key(path[2], path[3]): content["metadata"]["resourceVersion"]
            for path, content in self.api.objects.items()
            if path[1] == "configmaps"
        }

    async def make(self, name: str) -> None:
        await self.client.create(MAPS, {"metadata": {"name": name}}, "a")

    async def touch(self, name: str, value: str) -> None:
        await self.client.patch(MAPS, name, "a", change={"data": {"k": value}})


def _version(content: Object) -> str:
    return str(content["metadata"]["resourceVersion"])


@asynccontextmanager
async def informed(world: World) -> AsyncGenerator[Informer[str], None]:
    informer = Informer(world.client, MAPS, keep=_version, handler=world.tell, clock=world.clock)
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _prepared() -> World:
    world = World()
    await world.client.create(SPACES, {"metadata": {"name": "a"}})
    return world


def test_what_is_there_is_told_and_then_what_changes() -> None:
    async def scenario() -> None:
        world = await _prepared()
        await world.make("m")
        async with informed(world) as informer:
            await informer.synced.wait()
            assert world.shown == world.there
            await world.make("n")
            await world.touch("m", "1")
            await world.client.delete(MAPS, "n", "a")
            await settle()
            assert world.shown == world.there
            assert informer.relists == 1

    asyncio.run(scenario())


def test_others_get_their_turn_while_a_long_list_is_taken() -> None:
    async def scenario() -> None:
        world = await _prepared()
        for number in range(200):
            await world.make(f"m{number}")
        turns: list[int] = []

        async def other() -> None:
            while True:
                turns.append(len(world.told))
                await asyncio.sleep(0)

        async with informed(world) as informer:
            waiting = asyncio.create_task(other())
            await informer.synced.wait()
            waiting.cancel()
        assert turns.count(0) >= 4, "nobody was asked before the whole list was there"

    asyncio.run(scenario())


def test_a_compacted_log_costs_a_list_and_loses_nothing() -> None:
    async def scenario() -> None:
        world = await _prepared()
        await world.make("m")
        async with informed(world) as informer:
            await informer.synced.wait()
            for name in ("n", "o"):
                await world.make(name)
            await world.client.delete(MAPS, "m", "a")
            world.api.compact()
            await settle()
            assert isinstance(informer.problem, ApiError)
            await world.clock.advance(1)
            assert world.shown == world.there
            assert informer.relists == 2

    asyncio.run(scenario())


def test_a_watch_that_breaks_goes_on_where_it_was() -> None:
    async def scenario() -> None:
        world = await _prepared()
        async with informed(world) as informer:
            await informer.synced.wait()
            await settle()
            await world.make("m")
            await settle()
            broken = ApiError(503, "ServiceUnavailable", "down")
            world.api.breaks = lambda request: broken if "watch" in request.query else None
            world.api.end_watches()
            await settle()
            await world.make("n")
            await world.clock.advance(5)
            assert str(informer.problem) == "down"
            world.api.breaks = lambda _: None
            await world.clock.advance(60)
            assert world.shown == world.there
            assert len(world.told) == 2
            assert informer.relists == 1

    asyncio.run(scenario())


def test_a_server_that_is_down_is_asked_less_and_less() -> None:
    async def scenario() -> None:
        world = await _prepared()
        world.api.breaks = lambda _: ApiError(503, "ServiceUnavailable", "down")
        async with informed(world) as informer:
            await world.clock.advance(600)
            asked = len(world.api.requests)
            assert 20 < asked < 60
            world.api.breaks = lambda _: None
            await world.clock.advance(31)
            assert informer.synced.is_set()

    asyncio.run(scenario())


def test_one_that_takes_over_tells_what_is_gone_meanwhile() -> None:
    async def scenario() -> None:
        world = await _prepared()
        await world.make("m")
        gone = Key("a", "gone")
        world.shown[gone] = "7"
        informer = Informer(
            world.client, MAPS, keep=_version, handler=world.tell, known={gone: "7"}
        )
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert world.shown == world.there

    asyncio.run(scenario())


def test_a_slow_handler_holds_up_the_watch() -> None:
    async def scenario() -> None:
        world = await _prepared()
        go = asyncio.Event()
        seen: list[Key] = []

        async def slow(change: Change[str]) -> None:
            seen.append(change.key)
            await go.wait()

        informer = Informer(world.client, MAPS, keep=_version, handler=slow, clock=world.clock)
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        for number in range(5):
            await world.make(f"m{number}")
        await settle()
        assert len(seen) == 1
        go.set()
        await settle()
        assert len(seen) == 5
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["make", "touch", "delete", "compact", "end", "fail", "heal", "wait"]),
        st.integers(0, 3),
    ),
    max_size=30,
)


@settings(max_examples=50)
@given(steps=STEPS)
def test_whatever_happens_it_ends_with_what_is_there(steps: list[tuple[str, int]]) -> None:
    """Every change told begins where the one before it ended: `World.tell` checks that."""

    async def scenario() -> None:
        world = await _prepared()
        async with informed(world):
            for number, (step, which) in enumerate(steps):
                await _do(world, step, f"m{which}", number)
            await _do(world, "heal", "", 0)
            await world.clock.advance(120)
            assert world.shown == world.there

    asyncio.run(scenario())


async def _do(world: World, step: str, name: str, number: int) -> None:
    exists = Key("a", name) in world.there
    match step:
        case "make" if not exists:
            await _unbroken(world, world.make(name))
        case "touch" if exists:
            await _unbroken(world, world.touch(name, str(number)))
        case "delete" if exists:
            await _unbroken(world, world.client.delete(MAPS, name, "a"))
        case "compact":
            world.api.compact()
        case "end":
            world.api.end_watches()
        case "fail":
            world.api.breaks = _reads_fail
        case "heal":
            world.api.breaks = lambda _: None
        case "wait":
            await world.clock.advance(1)


def _reads_fail(request: HttpRequest) -> ApiError | None:
    return ApiError(500, "", "broken") if request.method == "GET" else None


async def _unbroken(world: World, work: object) -> None:
    assert asyncio.iscoroutine(work)
    await work
    await asyncio.sleep(0)
