"""Functions as processes: served, checked, started again, and gone when they should be."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.compositions.runtimes.support import (
    QUICK,
    answer_of,
    function_folder,
    is_alive,
    noted,
    process_runtime,
    settled,
    until,
    wanted_of,
)

from polyver.compositions.runtimes import DesiredRevision
from polyver.compositions.runtimes.process import NotAllowed


def test_a_function_is_served_and_answers_with_its_own_certificate(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = function_folder(tmp_path / "fn", ANSWER="one")
        async with process_runtime(tmp_path / "data", {"fn:v1": folder}) as runtime:
            wanted = await wanted_of(runtime, "fn:v1")
            assert await answer_of(runtime, wanted) == b"one"
            served = await runtime.serve(wanted)
            assert served.reason == "Serving"
            assert served.endpoint.startswith("127.0.0.1:")

    asyncio.run(scenario())


def test_two_revisions_are_served_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        packages = {
            f"fn:v{each}": function_folder(tmp_path / each, ANSWER=each) for each in ("1", "2")
        }
        async with process_runtime(tmp_path / "data", packages) as runtime:
            first = await wanted_of(runtime, "fn:v1", "fn-1")
            second = await wanted_of(runtime, "fn:v2", "fn-2")
            assert first.digest != second.digest
            await runtime.serve(first)
            assert await answer_of(runtime, second) == b"2"
            assert await answer_of(runtime, first) == b"1"
            await runtime.end("fn-2")
            assert await answer_of(runtime, first) == b"1"

    asyncio.run(scenario())


def test_what_has_ended_is_not_there_any_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        pids = tmp_path / "pids"
        folder = function_folder(tmp_path / "fn", PIDS=str(pids))
        async with process_runtime(tmp_path / "data", {"fn:v1": folder}) as runtime:
            await until(runtime, await wanted_of(runtime, "fn:v1"))
            [pid] = noted(pids)
            assert is_alive(pid)
            await runtime.end("fn-1")
            await settled(lambda: not is_alive(pid))
            await until(runtime, await wanted_of(runtime, "fn:v1"))
        assert not any(map(is_alive, noted(pids)))
        assert not list((tmp_path / "data" / "packages" / "work").iterdir())

    asyncio.run(scenario())


def test_a_function_that_ends_by_itself_is_started_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        pids = tmp_path / "pids"
        folder = function_folder(tmp_path / "fn", PIDS=str(pids))
        async with process_runtime(tmp_path / "data", {"fn:v1": folder}) as runtime:
            wanted = await wanted_of(runtime, "fn:v1")
            before = await until(runtime, wanted)
            os.kill(noted(pids)[0], signal.SIGSEGV)
            crashed = await until(runtime, wanted, lambda s: s.reason == "Crashed")
            assert not crashed.endpoint
            assert "SIGSEGV" in crashed.message
            after = await until(runtime, wanted)
            assert after.endpoint != before.endpoint
            [figures] = runtime.figures()
            assert figures.restarts == 1
            assert figures.up

    asyncio.run(scenario())


def test_a_crash_tells_the_exit_code_and_the_last_lines(tmp_path: Path) -> None:
    async def scenario() -> None:
        crashes = "print('no such thing as', 40 + 2, flush=True); sys.exit(3)"
        folder = function_folder(tmp_path / "fn", BEFORE=crashes)
        async with process_runtime(tmp_path / "data", {"fn:v1": folder}) as runtime:
            wanted = await wanted_of(runtime, "fn:v1")
            crashed = await until(runtime, wanted, lambda s: s.reason == "Crashed")
            assert "exit code 3" in crashed.message
            assert "no such thing as 42" in crashed.message
        log = tmp_path / "data" / "packages" / "logs" / "fn-1.log"
        assert "no such thing as 42" in log.read_text()

    asyncio.run(scenario())


def test_a_function_that_hangs_is_replaced_and_the_others_are_not_held_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        pids = tmp_path / "pids"
        packages = {
            "hangs": function_folder(tmp_path / "hangs", PIDS=str(pids)),
            "works": function_folder(tmp_path / "works", ANSWER="works"),
        }
        timing = replace(QUICK, answer=0.3, silence=0.6)
        async with process_runtime(tmp_path / "data", packages, timing=timing) as runtime:
            wanted = await wanted_of(runtime, "hangs")
            works = await wanted_of(runtime, "works", "fn-2")
            await until(runtime, works)
            await until(runtime, wanted)
            os.kill(noted(pids)[0], signal.SIGSTOP)
            hung = await until(runtime, wanted, lambda s: s.reason == "NotAnswering")
            assert not hung.healthy
            assert await answer_of(runtime, works) == b"works"
            await until(runtime, wanted)
            assert not is_alive(noted(pids)[0])

    asyncio.run(scenario())


def test_a_function_that_never_listens_is_said_not_to_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        sleeps = "print('waiting', flush=True); time.sleep(600)"
        folder = function_folder(tmp_path / "fn", BEFORE=sleeps)
        timing = replace(QUICK, start=0.5)
        async with process_runtime(tmp_path / "data", {"fn": folder}, timing=timing) as runtime:
            wanted = await wanted_of(runtime, "fn")
            late = await until(runtime, wanted, lambda s: s.reason == "NotStarting")
            assert "nothing listens" in late.message
            assert "waiting" in late.message

    asyncio.run(scenario())


def test_a_function_that_takes_too_much_memory_is_ended(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = function_folder(tmp_path / "fn", CALLED="", BEFORE="kept = bytearray(200 << 20)")
        async with process_runtime(
            tmp_path / "data", {"fn": folder}, memory=100 << 20, look=0.05
        ) as runtime:
            wanted = await wanted_of(runtime, "fn")
            ended = await until(runtime, wanted, lambda s: s.reason == "Crashed")
            assert "took more than 100 MiB of memory" in ended.message

    asyncio.run(scenario())


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = tmp_path / "fn"
        folder.mkdir()
        (folder / "polyver-function.yaml").write_text("command: [./no-such-program]\n")
        async with process_runtime(tmp_path / "data", {"fn": folder}) as runtime:
            wanted = await wanted_of(runtime, "fn")
            ended = await until(runtime, wanted, lambda s: s.reason == "Crashed")
            assert "cannot be run" in ended.message
            assert "no-such-program" in ended.message

    asyncio.run(scenario())


def test_a_running_revision_is_not_changed_by_edits_of_its_folder(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = function_folder(tmp_path / "fn", ANSWER="before")
        data = tmp_path / "data"
        async with process_runtime(data, {"fn": folder}) as runtime:
            wanted = await wanted_of(runtime, "fn")
            file = folder / "polyver-function.yaml"
            file.write_text(file.read_text().replace("before", "after"))
            changed = await wanted_of(runtime, "fn", "fn-2")
            assert changed.digest != wanted.digest
            assert await answer_of(runtime, wanted) == b"before"
            assert await answer_of(runtime, changed) == b"after"
        async with process_runtime(data, {"fn": folder}) as runtime:
            assert await answer_of(runtime, wanted) == b"before"

    asyncio.run(scenario())


def test_a_revision_whose_content_is_nowhere_any_more_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = function_folder(tmp_path / "fn")
        async with process_runtime(tmp_path / "data", {"fn": folder}) as runtime:
            wanted = DesiredRevision("fn-1", "fn", f"sha256:{'0' * 64}")
            served = await until(runtime, wanted, lambda s: s.reason == "Changed")
            assert "other content" in served.message

    asyncio.run(scenario())


def test_nothing_is_run_that_nobody_has_allowed(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = function_folder(tmp_path / "fn", PIDS=str(tmp_path / "pids"))
        data = tmp_path / "data"
        async with process_runtime(data, {"fn": folder}) as runtime:
            digest = await runtime.digest("fn")
            await until(runtime, DesiredRevision("fn-1", "fn", digest))
        async with process_runtime(data) as runtime:
            with pytest.raises(NotAllowed, match="--packages"):
                await runtime.digest(f"file:{folder}")
            # Not even what was built when it was.
            wanted = DesiredRevision("fn-1", f"file:{folder}", digest)
            served = await until(runtime, wanted, lambda s: s.reason == "NotAllowed")
            assert "--allow-packages" in served.message
        assert len(noted(tmp_path / "pids")) == 1

    asyncio.run(scenario())


def test_children_know_nothing_of_what_polyver_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "of polyver")
    tells = "print(sorted(os.environ), os.environ['HOME'], flush=True); sys.exit(1)"

    async def scenario() -> None:
        folder = function_folder(tmp_path / "fn", BEFORE=tells)
        async with process_runtime(tmp_path / "data", {"fn": folder}) as runtime:
            wanted = await wanted_of(runtime, "fn")
            told = await until(runtime, wanted, lambda s: s.reason == "Crashed")
            assert "'PATH'" in told.message
            assert "A_SECRET" not in told.message
            assert str(tmp_path / "data" / "packages" / "work") in told.message

    asyncio.run(scenario())
