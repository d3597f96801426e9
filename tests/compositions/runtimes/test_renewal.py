"""Certificates that are replaced: by another process, in place before the old one goes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from tests.compositions.runtimes.support import (
    QUICK,
    answer_of,
    called,
    function_folder,
    is_alive,
    noted,
    process_runtime,
    settled,
    until,
    wanted_of,
)

from polyver.client import SystemClock

LONG_AGO = timedelta(days=300)
"""More than two thirds of a certificate's life."""


class Calendar(SystemClock):
    """The clock of this machine, on some other day."""

    def __init__(self, ago: timedelta) -> None:
        self.ago = ago

    def now(self) -> datetime:
        return super().now() - self.ago


def waits_for(file: Path) -> str:
    return f"""
while not Path({str(file)!r}).exists():
    time.sleep(0.01)
"""


def test_a_renewal_moves_the_endpoint_and_calls_under_way_finish(tmp_path: Path) -> None:
    async def scenario() -> None:
        pids, go = tmp_path / "pids", tmp_path / "go"
        folder = function_folder(tmp_path / "fn", PIDS=str(pids), CALLED=waits_for(go))
        clock = Calendar(LONG_AGO)
        async with process_runtime(tmp_path / "data", {"fn": folder}, clock=clock) as runtime:
            wanted = await wanted_of(runtime, "fn")
            before = await until(runtime, wanted)
            under_way = asyncio.create_task(
                called(await runtime.reach(wanted.name, before.endpoint))
            )
            clock.ago = timedelta(0)
            after = await until(
                runtime, wanted, lambda s: s.healthy and s.endpoint != before.endpoint
            )
            assert after.reason == "Serving"
            go.touch()
            assert await under_way == b"hello"
            old, new = noted(pids)
            await settled(lambda: not is_alive(old))
            assert is_alive(new)
            assert await answer_of(runtime, wanted) == b"hello"
            assert [each.restarts for each in runtime.figures()] == [0]

    asyncio.run(scenario())


def test_the_old_one_stays_as_long_as_the_new_one_is_of_no_use(tmp_path: Path) -> None:
    async def scenario() -> None:
        pids, bad = tmp_path / "pids", tmp_path / "bad"
        fails = f"Path({str(bad)!r}).exists() and sys.exit('not now')"
        folder = function_folder(tmp_path / "fn", PIDS=str(pids), BEFORE=fails)
        clock = Calendar(LONG_AGO)
        timing = replace(QUICK, start=5.0)
        async with process_runtime(
            tmp_path / "data", {"fn": folder}, clock=clock, timing=timing
        ) as runtime:
            wanted = await wanted_of(runtime, "fn")
            before = await until(runtime, wanted)
            bad.touch()
            clock.ago = timedelta(0)
            await settled(lambda: len(noted(pids)) >= 2)
            assert await runtime.serve(wanted) == before
            assert await answer_of(runtime, wanted) == b"hello"
            bad.unlink()
            await until(runtime, wanted, lambda s: s.healthy and s.endpoint != before.endpoint)

    asyncio.run(scenario())
