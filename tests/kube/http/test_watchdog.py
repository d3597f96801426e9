"""An event loop that is held is measured, and the log names the request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from polyver.kube.http.http import Receive, Scope, Send
from polyver.kube.http.listener import bind, serving
from polyver.kube.http.watchdog import Watchdog, watchdog
from polyver.kube.http.worker_threads import off_loop

HANGS = 120.0


def work(seconds: float) -> None:
    """Use the CPU of this thread for so long."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    if scope["path"] == "/holds":
        work(1.2)
    if scope["path"] == "/works":
        await off_loop(lambda: work(1.2))
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


def run(test: Callable[[Callable[[str], Awaitable[None]], Watchdog], Awaitable[None]]) -> None:
    async def main() -> None:
        listener = bind("127.0.0.1", 0)
        host, port = listener.getsockname()

        async def ask(path: str) -> None:
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            assert (await reader.read()).endswith(b"ok")
            writer.close()

        async with asyncio.timeout(HANGS), serving(app, listener, None):
            dog = watchdog()
            assert dog is not None
            await test(ask, dog)

    asyncio.run(main())


def slow(dog: Watchdog) -> float:
    """How many of the answers of the loop took more than half a second."""
    buckets = dict(dog.lags.buckets())
    return buckets["+Inf"] - buckets["0.5"]


def test_a_request_that_holds_the_loop_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    async def test(ask: Callable[[str], Awaitable[None]], dog: Watchdog) -> None:
        await ask("/holds")
        while not slow(dog):
            await asyncio.sleep(0.01)

    run(test)
    said = capfd.readouterr().err
    assert "the event loop was blocked" in said
    assert "GET /holds at" in said


def test_work_off_the_loop_does_not_hold_it(capfd: pytest.CaptureFixture[str]) -> None:
    async def test(ask: Callable[[str], Awaitable[None]], dog: Watchdog) -> None:
        before = dict(dog.lags.buckets())["+Inf"]
        await ask("/works")
        assert dict(dog.lags.buckets())["+Inf"] > before + 2

    run(test)
    assert "the event loop was blocked" not in capfd.readouterr().err


def test_work_that_takes_too_long_is_stopped() -> None:
    running = []

    def endless() -> None:
        while True:
            running.append(1)

    async def test(_: Callable[[str], Awaitable[None]], __: Watchdog) -> None:
        with pytest.raises(TimeoutError):
            await off_loop(endless, seconds=0.1)
        while True:
            seen = len(running)
            await asyncio.sleep(0.2)
            if len(running) == seen:
                return

    run(test)
