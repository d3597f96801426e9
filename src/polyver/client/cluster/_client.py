"""The client over HTTPS: requests with a deadline, and watches that detect a dead connection.

The library lightkube reads kubeconfigs and builds the TLS context. The library httpx2 sends
requests. polyver's own codec decodes objects to plain data in the requested version.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlencode

import httpx2

from polyver.client._clock import Backoff, Clock, SystemClock, chance, sleep
from polyver.client._informer import Change, Informer
from polyver.client.client import BadAnswer, Client, ClientRequest, ClientResponse, path_of
from polyver.client.cluster._access import (
    ClientLimits,
    ClusterAccess,
    NoAccess,
    Unauthorized,
    Unreachable,
    Untrusted,
)
from polyver.client.cluster._commands import PROTOCOLS, Channels, executed
from polyver.client.cluster._connections import Connections, LeasedConnections
from polyver.client.cluster._websocket import BadFrame, accepted, new_key
from polyver.client.types import CRDS, Discovery, Executed, GroupVersionResource
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

if TYPE_CHECKING:
    import httpcore2

__all__ = ["ClusterClient"]

_SAFE = "/:@!$&'()*+,;=~"
_MOST_WAITS = 5
_LONGEST_WAIT = 10.0
_LOST = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError, httpx2.CloseError)
# Objects that add or remove kinds. A server starts or stops serving a kind a little after the
# change of the object.
_DEFINING = (
    CRDS,
    GroupVersionResource("apiregistration.k8s.io", "v1", "apiservices", namespaced=False),
)
_PODS = GroupVersionResource("", "v1", "pods")
_LOOK_AGAIN = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0)
_PATIENT = Backoff(first=1.0, most=300.0)


class ClusterClient(Client):
    """Sends requests to a server over the network; see `polyver.client.Client`.

    A client belongs to one event loop. Close it with `async with`, or by `close`.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        agent: str = "polyver",
        clock: Clock | None = None,
        limits: ClientLimits | None = None,
        interval: float = 60.0,
    ) -> None:
        super().__init__()
        self.access = access
        self._agent = agent
        self._clock = clock or SystemClock()
        self._limits = limits or ClientLimits()
        self._interval = interval
        self.longest_line = self._limits.line
        self._connections = Connections(access, clock=self._clock, limits=self._limits)
        self._acting = _acting(access)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all unused connections now, and all others when their requests have ended."""
        await self._connections.close()

    # Kinds

    async def watch_kinds(self) -> AsyncGenerator[Discovery, None]:
        changed = asyncio.Event()
        async with _informed(self, changed, self._clock):
            seen: Discovery | None = None
            looked = 0
            while True:
                changed.clear()
                found = await self.discover()
                if found != seen:
                    seen = found
                    yield found
                soon = _LOOK_AGAIN[looked] if looked < len(_LOOK_AGAIN) else self._interval
                looked = 0 if await self._is_set(changed, soon) else looked + 1

    async def _is_set(self, changed: asyncio.Event, within: float) -> bool:
        over = False

        def end() -> None:
            nonlocal over
            over = not changed.is_set()
            changed.set()

        timer = self._clock.call_later(within, end)
        try:
            await changed.wait()
        finally:
            timer.cancel()
        return not over

    # Pods

    async def execute(
        self, pod: str, namespace: str, *, container: str, command: Sequence[str], limit: int
    ) -> Executed:
        words = [("stdout", "true"), ("stderr", "true"), ("container", container)]
        query = urlencode([*words, *(("command", word) for word in command)])
        key = new_key()
        further = (
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", key),
            ("sec-websocket-protocol", ", ".join(PROTOCOLS)),
        )
        path = path_of(_PODS, pod, namespace, "exec")
        ask = ClientRequest("GET", path, query, accept="*/*", further=further)
        await self._connections.ready()
        try:
            async with self._opened(ask, watching=True) as response:
                if response.status_code != 101:
                    raise self._refused(ask, await self._whole(ask, response))
                if response.headers.get("sec-websocket-accept") != accepted(key):
                    raise BadAnswer("the server does not support WebSocket", at=str(ask))
                stream = response.extensions["network_stream"]
                return await executed(stream, Channels(str(ask), limit))
        except httpx2.HTTPError as error:
            raise self._unreachable(ask, error) from error
        except BadFrame as error:
            raise BadAnswer(error.fact, at=str(ask)) from None

    async def logs(self, pod: str, namespace: str, *, container: str, limit: int) -> bytes:
        query = urlencode({"container": container, "limitBytes": str(limit)})
        ask = ClientRequest("GET", path_of(_PODS, pod, namespace, "log"), query, accept="*/*")
        answer = await self._send(ask)
        if not 200 <= answer.status < 300:
            raise self._refused(ask, answer)
        return answer.body

    # Sending

    def _watch_seconds(self) -> int:
        # Add jitter, so that watches that began together do not end together.
        return max(int(self._limits.silence * (0.9 - 0.4 * chance())), 1)

    def _refused(self, ask: ClientRequest, answer: ClientResponse) -> ApiError:
        refused = super()._refused(ask, answer)
        if refused.code != 401:
            return refused
        hint = "log in again, or renew the token or certificate in the kubeconfig"
        return Unauthorized(refused, place=self._place, hint=hint)

    @property
    def _place(self) -> str:
        return f"{self.access.server}, {self.access.place}"

    async def _send(self, ask: ClientRequest) -> ClientResponse:
        await self._connections.ready()
        try:
            async with asyncio.timeout(self._limits.request):
                return await self._sent(ask, again=ask.method == "GET")
        except TimeoutError:
            raise self._late(ask) from None

    async def _sent(self, ask: ClientRequest, *, again: bool) -> ClientResponse:
        try:
            async with self._opened(ask) as response:
                return await self._whole(ask, response)
        except _LOST as error:
            # The server may have closed an idle connection just now.
            if not again:
                raise self._unreachable(ask, error) from error
        except httpx2.HTTPError as error:
            raise self._unreachable(ask, error) from error
        return await self._sent(ask, again=False)

    async def _pieces(self, ask: ClientRequest) -> AsyncGenerator[bytes, None]:
        await self._connections.ready()
        async with AsyncExitStack() as undo:
            try:
                async with asyncio.timeout(self._limits.request):
                    response = await undo.enter_async_context(self._opened(ask, watching=True))
                    if not 200 <= response.status_code < 300:
                        raise self._refused(ask, await self._whole(ask, response))
                _keep_alive(response)
                async with aclosing(response.aiter_raw()) as pieces:
                    async for piece in pieces:
                        yield piece
            except TimeoutError:
                raise self._late(ask) from None
            except httpx2.HTTPError as error:
                raise self._unreachable(ask, error) from error

    @asynccontextmanager
    async def _opened(
        self, ask: ClientRequest, *, watching: bool = False
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request; yield the response as soon as its headers have arrived.

        After 429 or 503, the request is sent again if `_pause` returns a delay. After 401, it is
        sent again once, if other credentials are available.
        """
        renewed, waits = False, 0
        began = self._clock.time()
        while True:
            async with self._connections.lend() as lent:
                response = await self._begun(ask, lent, watching=watching)
                try:
                    status = response.status_code
                    wait = self._pause(ask, response, waits, began)
                    unknown = status == 401 and not renewed
                    if wait is None and not (unknown and await self._renewed(lent)):
                        yield response
                        return
                    # After a complete response the connection can be used again.
                    await self._whole(ask, response)
                finally:
                    await response.aclose()
            renewed, waits = renewed or unknown, waits + 1
            if wait is not None:
                await sleep(self._clock, wait)

    async def _renewed(self, lent: LeasedConnections) -> bool:
        return await self._connections.renewed(lent.shown)

    async def _begun(
        self, ask: ClientRequest, lent: LeasedConnections, *, watching: bool
    ) -> httpx2.Response:
        client = lent.watches if watching else lent.requests
        read = self._limits.silence if watching else self._limits.request
        limits = self._limits
        soon = min(limits.connect, limits.request / 2)
        timeout = httpx2.Timeout(limits.request, connect=limits.connect, read=read, pool=soon)
        url = f"{self.access.server}{quote(ask.path, safe=_SAFE)}"
        making = _Making()
        extensions: dict[str, object] = {"trace": making.trace}
        if named := self.access.cluster.tls_server_name:
            extensions["sni_hostname"] = named
        request = client.build_request(
            ask.method,
            f"{url}?{ask.query}" if ask.query else url,
            headers=self._headers(ask, lent, watching=watching),
            content=ask.body or None,
            timeout=timeout,
            extensions=extensions,
        )
        try:
            return await client.send(request, stream=True)
        finally:
            await making.close()

    def _headers(
        self, ask: ClientRequest, lent: LeasedConnections, *, watching: bool
    ) -> list[tuple[str, str]]:
        found = [*ask.headers.items(), ("user-agent", self._agent), *self._acting]
        found.append(("accept-encoding", "identity" if watching else "gzip"))
        if lent.shown.authorization:
            found.append(("authorization", lent.shown.authorization))
        return found

    def _pause(
        self, ask: ClientRequest, response: httpx2.Response, waits: int, began: float
    ) -> float | None:
        """Return the seconds to wait before the request is sent again; None if it must not be.

        A server that responds with 429 has not processed the request. If it responds to a write
        with 503, it is unknown whether the server has processed the write.
        """
        again = response.status_code == 429 or (response.status_code, ask.method) == (503, "GET")
        after = response.headers.get("retry-after", "")
        if not again or waits >= _MOST_WAITS or not re.fullmatch("[0-9]{1,5}", after):
            return None
        wait = int(after) + 0.25 * chance()
        left = began + self._limits.request - self._clock.time()
        return wait if wait <= min(_LONGEST_WAIT, left / 2) else None

    async def _whole(self, ask: ClientRequest, response: httpx2.Response) -> ClientResponse:
        pieces, size = [], 0
        async for piece in response.aiter_bytes():
            pieces.append(piece)
            size += len(piece)
            if size > self._limits.answer:
                fact = f"the response has more than {self._limits.answer} bytes"
                raise BadAnswer(fact, at=str(ask))
        headers = {name: response.headers[name] for name in response.headers}
        return ClientResponse(response.status_code, b"".join(pieces), headers)

    # Failures

    def _late(self, ask: ClientRequest) -> Unreachable:
        fact = f"{ask} was not answered within {self._limits.request:g} s"
        return Unreachable(fact, at=self._place)

    def _unreachable(self, ask: ClientRequest, error: httpx2.HTTPError) -> Unreachable:
        cause = _cause(error)
        if isinstance(cause, ssl.SSLCertVerificationError):
            fact = f"the certificate of the server is not trusted: {cause.verify_message}"
            hint = "compare certificate-authority-data with the CA of the cluster"
            return Untrusted(fact, at=self._place, hint=hint)
        match error:
            case httpx2.PoolTimeout():
                fact, hint = f"{ask}: all connections are in use", "watch fewer kinds at once"
            case httpx2.ReadTimeout():
                fact, hint = f"{ask}: the server does not answer any more", ""
            case httpx2.DecodingError():
                fact, hint = f"{ask}: the response cannot be decompressed: {error}", ""
            case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.ProxyError():
                reason = _reason(cause, error)
                fact = f"the server cannot be reached: {reason}"
                hint = "check that it runs, and check the address"
            case _:
                fact, hint = f"{ask}: the connection was lost: {_reason(cause, error)}", ""
        return Unreachable(fact, at=self._place, hint=hint)


