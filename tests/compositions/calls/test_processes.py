"""Functions in processes that end when they please: every call ends, in time, and clearly."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.compositions.calls.serving import NOW
from tests.compositions.calls.test_caller import REQUEST, asked, calling, run

from polyver.compositions.calls import Caller, CertificateFolder, Endpoint, FunctionFailed, probe

ROOT = Path(__file__).parents[3]
REVISION = "fn-abc123"


class Function:
    """A process with certificates from a folder of them."""

    def __init__(self, folder: CertificateFolder, behaviour: str) -> None:
        self._folder = folder
        self._behaviour = behaviour
        self._port = 0

    async def start(self) -> None:
        files = self._folder.issue(REVISION, now=NOW).folder
        arguments = (self._behaviour, str(files), str(self._port))
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.compositions.calls.process", *arguments),
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        )
        assert self._process.stdout
        address = (await self._process.stdout.readline()).decode().strip()
        self._port = int(address.rpartition(":")[2])
        self.endpoint = Endpoint(REVISION, address, self._folder.trust(REVISION, now=NOW))

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    def stop(self, sign: signal.Signals) -> None:
        self._process.send_signal(sign)


@asynccontextmanager
async def function(folder: Path, behaviour: str) -> AsyncIterator[Function]:
    started = Function(CertificateFolder(folder), behaviour)
    await started.start()
    try:
        yield started
    finally:
        await started.kill()


def test_a_process_is_called_with_certificates_of_its_own(tmp_path: Path) -> None:
    async def body() -> None:
        async with function(tmp_path, "echo") as served, calling() as caller:
            await probe(served.endpoint)
            assert await asked(caller, served.endpoint) == "tag"

    run(body())


def test_a_process_that_ends_while_it_is_asked_is_an_error(tmp_path: Path) -> None:
    async def body() -> None:
        async with function(tmp_path, "crash") as served, calling() as caller:
            said = await asked(caller, served.endpoint)
            assert said.startswith(f"Unreachable: {REVISION} ")
            with pytest.raises(FunctionFailed, match="nothing listens"):
                await probe(served.endpoint)

    run(body())


def test_a_process_that_is_stopped_costs_its_callers_their_deadline(tmp_path: Path) -> None:
    async def body() -> None:
        async with function(tmp_path, "echo") as served, calling() as caller:
            assert await asked(caller, served.endpoint) == "tag"
            served.stop(signal.SIGSTOP)
            said = await asked(caller, served.endpoint, within=0.3)
            assert said == f"DeadlineExceeded: {REVISION} did not answer within 0.3s"
            served.stop(signal.SIGCONT)
            assert await asked(caller, served.endpoint) == "tag"

    run(body())


def test_under_load_every_call_ends_while_the_process_is_killed_again_and_again(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        async with function(tmp_path, "echo") as served, calling() as caller:
            ended: Counter[str] = Counter()
            over = asyncio.Event()
            workers = [asyncio.create_task(_load(caller, served, ended, over)) for _ in range(8)]
            for _ in range(3):
                answers = ended["tag"]
                while ended["tag"] < answers + 50:
                    await asyncio.sleep(0.01)
                await served.kill()
                await served.start()
            over.set()
            await asyncio.gather(*workers)
            assert ended["tag"] >= 150
            assert set(ended) <= {"tag", "Unreachable", "Refused"}
            assert await asked(caller, served.endpoint) == "tag"
            assert caller.connections == 1

    run(body())


async def _load(caller: Caller, served: Function, ended: Counter[str], over: asyncio.Event) -> None:
    while not over.is_set():
        try:
            response = await caller.call(served.endpoint, REQUEST, within=60)
        except FunctionFailed as error:
            ended[error.failure] += 1
        else:
            ended[response.meta.tag] += 1
