"""The ASGI application around the request pipeline.

The application receives the body, finds the user, compresses large answers and sends the chunks of
watches. The pipeline gets complete requests of limited size.
"""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from typing import Any

from polyver.kube.http.health import Checks, health
from polyver.kube.http.http import (
    BodyTooLarge,
    ClientDisconnected,
    Receive,
    Scope,
    Send,
    read_body,
    start,
)
from polyver.kube.http.logs import Log
from polyver.kube.objects.codec import encode_json
from polyver.kube.objects.status import ApiError, internal
from polyver.kube.server._uids import new_uid
from polyver.kube.server.http import Handler, HttpRequest, HttpResponse
from polyver.kube.server.identity import (
    AuthorizationAttributes,
    Identities,
    certificate_user,
    impersonated,
    may,
    refusal,
)
from polyver.kube.server.metrics import ApiServerMetrics

__all__ = ["ApiServerApp", "certificate_state"]

MOST_BODY = 3 * 1024 * 1024
_MOST_DISCARDED = 64 * 1024 * 1024
_COMPRESSED_FROM = 128 * 1024
_COMPRESSED_OFF_LOOP_FROM = 1024 * 1024
_HEALTH = ("/healthz", "/livez", "/readyz")
_LOOPBACK = ("127.", "::1")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_UNPRINTABLE = re.compile(r"[^!-~]")

_UNCACHED = ("cache-control", "no-cache, private")
_CERTIFICATE_USER = "certificate_user"


def certificate_state(transport: asyncio.Transport) -> dict[str, Any]:
    """Build the ASGI state of a connection: the user of the client certificate, if any."""
    connection: Any = transport.get_extra_info("ssl_object")
    certificate = connection and connection.getpeercert()
    if not certificate:
        return {}
    user = certificate_user(certificate["subject"], connection.getpeercert(binary_form=True))
    return {_CERTIFICATE_USER: user} if user else {}


