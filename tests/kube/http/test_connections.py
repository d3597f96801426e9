"""What clients see of a connection, whoever answers and however their bytes arrive."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.deadlines import HANG

from polyver.kube.http import connections
from polyver.kube.http.http import EncodedResponse, Quick, Receive, RequestHeaders, Scope, Send
from polyver.kube.http.listener import bind, serving

PATIENCE = HANG
TEXT = b"content-type: text/plain\r\n"


class House:
    """Says who answered, and what was asked."""

    def __init__(self) -> None:
        self.at_once_asked = 0
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.ending: asyncio.Task[bytes] | None = None
        """A client that reads on when the house is closed."""

    def at_once(self, head: RequestHeaders) -> Quick | None:
        if not head.path.startswith("/quick"):
            self.at_once_asked += 1
            return None
        length = int(head.query or 0)

        def quick(body: bytes | bytearray) -> EncodedResponse:
            self.at_once_asked += 1
            told = b"%b %b %d" % (head.method.encode(), bytes(body[:20]), len(body))
            return EncodedResponse(200, TEXT, told + b"x" * length)

        return quick

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun.set()
        if scope["path"] == "/wait":
            await self.go_on.wait()
        if scope["path"] == "/raises":
            raise ValueError
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size, more = size + len(message["body"]), message["more_body"]
        named = b",".join(name for name, _ in scope["headers"])
        body = b"app %b %d %b" % (scope["path"].encode(), size, named)
        value = b"a\r\nset-cookie: b" if scope["path"] == "/splits" else b"text/plain"
        headers = [(b"content-type", value)]
        if scope["path"] != "/streams":
            headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, sent: bytes) -> None:
        self.writer.write(sent)

    async def head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def answer(self) -> bytes:
        """The body of one answer that says how long it is."""
        length = re.search(rb"content-length: (\d+)", await self.head())
        assert length
        return await self.reader.readexactly(int(length[1]))

    async def rest(self) -> bytes:
        """Everything until the other side closes."""
        return await self.reader.read()


Connect = Callable[[], Awaitable[Client]]


@asynccontextmanager
async def served(house: House) -> AsyncIterator[Connect]:
    listener = bind("127.0.0.1", 0)
    host, port = listener.getsockname()
    opened: list[Client] = []

    async def connect() -> Client:
        opened.append(Client(*await asyncio.open_connection(host, port)))
        return opened[-1]

    async with asyncio.timeout(PATIENCE):
        async with serving(house, listener, None, at_once=house.at_once):
            yield connect
        if house.ending is not None:
            await asyncio.wait([house.ending])
        for each in opened:
            each.writer.close()


def run(test: Callable[[House, Connect], Awaitable[None]]) -> None:
    async def running() -> None:
        house = House()
        async with served(house) as connect:
            await test(house, connect)

    asyncio.run(running())


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


# Who answers.


def test_what_is_whole_is_answered_at_once_and_keeps_the_connection() -> None:
    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        for _ in range(3):
            client.send(post("/quick", b"abc"))
            head = await client.head()
            assert head.startswith(b"HTTP/1.1 200 OK\r\ndate: ")
            assert b"GMT\r\n" + TEXT + b"content-length: 10\r\n\r\n" in head
            assert await client.reader.readexactly(10) == b"POST abc 3"
        assert not house.begun.is_set()

    run(test)


def test_what_is_not_for_at_once_reaches_the_application_whole() -> None:
    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        client.send(post("/slow", b"abc", "A: b"))
        assert await client.answer() == b"app /slow 3 host,content-length,a"
        assert house.at_once_asked == 1

    run(test)


def test_a_large_body_is_not_held_for_an_answer_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_HELD", 1000)
    body = b"x" * 1_000_000

    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        client.send(post("/quick", body))
        assert (await client.answer()).startswith(b"app /quick 1000000 ")
        client.send(post("/quick", b"small"))
        assert await client.answer() == b"POST small 5"

    run(test)


def test_many_bodies_together_are_not_held_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_HELD_BY_ALL", 1000)

    async def test(house: House, connect: Connect) -> None:
        first, second = await connect(), await connect()
        first.send(post("/quick", b"x" * 900)[:-1])
        second.send(post("/quick", b"x" * 900)[:-1])
        await house.begun.wait()
        first.send(b"x")
        second.send(b"x")
        found = {(await each.answer())[:4] for each in (first, second)}
        assert found == {b"app ", b"POST"}
        # What was held is given back.
        first.send(post("/quick", b"x" * 900))
        assert (await first.answer()).startswith(b"POST")

    run(test)


def test_clients_that_leave_give_back_what_was_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_HELD_BY_ALL", 1000)

    async def test(house: House, connect: Connect) -> None:
        leaving = await connect()
        leaving.send(post("/quick", b"x" * 999)[:-1])
        await leaving.writer.drain()
        leaving.writer.close()
        await leaving.writer.wait_closed()
        client = await connect()
        house.begun.clear()
        while True:  # until the server has noticed
            client.send(post("/quick", b"x" * 900)[:-1])
            await asyncio.sleep(0.01)
            client.send(b"x")
            if (await client.answer()).startswith(b"POST"):
                return

    run(test)


# How requests come.


def test_a_body_in_chunks_is_whole_and_what_follows_it_is_no_header() -> None:
    async def test(house: House, connect: Connect) -> None:
        head = b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunks = b"3\r\nabc\r\n2\r\nde\r\n0\r\nX-Remote-User: me\r\n\r\n"
        client = await connect()
        client.send(b"POST /quick" + head + chunks)
        assert await client.answer() == b"POST abcde 5"
        client.send(b"POST /slow" + head + chunks)
        assert await client.answer() == b"app /slow 5 host,transfer-encoding"

    run(test)


def test_a_client_that_waits_for_it_is_told_to_go_on() -> None:
    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        sent = post("/quick", b"abc", "Expect: 100-continue")
        client.send(sent[:-3])
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(sent[-3:])
        assert (await client.answer()).startswith(b"app /quick 3 ")

    run(test)


@pytest.mark.parametrize("path", ["/quick", "/slow"])
@pytest.mark.parametrize("old", [True, False])
def test_a_connection_that_is_not_to_last_is_closed_behind_the_answer(path: str, old: bool) -> None:
    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        sent = post(path, b"abc", *([] if old else ["Connection: close"]))
        client.send(sent.replace(b"HTTP/1.1", b"HTTP/1.0") if old else sent)
        client.send(post(path, b"abc"))
        found = await client.rest()
        assert found.count(b"HTTP/1.1") == 1
        assert b"connection: close\r\n" in found

    run(test)


def test_streams_for_old_clients_end_with_the_connection() -> None:
    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        client.send(b"GET /streams HTTP/1.0\r\n\r\n")
        found = await client.rest()
        assert b"chunked" not in found
        assert found.endswith(b"\r\n\r\napp /streams 0 ")

    run(test)


def test_head_has_the_length_and_no_body() -> None:
    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        client.send(b"HEAD /quick HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"content-length: 7\r\n" in await client.head()
        client.send(post("/quick", b""))
        assert await client.answer() == b"POST  0"

    run(test)


PATHS = ("/quick", "/slow", "/streams")


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(PATHS), st.binary(max_size=40)), min_size=1, max_size=8),
    st.lists(st.integers(1, 120), min_size=1, max_size=20),
)
def test_however_bytes_arrive_answers_come_in_order(
    asked: list[tuple[str, bytes]], pieces: list[int]
) -> None:
    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        sent = b"".join(post(path, body) for path, body in asked)
        start = 0
        for size in pieces:
            client.send(sent[start : start + size])
            start += size
            await asyncio.sleep(0)
        client.send(sent[start:])
        for path, body in asked:
            if path == "/quick":
                assert await client.answer() == b"POST %b %d" % (body[:20], len(body))
            elif path == "/slow":
                assert (await client.answer()).startswith(b"app /slow %d " % len(body))
            else:
                await client.head()
                chunk = await client.reader.readuntil(b"\r\n0\r\n\r\n")
                assert b"app /streams %d " % len(body) in chunk

    run(test)


# Who is in the way.


def test_a_client_that_does_not_read_is_not_answered_without_end() -> None:
    async def test(house: House, connect: Connect) -> None:
        deaf = await connect()
        deaf.writer.transport.set_write_buffer_limits(0)
        deaf.reader._transport.pause_reading()  # type: ignore[attr-defined]
        deaf.send(post("/quick?1000000", b"") * 2000)
        other = await connect()
        for _ in range(200):
            other.send(post("/quick", b"abc"))
            assert await other.answer() == b"POST abc 3"
        # Each answer is a megabyte: only what fits into the system's buffers is made.
        assert house.at_once_asked < 400
        deaf.writer.transport.abort()

    run(test)


def test_what_is_no_request_does_not_spoil_the_answer_before_it() -> None:
    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        client.send(post("/wait", b"abc") + b"nonsense\r\n\r\n")
        await house.begun.wait()
        house.go_on.set()
        found = await client.rest()
        assert found.count(b"HTTP/1.1") == 1
        assert b"app /wait 3 " in found
        client = await connect()
        client.send(post("/quick", b"abc") + b"nonsense\r\n\r\n")
        assert b"POST abc 3" in await client.rest()

    run(test)


@pytest.mark.parametrize("path", ["/quick", "/slow"])
def test_a_body_that_is_broken_is_refused(path: str) -> None:
    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        client.send(f"POST {path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".encode())
        assert (await client.rest()).startswith(b"HTTP/1.1 400 Bad Request\r\n")

    run(test)


@pytest.mark.parametrize("path", ["/raises", "/splits"])
def test_an_application_that_fails_is_no_secret_and_nothing_is_split(path: str) -> None:
    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        client.send(post(path, b""))
        found = await client.rest()
        assert found.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
        assert b"cookie" not in found

    run(test)


def test_connections_that_nobody_uses_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_KEEP_ALIVE", 0.05)
    monkeypatch.setattr(connections, "_REQUEST", 0.05)

    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        client.send(post("/quick", b"abc"))
        assert (await client.rest()).endswith(b"POST abc 3")
        waiting = await connect()
        waiting.send(post("/wait", b"abc"))
        await house.begun.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting.reader.read(1), 0.2)
        house.go_on.set()
        waiting.send(post("/quick", b"abc")[:-1])
        assert (await waiting.rest()).count(b"HTTP/1.1") == 1

    run(test)


def test_at_the_end_what_has_begun_to_come_is_answered() -> None:
    async def running() -> None:
        house = House()
        async with served(house) as connect:
            client, idle = await connect(), await connect()
            for each in (client, idle):
                each.send(post("/quick", b"abc"))
                await each.answer()
            client.send(post("/quick", b"abc")[:-1])
            for _ in range(3):
                idle.send(post("/quick", b"abc"))
                await idle.answer()

            async def late() -> bytes:
                assert await idle.rest() == b""  # the end has begun
                client.send(b"c")
                return await client.rest()

            house.ending = asyncio.create_task(late())
        assert b"app /quick 3 " in house.ending.result()

    asyncio.run(running())


# The Host header.


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("", "missing required Host header"),
        ("Host: x\r\nHost: x\r\n", "too many Host headers"),
        ("Host: x\r\nhOST: y\r\n", "too many Host headers"),
        ("Host: x/y\r\n", "malformed Host header"),
    ],
)
@pytest.mark.parametrize("path", ["/quick", "/slow"])
def test_a_request_has_one_host(path: str, lines: str, problem: str) -> None:
    async def test(house: House, connect: Connect) -> None:
        client = await connect()
        for _ in range(2):  # the second head is known by its bytes
            client.send(post(path, b"abc"))
            await client.answer()
        asked = house.at_once_asked
        client.send(f"POST {path} HTTP/1.1\r\n{lines}Content-Length: 3\r\n\r\nabc".encode())
        answer = await client.rest()
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert answer.endswith(f"400 Bad Request: {problem}".encode())
        assert house.at_once_asked == asked

    run(test)


def test_old_clients_name_no_host() -> None:
    async def test(_: House, connect: Connect) -> None:
        client = await connect()
        client.send(b"POST /slow HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc")
        assert b"app /slow 3" in await client.rest()

    run(test)


def test_what_came_before_a_request_without_a_host_is_answered() -> None:
    async def test(_: House, connect: Connect) -> None:
        client = await connect()
        client.send(post("/quick", b"abc") + b"GET /quick HTTP/1.1\r\n\r\n")
        answer = await client.rest()
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"POST abc 3" in answer

    run(test)
