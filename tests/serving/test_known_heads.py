"""Heads that were read before change nothing but the time that it takes, whatever is sent."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from polyver.serving import connections
from polyver.serving.connections import Connection, Hall
from polyver.serving.heads import KnownHeads
from polyver.serving.http import Answer, Head, Quick, Receive, Scope, Send

MOST_HELD = 5000
"""Less than a server holds, so that what is beyond it is quickly sent."""


def told(who: str, method: str, path: str, query: bytes, body: bytes | bytearray) -> bytes:
    return f"{who} {method} {path} {query!r} {len(body)} {zlib.crc32(body)}".encode()


class House:
    """Says who answered, and all that it was told."""

    def __init__(self) -> None:
        self.heads = self.bodies = 0

    def at_once(self, head: Head) -> Quick | None:
        self.heads += 1
        if not head.path.startswith("/quick"):
            return None

        def quick(body: bytes | bytearray) -> Answer | None:
            if body.startswith(b"slow"):
                return None
            self.bodies += 1
            said = told("at once", head.method, head.path, head.query, body)
            return Answer(200, b"content-type: text/plain\r\n", said)

        return quick

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        said = told("app", scope["method"], scope["path"], scope["query_string"], body)
        said += f" {scope['http_version']} {scope['raw_path']!r} {scope['headers']}".encode()
        length = (b"content-length", b"%d" % len(said))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": said})


class Wire(asyncio.Transport):
    """What a connection is given bytes by, in exactly these pieces, and gives its answers to."""

    def __init__(self, hall: Hall) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = False
        self._reading = True
        self._waiting = bytearray()
        self.connection = Connection(hall)
        self.connection.connection_made(self)

    def send(self, piece: bytes) -> None:
        self._waiting += piece
        while self._waiting and self._reading and not self.closed:
            room = self.connection.get_buffer(-1)
            size = min(len(room), len(self._waiting))
            room[:size] = self._waiting[:size]
            del self._waiting[:size]
            self.connection.buffer_updated(size)

    def lose(self) -> None:
        self.closed = True
        self.connection.connection_lost(None)

    # For the connection.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.closed:
            self.written += data

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        asyncio.get_running_loop().call_soon(self.send, b"")

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


async def settled(hall: Hall) -> None:
    """Let all run that can."""
    for _ in range(12):
        await asyncio.sleep(0)
    assert len(hall.tasks) <= len(hall.connections)


# What is sent: a head is its bytes for a body of some size.

Lines = Callable[[int], bytes]


def lines(*after: bytes, line: bytes = b"POST /quick HTTP/1.1", ends: bytes = b"\r\n") -> Lines:
    """A head of these lines, in which %d is the length of the body."""
    head = ends.join([line, b"Host: x", *after, b"", b""])
    return lambda size: head.replace(b"%d", b"%d" % size)


LENGTH = b"Content-Length: %d"
JSON = b"Content-Type: application/json"
PLAIN = [
    lines(LENGTH),
    lines(b"Accept: */*", LENGTH, JSON, line=b"POST /quick?timeout=30s HTTP/1.1"),
    lines(b"Connection: keep-alive", LENGTH, line=b"GET /quick/%41 HTTP/1.1"),
    lines(LENGTH, line=b"PUT /slow HTTP/1.1"),
]
ODD = {
    "no length": lines(),
    "twice the same": lines(LENGTH, LENGTH),
    "another": lines(LENGTH, b"Content-Length: 3"),
    "another, spelt differently": lines(b"content-length: 3", LENGTH),
    "spelt differently": lines(b"content-length: %d"),
    "no space": lines(b"Content-Length:%d"),
    "spaces": lines(b"Content-Length:  %d"),
    "tab": lines(b"Content-Length: \t%d"),
    "space behind": lines(LENGTH + b" "),
    "space before the colon": lines(b"Content-Length : %d"),
    "plus": lines(b"Content-Length: +%d"),
    "minus": lines(b"Content-Length: -%d"),
    "underscore": lines(b"Content-Length: 1_%d"),
    "hexadecimal": lines(b"Content-Length: 0x%d"),
    "other digits": lines("Content-Length: ٣".encode()),
    "superscript": lines(b"Content-Length: \xb2"),
    "list": lines(LENGTH + b", 3"),
    "empty": lines(b"Content-Length: "),
    "zeros": lines(b"Content-Length: 000%d"),
    "many zeros": lines(b"Content-Length: 000000000000%d"),
    "nine digits": lines(b"Content-Length: 123456789"),
    "twenty digits": lines(b"Content-Length: 99999999999999999999"),
    "folded length": lines(b"Content-Length:\r\n %d"),
    "fold behind the length": lines(LENGTH, b" 1"),
    "fold": lines(b"A: b", b"\tc", LENGTH),
    "length in a fold": lines(b"A: b", b" Content-Length: 1", LENGTH),
    "bare newlines": lines(LENGTH, ends=b"\n"),
    "bare newline": lines(b"A: b\nB: c", LENGTH),
    "newline behind": lines(LENGTH, b"A: b\n"),
    "newlines within": lines(b"A: b\n\n", LENGTH),
    "bare return": lines(b"A: b\rB: c", LENGTH),
    "return behind": lines(LENGTH, b"A: b\r"),
    "nul": lines(b"A: b\0", LENGTH),
    "nul in a name": lines(b"A\0: b", LENGTH),
    "bytes": lines(b"A: \xff\x80", LENGTH),
    "no colon": lines(b"A", LENGTH),
    "no name": lines(b": a", LENGTH),
    "empty value": lines(b"A: ", b"B:", LENGTH),
    "chunked": lines(b"Transfer-Encoding: chunked"),
    "chunked and a length": lines(b"Transfer-Encoding: chunked", LENGTH),
    "a length and chunked": lines(LENGTH, b"Transfer-Encoding: chunked"),
    "other encoding": lines(b"Transfer-Encoding: identity", LENGTH),
    "expects": lines(LENGTH, b"Expect: 100-continue"),
    "expects something": lines(LENGTH, b"Expect: the best"),
    "closes": lines(b"Connection: close", LENGTH),
    "closes among others": lines(LENGTH, b"Connection: a, Close"),
    "old": lines(LENGTH, line=b"POST /quick HTTP/1.0"),
    "old and lasting": lines(LENGTH, b"Connection: keep-alive", line=b"POST /quick HTTP/1.0"),
    "older": lines(LENGTH, line=b"POST /quick HTTP/0.9"),
    "newer": lines(b"Accept: a", LENGTH, line=b"POST /quick HTTP/2.0"),
    "head": lines(LENGTH, line=b"HEAD /quick HTTP/1.1"),
    "upgrade": lines(LENGTH, b"Connection: Upgrade", b"Upgrade: websocket"),
    "upgrade alone": lines(LENGTH, b"Upgrade: websocket"),
    "connect": lines(LENGTH, line=b"CONNECT quick:1 HTTP/1.1"),
    "empty line before": lines(LENGTH, line=b"\r\nPOST /quick HTTP/1.1"),
    "newlines before": lines(LENGTH, line=b"\n\n\nPOST /quick HTTP/1.1"),
    "whole address": lines(LENGTH, line=b"POST http://x/quick HTTP/1.1"),
    "empty query": lines(LENGTH, line=b"POST /quick? HTTP/1.1"),
    "fragment": lines(LENGTH, line=b"POST /quick#a HTTP/1.1"),
    "two spaces": lines(LENGTH, line=b"POST  /quick  HTTP/1.1"),
    "no method": lines(LENGTH, line=b"/quick HTTP/1.1"),
    "lower case": lines(LENGTH, line=b"post /quick http/1.1"),
    "no line": lines(LENGTH, line=b""),
    "nothing but a length": lines(LENGTH, line=b"\r\nContent-Length: 1"),
    "many": lines(*[b"A-%04d: b" % each for each in range(500)], LENGTH),
    "one byte more": lambda size: PLAIN[0](size)[:-1],
}

SIZES = [0, 1, 3, 40, 999, MOST_HELD, MOST_HELD + 1, 40_000]
KINDS = [b"", b"slow", PLAIN[0](3), b"\r\n\r\n", b"0\r\n\r\n"]
FILLING = bytes(zlib.crc32(b"%d" % each) % 251 for each in range(MOST_HELD))


def body(kind: bytes, size: int) -> bytes:
    """Bytes of which none can be at another's place without notice."""
    return (kind + FILLING * (size // len(FILLING) + 1))[:size]


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


PLAINLY = st.sampled_from(PLAIN)
HEADS = PLAINLY | PLAINLY | st.sampled_from(list(ODD.values()))
APART = st.sampled_from(["one by one", "heads and bodies", "in bodies"])
CUTS = APART | APART | st.sampled_from(["together", "anywhere"])
CALM = st.just("settle")
THEN = CALM | CALM | st.sampled_from(["", "pause", "resume", "shutdown", "lose"])
FIRST = Piece(PLAIN[0](0))
"""The first request of a connection is always parsed."""


@st.composite
def clients(draw: st.DrawFn) -> list[list[Piece]]:
    """Some clients, one after the other, which have few heads among them."""
    heads = draw(st.lists(HEADS, min_size=1, max_size=3))
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3))
    found = [[FIRST, Piece(each(3) + b"abc", "settle")] for each in heads]
    asked = st.tuples(st.sampled_from(heads), st.sampled_from(sizes), st.sampled_from(KINDS))
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