class ApiServerApp:
    """The ASGI application of the API server, which passes requests to the request pipeline."""

    def __init__(
        self,
        api: Handler,
        identities: Identities,
        *,
        checks: Checks | None = None,
        metrics: ApiServerMetrics | None = None,
        log: Log | None = None,
    ) -> None:
        self._api = api
        self._identities = identities
        self._metrics = metrics or ApiServerMetrics()
        self._log = log or Log()
        self._streams: set[asyncio.Task[None]] = set()
        self._ending = False
        alive = {"ping": lambda: "", **(checks or {})}
        ready = {**alive, "shutdown": lambda: "process is shutting down" if self._ending else ""}
        self._checks: Mapping[str, Checks] = {"healthz": alive, "livez": alive, "readyz": ready}

    def end_streams(self) -> None:
        """End every watch as if its timeout had passed; watches started later end immediately."""
        self._ending = True
        for stream in self._streams:
            stream.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"]]
        known = dict(headers)
        try:
            response = await self._answer(scope, headers, known, receive)
        except ClientDisconnected:
            return
        # A client may choose the ID of its request.
        audit_id = _UNPRINTABLE.sub("", known.get("audit-id", ""))[:64] or new_uid()
        await send(start(response, [("audit-id", audit_id), _UNCACHED]))
        lasting = not isinstance(response.body, bytes)
        if isinstance(response.body, bytes):
            await send({"type": "http.response.body", "body": response.body})
        else:
            await self._stream(response.body, receive, send)
        seconds = time.perf_counter() - began
        method, path, status = scope["method"], scope["path"], response.status
        self._metrics.observe(method, path, status, None if lasting else seconds, watch=lasting)
        if self._log.verbose:
            took = round(seconds * 1000, 2)
            self._log.info("request", method=method, path=path, status=status, ms=took)

    async def _answer(
        self,
        scope: Scope,
        headers: Iterable[tuple[str, str]],
        known: Mapping[str, str],
        receive: Receive,
    ) -> HttpResponse:
        if b"%" in scope["raw_path"] and _BAD_ESCAPE.search(scope["raw_path"]):
            # The answer has the text of Go's HTTP library.
            headers_sent = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
            return HttpResponse(400, headers_sent, b"400 Bad Request")
        try:
            certificate = scope.get("state", {}).get(_CERTIFICATE_USER)
            user = self._identities.who(certificate, known.get("authorization", ""))
            user = impersonated(user, headers)
            body = await read_body(receive, most=MOST_BODY, most_discarded=_MOST_DISCARDED)
            query, client = scope["query_string"].decode("latin-1"), scope.get("client")
            remote = client[0] if client else ""
            request = HttpRequest(scope["method"], scope["path"], query, known, body, user, remote)
            response = self._own(request) or await self._api.handle(request)
            sent = response.body
            is_large = isinstance(sent, bytes) and len(sent) > _COMPRESSED_FROM
            return await _compressed(response, request) if is_large else response
        except BodyTooLarge as error:
            return _refused(ApiError(413, "RequestEntityTooLarge", str(error)))
        except ApiError as error:
            return _refused(error)
        except ClientDisconnected:
            raise
        except Exception as error:
            self._log.failure("a request failed", error, path=scope["path"])
            return _refused(internal("this request failed; see the log of the server"))

    def _own(self, request: HttpRequest) -> HttpResponse | None:
        """Answer a request for health or metrics; return None for every other request."""
        path = request.path
        is_health = path.startswith(_HEALTH) and path.split("/", 2)[1] in self._checks
        if not is_health and path != "/metrics":
            return None
        wanted = AuthorizationAttributes(request.method.lower(), path=path)
        if not may(request.user, wanted):
            raise refusal(request.user, wanted)
        if is_health:
            return health(path, request.query, self._checks[path.split("/", 2)[1]])
        return self._metrics.response()

    async def _stream(self, chunks: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
        """Send the chunks of a response one by one.

        Stop after the last chunk, or when the client disconnects.
        """
        pump = asyncio.create_task(_pump(chunks, send))
        gone = asyncio.create_task(_gone(receive))
        self._streams.add(pump)
        self._metrics.watchers += 1
        if self._ending:
            pump.cancel()
        try:
            await asyncio.wait((pump, gone), return_when=asyncio.FIRST_COMPLETED)
            left = gone.done()
        finally:
            self._metrics.watchers -= 1
            self._streams.discard(pump)
            failed = await _ended(pump)
            await _ended(gone)
        if failed:
            # The final message is not sent, so the client sees that the answer is incomplete.
            self._log.failure("a stream failed", failed)
        elif not left:
            await send({"type": "http.response.body", "body": b""})


async def _pump(chunks: AsyncIterator[bytes], send: Send) -> None:
    try:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _ended(task: asyncio.Task[None]) -> BaseException | None:
    """Cancel a task and wait until it has ended; return the exception that it raised, or None."""
    task.cancel()
    await asyncio.wait((task,))
    return None if task.cancelled() else task.exception()


def _refused(error: ApiError) -> HttpResponse:
    headers = [("content-type", "application/json"), *error.headers.items()]
    return HttpResponse(error.code, headers, encode_json(error.status) + b"\n")


async def _compressed(response: HttpResponse, request: HttpRequest) -> HttpResponse:
    """Compress a large response with gzip.

    Return it unchanged if the client does not accept gzip, or if the client is on this machine.
    """
    # Within one machine, compression takes longer than the transfer of the saved bytes.
    accepted = request.headers.get("accept-encoding", "").split(",")
    takes_gzip = any(each.partition(";")[0].strip() == "gzip" for each in accepted)
    if request.remote.startswith(_LOOPBACK) or not takes_gzip:
        return response
    body = response.body
    assert isinstance(body, bytes)
    if len(body) < _COMPRESSED_OFF_LOOP_FROM:
        packed = _gzip(body)
    else:
        packed = await asyncio.to_thread(_gzip, body)
    added = [("content-encoding", "gzip"), ("vary", "Accept-Encoding")]
    return HttpResponse(response.status, [*response.headers, *added], packed)


def _gzip(body: bytes) -> bytes:
    return zlib.compress(body, level=1, wbits=31)
