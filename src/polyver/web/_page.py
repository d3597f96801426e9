"""The page as an ASGI application.

The application checks the access before it loads the code that builds the page. It loads this code
when the first user who is signed in sends a request. So the code uses no memory until somebody
opens the page.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from polyver.client import Client
from polyver.kube.http.http import Application, HttpResponse, Receive, Scope, Send, start
from polyver.kube.http.logs import Log
from polyver.web._access import PageAuthenticator, host_is_local

if TYPE_CHECKING:
    from polyver.web.sources import PageInformers, PageSource

__all__ = ["HEADERS", "Page"]

_MOST_PATH = 2048
_MOST_QUERY = 4096
_PATIENCE = 5.0

HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Page:
    """The ASGI application of the page, to be served on the loopback address.

    `sources` returns the page source of each capability. It is called once, on the first request of
    a user who is signed in.
    """

    def __init__(
        self,
        client: Client,
        sources: Callable[[], Sequence[PageSource]],
        *,
        token: str,
        log: Log | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._sources = sources
        self._access = PageAuthenticator(token)
        self._log = log or Log()
        self._now = now
        self._ending = asyncio.Event()
        self._following: PageInformers | None = None
        self._app: Application | None = None
        self._opening = asyncio.Lock()

    def end_streams(self) -> None:
        """End all streams of live updates, and refuse new streams."""
        self._ending.set()

    async def close(self) -> None:
        """Stop all informers of the page."""
        if self._following is not None:
            await self._following.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refused(scope)
        if refused is not None:
            await _answer(refused, send)
            return
        begun = False

        async def sent(message: Mapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            app = self._app or await self._opened()
            await app(scope, receive, sent)
        except Exception as error:
            self._log.failure("a request for the page failed", error, path=scope["path"])
            if not begun:
                await _answer(_told(500, "Error", _FAILED), send)

    def _refused(self, scope: Scope) -> HttpResponse | None:
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        query = scope["query_string"].decode("latin-1")
        if not host_is_local(headers.get("host", "")):
            text = "This page is served only as 127.0.0.1 and localhost."
            return _told(421, "Misdirected", text)
        if len(scope["raw_path"]) > _MOST_PATH or len(query) > _MOST_QUERY:
            return _told(414, "Too long", "This address is too long.")
        if scope["method"] not in ("GET", "HEAD"):
            refused = _told(405, "Not allowed", "This page is read-only.")
            refused.headers.append(("allow", "GET, HEAD"))
            return refused
        now = self._now()
        entered = self._access.entered(scope["path"], query, now)
        if entered is not None:
            to = [("location", _quoted(entered.address)), ("set-cookie", entered.cookie)]
            return HttpResponse(303, to, b"")
        if not self._access.allows(headers, now):
            return _told(401, "Not signed in", _HOW, link=True)
        return None

    async def _opened(self) -> Application:
        """Load the code of the page, and wait until its data has been read."""
        async with self._opening:
            if self._app is None:
                # Load in a worker thread: loading takes long, and must not block other requests.
                shown = await asyncio.to_thread(importlib.import_module, "polyver.web._app")
                sources = await asyncio.to_thread(self._sources)
                book, self._following = shown.opened(self._client, sources)
                await self._following.synced(_PATIENCE)
                self._app = shown.application(book, self._following, self._ending)
        assert self._app is not None
        return self._app


async def _answer(response: HttpResponse, send: Send) -> None:
    await send(start(response, HEADERS.items()))
    await send({"type": "http.response.body", "body": response.body})


_FAILED = "The page could not be opened; see the log of polyver."
_HOW = (
    "To open this page, use the address that polyver up prints: it ends with ?token=…. It is also "
    "in the file page.url of the data folder."
)


def _told(status: int, title: str, text: str, *, link: bool = False) -> HttpResponse:
    """Build a simple page with a message. It contains no text from the request."""
    again = '<p><a href="/">I have opened it: continue</a></p>' if link else ""
    body = (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width">'
        f"<h1>{title}</h1><p>{text}</p>{again}</html>\n"
    )
    return HttpResponse(status, [("content-type", "text/html; charset=utf-8")], body.encode())


def _quoted(address: str) -> str:
    from urllib.parse import quote

    return quote(address, safe="/?&=%+:@,;~()[]!$'*")
