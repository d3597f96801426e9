"""Asking an API server something from a test, whichever it is, as its administrator."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any, Protocol

from polyver.objects.status import ApiError

__all__ = ["Server", "ask"]


class Server(Protocol):
    """What an EmbeddedServer and a LocalCluster have in common."""

    @property
    def url(self) -> str: ...

    @property
    def ca_file(self) -> Path: ...

    @property
    def token(self) -> str: ...


def ask(server: Server, method: str, path: str, body: object = None) -> Any:
    """The decoded answer, or an ApiError."""
    context = ssl.create_default_context(cafile=server.ca_file)
    host = server.url.removeprefix("https://")
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    connection = http.client.HTTPSConnection(host, context=context, timeout=30)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, headers)
        response = connection.getresponse()
        told = response.read()
    finally:
        connection.close()
    if response.status < http.HTTPStatus.BAD_REQUEST:
        return json.loads(told)
    raise _refusal(response.status, told)


def _refusal(code: int, told: bytes) -> ApiError:
    """An error as the server told it; of a path that it does not know it tells in plain text."""
    try:
        return ApiError.from_status(json.loads(told))
    except ValueError:
        reason = "NotFound" if code == http.HTTPStatus.NOT_FOUND else ""
        return ApiError(code, reason, told.decode(errors="replace").strip())
