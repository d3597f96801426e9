"""Send requests of tests to any API server, as an administrator."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from pathlib import Path
from typing import Any, Final, Protocol

from polyver.kube.objects.status import ApiError

__all__ = ["ApiEndpoint", "ask"]

_PATIENCE: Final = 300.0
_PAUSE: Final = 0.1


class ApiEndpoint(Protocol):
    """What EmbeddedServer and LocalCluster have in common, so that a test can use either."""

    @property
    def url(self) -> str: ...

    @property
    def ca_file(self) -> Path: ...

    @property
    def token(self) -> str: ...


def ask(server: ApiEndpoint, method: str, path: str, body: object = None) -> Any:
    """Send a request; return the decoded response, or raise an ApiError.

    For a short time after a CRD was created, kube-apiserver refuses requests for its kind with 429.
    It has not processed these requests, so this function sends them again.
    """
    end = time.monotonic() + _PATIENCE
    while True:
        status, told = _answer(server, method, path, body)
        if status != http.HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > end:
            break
        time.sleep(_PAUSE)
    if status < http.HTTPStatus.BAD_REQUEST:
        return json.loads(told)
    raise _refusal(status, told)


def _answer(server: ApiEndpoint, method: str, path: str, body: object) -> tuple[int, bytes]:
    context = ssl.create_default_context(cafile=server.ca_file)
    host = server.url.removeprefix("https://")
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    connection = http.client.HTTPSConnection(host, context=context, timeout=_PATIENCE)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _refusal(code: int, told: bytes) -> ApiError:
    """Build the ApiError for an error response, whose body is a Status or plain text.

    For an unknown path, the server responds with plain text.
    """
    try:
        return ApiError.from_status(json.loads(told))
    except ValueError:
        reason = "NotFound" if code == http.HTTPStatus.NOT_FOUND else ""
        return ApiError(code, reason, told.decode(errors="replace").strip())
