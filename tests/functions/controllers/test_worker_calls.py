"""Calls in worker processes: what happens to the process that they are forked from."""

from __future__ import annotations

import asyncio
import os
import signal
import textwrap
from collections.abc import Callable, Coroutine, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.deadlines import HANG

from polyver.capability.capability import WorkerAccess
from polyver.client.cluster import ClusterAccess, KubeconfigCluster, KubeconfigUser
from polyver.functions import FunctionLog
from polyver.functions.controllers import workers
from polyver.functions.controllers.calls import CallLog, FunctionCall, FunctionCallFailed
from polyver.functions.controllers.workers import WorkerCalls
from polyver.functions.loading import load_functions
from polyver.functions.registering import Functions
from polyver.functions.runtime.context import FunctionContext
from polyver.functions.worker_process import COMMAND
from polyver.kube.http.logs import Log
from polyver.kube.objects.masking import Masks
from polyver.testing import EmbeddedServer

CODE = """
    import os
    import sys
    import time
    from polyver import functions

    @functions.register("Parent")
    def parent(ctx):
        return {"parent": os.getppid(), "secret": ctx.params["secret"]}

    @functions.register("Sleep")
    def sleep(ctx, file: str):
        with open(file, "w") as told:
            told.write(str(os.getppid()))
        time.sleep(100000)

    @functions.register("Exit")
    async def leave(ctx):
        sys.exit("enough")
"""


class Calls:
    """Functions in a file, and calls of them by name."""

    def __init__(self, server: EmbeddedServer, folder: Path) -> None:
        self.folder, self.file = folder, folder / "code.py"
        self.file.write_text(textwrap.dedent(CODE))
        self.functions: Functions = load_functions([str(self.file)], [])
        cluster = KubeconfigCluster(server=server.url, certificate_auth=str(server.ca_file))
        self.lent = WorkerAccess(
            ClusterAccess(cluster, KubeconfigUser(token=server.token), "test"), runs_pods=False
        )

    def made(self) -> WorkerCalls:
        assert self.functions.origin is not None
        return WorkerCalls(self.functions.origin, lambda: nullcontext(self.lent), COMMAND)

    async def call(self, calls: WorkerCalls, name: str, **arguments: str) -> dict[str, Any]:
        [function] = self.functions.get(name).code.values()
        params, masks, now = {"secret": "x" * 10}, Masks(), datetime.now(UTC)
        context = FunctionContext(None, params, FunctionLog(), "now", now, "default", "key")
        log = CallLog(Log(), masks, most=1000, about={})
        return await calls.call(FunctionCall(function, arguments, context, masks, log))


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[Calls]:
    with EmbeddedServer() as server:
        yield Calls(server, tmp_path)


def lived(calls: Calls, scenario: Callable[[WorkerCalls], Coroutine[Any, Any, None]]) -> None:
    async def live() -> None:
        made = calls.made()
        try:
            async with asyncio.timeout(HANG):
                await scenario(made)
        finally:
            await made.close()

    asyncio.run(live())


async def gone(pid: int) -> None:
    while Path(f"/proc/{pid}").exists():
        await asyncio.sleep(0.01)


def test_the_fork_server_is_started_again_when_it_died(calls: Calls) -> None:
    file = calls.folder / "parent"

    async def scenario(made: WorkerCalls) -> None:
        sleeping = asyncio.create_task(calls.call(made, "Sleep", file=str(file)))
        while not file.exists() or not file.read_text():
            await asyncio.sleep(0.01)
        first = int(file.read_text())
        os.kill(first, signal.SIGKILL)
        with pytest.raises(
            FunctionCallFailed, match=r"Sleep v0\.0\.0: its worker process no longer exists"
        ):
            await sleeping
        again = await calls.call(made, "Parent")
        assert again["parent"] != first
        assert again["secret"] == "x" * 10
        with pytest.raises(FunctionCallFailed, match=r"Exit v0\.0\.0 raised SystemExit: enough"):
            await calls.call(made, "Exit")
        await made.close()
        await gone(again["parent"])

    lived(calls, scenario)


def test_the_fork_server_ends_when_nothing_is_called_and_loads_no_other_code(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_IDLE", 0.0)

    async def scenario(made: WorkerCalls) -> None:
        first = await calls.call(made, "Parent")
        await gone(first["parent"])
        calls.file.write_text(calls.file.read_text() + "\n")
        with pytest.raises(FunctionCallFailed, match=r"code\.py was changed after polyver started"):
            await calls.call(made, "Parent")

    lived(calls, scenario)
