"""Starts the web page: binds its port on the loopback address; serves it to users with a token."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from polyver.kube.http.addresses import LOOPBACK, url
from polyver.kube.http.files import write_file

if TYPE_CHECKING:
    import socket

    from polyver.app.capabilities import Choices
    from polyver.kube.http.logs import Log
    from polyver.kube.server.credentials import Credentials
    from polyver.kube.server.http import Handler
    from polyver.web.sources import PageSource

__all__ = ["bind_page", "serving_page"]


@contextmanager
def bind_page(port: int | None) -> Iterator[socket.socket | None]:
    """Bind the port of the web page, and yield its socket. If `port` is None, yield None."""
    if port is None:
        yield None
        return
    from polyver.kube.http.listener import bind

    with bind(LOOPBACK, port, option="--page-port") as listener:
        yield listener


@asynccontextmanager
async def serving_page(
    listener: socket.socket | None,
    api: Handler,
    credentials: Credentials,
    choices: Choices,
    log: Log,
) -> AsyncIterator[str]:
    """Serve the web page until the context ends. Yield its URL, which contains the token.

    If `listener` is None, there is no web page, and the URL is empty.
    """
    if listener is None:
        yield ""
        return
    from polyver.client.in_process import DirectClient
    from polyver.kube.http.listener import serving
    from polyver.kube.server.identity import VIEWER
    from polyver.web import Page

    client = DirectClient(api, VIEWER, agent="polyver-page")
    token = credentials.page_token
    page = Page(client, partial(_sources, choices), token=token, log=log)
    at = url(LOOPBACK, listener.getsockname()[1], scheme="http")
    address = f"{at}/?token={token}"
    _keep(credentials.folder.parent / "page.url", address)
    # The web page is served without TLS. Its data never leaves this machine, and no browser would
    # trust our certificate.
    async with serving(page, listener, None, ending=page.end_streams):
        try:
            yield address
        finally:
            await page.close()


def _keep(file: Path, address: str) -> None:
    """Write the URL of the web page to a file in the data folder."""
    content = f"{address}\n".encode()
    if not file.exists() or file.read_bytes() != content:
        write_file(file, content)


def _sources(choices: Choices) -> Sequence[PageSource]:
    """Return the page source of each enabled capability; the page shows them in this order."""
    from polyver.app.capabilities import BASE

    sources = [each.source() for each in choices.contributions() if each.source is not None]
    # Every capability declares kinds, so the kinds come last.
    return sorted(sources, key=lambda each: each.capability == BASE)
