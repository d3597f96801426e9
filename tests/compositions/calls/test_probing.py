"""Whether a function is ready, asked of real servers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from dataclasses import replace

import pytest
from tests.compositions.calls.serving import (
    AUTHORITY,
    HEALTH,
    LONG_AGO,
    NAME,
    NOW,
    OTHER,
    SHOWN,
    TRUST,
    Context,
    Method,
    at,
    serving,
)
from tests.deadlines import HANG

from polyver.compositions.calls import FunctionFailed, Trust, probe
from polyver.kube.http.tls import Pair


def run(body: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(body, HANG))


async def problem(address: str, trust: Trust | None = TRUST, *, within: float = 5) -> str:
    try:
        await probe(at(address, trust), within=within)
    except FunctionFailed as error:
        return f"{error.failure}: {error.fact}"
    return ""


def healthy(answer: bytes) -> dict[str, Method]:
    async def check(request: bytes, context: Context) -> bytes:
        return answer

    return {HEALTH: check}


@pytest.mark.parametrize("answer", [None, b"\x08\x01", b"\x08\x02\x08\x01"])
def test_whoever_speaks_is_ready(answer: bytes | None) -> None:
    async def body() -> None:
        async with serving(healthy(answer) if answer else {}) as address:
            assert await problem(address) == ""

    run(body())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\x08\x02", "Unreachable: fn-1 reports that it is not ready"),
        (b"", "Unreachable: fn-1 reports that it is not ready"),
        (
            b"\xff",
            "BrokenReply: fn-1 answers the health check with an invalid message: unexpected EOF",
        ),
    ],
)
def test_a_health_service_is_believed(answer: bytes, said: str) -> None:
    async def body() -> None:
        async with serving(healthy(answer)) as address:
            assert await problem(address) == said

    run(body())


NOT_BELIEVED = "Refused: fn-1 has an untrusted certificate: "


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (AUTHORITY.server(NAME, now=LONG_AGO), NOT_BELIEVED + "certificate has expired"),
        (OTHER.server(NAME, now=NOW), NOT_BELIEVED + "unable to get local issuer certificate"),
        (AUTHORITY.server("fn-2", now=NOW), "Refused: fn-1 has a certificate for another name"),
        (None, "Refused: fn-1 does not speak TLS"),
    ],
)
def test_a_certificate_that_is_not_the_revisions_is_refused(shown: Pair | None, said: str) -> None:
    async def body() -> None:
        async with serving(shown=shown) as address:
            assert await problem(address) == said

    run(body())


@pytest.mark.parametrize(
    "pair", [OTHER.client("polyver", now=NOW), AUTHORITY.client("polyver", now=LONG_AGO)]
)
def test_a_function_that_does_not_believe_the_caller_is_no_riddle(pair: Pair) -> None:
    async def body() -> None:
        async with serving() as address:
            said = await problem(address, replace(TRUST, pair=pair))
            assert said.startswith("Refused: fn-1 closes each connection after the TLS handshake")

    run(body())


def test_plain_text_is_spoken_where_it_is_asked_for() -> None:
    async def body() -> None:
        async with serving(shown=None) as address:
            assert await problem(address, None) == ""
        async with serving() as address:
            said = await problem(address, None)
            assert said.startswith(
                "Refused: fn-1 closes each connection at once: it accepts only TLS"
            )

    run(body())


def test_nobody_and_silence_are_told_apart() -> None:
    async def body() -> None:
        async with serving() as address:
            pass
        expected = "Unreachable: fn-1 is not reachable: nothing listens at its address"
        assert await problem(address) == expected
        with socket.create_server(("127.0.0.1", 0)) as silent:
            said = await problem(f"127.0.0.1:{silent.getsockname()[1]}", within=0.3)
        assert said == "DeadlineExceeded: fn-1 did not answer within 0.3s"

    run(body())


def test_each_probe_looks_anew() -> None:
    """Whoever was not there a moment ago is found at once when it is."""

    async def body() -> None:
        async with serving() as address:
            pass
        for _ in range(5):
            assert "nothing listens" in await problem(address)
        async with serving(shown=SHOWN, port=int(address.rpartition(":")[2])) as same:
            assert same == address
            assert await problem(address) == ""

    run(body())
