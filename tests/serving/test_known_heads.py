"""Heads that were read before change nothing but the time that it takes, whatever is sent."""

from __future__ import annotations

import asyncio
import datetime
import http.client
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serving.wires import KINDS, ODD, PLAIN, House, Wire, body, settled

from polyver.serving import connections
from polyver.serving.connections import Hall
from polyver.serving.heads import KnownHeads
from polyver.serving.http import Answer, Quick
from polyver.serving.listening import bind, serving, tls_context
from polyver.tls import Authority

PATIENCE = 20
MOST_HELD = 5000
"""Less than servers hold, so that what is beyond it is quickly sent."""
SIZES = [0, 1, 3, 40, 999, MOST_HELD, MOST_HELD + 1, 40_000]


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    learn = KnownHeads.learn

    def choose(nothing: bool) -> None:
        monkeypatch.setattr(KnownHeads, "learn", (lambda *_: None) if nothing else learn)

    return choose


@dataclass
class Seen:
    answers: list[tuple[bytes, bool]] = field(default_factory=list)
    known: int = 0
    """How many were answered without their heads having been read."""
    reads: list[int] = field(default_factory=list)


def undated(answers: bytes | bytearray) -> bytes:
    return re.sub(rb"date: .*\r\n", b"", bytes(answers))


# In pieces of any kind.


@dataclass(frozen=True)
class Piece:
    """What comes at once, and what happens then."""

    sent: bytes
    then: str = ""
    """pause, resume: whether the client reads; shutdown; lose; settle: time passes."""


def cut(parts: Sequence[tuple[bytes, bytes]], how: str, places: Sequence[int]) -> Iterator[bytes]:
    sent = b"".join(head + rest for head, rest in parts)
    match how:
        case "one by one":
            yield from (head + rest for head, rest in parts)
        case "heads and bodies":
            yield from (each for part in parts for each in part)
        case "in bodies":
            for head, rest in parts:
                yield head + rest[: len(rest) // 3]
                yield rest[len(rest) // 3 : len(rest) - 1]
                yield rest[len(rest) - 1 :]
        case "together":
            yield sent
        case _:
            start = 0
            for place in places:
                yield sent[start : start + place]
                start += place
            yield sent[start:]


PLAINLY = st.lists(st.sampled_from(PLAIN), min_size=1, max_size=2)
ODDLY = st.lists(st.sampled_from(list(ODD.values())), max_size=1)
APART = st.sampled_from(["one by one", "heads and bodies", "in bodies"])
CUTS = APART | APART | st.sampled_from(["together", "anywhere"])
CALM = st.just("settle")
THEN = CALM | CALM | st.sampled_from(["", "", "pause", "resume", "shutdown", "lose"])
FIRST = Piece(PLAIN[0](0))
"""The first request of a connection is always parsed."""


@st.composite
def clients(draw: st.DrawFn) -> list[list[Piece]]:
    """Some clients, one after the other, which have few heads among them."""
    plain, odd = draw(PLAINLY), draw(ODDLY)
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3))
    found = [[FIRST, Piece(each(3) + b"abc", "settle")] for each in plain + odd]
    asked = st.tuples(
        st.sampled_from(plain + plain + odd), st.sampled_from(sizes), st.sampled_from(KINDS)
    )
    for _ in range(draw(st.integers(1, 3))):
        parts = [
            (head(size), body(kind, size))
            for head, size, kind in draw(st.lists(asked, min_size=2, max_size=6))
        ]
        places = draw(st.lists(st.integers(1, 300), max_size=10))
        then = draw(st.sampled_from([CALM, THEN]))
        pieces = [each for each in cut(parts, draw(CUTS), places) if each]
        found.append([FIRST, *(Piece(each, draw(then)) for each in pieces)])
    return found


async def played(all_pieces: list[list[Piece]], like: Seen | None = None) -> Seen:
    """What clients see; if another is to be compared, what comes is read as that has read it."""
    # A body behind a known head is read up to its end, and what is wrong behind it another time:
    # whether that is told depends on whether it comes together with a request.
    house, seen = House(), Seen()
    sizes = iter(like.reads if like is not None else ())
    hall = Hall(house, house.at_once, lambda _: {})
    for pieces in all_pieces:
        wire = Wire(hall, sizes)
        for piece in pieces:
            wire.send(piece.sent)
            await happens(piece.then, wire, hall)
        wire.connection.resume_writing()
        await settled(hall)
        seen.answers.append((undated(wire.written), wire.closed))
        seen.reads += wire.reads
        wire.lose()
        await settled(hall)
        assert (hall.held, hall.tasks, hall.connections) == (0, set(), set())
    hall.close()
    seen.known = house.known
    return seen


async def happens(what: str, wire: Wire, hall: Hall) -> None:
    match what:
        case "settle":
            await settled(hall)
        case "pause":
            wire.connection.pause_writing()
        case "resume":
            wire.connection.resume_writing()
        case "shutdown":
            wire.connection.shutdown()
        case "lose":
            wire.lose()


