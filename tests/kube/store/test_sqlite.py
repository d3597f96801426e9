"""SQLite's own promises: what was acknowledged is there, whatever happens to the process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from polyver.kube.store import SqliteStore, StoreFailed, StoreLocked, StoreWrite

WRITER = """
import asyncio, sys
from pathlib import Path
from polyver.kube.store import StoreWrite, SqliteStore

async def writer(store, number):
    revision = 0
    for count in range(1_000_000):
        change = StoreWrite(f"/{number}", b"%d " % count, b"", revision)
        revision = (await store.write(change)).revision
        print(number, count, revision, flush=True)

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    await asyncio.gather(*(writer(store, number) for number in range(8)))

asyncio.run(main())
"""


def acknowledged(folder: Path, lines: int) -> dict[str, tuple[int, int]]:
    """Start writers, kill them in the middle, and tell what they had been promised."""
    promised: dict[str, tuple[int, int]] = {}
    command = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for read, line in enumerate(child.stdout, start=1):
            if line.endswith("\n"):
                number, count, revision = line.split()
                promised[number] = int(count), int(revision)
            if read == lines:
                os.kill(child.pid, signal.SIGKILL)
    return promised


@pytest.mark.parametrize("lines", [1, 50, 400])
def test_no_acknowledged_write_is_lost_when_the_process_is_killed(
    tmp_path: Path, lines: int
) -> None:
    promised = acknowledged(tmp_path, lines)

    async def check() -> None:
        async with SqliteStore(tmp_path) as store:
            for number, (count, revision) in promised.items():
                entry = store.get(f"/{number}")
                assert entry is not None
                assert entry.revision >= revision
                assert int(entry.value.split()[0]) >= count
                assert entry.value.split()[1] == str(entry.revision).encode(), "nothing is torn"
            events = [await anext(watch) for watch in [store.watch("/", 0)] for _ in range(lines)]
            assert [event.entry.revision for event in events] == list(range(1, lines + 1))
            again = await store.write(StoreWrite("/new", b"", b"", 0))
            assert again.revision == store.revision

    asyncio.run(check())


def test_a_second_start_continues(tmp_path: Path) -> None:
    async def first() -> None:
        async with SqliteStore(tmp_path) as store:
            entry = await store.write(StoreWrite("/a", b"1 ", b"", 0))
            await store.write(StoreWrite("/a", b"2 ", b"", entry.revision, delete=True))
            await store.compact(2)

    async def second() -> None:
        async with SqliteStore(tmp_path) as store:
            assert (store.revision, store.compacted) == (2, 2)
            assert (await store.write(StoreWrite("/b", b"", b"", 0))).revision == 3

    asyncio.run(first())
    asyncio.run(second())


def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    async def both() -> None:
        async with SqliteStore(tmp_path):
            with pytest.raises(StoreLocked, match="in use by another process; stop the other"):
                SqliteStore(tmp_path)
        async with SqliteStore(tmp_path):
            pass

    asyncio.run(both())


@pytest.mark.parametrize("content", [b"this is not a database, it is a text" * 100])
def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "store.db").write_bytes(content)

    async def attempt() -> None:
        with pytest.raises(StoreFailed, match=r"store.db is damaged: file is not a database"):
            SqliteStore(tmp_path)

    asyncio.run(attempt())
    assert (tmp_path / "store.db").read_bytes() == content


def test_a_store_of_a_later_format_is_refused(tmp_path: Path) -> None:
    database = apsw.Connection(str(tmp_path / "store.db"))
    database.execute("pragma user_version = 9")
    database.close()

    async def attempt() -> None:
        with pytest.raises(StoreFailed, match="has format 9, and this polyver supports 1"):
            SqliteStore(tmp_path)

    asyncio.run(attempt())


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def attempt() -> None:
        with pytest.raises(StoreFailed, match="cannot be opened: Not a directory"):
            SqliteStore(tmp_path / "file" / "folder")

    asyncio.run(attempt())


def test_a_full_disk_fails_the_write_and_nothing_else(tmp_path: Path) -> None:
    async def test() -> None:
        async with SqliteStore(tmp_path) as store:
            before = await store.write(StoreWrite("/a", b"", b"", 0))
            pages = store._writer.execute("pragma page_count").fetchall()[0][0]
            store._writer.execute(f"pragma max_page_count = {pages}")
            with pytest.raises(StoreFailed, match=r"a write to the disk failed: .*full"):
                await store.write(StoreWrite("/b", b"x" * 1_000_000, b"", 0))
            assert store.get("/a") == before
            assert store.get("/b") is None
            assert store.revision == 1
            store._writer.execute("pragma max_page_count = 1000000")
            assert (await store.write(StoreWrite("/b", b"", b"", 0))).revision == 2

    asyncio.run(test())


def test_writers_that_wait_together_share_one_transaction(tmp_path: Path) -> None:
    async def test() -> int:
        async with SqliteStore(tmp_path) as store:
            commits = 0

            def count() -> bool:
                nonlocal commits
                commits += 1
                return False

            store._writer.set_commit_hook(count)
            await asyncio.gather(
                *(store.write(StoreWrite(f"/{n}", b"", b"", 0)) for n in range(500))
            )
            assert store.revision == 500
            return commits

    assert asyncio.run(test()) < 50
