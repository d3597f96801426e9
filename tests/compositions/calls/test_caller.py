"""Calls of real servers: an answer or a clear error, in time, and nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import grpc
import grpc.aio
import pytest
import uvloop
from tests.compositions.calls.process import echo, hang
from tests.compositions.calls.serving import (
    AUTHORITY,
    LONG_AGO,
    NAME,
    NOW,
    OTHER,
    TRUST,
    V1,
    V1BETA1,
    Context,
    Method,
    at,
    serving,
)
from tests.deadlines import HANG

from polyver.compositions.calls import Caller, CallerLimits, CallFailure, Endpoint, FunctionFailed
from polyver.compositions.calls.protocol import encode_response
from polyver.compositions.messages import (
    Request,
    RequestMeta,
    Resource,
    Response,
    ResponseMeta,
    State,
)
from polyver.kube.http.tls import Pair
from polyver.kube.server import metrics as server_metrics
from polyver.webhook import metrics as webhook_metrics

OBJECT = {"apiVersion": "v1", "kind": "A", "spec": {"size": 3, "ratio": 0.5, "on": True}}
REQUEST = Request(RequestMeta("tag"), State(Resource(OBJECT)))


def run(body: Coroutine[object, object, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(_to_the_end(body), HANG))


async def _to_the_end(body: Coroutine[object, object, None]) -> None:
    """Run until nothing is left to be done."""
    before = asyncio.all_tasks()
    await body
    await eventually(lambda: asyncio.all_tasks() <= before)


@asynccontextmanager
async def calling(limits: CallerLimits | None = None) -> AsyncIterator[Caller]:
    caller = Caller(limits)
    yield caller
    await caller.close()
    assert caller.connections == 0


async def asked(caller: Caller, endpoint: Endpoint, *, within: float = 10) -> str:
    """The tag that came back, or what went wrong."""
    try:
        response = await caller.call(endpoint, REQUEST, within=within)
    except FunctionFailed as error:
        return f"{error.failure}: {error.fact}"
    return response.meta.tag


def answering(content: bytes) -> Method:
    async def answer(request: bytes, context: Context) -> bytes:
        return content

    return answer


def test_what_is_asked_and_answered_arrives_as_it_was() -> None:
    async def body() -> None:
        async with serving({V1: echo}) as address, calling() as caller:
            response = await caller.call(at(address), REQUEST)
        assert response == Response(ResponseMeta("tag"), State(Resource(OBJECT)))
        size = response.desired.composite.resource["spec"]["size"]
        assert type(size) is int

    run(body())


def test_the_endpoint_of_a_deployment_is_called() -> None:
    async def body() -> None:
        async with serving({V1: echo}) as address, calling() as caller:
            assert await asked(caller, at(f"dns:///{address}")) == "tag"

    run(body())


def test_one_connection_serves_many_calls_at_once() -> None:
    peers: set[str] = set()

    async def noted(request: bytes, context: Context) -> bytes:
        peers.add(context.peer())
        return await echo(request, context)

    async def body() -> None:
        async with serving({V1: noted}) as address, calling() as caller:
            calls = [asked(caller, at(address)) for _ in range(100)]
            assert set(await asyncio.gather(*calls)) == {"tag"}
            assert caller.connections == 1

    run(body())
    assert len(peers) == 1


def test_an_older_function_is_called_in_its_version() -> None:
    versions = []

    def noted(version: str) -> Method:
        async def answer(request: bytes, context: Context) -> bytes:
            versions.append(version)
            return await echo(request, context)

        return answer

    async def body() -> None:
        async with calling() as caller:
            async with serving({V1BETA1: noted("v1beta1")}) as address:
                assert [await asked(caller, at(address)) for _ in range(3)] == ["tag"] * 3
            # The same address may serve a newer one later.
            port = int(address.rpartition(":")[2])
            async with serving({V1: noted("v1")}, port=port) as address:
                assert await asked(caller, at(address)) == "tag"

    run(body())
    assert versions == ["v1beta1"] * 3 + ["v1"]


BROKEN = "fn-1 violates the protocol: "


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"\xff",
            "BrokenReply: fn-1 violates the protocol: unexpected EOF",
        ),
        (
            b"\x12\x0c\x12\x0a\x0a\x01b\x12\x05\x0a\x03\x0a\x01\xff",
            f"BrokenReply: {BROKEN}unexpected EOF, at desired.resources[b].resource",
        ),
        (
            b"\x12" + b"\0" * 5000,
            "TooLarge: fn-1 could not be called: the response has 5,001 bytes, "
            "and 4,000 are allowed",
        ),
    ],
)
def test_a_broken_or_huge_answer_is_an_error(content: bytes, said: str) -> None:
    async def body() -> None:
        limits = CallerLimits(most_received=4000)
        async with serving({V1: answering(content)}) as address, calling(limits) as caller:
            assert await asked(caller, at(address)) == said

    run(body())


def test_a_large_answer_is_read_all_the_same() -> None:
    async def body() -> None:
        large = Response(desired=State(Resource({"text": "x" * 500_000, "n": [1] * 20_000})))
        methods = {V1: answering(encode_response(large))}
        async with serving(methods) as address, calling() as caller:
            assert await caller.call(at(address), REQUEST) == large

    run(body())


def test_a_request_that_is_too_large_or_cannot_be_sent_is_not_sent() -> None:
    async def body() -> None:
        async with serving({V1: hang}) as address, calling(CallerLimits(most_sent=100)) as caller:
            large = Request(observed=State(Resource({"a": "x" * 200})))
            with pytest.raises(FunctionFailed, match="has 221 bytes, and 100 are allowed") as one:
                await caller.call(at(address), large)
            odd = Request(desired=State(resources={"b": Resource({"n": [2**60 + 1]})}))
            with pytest.raises(FunctionFailed, match=r"at desired\.resources\[b\]") as other:
                await caller.call(at(address), odd)
        assert (one.value.failure, other.value.failure) == (
            CallFailure.TOO_LARGE,
            CallFailure.UNSENDABLE,
        )

    run(body())


def test_a_function_that_fails_says_so() -> None:
    async def fails(request: bytes, context: Context) -> bytes:
        raise ValueError("no bucket\nhere")

    async def aborts(request: bytes, context: Context) -> bytes:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "quota")

    async def body() -> None:
        async with calling() as caller:
            async with serving({V1: fails}) as address:
                said = await asked(caller, at(address))
                assert said.startswith("Failed: fn-1 failed: UNKNOWN: ")
                assert "no bucket here" in said
            async with serving({V1: aborts}) as address:
                said = await asked(caller, at(address))
                assert said == "Failed: fn-1 failed: RESOURCE_EXHAUSTED: quota"
            async with serving() as address:
                said = await asked(caller, at(address))
                assert said.startswith("BrokenReply: fn-1 does not support the function protocol")

    run(body())


@pytest.mark.parametrize(
    "begin", [b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(3) + b"\4" + bytes(5) + b"\xff" * 99]
)
def test_a_server_that_speaks_something_else_is_told_apart(begin: bytes) -> None:
    async def body() -> None:
        async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(begin)
            with suppress(ConnectionError):
                while await reader.read(1 << 16):
                    await writer.drain()
            writer.close()

        server = await asyncio.start_server(speak, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, calling() as caller:
            said = await asked(caller, at(f"127.0.0.1:{port}", None))
            assert said == "BrokenReply: fn-1 does not speak gRPC"

    run(body())


@pytest.mark.parametrize(
    "address",
    ["", "garbage", "unix:/run/fn", "127.0.0.1:99999", "a:80/b", "dns:///", "dns://x/y:80"],
)
def test_what_is_no_address_is_not_called(address: str) -> None:
    async def body() -> None:
        async with calling() as caller:
            expected = f"Unreachable: fn-1 has no address: {address!r} is not HOST:PORT"
            assert await asked(caller, at(address)) == expected
            assert caller.connections == 0

    run(body())


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (OTHER.server(NAME, now=NOW), "unable to get local issuer certificate"),
        (AUTHORITY.server(NAME, now=LONG_AGO), "certificate has expired"),
        (AUTHORITY.server("fn-2", now=NOW), "has a certificate for another name"),
        (None, "does not speak TLS"),
    ],
)
def test_a_function_that_is_not_believed_is_not_called(shown: Pair | None, said: str) -> None:
    async def body() -> None:
        async with serving({V1: echo}, shown=shown) as address, calling() as caller:
            found = await asked(caller, at(address))
            assert found.startswith("Refused: fn-1 ")
            assert said in found

    run(body())


def test_a_function_that_does_not_believe_the_caller_is_no_riddle() -> None:
    async def body() -> None:
        async with serving({V1: echo}) as address, calling() as caller:
            stranger = replace(TRUST, pair=OTHER.client("polyver", now=NOW))
            said = await asked(caller, at(address, stranger))
            assert said.startswith("Refused: fn-1 closes each connection after the TLS handshake")
            assert await asked(caller, at(address)) == "tag"

    run(body())


def test_silence_ends_with_the_deadline() -> None:
    async def body() -> None:
        async with serving({V1: hang}) as address, calling() as caller:
            said = await asked(caller, at(address), within=0.2)
            assert said == "DeadlineExceeded: fn-1 did not answer within 0.2s"

    run(body())


def test_a_silent_function_holds_up_nobody_else() -> None:
    async def body() -> None:
        async with (
            serving({V1: hang}) as silent,
            serving({V1: echo}) as good,
            calling(CallerLimits(concurrent=2, waiting=1)) as caller,
        ):
            other = Endpoint("fn-2", good, replace(TRUST, name=NAME))
            assert await asked(caller, other) == "tag"
            slow = [asyncio.create_task(asked(caller, at(silent), within=60)) for _ in range(3)]
            await eventually(lambda: caller.metrics.of(NAME).in_flight == 3)
            refused = await asked(caller, at(silent))
            assert refused == "Busy: fn-1 is busy: 1 calls are already waiting"
            assert await asked(caller, other) == "tag"
            slow.pop().cancel()
            await eventually(lambda: caller.metrics.of(NAME).in_flight == 2)
            assert await asked(caller, at(silent), within=0.2) == (
                "DeadlineExceeded: fn-1 could not be called within 0.2s: "
                "2 other calls are in progress"
            )
            for call in slow:
                call.cancel()
            await asyncio.wait(slow)

    run(body())


async def eventually(holds: Any) -> None:
    while not holds():
        await asyncio.sleep(0.005)


def test_when_an_endpoint_moves_new_calls_go_there_and_old_ones_finish() -> None:
    async def body() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow(request: bytes, context: Context) -> bytes:
            begun.set()
            await go_on.wait()
            return encode_response(Response(ResponseMeta("old")))

        async with (
            serving({V1: slow}) as before,
            serving({V1: answering(encode_response(Response(ResponseMeta("new"))))}) as after,
            calling() as caller,
        ):
            old = asyncio.create_task(asked(caller, at(before)))
            await begun.wait()
            assert await asked(caller, at(after)) == "new"
            assert caller.connections == 2
            go_on.set()
            assert await old == "old"
            assert caller.connections == 1

    run(body())


def test_a_renewed_certificate_gets_a_connection_of_its_own() -> None:
    async def body() -> None:
        async with serving({V1: echo}) as address, calling() as caller:
            assert await asked(caller, at(address)) == "tag"
            renewed = replace(TRUST, pair=AUTHORITY.client("polyver", now=NOW))
            assert await asked(caller, at(address, renewed)) == "tag"
            assert caller.connections == 1

    run(body())


def test_a_cancelled_call_ends_on_both_sides() -> None:
    async def body() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def watched(request: bytes, context: Context) -> bytes:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return b""

        async with serving({V1: watched}) as address, calling() as caller:
            call = asyncio.create_task(asked(caller, at(address)))
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await ended.wait()
            assert caller.metrics.of(NAME).in_flight == 0
            assert caller.metrics.of(NAME).calls == 0

    run(body())


def test_whoever_closes_the_caller_ends_its_calls_with_an_error() -> None:
    async def body() -> None:
        begun = asyncio.Event()

        async def watched(request: bytes, context: Context) -> bytes:
            begun.set()
            return await hang(request, context)

        async with serving({V1: watched}) as address, calling() as caller:
            call = asyncio.create_task(asked(caller, at(address)))
            await begun.wait()
            await caller.close()
            said = "Unreachable: fn-1 could not answer: the caller closed the connection"
            assert await call == said

    run(body())


def test_a_call_that_waits_for_its_turn_outlives_its_revision_and_not_the_caller() -> None:
    async def body() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow(request: bytes, context: Context) -> bytes:
            begun.set()
            await go_on.wait()
            return await echo(request, context)

        async with serving({V1: slow}) as address, calling(CallerLimits(concurrent=1)) as caller:
            calls = [asyncio.create_task(asked(caller, at(address))) for _ in range(2)]
            await begun.wait()
            await caller.forget(NAME)
            assert caller.connections == 1
            go_on.set()
            assert await asyncio.gather(*calls) == ["tag", "tag"]
            assert caller.connections == 0
            begun.clear()
            go_on.clear()
            calls = [asyncio.create_task(asked(caller, at(address))) for _ in range(2)]
            await begun.wait()
            await caller.close()
            said = "Unreachable: fn-1 could not answer: the caller closed the connection"
            assert await asyncio.gather(*calls) == [said, said]

    run(body())
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, grpc.aio.Channel)]


def test_a_function_that_comes_back_is_called_again() -> None:
    async def body() -> None:
        async with calling() as caller:
            async with serving({V1: echo}) as address:
                assert await asked(caller, at(address)) == "tag"
            gone = "Unreachable: fn-1 is not reachable: nothing listens at its address"
            assert await asked(caller, at(address)) == gone
            port = int(address.rpartition(":")[2])
            async with serving({V1: echo}, port=port):
                # Each call is one attempt, and a busy machine may refuse the first ones.
                while (answer := await asked(caller, at(address))) == gone:
                    await asyncio.sleep(0.05)
                assert answer == "tag"

    run(body())


def test_calls_are_counted_for_each_revision() -> None:
    async def body() -> None:
        async with serving({V1: echo}) as address, calling() as caller:
            await asked(caller, at(address))
            await asked(caller, at("127.0.0.1:1"))
            counts = caller.metrics.of(NAME)
            assert counts.results == {"Success": 1, "Unreachable": 1}
            assert (counts.calls, counts.failures) == (2, 1)
            also = [caller.metrics.collector]
            for response in (
                server_metrics.ApiServerMetrics(also=also).response(),
                webhook_metrics.WebhookMetrics(also=also).response(),
            ):
                assert isinstance(response.body, bytes)
                text = response.body.decode()
                assert 'polyver_function_calls_total{result="Success",revision="fn-1"} 1.0' in text
                assert 'polyver_function_call_seconds_count{revision="fn-1"} 2.0' in text
                assert 'polyver_function_calls_in_flight{revision="fn-1"} 0.0' in text
            await caller.forget(NAME)
            assert caller.connections == 0
            assert NAME not in dict(caller.metrics)

    run(body())


def test_nothing_is_left_of_many_callers() -> None:
    async def once() -> None:
        async with serving({V1: echo}) as address, calling() as caller:
            assert await asked(caller, at(address)) == "tag"

    run(once())
    before = threading.active_count()
    for _ in range(5):
        run(once())
    gc.collect()
    assert threading.active_count() <= before + 1
    assert not [each for each in gc.get_objects() if isinstance(each, grpc.aio.Channel)]
