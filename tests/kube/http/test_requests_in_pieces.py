"""What happens to requests that come in pieces, and to what comes meanwhile."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest
from tests.kube.http.wires import FIRST, PLAIN, House, Wire, settled

from polyver.kube.http import connections
from polyver.kube.http.connections import ServerState
from polyver.kube.http.http import EncodedResponse, Quick, RequestHeaders


class Broken(Exception):
    """What a connection ends with."""


def run(test: Callable[[ServerState, Wire], Awaitable[None]]) -> None:
    """With a connection over which two requests were answered."""

    async def running() -> None:
        house = House()
        server_state = ServerState(house, house.at_once, lambda _: {})
        wire = Wire(server_state)
        for _ in range(2):
            wire.send(FIRST)
        wire.written.clear()
        await test(server_state, wire)
        wire.lose()
        await settled(server_state)
        assert (server_state.held, server_state.tasks, server_state.connections) == (
            0,
            set(),
            set(),
        )
        server_state.close()

    asyncio.run(running())


@pytest.mark.parametrize(
    "pieces",
    [
        [PLAIN[0](5) + b"slow1", PLAIN[0](1) + b"2", PLAIN[0](1), b"3"],
        [PLAIN[0](1) + b"1" + PLAIN[0](2) + b"22", PLAIN[0](3) + b"333"],
    ],
)
def test_nobody_is_answered_before_those_who_asked_earlier(pieces: list[bytes]) -> None:
    async def test(server_state: ServerState, wire: Wire) -> None:
        for each in pieces:
            wire.send(each)
        await settled(server_state)
        sizes = [int(each) for each in re.findall(rb"POST /quick b'' (\d)", wire.written)]
        assert sizes in ([5, 1, 1], [1, 2, 3])

    run(test)


def test_at_the_end_a_body_is_waited_for_and_answered() -> None:
    async def test(server_state: ServerState, wire: Wire) -> None:
        wire.send(PLAIN[0](3) + b"a")
        wire.connection.shutdown()
        await settled(server_state)
        assert server_state.tasks, "the server waits for those"
        assert not wire.closed
        wire.send(b"bc" + PLAIN[0](3))
        await settled(server_state)
        assert wire.written.count(b"HTTP/1.1") == 1
        assert b"connection: close\r\n" in wire.written
        assert b"app POST /quick b'' 3 " in wire.written
        assert wire.closed

    run(test)


@pytest.mark.parametrize("come", [0, len(PLAIN[0](3)) + 1])
def test_a_client_that_does_not_read_is_written_nothing(come: int) -> None:
    async def test(server_state: ServerState, wire: Wire) -> None:
        sent = PLAIN[0](3) + b"abc"
        wire.send(sent[:come])
        wire.connection.pause_writing()
        wire.send(sent[come:])
        await settled(server_state)
        assert wire.written == b""
        wire.connection.resume_writing()
        await settled(server_state)
        assert b"app POST /quick b'' 3 " in wire.written

    run(test)


def test_behind_the_end_nothing_is_answered() -> None:
    async def test(server_state: ServerState, wire: Wire) -> None:
        asked: list[RequestHeaders] = []
        server_state.at_once = asked.append
        wire.connection.shutdown()
        assert wire.closed
        wire.send_late(PLAIN[0](3) + b"abc")
        assert asked == []

    run(test)


Pass = Callable[[ServerState, float], Awaitable[None]]


@pytest.fixture
def time_passes(monkeypatch: pytest.MonkeyPatch) -> Pass:
    """Let it be so many seconds later, for the loop."""

    async def let(server_state: ServerState, seconds: float) -> None:
        now = server_state.loop.time
        monkeypatch.setattr(server_state.loop, "time", lambda: now() + seconds)
        await settled(server_state)

    return let


def test_a_body_that_does_not_come_is_not_waited_for(time_passes: Pass) -> None:
    async def test(server_state: ServerState, wire: Wire) -> None:
        await time_passes(server_state, 100)
        wire.send(PLAIN[0](3) + b"ab")
        await time_passes(server_state, 50)
        assert not wire.closed
        await time_passes(server_state, 50)
        assert wire.aborted
        assert wire.written == b""

    run(test)


@pytest.mark.parametrize("pieces", [[PLAIN[0](3) + b"abc"], [PLAIN[0](3), b"abc"]])
def test_a_connection_that_is_used_stays(pieces: list[bytes], time_passes: Pass) -> None:
    async def test(server_state: ServerState, wire: Wire) -> None:
        for _ in range(5):
            await time_passes(server_state, 100)
            assert not wire.closed
            for each in pieces:
                wire.send(each)
        await time_passes(server_state, 130)
        assert (wire.closed, wire.aborted) == (True, False)

    run(test)


def test_bodies_that_are_waited_for_are_counted_as_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_HELD_BY_ALL", 1000)

    async def test(server_state: ServerState, wire: Wire) -> None:
        others = [Wire(server_state) for _ in range(3)]
        for each in others:
            each.send(FIRST)
            each.send(PLAIN[0](900) + b"a" * 400)
        assert server_state.held == 3 * 400
        await settled(server_state)
        assert server_state.held == 2 * 400, "the last is given to the application"
        for each in others:
            each.send(b"b" * 500)
            await settled(server_state)
        said = [b"at once", b"at once", b"app"]
        for each, who in zip(others, said, strict=True):
            assert who + b" POST /quick b'' 900 " in each.written
            each.lose()

    run(test)


@pytest.mark.parametrize("pieces", [[b"abc"], [b"ab", b"c"]])
def test_one_that_fails_leaves_nothing_behind(pieces: list[bytes]) -> None:
    async def test(server_state: ServerState, wire: Wire) -> None:
        def fails(_: bytes | bytearray) -> EncodedResponse:
            raise Broken

        def at_once(_: RequestHeaders) -> Quick:
            return fails

        server_state.at_once = at_once
        with pytest.raises(Broken):  # noqa: PT012 - it is the last piece that raises
            for each in (PLAIN[0](3) + pieces[0], *pieces[1:]):
                wire.send(each)

    run(test)


def test_empty_lines_between_requests_are_no_long_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_HEADER_BYTES", 200)

    async def test(server_state: ServerState, wire: Wire) -> None:
        for _ in range(200):
            wire.send(PLAIN[0](3) + b"abc")
            wire.send(b"\r\n")
        head = PLAIN[1](0)
        wire.send(head[:20])
        wire.send(head[20:])
        assert wire.written.count(b"HTTP/1.1 200") == 201

    run(test)
