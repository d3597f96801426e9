"""What calls of a function cost: one from examples/revisions, over mTLS and one connection.

The peer is a caller made with the SDK's own messages, in the function's environment. Objects are
turned into messages and back by both. Only ratios of CPU time mean something on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.rows import Row, say

from polyver.compositions.calls import (
    Caller,
    CallerLimits,
    CertificateFolder,
    Endpoint,
    FunctionFailed,
    probe,
)
from polyver.compositions.messages import Request, RequestMeta, Resource, State

ROOT = Path(__file__).parents[1]
FUNCTION = ROOT / "examples" / "revisions" / "bucket-0.2"
ENVIRONMENT = Path.home() / ".cache" / "polyver" / "bench" / "bucket-0.2"
REVISION = "function-bucket-2"
CONCURRENT = (1, 8, 32)
CALLS, ROUNDS = 600, 3


def bucket() -> dict[str, Any]:
    """An object of about 5 KB, as a cluster has it."""
    fields: dict[str, Any] = {f"f:field{n}": {"f:a": {}, "f:b": {}} for n in range(40)}
    conditions = [
        {"type": kind, "status": "True", "reason": "Fine", "message": "nothing is wrong with it"}
        for kind in ("Ready", "Synced", "Healthy")
    ]
    return {
        "apiVersion": "custom-api.example.org/v1alpha1",
        "kind": "AcmeBucket",
        "metadata": {
            "name": "my-bucket",
            "uid": "0b5a4b0e-5a3c-4c1e-9d5f-1f6f1f3e6a10",
            "generation": 3,
            "labels": {f"example.org/label-{n}": f"value-{n}" for n in range(8)},
            "annotations": {f"example.org/note-{n}": "words " * 10 for n in range(8)},
            "managedFields": [{"manager": "polyver", "operation": "Apply", "fieldsV1": fields}],
        },
        "spec": {
            "region": "eu-north",
            "gigabytes": 20,
            "readers": [f"reader-{n}" for n in range(20)],
            "rules": [{"name": f"rule-{n}", "days": n, "enabled": True} for n in range(20)],
        },
        "status": {"conditions": conditions},
    }


def environment(folder: Path) -> Path:
    """The Python of an environment in which the function is installed."""
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing {FUNCTION.name} into {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", FUNCTION], check=True)
    return python


@contextmanager
def served(python: Path, files: Path) -> Iterator[str]:
    """The address of the function, while it runs."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    flags = ("--address", address, "--tls-certs-dir", str(files))
    process = subprocess.Popen([python, "-m", "function.main", *flags], cwd=files)
    try:
        yield address
    finally:
        process.terminate()
        process.wait()


async def answers(endpoint: Endpoint) -> None:
    for _ in range(100):
        try:
            return await probe(endpoint)
        except FunctionFailed:
            await asyncio.sleep(0.1)
    raise SystemExit("the function does not answer")


async def measured(
    call: Callable[[], Awaitable[object]], concurrent: int, calls: int
) -> dict[str, float]:
    """Calls in a second, how long one in two and 99 in 100 take at most, and CPU of each."""
    times: list[float] = []
    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            start = time.perf_counter()
            await call()
            times.append(time.perf_counter() - start)

    before, start = _cpu(), time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(concurrent)))
    seconds, cpu = time.perf_counter() - start, _cpu() - before
    times.sort()
    return {
        "rate": calls / seconds,
        "p50": times[len(times) // 2],
        "p99": times[len(times) * 99 // 100],
        "cpu": cpu / calls,
    }


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def ours(endpoint: Endpoint, calls: int) -> list[dict[str, float]]:
    await answers(endpoint)
    caller = Caller(CallerLimits(concurrent=max(CONCURRENT)))
    request = Request(RequestMeta("bench"), State(Resource(bucket())))

    async def call() -> None:
        response = await caller.call(endpoint, request)
        assert set(response.desired.resources) == {"settings", "access"}

    await measured(call, 8, 100)
    found = [await measured(call, concurrent, calls) for concurrent in CONCURRENT]
    await caller.close()
    return found


def peer(python: Path, endpoint: Endpoint, calls: int) -> list[dict[str, float]]:
    trust = endpoint.trust
    assert trust is not None
    asked = {
        "address": endpoint.address,
        "name": trust.name,
        "bundle": trust.bundle.decode(),
        "certificate": trust.pair.certificate.decode(),
        "key": trust.pair.key.decode(),
        "bucket": bucket(),
        "concurrent": CONCURRENT,
        "calls": calls,
    }
    command = [python, ROOT / "bench" / "calling_peer.py"]
    done = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    found: list[dict[str, float]] = json.loads(done.stdout)
    return found


def rounds(python: Path, calls: int, count: int) -> list[tuple[list[dict[str, float]], ...]]:
    """What both took, in turns, so that both meet the same neighbours."""
    now = datetime.datetime.now(datetime.UTC)
    with tempfile.TemporaryDirectory() as folder:
        certificates = CertificateFolder(Path(folder))
        files = certificates.issue(REVISION, now=now).folder
        with served(python, files) as address:
            endpoint = Endpoint(REVISION, address, certificates.trust(REVISION, now=now))
            return [
                (asyncio.run(ours(endpoint, calls)), peer(python, endpoint, calls))
                for _ in range(count)
            ]


def rows(*, quick: bool = False) -> Iterator[Row]:
    say(f"{CALLS} calls by each, {', '.join(map(str, CONCURRENT))} at once")
    taken = rounds(environment(ENVIRONMENT), CALLS, ROUNDS if quick else ROUNDS + 2)
    for at, concurrent in enumerate(CONCURRENT):
        own, theirs = (tuple(found[side][at]["cpu"] * 1e3 for found in taken) for side in range(2))
        name = f"call of a function with 4 KB over mTLS, {concurrent} at once, CPU of the caller"
        yield Row(name=name, unit="ms", ours=own, peer="SDK", theirs=theirs, goal=1)


def best(rounds: Sequence[list[dict[str, float]]]) -> list[dict[str, float]]:
    """For each number of calls at the same time, the round that took the least CPU."""
    return [min(found, key=lambda each: each["cpu"]) for found in zip(*rounds, strict=True)]


def shown(name: str, concurrent: int, found: dict[str, float]) -> str:
    p50, p99, cpu = (f"{found[each] * 1e3:8.2f}" for each in ("p50", "p99", "cpu"))
    return f"{name:>8} {concurrent:>4} {found['rate']:8.0f} {p50} {p99} {cpu}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, default=ENVIRONMENT)
    parser.add_argument("--calls", type=int, default=CALLS)
    given = parser.parse_args()
    python = environment(given.environment)
    taken = rounds(python, given.calls, ROUNDS)
    own, theirs = (best(each) for each in zip(*taken, strict=True))
    print(f"an object of {len(json.dumps(bucket())):,} bytes; times in ms")
    print(f"{'':>8} {'at':>4} {'calls/s':>8} {'p50':>8} {'p99':>8} {'CPU':>8}")
    for concurrent, one, other in zip(CONCURRENT, own, theirs, strict=True):
        print(shown("polyver", concurrent, one))
        print(shown("SDK", concurrent, other), f"  {other['cpu'] / one['cpu']:.1f}×")


if __name__ == "__main__":
    main()
