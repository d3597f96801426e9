"""Heads that were read before change nothing but the time that it takes, whatever is sent."""

from __future__ import annotations

import asyncio
import datetime
import http.client
import re
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.deadlines import HANG
from tests.kube.http.wires import FIRST, KINDS, ODD, PLAIN, House, Wire, body, settled

from polyver.kube.http import connections
from polyver.kube.http.connections import Hall
from polyver.kube.http.heads import KnownHeads
from polyver.kube.http.listening import bind, serving, tls_context
from polyver.kube.http.tls import Authority

PATIENCE = HANG
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


@st.composite
def clients(draw: st.DrawFn) -> list[list[Piece]]:
    """Some clients, one after the other, which have few heads among them."""
    plain, odd = draw(PLAINLY), draw(ODDLY)
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3))
    found = [[Piece(FIRST), Piece(each(3) + b"abc", "settle")] for each in plain + odd]
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
        found.append([Piece(FIRST), *(Piece(each, draw(then)) for each in pieces)])
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
        [Piece(FIRST), *(Piece(each, "settle") for each in cut(parts, way, ()) if each)]
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
                client.request("POST", "/quick?timeout=30s", body(b"%d" % number, size))
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
