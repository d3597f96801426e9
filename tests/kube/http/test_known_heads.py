"""What happens to requests whose heads were read before, and which heads are known at all."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest
from tests.kube.http.wires import FIRST, PLAIN, House, Wire, settled

from polyver.kube.http import connections
from polyver.kube.http.connections import Hall
from polyver.kube.http.heads import KnownHeads
from polyver.kube.http.http import Answer

# What may happen meanwhile.


class Broken(Exception):
    """What a connection ends with."""


def run(test: Callable[[Hall, Wire], Awaitable[None]]) -> None:
    """With a connection whose first head is known, and nothing else sent."""

    async def running() -> None:
        house = House()
        hall = Hall(house, house.at_once, lambda _: {})
        wire = Wire(hall)
        for _ in range(2):
            wire.send(FIRST)
        wire.written.clear()
        await test(hall, wire)
        wire.lose()
        await settled(hall)
        assert (hall.held, hall.tasks, hall.connections) == (0, set(), set())
        hall.close()

    asyncio.run(running())


@pytest.mark.parametrize(
    "pieces",
    [
        [PLAIN[0](5) + b"slow1", PLAIN[0](1) + b"2", PLAIN[0](1), b"3"],
        [PLAIN[0](1) + b"1" + PLAIN[0](2) + b"22", PLAIN[0](3) + b"333"],
    ],
)
def test_nobody_is_answered_before_those_who_asked_earlier(pieces: list[bytes]) -> None:
    async def test(hall: Hall, wire: Wire) -> None:
        for each in pieces:
            wire.send(each)
        await settled(hall)
        sizes = [int(each) for each in re.findall(rb"POST /quick b'' (\d)", wire.written)]
        assert sizes in ([5, 1, 1], [1, 2, 3])

    run(test)


def test_at_the_end_a_body_is_waited_for_and_answered() -> None:
    async def test(hall: Hall, wire: Wire) -> None:
        wire.send(PLAIN[0](3) + b"a")
        wire.connection.shutdown()
        await settled(hall)
        assert hall.tasks, "the server waits for those"
        assert not wire.closed
        wire.send(b"bc" + PLAIN[0](3))
        await settled(hall)
        assert wire.written.count(b"HTTP/1.1") == 1
        assert b"connection: close\r\n" in wire.written
        assert b"app POST /quick b'' 3 " in wire.written
        assert wire.closed

    run(test)


@pytest.mark.parametrize("come", [0, len(PLAIN[0](3)) + 1])
def test_a_client_that_does_not_read_is_written_nothing(come: int) -> None:
    async def test(hall: Hall, wire: Wire) -> None:
        sent = PLAIN[0](3) + b"abc"
        wire.send(sent[:come])
        wire.connection.pause_writing()
        wire.send(sent[come:])
        await settled(hall)
        assert wire.written == b""
        wire.connection.resume_writing()
        await settled(hall)
        assert b"app POST /quick b'' 3 " in wire.written

    run(test)


def test_behind_the_end_nothing_is_answered() -> None:
    async def test(hall: Hall, wire: Wire) -> None:
        asked: list[bytes | bytearray] = []
        for known in hall.heads.values():
            known.quick = asked.append
        wire.connection.shutdown()
        assert wire.closed
        wire.send_late(PLAIN[0](3) + b"abc")
        assert asked == []

    run(test)


Pass = Callable[[Hall, float], Awaitable[None]]


@pytest.fixture
def time_passes(monkeypatch: pytest.MonkeyPatch) -> Pass:
    """Let it be so many seconds later, for the loop."""

    async def let(hall: Hall, seconds: float) -> None:
        now = hall.loop.time
        monkeypatch.setattr(hall.loop, "time", lambda: now() + seconds)
        await settled(hall)

    return let


def test_a_body_that_does_not_come_is_not_waited_for(time_passes: Pass) -> None:
    async def test(hall: Hall, wire: Wire) -> None:
        await time_passes(hall, 100)
        wire.send(PLAIN[0](3) + b"ab")
        await time_passes(hall, 50)
        assert not wire.closed
        await time_passes(hall, 50)
        assert wire.aborted
        assert wire.written == b""

    run(test)


@pytest.mark.parametrize("pieces", [[PLAIN[0](3) + b"abc"], [PLAIN[0](3), b"abc"]])
def test_a_connection_that_is_used_stays(pieces: list[bytes], time_passes: Pass) -> None:
    async def test(hall: Hall, wire: Wire) -> None:
        for _ in range(5):
            await time_passes(hall, 100)
            assert not wire.closed
            for each in pieces:
                wire.send(each)
        await time_passes(hall, 130)
        assert (wire.closed, wire.aborted) == (True, False)

    run(test)


def test_bodies_that_are_waited_for_are_counted_as_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_HELD_BY_ALL", 1000)

    async def test(hall: Hall, wire: Wire) -> None:
        others = [Wire(hall) for _ in range(3)]
        for each in others:
            each.send(FIRST)
            each.send(PLAIN[0](900) + b"a")
        assert hall.held == 900 + 1 + 1
        for each in others:
            each.send(b"b" * 899)
            assert b"at once POST /quick b'' 900 " in each.written
            each.lose()

    run(test)


@pytest.mark.parametrize("pieces", [[b"abc"], [b"ab", b"c"]])
def test_one_that_fails_leaves_nothing_behind(pieces: list[bytes]) -> None:
    async def test(hall: Hall, wire: Wire) -> None:
        def fails(_: bytes | bytearray) -> Answer:
            raise Broken

        for known in hall.heads.values():
            known.quick = fails
        with pytest.raises(Broken):  # noqa: PT012 - it is the last piece that raises
            for each in (PLAIN[0](3) + pieces[0], *pieces[1:]):
                wire.send(each)

    run(test)


def test_empty_lines_between_requests_are_no_long_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_HEAD", 200)

    async def test(hall: Hall, wire: Wire) -> None:
        for _ in range(200):
            wire.send(PLAIN[0](3) + b"abc")
            wire.send(b"\r\n")
        head = PLAIN[1](0)
        wire.send(head[:20])
        wire.send(head[20:])
        assert wire.written.count(b"HTTP/1.1 200") == 201

    run(test)


# What is known.

HOST = (b"host", b"x")
SHORT = (b"content-length", b"3")


def quick(_: bytes | bytearray) -> None:
    """Leave everything to the application."""


def learned(came: bytes, *headers: tuple[bytes, bytes]) -> KnownHeads:
    heads = KnownHeads()
    heads.learn(came, b"POST /", headers, quick)
    return heads


def test_a_head_is_known_whatever_length_it_says() -> None:
    came = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3"
    [(key, known)] = learned(came, HOST, SHORT).items()
    assert key == (b"POST / HTTP/1.1\r\nHost: x", b"")
    assert known.quick is quick


@pytest.mark.parametrize(
    ("came", "headers"),
    [
        # Whatever a parser may let pass, bodies end where they seem to.
        ("Content-Length: 3\r\nContent-Length: 3", [SHORT, SHORT]),
        ("Content-Length: 3\r\ncontent-length: 4", [SHORT, (b"content-length", b"4")]),
        (
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            [SHORT, (b"transfer-encoding", b"chunked")],
        ),
        ("Host: x\nContent-Length: 4\r\nContent-Length: 3", [HOST, SHORT]),
        ("Content-Length: 3\r\nHost: x\n", [SHORT, HOST]),
        ("Content-Length: 3\r\n 4", [(b"content-length", b"3 4")]),
        ("Host: x", [HOST]),
        ("Content-Length: 3\r\nHost: " + "x" * 5000, [SHORT, (b"host", b"x" * 5000)]),
    ],
)
def test_nothing_is_known_that_could_be_read_differently(
    came: str, headers: list[tuple[bytes, bytes]]
) -> None:
    assert not learned(b"POST / HTTP/1.1\r\n" + came.encode(), *headers)


@pytest.mark.parametrize(
    "line", ["POST / HTTP/1.0", "POST / HTTP/2.0", "PUT / HTTP/1.1", "\r\nPOST /"]
)
def test_nothing_is_known_whose_first_line_is_another(line: str) -> None:
    assert not learned(f"{line}\r\nContent-Length: 3".encode(), SHORT)


def test_no_more_is_known_than_fits() -> None:
    heads = KnownHeads()
    for number in range(1000):
        host = b"%d" % number
        came = b"POST / HTTP/1.1\r\nHost: %b\r\nContent-Length: 3" % host
        heads.learn(came, b"POST /", [(b"host", host), SHORT], quick)
        assert (b"POST / HTTP/1.1\r\nHost: %b" % host, b"") in heads
        assert len(heads) <= 256