@dataclass
class Seen:
    answers: list[tuple[bytes, bool]] = field(default_factory=list)
    known: int = 0
    """How many were answered without their heads having been read."""


async def played(all_pieces: list[list[Piece]]) -> Seen:
    house, seen = House(), Seen()
    hall = Hall(house, house.at_once, lambda _: {})
    for pieces in all_pieces:
        wire = Wire(hall)
        for piece in pieces:
            wire.send(piece.sent)
            await happens(piece.then, wire, hall)
        wire.connection.resume_writing()
        await settled(hall)
        seen.answers.append((re.sub(rb"date: .*\r\n", b"", bytes(wire.written)), wire.closed))
        wire.lose()
        await settled(hall)
        assert (hall.held, hall.tasks, hall.connections) == (0, set(), set())
    hall.close()
    seen.known = house.bodies - house.heads
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


def test_known_heads_change_no_byte_of_any_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_HELD", MOST_HELD)
    learn, known = KnownHeads.learn, 0

    @settings(max_examples=300, deadline=None)
    @given(clients())
    def compare(pieces: list[list[Piece]]) -> None:
        nonlocal known
        monkeypatch.setattr(KnownHeads, "learn", learn)
        found = asyncio.run(played(pieces))
        monkeypatch.setattr(KnownHeads, "learn", lambda *_: None)
        assert found.answers == asyncio.run(played(pieces)).answers
        known += max(found.known, 0)
        event(f"known: {min(found.known, 5)}")

    compare()
    assert known > 100, "so many were answered without their heads having been read"
