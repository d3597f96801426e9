"""What is not needed is not loaded: gRPC takes longer to load than a start may take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


CALLS = "polyver.compositions.calls"


@pytest.mark.parametrize("modules", [CALLS, f"{CALLS}, polyver.app.up"])
def test_grpc_is_loaded_with_the_first_call_only(modules: str) -> None:
    code = f"import sys, {modules}; print(sorted({{'grpc', 'google.protobuf'}} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_a_call_needs_no_protobuf() -> None:
    code = """
import asyncio, sys
from polyver.compositions.calls import Caller, Endpoint, FunctionFailed
from polyver.compositions.messages import Request

async def main():
    caller = Caller()
    try:
        await caller.call(Endpoint("fn-1", "127.0.0.1:1"), Request(), within=20)
    except FunctionFailed as error:
        print(error.failure, "grpc" in sys.modules, "google.protobuf" in sys.modules)
    await caller.close()

asyncio.run(main())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "Unreachable True False\n"
    assert found.stderr == ""


STARTING = """
import asyncio, os, sys, uvloop
from collections import Counter
from pathlib import Path
from polyver.compositions.calls import Caller, CertificateFolder, Endpoint
from polyver.compositions.messages import Request, RequestMeta
import datetime

NOW = datetime.datetime.now(datetime.UTC)

async def main():
    folder = CertificateFolder(Path(sys.argv[1]))
    files = folder.issue("fn-1", now=NOW).folder
    served = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.compositions.calls.process", "echo", str(files), "0",
        stdout=asyncio.subprocess.PIPE,
    )
    address = (await served.stdout.readline()).decode().strip()
    endpoint = Endpoint("fn-1", address, folder.trust("fn-1", now=NOW))
    caller = Caller()
    over = asyncio.Event()

    async def calls():
        while not over.is_set():
            await caller.call(endpoint, Request(RequestMeta("tag")))

    workers = [asyncio.create_task(calls()) for _ in range(4)]
    for _ in range(40):
        await (await asyncio.create_subprocess_exec("true")).wait()
    over.set()
    await asyncio.gather(*workers)
    print(caller.metrics.of("fn-1").failures, sorted(n for n in os.environ if n.startswith("GRPC")))
    await caller.close()
    served.kill()
    await served.wait()

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
"""


def test_processes_may_be_started_while_calls_are_under_way(tmp_path: Path) -> None:
    environment = {name: each for name, each in os.environ.items() if not name.startswith("GRPC")}
    found = subprocess.run(
        [sys.executable, "-c", STARTING, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=environment | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )
    assert found.stdout == "0 []\n"
    assert found.stderr == ""
