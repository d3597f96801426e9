"""A store in one SQLite file: an acknowledged write survives a crash and a power failure.

One thread writes. A transaction contains all writes that are pending when the transaction begins,
so that many writes share one flush to the disk. Reads never wait for a write. A cache holds the
recently used entries, so that most reads of one entry do not query the database.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

import apsw

from polyver.core import PolyverError
from polyver.kube.store._open import lock_folder, open_database, prepare_file
from polyver.kube.store._watch_hub import Hub, Watcher
from polyver.kube.store.interface import (
    Conflict,
    FutureRevision,
    StoreClosed,
    StoreDamaged,
    StoreEntry,
    StoreEvent,
    StoreFailed,
    StorePage,
    StoreWrite,
    check_revision,
)

__all__ = ["Recent", "SqliteStore"]

_MOST = 8 * 1024 * 1024


class Recent:
    """A cache of current entries, which drops the least recently used entries if it is too large.

    While a write of a key is pending, the key is not cached: only the database knows whether the
    write succeeded.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._entries: dict[str, StoreEntry] = {}
        self._size = 0
        self._changing: dict[str, int] = {}

    def get(self, key: str) -> StoreEntry | None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._entries[key] = entry
        return entry

    def keep(self, entry: StoreEntry) -> None:
        """Cache an entry, unless a write of its key is pending."""
        if entry.key in self._changing:
            return
        self._forget(entry.key)
        self._entries[entry.key] = entry
        self._size += len(entry.value)
        while self._size > self._most:
            self._forget(next(iter(self._entries)))

    def begin(self, key: str) -> None:
        """Drop the entry of a key because a write of the key begins.

        A key may have several pending writes.
        """
        self._forget(key)
        self._changing[key] = self._changing.get(key, 0) + 1

    def end(self, key: str) -> None:
        """Record that one pending write of a key has ended, with or without success."""
        left = self._changing.pop(key) - 1
        if left:
            self._changing[key] = left

    def _forget(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= len(entry.value)


_MOST_AT_ONCE = 256
_CLEANED_AT_ONCE = 500
_PROBE_EVERY = 1.0
"""The seconds between two test writes, which are made while the disk refuses writes."""
_LAST = "\U0010ffff"  # sorts after every character in a key

_RANGE = "one.key > :after and one.key >= :start and one.key < :end"
# Find the keys in `current`, which is a small table, and then read each value by its revision.
_NOW = f"""
select one.key, value, one.revision, created
from current as one cross join log on log.revision = one.revision where {_RANGE}
"""
_COUNT = f"select count(*) from current as one where {_RANGE}"
# The state at an older revision: `_KEPT` finds the entries that have not changed since then, and
# `_SINCE` finds the former revisions of entries that have changed.
_KEPT = "and one.revision <= :at"
_SINCE = f"""
select one.key, was.revision from (
    select distinct key from log as one where one.revision > :at and {_RANGE}
) as one cross join log as was on was.revision = (
    select max(revision) from log where key = one.key and revision <= :at
) where not was.deleted order by one.key
"""
_WRITTEN = "select key, value, revision, created from log where revision = ?"
_ONE = """
select one.key, value, one.revision, created
from current as one cross join log on log.revision = one.revision where one.key = ?
"""
_PAST = """
select one.key, one.value, one.revision, one.created, one.deleted,
       before.key, before.value, before.revision, before.created, before.deleted
from log as one left join log as before on before.revision = (
    select max(revision) from log where key = one.key and revision < one.revision
)
where one.revision > :since and one.key >= :start and one.key < :end order by one.revision
"""
# Compaction deletes the entries that a range of revisions replaced, and then the tombstones (the
# rows of deletions) in this range. In the opposite order, a deleted object would reappear.
_REPLACED = """
delete from log where revision in (
    select older.revision from log as one cross join log as older
    on older.key = one.key and older.revision < one.revision
    where one.revision > :start and one.revision <= :end
)
"""
_TOMBSTONES = "delete from log where revision > :start and revision <= :end and deleted"

_Values = dict[str, str | int]


@dataclass(slots=True)
class _Writing:
    """One transaction: its database connection, and the newest revision that it has written."""

    database: apsw.Connection
    newest: int


_Do = Callable[[_Writing], StoreEvent | None]
_Outcome = StoreEvent | PolyverError | None


class _Work(NamedTuple):
    """A task for the writer thread, and the future that gets its result or its error."""

    do: _Do
    done: asyncio.Future[StoreEvent | None]
    key: str = ""
    """The key that the task changes; an empty string if it changes none."""


class SqliteStore:
    """A store in a folder, which only one process at a time can open.

    The store must be opened while an event loop runs.
    """

    def __init__(
        self,
        folder: Path,
        *,
        new: bool = True,
        verify: bool = False,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Open the store in a folder. Without `new`, raise StoreMissing if there is no store.

        The file is checked, with `verify` more thoroughly. If it is not intact, StoreDamaged is
        raised. Later, `report` is called on the event loop with each new problem of the disk, and
        with "" when the problem is over.
        """
        self._lock = lock_folder(folder)
        self._file = folder / "store.db"
        try:
            prepare_file(self._file, new=new, verify=verify)
            self._writer = open_database(self._file)
            self._reader = open_database(self._file)
        except PolyverError:
            self._lock.close()
            raise
        self._report = report
        self._damage = ""
        self._refused = ""
        self._hub = Hub()
        self._recent = Recent()
        self._newest = _fact(self._writer, "newest")  # only the writer thread uses it
        self._loop = asyncio.get_running_loop()
        self._pending: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._open = True
        self._thread = threading.Thread(target=self._write_all, name="store", daemon=True)
        self._thread.start()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Reads run on the event loop. A read from SQLite's cache takes a few microseconds, and a read
    # from `Recent` takes less.

    @property
    def problem(self) -> str:
        return self._damage or self._refused

    @property
    def revision(self) -> int:
        self._check_open()
        try:
            return _fact(self._reader, "newest")
        except apsw.Error as error:
            raise self._unreadable(error) from None

    @property
    def compacted(self) -> int:
        return _fact(self._reader, "compacted")

    def get(self, key: str) -> StoreEntry | None:
        self._check_open()
        entry = self._recent.get(key)
        if entry is None:
            try:
                entry = _get(self._reader, key)
            except apsw.Error as error:
                raise self._unreadable(error) from None
            if entry is not None:
                self._recent.keep(entry)
        return entry

    def page(self, prefix: str, *, after: str = "", limit: int = 0, revision: int = 0) -> StorePage:
        with self._snapshot(revision or None) as newest:
            at = revision or newest
            values: _Values = {"at": at, "after": after, "start": prefix, "end": prefix + _LAST}
            past: list[int] = []
            still = ""
            if at < newest:
                # The revisions, sorted by key, of entries that were changed or deleted later.
                past = [int(found) for _, found in self._reader.execute(_SINCE, values)]
                still = _KEPT
            limited = {**values, "limit": limit or -1}
            rows = self._reader.execute(f"{_NOW}{still} order by one.key limit :limit", limited)
            entries = [*map(StoreEntry._make, rows)]
            for each in past[: limit or None]:
                entries += map(StoreEntry._make, self._reader.execute(_WRITTEN, (each,)))
            if past:
                entries.sort()
            remaining = 0
            if limit and len(entries) >= limit:
                remaining = _number(self._reader, f"{_COUNT} {still}", values) + len(past) - limit
                del entries[limit:]
        return StorePage(entries, at, remaining)

    def watch(self, prefix: str, revision: int) -> Watcher:
        with self._snapshot(revision) as newest:
            values = {"since": revision, "start": prefix, "end": prefix + _LAST}
            past = [
                StoreEvent(
                    StoreEntry(*row[:4]),
                    StoreEntry(*row[5:9]) if row[5] and not row[9] else None,
                    row[4] > 0,
                )
                for row in self._reader.execute(_PAST, values)
            ]
        return self._hub.watch(prefix, past, newest)

    @contextmanager
    def _snapshot(self, revision: int | None) -> Iterator[int]:
        """Run all queries in the `with` statement on one state of the database.

        Yield its newest revision. Raise an error if `revision` is in the future or was compacted.
        """
        self._check_open()
        try:
            self._reader.execute("begin")
            newest, compacted = self.revision, self.compacted
            if revision is not None:
                check_revision(revision, newest=newest, compacted=compacted)
            yield newest
        except apsw.Error as error:
            raise self._unreadable(error) from None
        finally:
            _end(self._reader, "commit")

    def _unreadable(self, error: apsw.Error) -> StoreFailed:
        """Record that the disk could not be read; return the error for the caller to raise."""
        text = f"{self._file} cannot be read: {error}"
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            self._note(damage=text)
            return StoreDamaged(text)
        self._note(refused=text)
        # The writer thread repeats test writes until the disk works again.
        self._submit(_probe).add_done_callback(asyncio.Future.exception)
        return StoreFailed(text)

    def _note(self, *, damage: str = "", refused: str = "") -> None:
        before = self.problem
        self._damage = self._damage or damage
        self._refused = refused
        if self.problem != before:
            self._report(self.problem)

    # Writes run in the writer thread.

    async def write(self, change: StoreWrite) -> StoreEntry:
        event = await self._submit(partial(_apply, change), change.key)
        assert event is not None
        return event.entry

    async def compact(self, revision: int) -> None:
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        await self._submit(lambda writing: _set_fact(writing.database, "compacted", revision))
        # Delete in small transactions, so that writers do not wait for the whole compaction. The
        # cost depends on the number of writes since the last compaction.
        while (start := _fact(self._reader, "cleaned")) < revision:
            await self._submit(partial(_clean, start, min(start + _CLEANED_AT_ONCE, revision)))

    def _submit(self, do: _Do, key: str = "") -> asyncio.Future[StoreEvent | None]:
        self._check_open()
        done: asyncio.Future[StoreEvent | None] = self._loop.create_future()
        if key:
            self._recent.begin(key)
        self._pending.put(_Work(do, done, key))
        return done

    def _write_all(self) -> None:
        refused = ""
        while (batch := self._batch(failing=bool(refused))) is not None:
            outcomes, refused = self._commit([work.do for work in batch] or [_probe])
            results = list(zip(batch, outcomes[: len(batch)], strict=True))
            self._loop.call_soon_threadsafe(self._deliver, results, refused)

    def _batch(self, *, failing: bool) -> list[_Work] | None:
        """Wait for pending tasks and return them; return None when the store is closed.

        While the disk refuses writes, wait at most one second. If there is no task then, return an
        empty list, and the caller makes a test write.
        """
        batch: list[_Work] = []
        try:
            work = self._pending.get(timeout=_PROBE_EVERY if failing else None)
            while work is not None:
                batch.append(work)
                if len(batch) == _MOST_AT_ONCE:
                    return batch
                work = self._pending.get_nowait()
        except queue.Empty:
            return batch
        if not batch:
            return None
        self._pending.put(None)
        return batch

    def _commit(self, all_work: list[_Do]) -> tuple[list[_Outcome], str]:
        """Run tasks in one transaction; return their outcomes, and why the transaction failed.

        The second value is an empty string if the transaction succeeded.
        """
        outcomes: list[_Outcome] = []
        writing = _Writing(self._writer, self._newest)
        try:
            self._writer.execute("begin immediate")
            for do in all_work:
                try:
                    outcomes.append(do(writing))
                except Conflict as conflict:
                    outcomes.append(conflict)
            if writing.newest != self._newest:
                _set_fact(self._writer, "newest", writing.newest)
            self._writer.execute("commit")
            self._newest = writing.newest
        except Exception as error:
            # The writer thread must survive every error: otherwise all later writes would hang.
            if self._writer.in_transaction:
                _end(self._writer, "rollback")
            text = f"a write to the disk failed: {error}"
            return [StoreFailed(text) for _ in all_work], text
        return outcomes, ""

    def _deliver(self, results: list[tuple[_Work, _Outcome]], refused: str) -> None:
        self._note(refused=refused)
        for (_, done, key), outcome in results:
            if key:
                self._recent.end(key)
            if isinstance(outcome, StoreEvent):
                if not outcome.deleted:
                    self._recent.keep(outcome.entry)
                self._hub.publish(outcome)
            if done.cancelled():
                continue
            if isinstance(outcome, PolyverError):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)

    def _check_open(self) -> None:
        if not self._open:
            raise StoreClosed("the store was closed")

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._pending.put(None)
        await asyncio.to_thread(self._thread.join)
        await asyncio.sleep(0)  # deliver the last outcomes of the thread
        self._hub.close()
        self._reader.close()
        self._writer.close()
        self._lock.close()


def _end(database: apsw.Connection, how: str) -> None:
    """End a transaction; ignore the error if SQLite has already ended it after a disk error."""
    with suppress(apsw.Error):
        database.execute(how)


def _probe(writing: _Writing) -> None:
    """Make a test write that shows whether the disk works."""
    writing.database.execute(
        "insert into facts values ('probed', 1) on conflict do update set value = value + 1"
    )


def _get(database: apsw.Connection, key: str) -> StoreEntry | None:
    row = database.execute(_ONE, (key,)).fetchone()
    return StoreEntry._make(row) if row else None


def _apply(change: StoreWrite, writing: _Writing) -> StoreEvent:
    database, revision = writing.database, writing.newest + 1
    event = change.made(_get(database, change.key), revision)
    entry = event.entry
    row = (revision, entry.key, entry.value, entry.created, change.delete)
    database.execute("insert into log values (?, ?, ?, ?, ?)", row)
    if change.delete:
        database.execute("delete from current where key = ?", (change.key,))
    else:
        database.execute("insert or replace into current values (?, ?)", (change.key, revision))
    writing.newest = revision
    return event


def _clean(start: int, end: int, writing: _Writing) -> None:
    database = writing.database
    for statement in (_REPLACED, _TOMBSTONES):
        database.execute(statement, {"start": start, "end": end})
    _set_fact(database, "cleaned", end)


def _fact(database: apsw.Connection, name: str) -> int:
    return _number(database, "select value from facts where name = :name", {"name": name})


def _set_fact(database: apsw.Connection, name: str, value: int) -> None:
    update = "update facts set value = max(value, :value) where name = :name"
    database.execute(update, {"name": name, "value": value})


def _number(database: apsw.Connection, query: str, values: _Values) -> int:
    [[number]] = database.execute(query, values)
    assert isinstance(number, int)
    return number
