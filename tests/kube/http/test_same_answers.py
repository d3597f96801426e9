"""A request that is answered at once gets the answer of the application, whatever is sent."""

from __future__ import annotations

import asyncio
import datetime
import http.client
import re
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.deadlines import HANG
from tests.kube.http.wires import FIRST, KINDS, ODD, PLAIN, House, Wire, body, settled

from polyver.kube.http import connections
from polyver.kube.http.connections import ServerState
from polyver.kube.http.listener import bind, serving, tls_context
from polyver.kube.http.tls import Authority

PATIENCE = HANG
MOST_HELD = 5000
"""Less than servers hold, so that what is beyond it is quickly sent."""
SIZES = [0, 1, 3, 40, 999, MOST_HELD, MOST_HELD + 1, 40_000]


@dataclass
class Seen:
    answers: list[tuple[bytes, bool]] = field(default_factory=list)
    at_once: int = 0


def alike(answers: bytes | bytearray) -> bytes:
    """Answers without their dates, who gave them, and the order of their headers."""
    found = bytes(answers).replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
    found = re.sub(rb"(date|content-type|content-length): .*\r\n", b"", found)
    said = rb"(at once|app) (\S+ \S+ \S+ \d+ \d+)( \d\.\d .*?\](?=HTTP|$))?"
    return re.sub(said, rb"\2", found)


# In pieces of any kind.


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
APART = st.sampled_from(["one by one", "heads and bodies", "in bodies"])
CUTS = APART | APART | st.sampled_from(["together", "anywhere"])


@st.composite
def clients(draw: st.DrawFn) -> list[list[bytes]]:
    """Some clients, one after the other."""
    plain = draw(PLAINLY)
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3))
    found = [[FIRST, each(3) + b"abc"] for each in plain]
    asked = st.tuples(st.sampled_from(plain), st.sampled_from(sizes), st.sampled_from(KINDS))
    for _ in range(draw(st.integers(1, 3))):
        parts = [
            (head(size), body(kind, size))
            for head, size, kind in draw(st.lists(asked, min_size=2, max_size=6))
        ]
        places = draw(st.lists(st.integers(1, 300), max_size=10))
        pieces = [each for each in cut(parts, draw(CUTS), places) if each]
        found.append([FIRST, *pieces])
    return found


async def played(all_pieces: list[list[bytes]], *, at_once: bool) -> Seen:
    """Return what clients see."""
    house, seen = House(), Seen()
    server_state = ServerState(house, house.at_once if at_once else None, lambda _: {})
    for pieces in all_pieces:
        wire = Wire(server_state)
        for piece in pieces:
            wire.send(piece)
            await settled(server_state)
        seen.answers.append((alike(wire.written), wire.closed))
        wire.lose()
        await settled(server_state)
        assert (server_state.held, server_state.tasks, server_state.connections) == (
            0,
            set(),
            set(),
        )
    server_state.close()
    seen.at_once = house.at_once_answered
    return seen


def test_at_once_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST_HELD", MOST_HELD)
    at_once = 0

    @settings(max_examples=200, deadline=None)
    @given(clients())
    def compare(pieces: list[list[bytes]]) -> None:
        nonlocal at_once
        found = asyncio.run(played(pieces, at_once=True))
        assert found.answers == asyncio.run(played(pieces, at_once=False)).answers
        at_once += found.at_once

    compare()
    assert at_once > 50, "what is tested here was reached"


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("how", ["one by one", "heads and bodies", "in bodies", "together"])
def test_odd_requests_are_answered_alike(odd: str, how: str) -> None:
    parts = [(ODD[odd](size), body(b"", size)) for size in (3, 3, 40, 1, 2)]
    clients = [[FIRST, *filter(None, cut(parts, way, ()))] for way in ("one by one", how, how)]
    found = asyncio.run(played(clients, at_once=True))
    assert found.answers == asyncio.run(played(clients, at_once=False)).answers


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


async def asked_of_a_server(
    asked: Asked, how: str, context: ssl.SSLContext | None, *, at_once: bool
) -> Seen:
    house, listener, seen = House(), bind("127.0.0.1", 0), Seen()
    host, port = listener.getsockname()
    given = (lambda: context) if context else None
    quick = house.at_once if at_once else None
    async with asyncio.timeout(PATIENCE), serving(house, listener, given, at_once=quick):
        ours = client_context() if context else None
        reader, writer = await asyncio.open_connection(host, port, ssl=ours)
        for each, size, kind in asked * 3:
            for piece in cut([(PLAIN[each](size), body(kind, size))], how, ()):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split()[0])
            seen.answers.append((alike(head + await reader.readexactly(length)), False))
        writer.close()
    seen.at_once = house.at_once_answered
    return seen


def test_over_real_connections_answers_are_the_same(server_context: ssl.SSLContext) -> None:
    at_once = 0
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:

        @settings(max_examples=30, deadline=None)
        @given(ASKED, APART, st.sampled_from([None, server_context]))
        def compare(asked: Asked, how: str, context: ssl.SSLContext | None) -> None:
            nonlocal at_once
            found = runner.run(asked_of_a_server(asked, how, context, at_once=True))
            other = runner.run(asked_of_a_server(asked, how, context, at_once=False))
            assert found.answers == other.answers
            at_once += found.at_once

        compare()
    assert at_once > 10, "what is tested here was reached"


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

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(running())
