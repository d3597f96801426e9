"""What is left of functions when polyver is killed: nothing, whatever they have started."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.compositions.runtimes.support import (
    answer_of,
    function_folder,
    is_alive,
    noted,
    process_runtime,
    project_folder,
    settled,
    until,
    wanted_of,
)

from polyver.compositions.runtimes.process._subprocesses import ProcessSpec, Supervised

ROOT = Path(__file__).parents[3]

STARTS_OTHERS = """
note(subprocess.Popen(["sleep", "600"]).pid)
if sys.platform == "linux":
    left = "setsid sleep 600 > /dev/null & echo $!"
    note(int(subprocess.check_output(["sh", "-c", left])))
"""

SERVES = """
import asyncio, sys
from pathlib import Path
from tests.compositions.runtimes.support import process_runtime, until, wanted_of

async def main(data, folder):
    async with process_runtime(data, {"fn": folder}) as runtime:
        await until(runtime, await wanted_of(runtime, "fn"))
        print("serving", flush=True)
        await asyncio.sleep(600)

asyncio.run(main(*map(Path, sys.argv[1:])))
"""


BUILDS_UNTIL_KILLED = """
import time
if not Path({go!r}).exists():
    with open({pids!r}, "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    time.sleep(600)
"""


def serving(data: Path, folder: Path) -> subprocess.Popen[str]:
    process = started(data, folder)
    assert process.stdout
    assert process.stdout.readline() == "serving\n"
    return process


def started(data: Path, folder: Path) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), *sys.path])
    return subprocess.Popen(
        [sys.executable, "-c", SERVES, data, folder],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_nothing_is_left_of_a_function_when_polyver_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    folder = function_folder(tmp_path / "fn", PIDS=str(pids), BEFORE=STARTS_OTHERS, ANSWER="again")
    with serving(tmp_path / "data", folder) as killed:
        before = noted(pids)
        assert len(before) == (3 if sys.platform == "linux" else 2)
        assert all(map(is_alive, before))
        killed.kill()

    async def scenario() -> None:
        await settled(lambda: not any(map(is_alive, before)))
        # And who comes next serves it again, from the same environment.
        async with process_runtime(tmp_path / "data", {"fn": folder}) as runtime:
            assert await answer_of(runtime, await wanted_of(runtime, "fn")) == b"again"
            assert len(list((tmp_path / "data" / "packages" / "work").glob("*.lock"))) == 1
        assert not any(map(is_alive, noted(pids)))

    asyncio.run(scenario())


def test_nothing_is_left_of_a_build_either_and_it_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    pids, go = tmp_path / "pids", tmp_path / "go"
    folder = project_folder(tmp_path / "fn")
    # What is installed is what runs, and not what lies beside it.
    command = "command: [python, -P, -m, function.main]\n"
    (folder / "polyver-function.yaml").write_text(command)
    with (folder / "backend.py").open("a") as file:
        file.write(BUILDS_UNTIL_KILLED.format(pids=str(pids), go=str(go)))
    with started(tmp_path / "data", folder) as killed:
        asyncio.run(settled(lambda: noted(pids)))
        killed.kill()
    go.touch()

    async def scenario() -> None:
        await settled(lambda: not any(map(is_alive, noted(pids))))
        [half] = [
            each for each in (tmp_path / "data/packages/environments").iterdir() if each.is_dir()
        ]
        async with process_runtime(tmp_path / "data", {"fn": folder}) as runtime:
            assert await answer_of(runtime, await wanted_of(runtime, "fn")) == b"installed"
        assert not half.exists()

    asyncio.run(scenario())


def test_what_a_function_has_started_ends_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        pids = tmp_path / "pids"
        folder = function_folder(tmp_path / "fn", PIDS=str(pids), BEFORE=STARTS_OTHERS)
        async with process_runtime(tmp_path / "data", {"fn": folder}) as runtime:
            await until(runtime, await wanted_of(runtime, "fn"))
            before = noted(pids)
            os.kill(before[0], signal.SIGKILL)
            await settled(lambda: not any(map(is_alive, before)))

    asyncio.run(scenario())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends it then")
def test_a_function_ends_with_its_supervisor_and_is_started_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        pids = tmp_path / "pids"
        folder = function_folder(tmp_path / "fn", PIDS=str(pids))
        async with process_runtime(tmp_path / "data", {"fn": folder}) as runtime:
            wanted = await wanted_of(runtime, "fn")
            await until(runtime, wanted)
            [pid] = noted(pids)
            status = Path(f"/proc/{pid}/status").read_text()
            [supervisor] = [
                int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:")
            ]
            os.kill(supervisor, signal.SIGKILL)
            await until(runtime, wanted, lambda s: s.reason == "Crashed")
            await settled(lambda: not is_alive(pid))
            await until(runtime, wanted)

    asyncio.run(scenario())


def order(tmp_path: Path, script: str, **more: float) -> ProcessSpec:
    argv = ["sh", "-c", script]
    env = {"PATH": os.environ["PATH"]}
    return ProcessSpec(argv, env, str(tmp_path), str(tmp_path / "log"), **more)  # type: ignore[arg-type]


def printed(tmp_path: Path) -> str:
    log = tmp_path / "log"
    return log.read_text() if log.exists() else ""


def test_a_program_that_does_not_want_to_end_is_ended_by_force(tmp_path: Path) -> None:
    async def scenario() -> None:
        ignores = "trap '' TERM; echo ready; while :; do sleep 1; done"
        program = await Supervised.start(order(tmp_path, ignores, grace=0.1))
        await settled(lambda: "ready" in printed(tmp_path))
        ending = await program.end()
        assert ending.code == -signal.SIGKILL
        assert not is_alive(program.pid)

    asyncio.run(scenario())


def test_a_program_may_end_by_itself_when_it_is_told_to(tmp_path: Path) -> None:
    async def scenario() -> None:
        ends = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done"
        program = await Supervised.start(order(tmp_path, ends, grace=30))
        await settled(lambda: "ready" in printed(tmp_path))
        ending = await program.end()
        assert ending.code == 7
        assert ending.last_lines.endswith("bye")

    asyncio.run(scenario())


def test_logs_stay_within_bounds(tmp_path: Path) -> None:
    async def scenario() -> None:
        prints = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done"
        program = await Supervised.start(order(tmp_path, prints, log_bytes=4096))
        ending = await program.wait()
        assert ending.last_lines.splitlines()[-1] == "line 1999"
        files = sorted(each.name for each in tmp_path.iterdir())
        assert files == ["log", "log.1"]
        assert all((tmp_path / name).stat().st_size <= 4096 for name in files)

    asyncio.run(scenario())


def test_a_program_without_output_is_watched_all_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        program = await Supervised.start(order(tmp_path, "exec >&- 2>&-; sleep 0.1; exit 5"))
        assert (await program.wait()).code == 5

    asyncio.run(scenario())