class _Making:
    """Keeps a connection while it is being opened, to close it if the request is cancelled.

    If a request is cancelled during a TLS handshake, httpcore2 drops the connection without closing
    it. The connection would stay open until Python's garbage collection.
    """

    def __init__(self) -> None:
        self._stream: httpcore2.AsyncNetworkStream | None = None

    async def trace(self, event: str, about: Mapping[str, Any]) -> None:
        if event.endswith("connect_tcp.complete"):
            self._stream = about["return_value"]
        elif event.endswith(("start_tls.complete", "send_request_headers.started")):
            self._stream = None

    async def close(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()


def _cause(error: BaseException) -> BaseException:
    """Return the innermost cause of an error, usually the error of the operating system."""
    seen = {id(error)}
    while (inner := error.__cause__ or error.__context__) is not None and id(inner) not in seen:
        seen.add(id(inner))
        # The exception group has an error for each address of a host name. The errors seldom
        # differ.
        error = inner.exceptions[0] if isinstance(inner, BaseExceptionGroup) else inner
    return error


def _reason(cause: BaseException, error: httpx2.HTTPError) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "it timed out"
    if isinstance(cause, ConnectionError) and cause.errno:
        return os.strerror(cause.errno)  # asyncio adds the address, which the message has already
    said = cause.strerror if isinstance(cause, OSError) else ""
    return said or str(cause) or str(error) or type(cause).__name__


def _acting(access: ClusterAccess) -> list[tuple[str, str]]:
    user = access.user
    if not user.acts_as:
        if user.acts_as_uid or user.acts_as_groups or user.acts_as_extra:
            fact = "as-groups, as-uid or as-user-extra are given without as"
            raise NoAccess(fact, at=access.place)
        return []
    found = [("impersonate-user", user.acts_as)]
    found += [("impersonate-uid", user.acts_as_uid)] if user.acts_as_uid else []
    found += [("impersonate-group", group) for group in user.acts_as_groups or ()]
    for name, values in (user.acts_as_extra or {}).items():
        found += [(f"impersonate-extra-{quote(name, safe='')}", value) for value in values]
    return found


def _keep_alive(response: httpx2.Response) -> None:
    """Enable TCP keep-alive, so that the operating system soon detects a dead connection."""
    stream = response.extensions.get("network_stream")
    raw = stream.get_extra_info("socket") if stream is not None else None
    if raw is None:
        return
    options = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
    with suppress(OSError):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in options.items():
            if hasattr(socket, name):
                raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


@asynccontextmanager
async def _informed(
    client: ClusterClient, changed: asyncio.Event, clock: Clock
) -> AsyncIterator[None]:
    """Set the event `changed` whenever a CRD or an APIService changes, during a `with` block.

    If the user may not watch these kinds, the event is never set.
    """

    async def tell(_: Change[str]) -> None:
        changed.set()

    informers = [
        Informer(
            client,
            resource,
            keep=_version,
            handler=tell,
            metadata=True,
            clock=clock,
            backoff=_PATIENT,
        )
        for resource in _DEFINING
    ]
    tasks = [asyncio.create_task(each.run()) for each in informers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _version(content: Object) -> str:
    return str(content["metadata"]["resourceVersion"])
