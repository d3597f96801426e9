"""A client that calls the request pipeline of the embedded server, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from polyver.client import Clock, Discovery, SystemClock
from polyver.client.client import Client, ClientRequest, ClientResponse
from polyver.kube.server.http import Handler, HttpRequest, HttpResponse, User

__all__ = ["DirectClient"]


class DirectClient(Client):
    """Sends requests to the server in this process as one user; see `polyver.client.Client`.

    The code that creates the client should subscribe `kinds_changed` to the server, so that the
    server calls it when kinds change. Otherwise the client notices changed kinds only every
    `interval` seconds.
    """

    def __init__(
        self,
        api: Handler,
        user: User,
        *,
        agent: str = "polyver",
        clock: Clock | None = None,
        interval: float = 30.0,
    ) -> None:
        super().__init__()
        self._api = api
        self._user = user
        self._agent = agent
        self._clock = clock or SystemClock()
        self._interval = interval
        self._watching_kinds: set[asyncio.Event] = set()

    async def watch_kinds(self) -> AsyncGenerator[Discovery, None]:
        changed = asyncio.Event()
        self._watching_kinds.add(changed)
        seen: Discovery | None = None
        try:
            while True:
                changed.clear()
                found = await self.discover()
                if found != seen:
                    seen = found
                    yield found
                await self._until(changed)
        finally:
            self._watching_kinds.discard(changed)

    def kinds_changed(self) -> None:
        """Notify watchers; the server calls this when kinds were added, removed or changed."""
        for changed in self._watching_kinds:
            changed.set()

    async def _until(self, changed: asyncio.Event) -> None:
        timer = self._clock.call_later(self._interval, changed.set)
        try:
            await changed.wait()
        finally:
            timer.cancel()

    async def _send(self, ask: ClientRequest) -> ClientResponse:
        response = await self._handled(ask)
        return ClientResponse(response.status, await _whole(response), _headers(response))

    async def _pieces(self, ask: ClientRequest) -> AsyncGenerator[bytes, None]:
        response = await self._handled(ask)
        if not 200 <= response.status < 300:
            answer = ClientResponse(response.status, await _whole(response), _headers(response))
            raise self._refused(ask, answer)
        if isinstance(response.body, bytes):
            yield response.body
            return
        try:
            async for piece in response.body:
                yield piece
        finally:
            if isinstance(response.body, AsyncGenerator):
                await response.body.aclose()

    async def _handled(self, ask: ClientRequest) -> HttpResponse:
        request = HttpRequest(
            method=ask.method,
            path=ask.path,
            query=ask.query,
            headers=ask.headers | {"user-agent": self._agent},
            body=ask.body,
            user=self._user,
            own=True,
        )
        return await self._api.handle(request)


async def _whole(response: HttpResponse) -> bytes:
    if isinstance(response.body, bytes):
        return response.body
    return b"".join([piece async for piece in response.body])


def _headers(response: HttpResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers}
