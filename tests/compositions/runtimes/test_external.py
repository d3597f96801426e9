"""Functions that somebody else serves, and the choice between these and others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compositions.runtimes.support import (
    RUN,
    answer_of,
    called,
    function_folder,
    process_runtime,
    until,
    wanted_of,
)

from polyver.compositions.calls import CertificateFolder, Trust
from polyver.compositions.runtimes import DesiredRevision
from polyver.compositions.runtimes.external import (
    ExternalRuntime,
    InvalidAddress,
    ProbeTiming,
    read_address,
)
from polyver.compositions.runtimes.routing import ChosenRuntime

QUICK = ProbeTiming(every=0.02, while_silent=0.02, silence=0)


class Answers(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    def service(
        self, details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        if details.method != RUN:
            return None

        async def answer(request: bytes, context: object) -> bytes:
            return b"elsewhere"

        return grpc.unary_unary_rpc_method_handler(answer)


@asynccontextmanager
async def elsewhere(credentials: grpc.ServerCredentials | None = None) -> AsyncIterator[str]:
    """A function that somebody else serves."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Answers(),))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def runtime_with(folder: CertificateFolder) -> ExternalRuntime:
    async def trust(name: str) -> Trust:
        return folder.trust(name, now=datetime.now(UTC))

    return ExternalRuntime(trust, asking=QUICK)


def test_a_function_without_tls_is_called_where_its_annotation_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        runtime = runtime_with(CertificateFolder(tmp_path))
        async with elsewhere() as address:
            wanted = DesiredRevision("fn-1", "fn:v1", "fn:v1", address=f"http://{address}")
            served = await until(runtime, wanted)
            assert served.endpoint == f"http://{address}"
            assert await answer_of(runtime, wanted) == b"elsewhere"
        gone = await until(runtime, wanted, lambda s: s.reason == "NotAnswering")
        assert "nothing listens" in gone.message
        await runtime.close()

    asyncio.run(scenario())


def test_a_function_with_tls_shows_the_certificate_of_its_revision(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = CertificateFolder(tmp_path)
        runtime = runtime_with(folder)
        issued = folder.issue("fn-1", now=datetime.now(UTC)).issued
        credentials = grpc.ssl_server_credentials(
            [(issued.pair.key, issued.pair.certificate)], issued.bundle, require_client_auth=True
        )
        async with elsewhere(credentials) as address:
            wanted = DesiredRevision("fn-1", "fn:v1", "fn:v1", address=address)
            served = await until(runtime, wanted)
            assert await called(await runtime.reach("fn-1", served.endpoint)) == b"elsewhere"
            other = replace(wanted, name="fn-2")
            refused = await until(runtime, other, lambda s: s.reason == "NotAnswering")
            assert "certificate" in refused.message
        await runtime.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "text",
    ["", "host", "host:", ":9443", "host:0", "host:65536", "http://", "a/b:1", "u@h:1", "::1:9"],
)
def test_what_is_no_address_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidAddress, match="write HOST:PORT"):
        read_address(text)

    async def scenario() -> None:
        runtime = runtime_with(CertificateFolder(tmp_path))
        served = await runtime.serve(DesiredRevision("fn-1", "fn:v1", "fn:v1", address=text))
        assert served.reason == "InvalidEndpoint"

    asyncio.run(scenario())


@given(st.from_regex(r"[a-z0-9.-]{1,20}|\[[0-9a-f:]{1,20}\]", fullmatch=True), st.booleans())
def test_an_address_is_read_as_it_is_written(host: str, is_secure: bool) -> None:
    text = f"{'' if is_secure else 'http://'}{host}:9443"
    assert str(read_address(text)) == text
    assert read_address(text) == (f"{host}:9443", is_secure)


def test_who_has_an_address_is_asked_and_the_rest_is_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = function_folder(tmp_path / "fn", ANSWER="here")
        certificates = CertificateFolder(tmp_path / "data" / "certificates")
        async with (
            process_runtime(tmp_path / "data", {"fn:v1": folder}) as process,
            elsewhere() as address,
        ):
            runtime = ChosenRuntime(runtime_with(certificates), process)
            # What somebody else serves needs nobody's permission to be run.
            other = f"http://{address}"
            assert await runtime.digest("any:v1", address=other) == "any:v1"
            outside = DesiredRevision("fn-1", "any:v1", "any:v1", address=other)
            assert await answer_of(runtime, outside) == b"elsewhere"
            inside = await wanted_of(runtime, "fn:v1", "fn-2")
            assert await answer_of(runtime, inside) == b"here"
            moved = replace(inside, address=other)
            assert await answer_of(runtime, moved) == b"elsewhere"
            assert await answer_of(runtime, inside) == b"here"
            await runtime.end("fn-1")
            await runtime.close()

    asyncio.run(scenario())


def test_nobody_has_to_be_there_to_begin_with(tmp_path: Path) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{reserved.getsockname()[1]}"

    async def scenario() -> None:
        runtime = runtime_with(CertificateFolder(tmp_path))
        wanted = DesiredRevision("fn-1", "fn:v1", "fn:v1", address=f"http://{address}")
        await until(runtime, wanted, lambda s: s.reason == "NotAnswering")
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((Answers(),))
        server.add_insecure_port(address)
        await server.start()
        await until(runtime, wanted)
        await server.stop(None)
        await runtime.close()

    asyncio.run(scenario())
