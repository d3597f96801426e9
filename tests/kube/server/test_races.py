"""Many at once: what each was told is true, and together it is what is there."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.crds import widget_definition
from tests.deadlines import HANG

from polyver.client.in_process import DirectClient
from polyver.controllers import ControllerManager, GarbageCollector, NamespaceController
from polyver.kube.objects import encode_json
from polyver.kube.server.api import ApiServer
from polyver.kube.server.bootstrap import prepare
from polyver.kube.server.http import HttpRequest, HttpResponse
from polyver.kube.server.identity import ADMIN, CONTROLLERS
from polyver.kube.store import Store
from polyver.kube.store import _watch_hub as _watching
from polyver.kube.store.memory import MemoryStore
from polyver.kube.store.sqlite import SqliteStore

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NAMESPACES = "/api/v1/namespaces"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/races.example.com/v1/namespaces/default/widgets"
MERGE = "application/merge-patch+json"
DEFINITION = widget_definition("races.example.com")


class Client:
    """Asks the pipeline itself, so that everything happens in one event loop and nothing waits."""

    def __init__(self, api: ApiServer) -> None:
        self.api = api

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        media: str = "application/json",
        **query: object,
    ) -> HttpResponse:
        sent = b"" if body is None else encode_json(body)
        asked = urlencode(query)
        headers = {"content-type": media}
        return await self.api.handle(HttpRequest(method, path, asked, headers, sent, ADMIN))

    async def ask(
        self, method: str, path: str, body: object = None, **options: Any
    ) -> tuple[int, Any]:
        response = await self.send(method, path, body, **options)
        assert isinstance(response.body, bytes)
        found = json.loads(response.body) if response.body.startswith(b"{") else response.body
        return response.status, found

    async def get(self, path: str, **query: object) -> Any:
        status, found = await self.ask("GET", path, **query)
        assert status == 200, found
        return found

    async def create(self, path: str, name: str, **content: object) -> Any:
        status, found = await self.ask("POST", path, named(path, name) | content)
        assert status == 201, found
        return found

    async def watch(self, path: str, **query: Any) -> AsyncGenerator[Any, None]:
        response = await self.send("GET", path, watch=1, **query)
        assert not isinstance(response.body, bytes)
        assert isinstance(response.body, AsyncGenerator)
        try:
            async for chunk in response.body:
                for line in chunk.splitlines():
                    yield json.loads(line)
        finally:
            await response.body.aclose()


def named(path: str, name: str) -> dict[str, Any]:
    widget = path == WIDGETS
    version, kind = ("races.example.com/v1", "Widget") if widget else ("", "")
    said = {"apiVersion": version, "kind": kind} if widget else {}
    return said | {"metadata": {"name": name}}


@asynccontextmanager
async def serving(store: Store, **options: Any) -> AsyncIterator[Client]:
    async with store:
        api = ApiServer(store, **options)
        await prepare(api, port=1)
        running = asyncio.create_task(api.run())
        await asyncio.sleep(0.01)  # it has begun to watch
        try:
            yield Client(api)
        finally:
            running.cancel()
            await asyncio.wait((running,))


@asynccontextmanager
async def controlled(store: Store) -> AsyncIterator[Client]:
    """With the controllers that delete what belongs to what was deleted."""
    async with serving(store) as client:
        direct = DirectClient(client.api, CONTROLLERS, agent="kube-controller-manager")
        client.api.catalogue.subscribe(direct.kinds_changed)
        async with ControllerManager(
            direct, [GarbageCollector(direct), NamespaceController(direct)]
        ):
            yield client


def revision(obj: Mapping[str, Any]) -> int:
    return int(obj["metadata"]["resourceVersion"])


async def until(done: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(HANG):
        while not await done():
            await asyncio.sleep(0.01)


def test_each_increment_counts_once(tmp_path: Path) -> None:
    async def increment(client: Client, times: int) -> int:
        refused = 0
        while times:
            obj = await client.get(f"{CONFIG_MAPS}/counter")
            obj["data"]["n"] = str(int(obj["data"]["n"]) + 1)
            status, found = await client.ask("PUT", f"{CONFIG_MAPS}/counter", obj)
            assert status in (200, 409), found
            times -= status == 200
            refused += status == 409
        return refused

    async def run() -> None:
        async with serving(SqliteStore(tmp_path)) as client:
            await client.create(CONFIG_MAPS, "counter", data={"n": "0"})
            refused = await asyncio.gather(*[increment(client, 10) for _ in range(10)])
            assert (await client.get(f"{CONFIG_MAPS}/counter"))["data"]["n"] == "100"
            assert sum(refused) > 0

    asyncio.run(run())


@pytest.mark.parametrize("path", [CONFIG_MAPS, WIDGETS])
def test_a_patch_loses_nothing_of_another(path: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(SqliteStore(tmp_path)) as client:
            await define(client)
            await client.create(path, "shared")
            answers = await asyncio.gather(
                *[
                    client.ask("PATCH", f"{path}/shared", {"data": {f"f{n}": "x"}}, media=MERGE)
                    for n in range(50)
                ]
            )
            assert Counter(status for status, _ in answers) == {200: 50}
            found = await client.get(f"{path}/shared")
            assert found["data"] == {f"f{n}": "x" for n in range(50)}
            assert len({revision(obj) for _, obj in answers}) == 50

    asyncio.run(run())


def test_a_name_is_created_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(SqliteStore(tmp_path)) as client:
            answers = await asyncio.gather(
                *[
                    client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"by": n}})
                    for n in map(str, range(50))
                ]
            )
            [made] = [obj for status, obj in answers if status == 201]
            assert Counter(status for status, _ in answers) == {201: 1, 409: 49}
            assert await client.get(f"{CONFIG_MAPS}/a") == made

    asyncio.run(run())


def test_generated_names_that_are_taken_are_not_given_twice(tmp_path: Path) -> None:
    chance = random.Random(1)

    async def run() -> None:
        suffixes = [f"{n:05}" for n in range(40)]
        store = SqliteStore(tmp_path)
        async with serving(store, new_suffix=lambda: chance.choice(suffixes)) as client:
            answers = await asyncio.gather(
                *[
                    client.ask("POST", CONFIG_MAPS, {"metadata": {"generateName": "g-"}})
                    for _ in range(30)
                ]
            )
            assert {status for status, _ in answers} <= {201, 409}
            names = [obj["metadata"]["name"] for status, obj in answers if status == 201]
            assert len(names) == len(set(names)) > 20
            listed = (await client.get(CONFIG_MAPS))["items"]
            assert sorted(names) == [item["metadata"]["name"] for item in listed]

    asyncio.run(run())


def test_nothing_is_written_to_what_was_deleted(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(SqliteStore(tmp_path)) as client:
            for number in range(20):
                made = await client.create(CONFIG_MAPS, f"a{number}")
                path = f"{CONFIG_MAPS}/a{number}"
                patches = [
                    client.ask("PATCH", path, {"data": {f"f{n}": "x"}}, media=MERGE)
                    for n in range(8)
                ]
                patches.insert(number % 9, client.ask("DELETE", path))
                answers = await asyncio.gather(*patches)
                assert {status for status, _ in answers} <= {200, 404}
                assert (await client.ask("GET", path))[0] == 404
                told = []
                async for event in client.watch(CONFIG_MAPS, resourceVersion=revision(made)):
                    told.append(event["type"])
                    if event["type"] == "DELETED":
                        break
                written = sum(status == 200 for status, _ in answers)
                assert told == ["MODIFIED"] * (written - 1) + ["DELETED"]

    asyncio.run(run())


async def define(client: Client) -> None:
    status, found = await client.ask("POST", DEFINITIONS, DEFINITION)
    assert status == 201, found

    async def served() -> bool:
        return (await client.ask("GET", WIDGETS))[0] == 200

    await until(served)


async def keep_creating(client: Client, path: str, writer: int) -> list[int]:
    """Create objects until that is refused, and a little longer."""
    refusals: list[int] = []
    number = 0
    while len(refusals) < 3:
        number += 1
        status, _ = await client.ask("POST", path, named(path, f"o{writer}-{number}"))
        if status != 201:
            refusals.append(status)
            await asyncio.sleep(0)
    return refusals


def left_behind(store: Store, mark: str) -> list[str]:
    return [entry.key for entry in store.page("/").entries if mark in entry.key]


def test_nothing_is_left_behind_in_a_namespace_that_was_deleted(tmp_path: Path) -> None:
    async def run() -> None:
        store = SqliteStore(tmp_path)
        async with controlled(store) as client:
            for number in range(3):
                name = f"doomed-{number}"
                path = f"{NAMESPACES}/{name}/configmaps"
                await client.create(NAMESPACES, name)
                creating = [
                    asyncio.create_task(keep_creating(client, path, writer)) for writer in range(8)
                ]
                await asyncio.sleep(0.05)
                assert (await client.ask("DELETE", f"{NAMESPACES}/{name}"))[0] == 200
                refusals = {each for task in creating for each in await task}
                assert refusals <= {403, 404}
                await until(lambda name=name: gone(client, f"{NAMESPACES}/{name}"))  # type: ignore[misc]
                assert left_behind(store, f"/{name}/") == []
                assert (await client.ask("POST", path, named(path, "late")))[0] == 404

    asyncio.run(run())


async def gone(client: Client, path: str) -> bool:
    return (await client.ask("GET", path))[0] == 404


def test_nothing_is_left_behind_of_a_kind_that_was_deleted(tmp_path: Path) -> None:
    async def run() -> None:
        store = SqliteStore(tmp_path)
        async with serving(store) as client:
            for _ in range(3):
                await define(client)
                assert (await client.get(WIDGETS))["items"] == []
                creating = [
                    asyncio.create_task(keep_creating(client, WIDGETS, writer))
                    for writer in range(8)
                ]
                await asyncio.sleep(0.05)
                path = f"{DEFINITIONS}/widgets.races.example.com"
                assert (await client.ask("DELETE", path))[0] == 200
                refusals = {each for task in creating for each in await task}
                assert refusals <= {403, 404, 405}
                await until(lambda path=path: gone(client, path))  # type: ignore[misc]
                assert left_behind(store, "/widgets/") == []

    asyncio.run(run())


async def scribble(client: Client, chance: random.Random, times: int) -> None:
    """Create, change and delete a few objects that others write to as well."""
    for _ in range(times):
        path = f"{CONFIG_MAPS}/s{chance.randrange(6)}"
        name = path.rpartition("/")[2]
        labels = {"even": str(chance.randrange(2))}
        body = {"metadata": {"name": name, "labels": labels}, "data": {"r": str(chance.random())}}
        match chance.randrange(4):
            case 0:
                status, _ = await client.ask("POST", CONFIG_MAPS, body)
            case 1:
                status, _ = await client.ask("PUT", path, body)
            case 2:
                status, _ = await client.ask("PATCH", path, body, media=MERGE)
            case _:
                status, _ = await client.ask("DELETE", path)
        assert status in (200, 201, 404, 409)


async def followed(client: Client, start: int, **query: Any) -> dict[str, Any]:
    """What events make of nothing, up to the one that says that there are no more."""
    state: dict[str, Any] = {}
    last = start
    async for event in client.watch(CONFIG_MAPS, resourceVersion=start, **query):
        obj = event["object"]
        name = obj["metadata"]["name"]
        assert revision(obj) > last
        assert (name in state) == (event["type"] != "ADDED"), event
        last = revision(obj)
        if name == "end":
            return state
        if event["type"] == "DELETED":
            del state[name]
        else:
            state[name] = obj
    raise AssertionError("the watch ended before it was told to")


@pytest.mark.parametrize("selector", ["", "even=1"])
def test_a_watch_tells_every_change_once_and_in_order(selector: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(SqliteStore(tmp_path)) as client:
            start = revision(await client.get(CONFIG_MAPS))
            query = {"labelSelector": selector} if selector else {}
            watches = [asyncio.create_task(followed(client, start, **query)) for _ in range(3)]
            await asyncio.gather(*[scribble(client, random.Random(seed), 60) for seed in range(10)])
            listed = await client.get(CONFIG_MAPS, **query)
            end = {"metadata": {"name": "end", "labels": {"even": "1"}}}
            assert (await client.ask("POST", CONFIG_MAPS, end))[0] == 201
            named_items = {
                item["metadata"]["name"]: {"apiVersion": "v1", "kind": "ConfigMap", **item}
                for item in listed["items"]
            }
            for watch in [*watches, asyncio.create_task(followed(client, start, **query))]:
                assert await watch == named_items

    asyncio.run(run())


async def pages(client: Client, limit: int) -> tuple[str, list[Any]]:
    page = await client.get(CONFIG_MAPS, limit=limit)
    first, items = page["metadata"]["resourceVersion"], list(page["items"])
    while more := page["metadata"].get("continue"):
        await asyncio.sleep(0.001)
        page = await client.get(CONFIG_MAPS, **{"limit": limit, "continue": more})
        assert page["metadata"]["resourceVersion"] == first
        items += page["items"]
    return first, items


def test_the_pages_of_a_list_are_of_one_moment(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(SqliteStore(tmp_path)) as client:
            for number in range(30):
                await client.create(CONFIG_MAPS, f"a{number}")
            writing = [
                asyncio.create_task(scribble(client, random.Random(seed), 100)) for seed in range(3)
            ]
            for limit in (1, 4, 7):
                at, items = await pages(client, limit)
                exact = {"resourceVersion": at, "resourceVersionMatch": "Exact"}
                assert items == (await client.get(CONFIG_MAPS, **exact))["items"]
            await asyncio.gather(*writing)

    asyncio.run(run())


def test_what_was_forgotten_is_expired_and_a_fresh_token_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        store = SqliteStore(tmp_path)
        async with serving(store) as client:
            for number in range(10):
                await client.create(CONFIG_MAPS, f"a{number}")
            page = await client.get(CONFIG_MAPS, limit=4)
            token, old = page["metadata"]["continue"], page["metadata"]["resourceVersion"]
            await client.create(CONFIG_MAPS, "a91")
            await store.compact(store.revision)
            status, refused = await client.ask("GET", CONFIG_MAPS, **{"continue": token})
            assert (status, refused["reason"]) == (410, "Expired")
            fresh = refused["metadata"]["continue"]
            rest = await client.get(CONFIG_MAPS, **{"continue": fresh})
            names = [item["metadata"]["name"] for item in (*page["items"], *rest["items"])]
            assert names == sorted([f"a{n}" for n in range(10)] + ["a91"])
            events = [event async for event in client.watch(CONFIG_MAPS, resourceVersion=old)]
            [[kind, status]] = [(event["type"], event["object"]["code"]) for event in events]
            assert (kind, status) == ("ERROR", 410)

    asyncio.run(run())


async def drain(client: Client, count: int) -> int:
    response = await client.send("GET", CONFIG_MAPS, watch=1)
    assert isinstance(response.body, AsyncGenerator)
    seen = 0
    async for chunk in response.body:
        seen += chunk.count(b"\n")
        if seen >= count:
            break
    await response.body.aclose()
    return seen


def test_watchers_and_what_they_saw_leave_nothing_behind() -> None:
    objects, watchers, rounds = 5000, 200, 10

    async def churn(client: Client, tenth: int) -> None:
        for number in range(objects // rounds):
            name = f"c{tenth}-{number}"
            await client.create(CONFIG_MAPS, name)
            assert (await client.ask("DELETE", f"{CONFIG_MAPS}/{name}"))[0] == 200
            if number % 50 == 0:
                await asyncio.sleep(0)  # those who watch get on too

    async def watched(client: Client, tenth: int) -> None:
        events = 2 * objects // rounds
        watching = [asyncio.create_task(drain(client, events)) for _ in range(watchers // rounds)]
        await asyncio.sleep(0)
        await churn(client, tenth)
        assert await asyncio.gather(*watching) == [events] * (watchers // rounds)

    async def run() -> None:
        store = MemoryStore()
        async with serving(store) as client:
            await watched(client, 0)
            blocks = await settled(store)
            idle, listening = len(asyncio.all_tasks()), len(store._hub)
            for tenth in range(1, rounds + 1):
                await watched(client, tenth)
            # Each of the objects would be several blocks.
            assert await settled(store) - blocks < objects
            assert (len(asyncio.all_tasks()), len(store._hub)) == (idle, listening)

    asyncio.run(run())


async def settled(store: MemoryStore) -> int:
    """How many blocks of memory are in use when everything that can be forgotten is."""
    await store.compact(store.revision)
    await asyncio.sleep(0)
    gc.collect()
    return sys.getallocatedblocks()


def test_a_watcher_that_does_not_listen_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_watching, "MOST_WAITING", 100)

    async def run() -> None:
        store = MemoryStore()
        async with serving(store) as client:
            listening = len(store._hub)
            deaf = client.watch(CONFIG_MAPS)
            await client.create(CONFIG_MAPS, "a")
            assert (await anext(deaf))["type"] == "ADDED"
            await client.create(CONFIG_MAPS, "b")
            # Only now it waits for what comes.
            assert (await anext(deaf))["object"]["metadata"]["name"] == "b"
            assert len(store._hub) == listening + 1
            for number in range(200):
                await client.create(CONFIG_MAPS, f"c{number}")
            assert len(store._hub) == listening
            # What it has not lost it still gets, and then the end, from where it can go on.
            told = [event["object"]["metadata"]["name"] async for event in deaf]
            assert 100 <= len(told) <= 101
            assert told == [f"c{number}" for number in range(len(told))]

    asyncio.run(run())
