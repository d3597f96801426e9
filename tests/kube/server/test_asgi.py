"""The ASGI application alone: what clients on the same machine do not see."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from typing import Any

import pytest

from polyver.kube.server.asgi import ApiServerApp
from polyver.kube.server.http import HttpRequest, HttpResponse
from polyver.kube.server.identity import ADMIN, Identities


class Pipeline:
    """Answers with as much as the query says."""

    async def handle(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, [], b"x" * int(request.query))


async def called(
    app: ApiServerApp, path: str, query: str = "", client: str = "192.0.2.7", **headers: str
) -> tuple[dict[str, str], Any]:
    sent: list[Mapping[str, Any]] = []
    given = {"host": "x", "authorization": "Bearer t"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": (client, 1234),
    }
    await app(scope, receive, send)
    return {k.decode(): v.decode() for k, v in sent[0]["headers"]}, sent[1]["body"]


@pytest.mark.parametrize(
    ("size", "accepted", "packed"),
    [
        (128 * 1024, "gzip", False),
        (128 * 1024 + 1, "gzip", True),
        (2 * 1024 * 1024, "br, gzip;q=0.5", True),
        (2 * 1024 * 1024, "br", False),
    ],
)
def test_large_answers_are_compressed_for_those_who_take_it(
    size: int, accepted: str, packed: bool
) -> None:
    app = ApiServerApp(Pipeline(), Identities({"t": ADMIN}))
    headers, body = asyncio.run(called(app, "/large", str(size), accept_encoding=accepted))
    assert (headers.get("content-encoding") == "gzip") == packed
    assert headers["content-length"] == str(len(body))
    assert (gzip.decompress(body) if packed else body) == b"x" * size


@pytest.mark.parametrize("client", ["127.0.0.1", "::1"])
def test_on_one_machine_nothing_is_compressed(client: str) -> None:
    app = ApiServerApp(Pipeline(), Identities({"t": ADMIN}))
    headers, body = asyncio.run(called(app, "/large", "200000", client, accept_encoding="gzip"))
    assert "content-encoding" not in headers
    assert len(body) == 200_000


def test_readiness_ends_before_the_server_does() -> None:
    app = ApiServerApp(Pipeline(), Identities({"t": ADMIN}))
    assert asyncio.run(called(app, "/readyz"))[1] == b"ok"
    app.end_streams()
    assert b"[-]shutdown failed" in asyncio.run(called(app, "/readyz"))[1]
    assert asyncio.run(called(app, "/livez"))[1] == b"ok"
