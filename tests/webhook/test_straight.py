"""Requests that compiled code answers as a whole get the answer that Python would give."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.http.wires import Wire, settled
from tests.native.reviewed import GROUP, KIND, asked, by_rules, native, needs_native, thing

from polyver.kube.http.connections import Hall
from polyver.webhook import App, Served
from polyver.webhook import app as webhook_app

pytestmark = needs_native

HEAD = b"POST /convert?timeout=30s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n"
HEAD += b"Content-Type: application/json\r\n\r\n"
USUAL = asked(thing({"a": 1}))
BODIES = [
    USUAL,
    asked(*[thing({"a": number, "text": "x" * number}) for number in range(30)]),
    asked(),
    asked(thing({"b": 1}, "v2")),
    asked({**thing({"a": 1}), "kind": "Nothing"}),
    asked(thing({"a": 1, "b": 2})),
    asked(thing({"a": "\u00e9"})),
    asked(thing({"text": "x" * 9000})),
    json.dumps(json.loads(USUAL), indent=2).encode(),
    USUAL[:-1],
    USUAL + b"x",
    USUAL.replace(b'"a":1', b'"a":"\xff"'),
    b"",
    b"{}",
    b"0",
]


class Counted:
    """Compiled code, and how many requests it answered as a whole."""

    def __init__(self, *, straight: bool) -> None:
        self.straight = straight
        self.answered = 0

    def table(self, programs: Any) -> object:
        return native().table(programs)

    def answer(self, table: object, body: bytes | bytearray) -> Any:
        return native().answer(table, body)

    def respond(self, *given: Any) -> Any:
        told = native().respond(*given) if self.straight else None
        self.answered += told is not None
        return told


def talk(pieces: Sequence[bytes], *, straight: bool, **options: Any) -> tuple[bytes, str, int]:
    """What is answered, what is counted, and how many were answered straight."""

    async def talking() -> tuple[bytes, str, int]:
        known = by_rules(lambda rules: rules.move("spec.a", "spec.b"))
        app = App(Served({(GROUP, KIND): known}), **options)
        by = Counted(straight=straight)
        app._reviews = type(app._reviews)({(GROUP, KIND): known}, by=by)
        hall = Hall(app, app.at_once, lambda _: {})
        wire = Wire(hall)
        for piece in [HEAD % len(USUAL) + USUAL] * 4:
            wire.send(piece)
            await settled(hall)
        for piece in pieces:
            wire.send(piece)
            await settled(hall)
        assert hall.held == 0 or not wire.closed
        app._count_noted()
        told = app._metrics.response().body
        assert isinstance(told, bytes)
        counts = re.sub(r"\S+_seconds\S* \S+\n", "", told.decode())
        wire.lose()
        hall.close()
        return re.sub(rb"date: .*\r\n", b"", bytes(wire.written)), counts, by.answered

    return asyncio.run(talking())


@pytest.fixture(autouse=True)
def all_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes on this machine."""
    monkeypatch.setattr(webhook_app, "_QUICK", float("inf"))
    monkeypatch.setattr(webhook_app, "_AT_FIRST", float("inf"))


@pytest.mark.parametrize("body", BODIES)
def test_each_body_is_answered_alike(body: bytes) -> None:
    sent = [HEAD % len(body) + body, HEAD % len(USUAL) + USUAL]
    found, counts, straight = talk(sent, straight=True)
    assert (found, counts) == talk(sent, straight=False)[:2]
    assert straight >= 2


REQUESTS = st.lists(st.sampled_from(BODIES).map(lambda each: HEAD % len(each) + each), max_size=5)


@given(REQUESTS, st.lists(st.integers(1, 400), max_size=6), st.booleans())
def test_requests_in_any_pieces_are_answered_alike(
    requests: list[bytes], cuts: list[int], whole: bool
) -> None:
    together = b"".join(requests)
    pieces = requests if whole else []
    for cut in [] if whole else cuts:
        pieces = [*pieces, together[:cut]]
        together = together[cut:]
    pieces = pieces if whole else [*pieces, together]
    assert talk(pieces, straight=True)[:2] == talk(pieces, straight=False)[:2]


@pytest.mark.parametrize(
    "request_",
    [
        HEAD % len(USUAL) + USUAL[:-1],
        HEAD % (len(USUAL) - 1) + USUAL,
        HEAD.replace(b"%d", b"+%d") % len(USUAL) + USUAL,
        HEAD.replace(b"%d", b"000000000%d") % len(USUAL) + USUAL,
        HEAD.replace(b"%d", b"") + USUAL,
        (HEAD % len(USUAL) + USUAL).replace(b"Host: x", b"Host: y"),
        (HEAD % len(USUAL) + USUAL).replace(b"application/json", b"application/jsoN"),
    ],
)
def test_only_the_head_that_is_known_is_answered_straight(request_: bytes) -> None:
    before = talk([], straight=True)[2]
    assert talk([request_], straight=True)[2] == before


def test_what_is_too_large_or_told_of_is_not_answered_straight() -> None:
    assert talk([], straight=True, most_body=len(USUAL))[2] == 0
    assert talk([], straight=True)[2] > 0


def test_a_server_that_ends_answers_nothing_straight() -> None:
    async def ending() -> None:
        known = by_rules(lambda rules: rules.move("spec.a", "spec.b"))
        app = App(Served({(GROUP, KIND): known}))
        request = HEAD % len(USUAL) + USUAL
        start, _, rest = request.partition(b"%d" % len(USUAL))
        given = (bytearray(request), len(request), start, rest[: -len(USUAL)], b"x: ")
        for _ in range(2):
            app._reviews.answer(USUAL)
        assert app.straight(*given) is not None
        app.drain()
        assert app.straight(*given) is None

    asyncio.run(ending())


@pytest.mark.parametrize("size", [-1, 10**6])
def test_a_size_that_is_none_is_answered_by_nobody(size: int) -> None:
    table = native().table(())
    assert native().respond(table, bytearray(b"abc"), size, b"a", b"c", b"") is None
