"""The memory that reviews take together stays below its limit, and everybody gets a turn."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import ssl
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.deadlines import HANG

from polyver.webhook.budget import (
    MemoryBudget,
    MemoryBudgetExceeded,
    MemoryReservation,
    MemoryShare,
    estimated,
)

MIB = 1024 * 1024


@given(
    sizes=st.lists(st.integers(1, 10), min_size=1, max_size=20),
    fates=st.lists(st.sampled_from(["stays", "leaves", "is cancelled"]), min_size=20, max_size=20),
)
@settings(deadline=None)
def test_no_more_is_taken_than_there_is_and_all_comes_back(
    sizes: list[int], fates: list[str]
) -> None:
    share, most = MemoryShare(10), 0

    async def use(size: int, fate: str) -> None:
        nonlocal most
        until = monotonic() + (HANG if fate == "stays" else 0)
        try:
            await share.take(size, until)
        except MemoryBudgetExceeded:
            return
        most = max(most, share.used)
        try:
            await asyncio.sleep(0)
        finally:
            share.give(size)

    async def run() -> None:
        tasks = [asyncio.create_task(use(*each)) for each in zip(sizes, fates, strict=False)]
        await asyncio.sleep(0)
        for task, fate in zip(tasks, fates, strict=False):
            if fate == "is cancelled":
                task.cancel()
        await asyncio.wait(tasks)

    asyncio.run(run())
    assert most <= 10
    assert share.used == 0


def test_a_large_review_is_not_overtaken_for_ever() -> None:
    async def run() -> list[str]:
        share, order = MemoryShare(10), []

        async def use(name: str, size: int) -> None:
            await share.take(size, monotonic() + HANG)
            order.append(name)
            await asyncio.sleep(0)
            share.give(size)

        await share.take(5, monotonic() + HANG)
        tasks = [asyncio.create_task(use(*each)) for each in (("large", 10), ("small", 1))]
        await asyncio.sleep(0)
        assert order == []
        share.give(5)
        await asyncio.wait(tasks)
        return order

    assert asyncio.run(run()) == ["large", "small"]


def test_too_many_do_not_even_wait() -> None:
    async def run() -> int:
        share = MemoryShare(1)
        await share.take(1, monotonic() + HANG)
        tasks = [asyncio.create_task(share.take(1, monotonic() + HANG)) for _ in range(300)]
        await asyncio.sleep(0)
        refused = [
            each
            for each in tasks
            if each.done() and isinstance(each.exception(), MemoryBudgetExceeded)
        ]
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)
        return len(refused)

    assert asyncio.run(run()) == 300 - 256


def test_memory_is_in_use_until_the_last_thread_has_ended() -> None:
    async def run() -> None:
        share, going_on, begun = MemoryShare(10), threading.Event(), threading.Event()
        await share.take(10, monotonic() + HANG)
        lease = MemoryReservation(share, 10)

        def work() -> None:
            begun.set()
            going_on.wait(HANG)

        thread = asyncio.create_task(asyncio.to_thread(lease.run, work))
        await asyncio.to_thread(begun.wait, HANG)
        lease.close()
        assert share.used == 10
        going_on.set()
        await thread
        await asyncio.sleep(0)
        assert share.used == 0

    asyncio.run(run())


@pytest.mark.parametrize("memory", [1, 256, 512, 4096])
def test_the_largest_body_that_is_taken_finds_room(memory: int) -> None:
    budget = MemoryBudget(memory * MIB, 64 * MIB)
    assert budget.most_body <= budget.bodies.size
    assert estimated(b"x" * MIB) * budget.most_body // MIB <= budget.work.size
    assert budget.bodies.size + budget.work.size <= max(memory - 160, 32) * MIB


RULES = """
apiVersion: polyver.dev/v1alpha1
kind: Conversion
metadata: {name: rules.ex.io}
spec:
  group: ex.io
  kind: Rule
  versions: [v1, v2]
  edges:
  - {from: v1, to: v2, rules: [{move: {from: spec.a, to: spec.b}}]}
"""


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[int, str, ssl.SSLContext]]:
    (folder / "rules.yaml").write_text(RULES)
    command = [sys.executable, "-m", "polyver", "serve", "--port", "0", "--linger", "0", *options]
    command += ["-f", str(folder / "rules.yaml"), "--certificates", str(folder / "own")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        host = process.stdout.readline().partition("https://")[2].partition("/")[0]
        try:
            context = ssl.create_default_context(cafile=folder / "own" / "ca.crt")
            yield process.pid, host, context
        finally:
            process.terminate()
            process.wait(HANG)


def test_many_large_reviews_stay_within_the_memory_of_the_process(tmp_path: Path) -> None:
    obj = {"apiVersion": "ex.io/v1", "kind": "Rule", "metadata": {"name": "a"}}
    objects = [obj | {"spec": {"a": "x" * 4000}}] * 3000
    request = {"uid": "1", "desiredAPIVersion": "ex.io/v2", "objects": objects}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
    body = json.dumps(review | {"request": request}).encode()
    with served(tmp_path, "--memory", "224") as (pid, host, context):

        def ask(_: int) -> tuple[int, str | None]:
            connection = http.client.HTTPSConnection(host, context=context, timeout=HANG)
            with closing(connection):
                headers = {"content-type": "application/json"}
                connection.request("POST", "/convert?timeout=20s", body, headers)
                answer = connection.getresponse()
                answer.read()
                return answer.status, answer.getheader("retry-after")

        with ThreadPoolExecutor(12) as threads:
            answers = Counter(threads.map(ask, range(12)))
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert peak is not None
    assert int(peak[1]) < 224 * 1024
    assert set(answers) <= {(200, None), (429, "1"), (504, None)}
    assert answers[200, None], answers
