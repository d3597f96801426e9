"""Memory and SQLite behind one suite: whatever holds of one store holds of the other."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.deadlines import HANG

from polyver.kube.store import (
    Compacted,
    Conflict,
    FutureRevision,
    Lagging,
    MemoryStore,
    SqliteStore,
    Store,
    StoreClosed,
    StoreEntry,
    StoreEvent,
    StoreWatch,
    StoreWrite,
)

T = TypeVar("T")
Opener = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    if request.param == "memory":
        return MemoryStore
    numbers = iter(range(10_000))
    return lambda: SqliteStore(tmp_path / str(next(numbers)))


def run(opened: Opener, test: Callable[[Store], Awaitable[T]]) -> T:
    async def whole() -> T:
        async with opened() as store:
            return await test(store)

    return asyncio.run(whole())


def put(key: str, text: str = "", expected: int = 0) -> StoreWrite:
    return StoreWrite(key, f"{text}@".encode(), b"", expected)


def delete(entry: StoreEntry) -> StoreWrite:
    return StoreWrite(entry.key, b"gone@", b"", entry.revision, delete=True)


async def take(watch: StoreWatch, count: int) -> list[StoreEvent]:
    return [await asyncio.wait_for(anext(watch), HANG) for _ in range(count)]


def test_a_write_is_read_back_with_its_revision_in_it(opened: Opener) -> None:
    async def test(store: Store) -> None:
        assert store.revision == 0
        assert store.get("/a") is None
        entry = await store.write(StoreWrite("/a", b'{"rv":"', b'"}', 0))
        assert entry == StoreEntry("/a", b'{"rv":"1"}', 1, 1)
        assert store.get("/a") == entry
        assert store.revision == 1

    run(opened, test)


def test_a_key_keeps_the_revision_that_created_it(opened: Opener) -> None:
    async def test(store: Store) -> None:
        await store.write(put("/other"))
        first = await store.write(put("/a"))
        second = await store.write(put("/a", "x", first.revision))
        assert (second.created, second.revision) == (2, 3)
        await store.write(delete(second))
        assert store.get("/a") is None
        again = await store.write(put("/a"))
        assert (again.created, again.revision) == (5, 5)

    run(opened, test)


@pytest.mark.parametrize("expected", [0, 1, 99])
def test_a_write_that_expects_something_else_changes_nothing(opened: Opener, expected: int) -> None:
    async def test(store: Store) -> None:
        await store.write(put("/a", "1"))
        now = await store.write(put("/a", "2", 1))
        with pytest.raises(Conflict) as caught:
            await store.write(put("/a", "3", expected))
        assert caught.value.current == now
        assert store.get("/a") == now
        assert store.revision == 2

    run(opened, test)


def test_deleting_what_is_not_there_is_a_conflict(opened: Opener) -> None:
    async def test(store: Store) -> None:
        with pytest.raises(Conflict, match="holds nothing, expected revision 7"):
            await store.write(StoreWrite("/a", b"", b"", 7, delete=True))

    run(opened, test)


def test_of_many_writers_of_one_key_one_wins(opened: Opener) -> None:
    async def test(store: Store) -> None:
        results = await asyncio.gather(
            *(store.write(put("/a", str(n))) for n in range(50)), return_exceptions=True
        )
        won = [result for result in results if isinstance(result, StoreEntry)]
        assert len(won) == 1
        assert all(isinstance(result, Conflict | StoreEntry) for result in results)
        assert store.get("/a") == won[0]

    run(opened, test)


def test_a_page_is_in_order_and_says_what_comes_after(opened: Opener) -> None:
    async def test(store: Store) -> None:
        for key in ("/b/1", "/a/3", "/a/1", "/a/2", "/ab/1", "/a/10", "/a"):
            await store.write(put(key))
        everything = store.page("/a/")
        assert [entry.key for entry in everything.entries] == ["/a/1", "/a/10", "/a/2", "/a/3"]
        assert (everything.revision, everything.remaining) == (7, 0)
        first = store.page("/a/", limit=3)
        assert [entry.key for entry in first.entries] == ["/a/1", "/a/10", "/a/2"]
        assert first.remaining == 1
        rest = store.page("/a/", after="/a/2", limit=3, revision=first.revision)
        assert [entry.key for entry in rest.entries] == ["/a/3"]
        assert rest.remaining == 0
        assert store.page("/nothing/").entries == []

    run(opened, test)


def test_a_snapshot_does_not_see_what_came_later(opened: Opener) -> None:
    async def test(store: Store) -> None:
        one = await store.write(put("/a/1", "old"))
        two = await store.write(put("/a/2"))
        then = store.revision
        await store.write(put("/a/1", "new", one.revision))
        await store.write(delete(two))
        await store.write(put("/a/3"))
        assert store.page("/a/", revision=then).entries == [one, two]
        assert [entry.key for entry in store.page("/a/").entries] == ["/a/1", "/a/3"]
        with pytest.raises(FutureRevision):
            store.page("/a/", revision=99)

    run(opened, test)


def test_a_watch_yields_the_past_and_then_the_present_each_once(opened: Opener) -> None:
    async def test(store: Store) -> None:
        one = await store.write(put("/a/1"))
        await store.write(put("/b/1"))
        two = await store.write(put("/a/1", "x", one.revision))
        watch = store.watch("/a/", one.revision)
        gone = await store.write(delete(two))
        three = await store.write(put("/a/2"))
        assert await take(watch, 3) == [
            StoreEvent(two, one, deleted=False),
            StoreEvent(gone, two, deleted=True),
            StoreEvent(three, None, deleted=False),
        ]
        watch.close()
        with pytest.raises(StoreClosed):
            await anext(watch)

    run(opened, test)


def test_a_watch_of_a_deleted_key_begins_anew(opened: Opener) -> None:
    async def test(store: Store) -> None:
        one = await store.write(put("/a"))
        await store.write(delete(one))
        again = await store.write(put("/a"))
        events = await take(store.watch("/a", 0), 3)
        assert events[2] == StoreEvent(again, None, deleted=False)

    run(opened, test)


def test_what_is_compacted_cannot_be_asked_for_and_what_is_there_stays(opened: Opener) -> None:
    async def test(store: Store) -> None:
        one = await store.write(put("/a/1", "1"))
        two = await store.write(put("/a/1", "2", one.revision))
        gone = await store.write(put("/a/2"))
        await store.write(delete(gone))
        last = await store.write(put("/a/3"))
        await store.compact(4)
        assert store.compacted == 4
        for old in (0, 3):
            with pytest.raises(Compacted, match="the oldest is 4"):
                store.watch("/a/", old)
        with pytest.raises(Compacted):
            store.page("/a/", revision=3)
        assert store.page("/a/", revision=4).entries == [two]
        assert store.page("/a/").entries == [two, last]
        assert await take(store.watch("/a/", 4), 1) == [StoreEvent(last, None, deleted=False)]
        changed = await store.write(put("/a/1", "3", two.revision))
        assert await take(store.watch("/a/1", 5), 1) == [StoreEvent(changed, two, deleted=False)]
        await store.compact(2)
        assert store.compacted == 4, "compaction never goes back"
        with pytest.raises(FutureRevision):
            await store.compact(99)

    run(opened, test)


def test_a_watch_of_the_future_is_refused(opened: Opener) -> None:
    async def test(store: Store) -> None:
        with pytest.raises(FutureRevision, match="the current one is 0"):
            store.watch("/", 1)

    run(opened, test)


def test_a_watcher_that_does_not_listen_is_let_go_and_holds_up_nobody(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyver.kube.store._watch_hub.MOST_WAITING", 10)

    async def test(store: Store) -> None:
        slow, quick = store.watch("/", 0), store.watch("/", 0)
        for number in range(20):
            await store.write(put(f"/{number}"))
            await take(quick, 1)
        await take(slow, 10)
        with pytest.raises(Lagging):
            await anext(slow)

    run(opened, test)


def test_closing_ends_every_watch_and_refuses_writes(opened: Opener) -> None:
    async def test(store: Store) -> None:
        waiting = asyncio.ensure_future(anext(store.watch("/", 0)))
        await asyncio.sleep(0)
        await store.close()
        with pytest.raises(StoreClosed):
            await waiting
        with pytest.raises(StoreClosed):
            await store.write(put("/a"))

    run(opened, test)


KEYS = ["/a/1", "/a/2", "/a/3", "/b/1"]


class Model:
    """What a store should hold, kept in the plainest way."""

    def __init__(self) -> None:
        self.events: list[StoreEvent] = []
        self.now: dict[str, StoreEntry] = {}

    def at(self, revision: int) -> dict[str, StoreEntry]:
        then: dict[str, StoreEntry] = {}
        for event in self.events[:revision]:
            if event.deleted:
                then.pop(event.entry.key)
            else:
                then[event.entry.key] = event.entry
        return then


operations = st.lists(
    st.tuples(st.sampled_from(["put", "delete", "stale", "compact"]), st.sampled_from(KEYS)),
    max_size=40,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(operations=operations, seed=st.integers(0, 100))
def test_a_store_is_like_its_model(
    opened: Opener, operations: list[tuple[str, str]], seed: int
) -> None:
    async def test(store: Store) -> None:
        model = Model()
        chance = random.Random(seed)
        for what, key in operations:
            await step(store, model, what, key, chance)
        compare(store, model, chance)
        since = chance.randint(store.compacted, store.revision)
        wanted = [e for e in model.events[since:] if e.entry.key.startswith("/a/")]
        assert await take(store.watch("/a/", since), len(wanted)) == wanted

    run(opened, test)


async def step(store: Store, model: Model, what: str, key: str, chance: random.Random) -> None:
    current = model.now.get(key)
    revision = current.revision if current else 0
    if what == "compact":
        await store.compact(chance.randint(0, store.revision))
    elif what == "stale" or (what == "delete" and current is None):
        with pytest.raises(Conflict):
            await store.write(put(key, "", revision + 1))
    else:
        deleting = what == "delete"
        entry = await store.write(StoreWrite(key, b"x", b"y", revision, delete=deleting))
        model.events.append(StoreEvent(entry, current, deleting))
        model.now = model.at(len(model.events))


def compare(store: Store, model: Model, chance: random.Random) -> None:
    assert store.revision == len(model.events)
    for key in KEYS:
        assert store.get(key) == model.now.get(key)
    then = chance.randint(store.compacted, store.revision) or store.revision
    expected = [entry for key, entry in sorted(model.at(then).items()) if key.startswith("/a/")]
    limit = chance.randint(0, 3)
    page = store.page("/a/", revision=then, limit=limit)
    assert page.entries == (expected[:limit] if limit else expected)
    assert page.remaining == len(expected) - len(page.entries)


def test_whoever_has_seen_a_change_never_sees_what_was_before(opened: Opener) -> None:
    async def test(store: Store) -> None:
        seen = 0

        async def write() -> None:
            entry = await store.write(put("/g/things/a"))
            for _ in range(30):
                entry = await store.write(put(entry.key, "x", entry.revision))
                assert entry.revision <= revision_of(store.get(entry.key))

        writing = asyncio.create_task(write())
        while not writing.done():
            listed = store.page("/g/things/").entries
            for now in (*map(revision_of, listed), revision_of(store.get("/g/things/a"))):
                assert now >= seen
                seen = now
            await asyncio.sleep(0)
        await writing

    run(opened, test)


def revision_of(entry: StoreEntry | None) -> int:
    return entry.revision if entry else 0


def test_a_change_that_fails_leaves_what_was_there(opened: Opener) -> None:
    async def test(store: Store) -> None:
        entry = await store.write(put("/g/things/a"))
        with pytest.raises(Conflict):
            await store.write(put("/g/things/a", "x", 99))
        assert store.get("/g/things/a") == entry
        await store.write(delete(entry))
        assert store.get("/g/things/a") is None

    run(opened, test)


@pytest.mark.parametrize(
    ("prefix", "is_told"),
    [
        ("", True),
        ("/g/th", True),
        ("/g/things/", True),
        ("/g/things/ns/", True),
        ("/g/things/ns/a", True),
        ("/g/things/other/", False),
        ("/g/others/", False),
        ("/h/things/", False),
    ],
)
def test_watchers_are_told_of_what_begins_as_they_asked(
    opened: Opener, prefix: str, *, is_told: bool
) -> None:
    async def test(store: Store) -> None:
        watch = store.watch(prefix, 0)
        entry = await store.write(put("/g/things/ns/a"))
        assert await watch.batch(0.01) == (
            [StoreEvent(entry, None, deleted=False)] if is_told else []
        )
        assert watch.revision == entry.revision

    run(opened, test)