def test_known_heads_change_no_byte_of_any_answer(
    nothing_known: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_MOST_HELD", MOST_HELD)
    known = 0

    @settings(max_examples=200, deadline=None)
    @given(clients())
    def compare(pieces: list[list[Piece]]) -> None:
        nonlocal known
        nothing_known(False)
        found = asyncio.run(played(pieces))
        nothing_known(True)
        assert found.answers == asyncio.run(played(pieces, found)).answers
        known += found.known

    compare()
    assert known > 50, "what is tested here was reached"


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("how", ["one by one", "heads and bodies", "in bodies", "together"])
def test_nothing_odd_is_known_as_something_else(
    odd: str, how: str, nothing_known: Callable[[bool], None]
) -> None:
    parts = [(ODD[odd](size), body(b"", size)) for size in (3, 3, 40, 1, 2)]
    clients = [
        [FIRST, *(Piece(each, "settle") for each in cut(parts, way, ()) if each)]
        for way in ("one by one", how, how)
    ]
    found = asyncio.run(played(clients))
    nothing_known(True)
    assert found.answers == asyncio.run(played(clients, found)).answers


# Over real connections.

Asked = list[tuple[int, int, bytes]]
MIB = 1024 * 1024
LARGE = [100, 70_000, 300_000, 2 * MIB, 2 * MIB + 300_000]
ASKED = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([1, 2, *LARGE]), st.sampled_from(KINDS)),
    min_size=2,
    max_size=4,
)


@pytest.fixture(scope="module")
def server_context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    now = datetime.datetime.now(datetime.UTC)
    pair = Authority.create("test", now=now).server("127.0.0.1", now=now)
    certificate, key = (tmp_path_factory.mktemp("tls") / name for name in ("tls.crt", "tls.key"))
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    return tls_context(Path(certificate), Path(key))


def client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def asked_of_a_server(asked: Asked, how: str, context: ssl.SSLContext | None) -> Seen:
    house, listener, seen = House(), bind("127.0.0.1", 0), Seen()
    host, port = listener.getsockname()
    given = (lambda: context) if context else None
    async with asyncio.timeout(PATIENCE), serving(house, listener, given, at_once=house.at_once):
        ours = client_context() if context else None
        reader, writer = await asyncio.open_connection(host, port, ssl=ours)
        for each, size, kind in asked * 3:
            for piece in cut([(PLAIN[each](size), body(kind, size))], how, ()):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split()[0])
            seen.answers.append((undated(head) + await reader.readexactly(length), False))
        writer.close()
    seen.known = house.known
    return seen


def test_over_real_connections_answers_are_the_same(
    nothing_known: Callable[[bool], None], server_context: ssl.SSLContext
) -> None:
    known = 0
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:

        @settings(max_examples=30, deadline=None)
        @given(ASKED, APART, st.sampled_from([None, server_context]))
        def compare(asked: Asked, how: str, context: ssl.SSLContext | None) -> None:
            nonlocal known
            nothing_known(False)
            found = runner.run(asked_of_a_server(asked, how, context))
            nothing_known(True)
            other = runner.run(asked_of_a_server(asked, how, context))
            assert found.answers == other.answers
            known += found.known

        compare()
    assert known > 10, "what is tested here was reached"


@pytest.mark.parametrize("size", [3, 70_000, 300_000])
def test_a_body_may_come_behind_its_head(size: int, server_context: ssl.SSLContext) -> None:
    async def running() -> None:
        house, listener = House(), bind("127.0.0.1", 0)
        host, port = listener.getsockname()

        def ask() -> list[bytes]:
            # This client sends head and body by themselves.
            ours = client_context()
            client = http.client.HTTPSConnection(host, port, context=ours, timeout=PATIENCE)
            found = []
            for number in range(4):
                client.request("POST", "/quick", body(b"%d" % number, size))
                found.append(client.getresponse().read())
            client.close()
            return found

        context = lambda: server_context  # noqa: E731 - one server has one
        async with serving(house, listener, context, at_once=house.at_once):
            found = await asyncio.to_thread(ask)
        assert [each.split()[:4] for each in found] == [[b"at", b"once", b"POST", b"/quick"]] * 4
        assert len(set(found)) == 4
        assert house.known == 2, "the second head is learnt"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(running())


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
            wire.send(FIRST.sent)
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
        hall.heads.update(dict.fromkeys(hall.heads, asked.append))
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
        assert (wire.written, wire.aborted) == (b"", True)

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
            each.send(FIRST.sent)
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

        hall.heads.update(dict.fromkeys(hall.heads, fails))
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
    found: dict[tuple[bytes, bytes], Quick] = {(b"POST / HTTP/1.1\r\nHost: x", b""): quick}
    assert learned(came, HOST, SHORT) == found


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
