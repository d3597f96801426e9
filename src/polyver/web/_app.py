"""The routes of the page, and their handlers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from polyver.client import Client
from polyver.kube.objects import encode_json
from polyver.web._data import (
    dependent_data,
    dependents_data,
    lineage_data,
    overview_data,
    run_data,
    runs_data,
    why_data,
)
from polyver.web._html import Html, document
from polyver.web._informers import PageInformers, PageSource
from polyver.web._page import HEADERS
from polyver.web._rollout_data import rollout_data, rollouts_data
from polyver.web.pages import (
    PageLayout,
    dependent_page,
    dependents_page,
    lineage_page,
    overview_page,
    problem_page,
    rollout_page,
    rollouts_page,
    run_page,
    runs_page,
    why_page,
)
from polyver.web.view_model import DependentKey, LineageKey, PageModel

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["application", "opened"]

_MOST_TEXT = 200
_MOST_STREAMS = 64
_CALM = 1.0
"""The minimum number of seconds between two notifications to a browser about changes."""
_HEARTBEAT = 15.0
_STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def opened(client: Client, sources: Iterable[PageSource]) -> tuple[PageModel, PageInformers]:
    """Build the page model and its informers; each source begins to fill the model."""
    book, following = PageModel(), PageInformers(client)
    for source in sources:
        book.sections[source.capability] = source.description
        source.open(book, following)
    return book, following


def application(book: PageModel, following: PageInformers, ending: asyncio.Event) -> Starlette:
    """Build the ASGI application that serves the page to users who are signed in."""
    site = _Site(book, following, ending)
    routes = [
        Route("/", site.overview),
        Route("/lineages/{capability}/{path:path}", site.lineage),
        Route("/why/{capability}/{path:path}", site.why),
        Route("/dependents", site.dependents),
        Route("/dependents/{name:path}", site.dependent),
        Route("/rollouts", site.rollouts),
        Route("/rollouts/{name:path}", site.rollout),
        Route("/runs", site.runs),
        Route("/runs/{name:path}", site.run),
        Route("/api/lineages", site.overview),
        Route("/api/lineages/{capability}/{path:path}", site.lineage),
        Route("/api/why/{capability}/{path:path}", site.why),
        Route("/api/dependents", site.dependents),
        Route("/api/dependents/{name:path}", site.dependent),
        Route("/api/rollouts", site.rollouts),
        Route("/api/rollouts/{name:path}", site.rollout),
        Route("/api/runs", site.runs),
        Route("/api/runs/{name:path}", site.run),
        Route("/events", site.events),
        *(Route(f"/static/{name}", _static(name, media)) for name, media in _STATIC.items()),
    ]
    handlers: dict[Any, Any] = {HTTPException: site.refuse, Exception: site.fail}
    return Starlette(routes=routes, exception_handlers=handlers)


class _Site:
    """Answers requests for pages and for `/api` with data from the page model."""

    def __init__(self, book: PageModel, following: PageInformers, ending: asyncio.Event) -> None:
        self._book = book
        self._following = following
        self._ending = ending
        self._streams = 0

    # Pages.

    async def overview(self, request: Request) -> Response:
        text, capability = _text(request), request.query_params.get("capability", "")
        page = _number(request)
        data = overview_data(self._book, text=text, capability=capability, page=page)
        return self._answer(request, data, lambda: overview_page(data, text, capability))

    async def lineage(self, request: Request) -> Response:
        release = request.query_params.get("release", "")
        where, text, page = _where(request), _text(request), _number(request)
        data = lineage_data(self._book, where, release=release, text=text, page=page)
        if data is None:
            raise HTTPException(404, f"{where.capability} has no lineage {where.path}.")
        return self._answer(request, data, lambda: lineage_page(data))

    async def why(self, request: Request) -> Response:
        where = _where(request)
        asked = request.query_params
        place = DependentKey(asked.get("name", ""), asked.get("at", ""))
        data = why_data(self._book, where, place)
        if data is None:
            at, name = place.at, place.name or "This dependent"
            raise HTTPException(404, f"{name} has no reference {at} to {where.path}.")
        return self._answer(request, data, lambda: why_page(data))

    async def dependents(self, request: Request) -> Response:
        text, page = _text(request), _number(request)
        data = dependents_data(self._book, text=text, page=page)
        return self._answer(request, data, lambda: dependents_page(data))

    async def dependent(self, request: Request) -> Response:
        name = request.path_params["name"]
        data = dependent_data(self._book, name)
        if data is None:
            raise HTTPException(404, f"There is no dependent {name}.")
        return self._answer(request, data, lambda: dependent_page(data))

    async def rollouts(self, request: Request) -> Response:
        if not self._book.rollouts.is_enabled:
            raise HTTPException(404, "Rollouts are not enabled in this control plane.")
        text, page, state = _text(request), _number(request), request.query_params.get("state", "")
        data = rollouts_data(self._book, text=text, state=state, page=page)
        return self._answer(request, data, lambda: rollouts_page(data, datetime.now(UTC)))

    async def rollout(self, request: Request) -> Response:
        name = request.path_params["name"]
        found = self._book.rollouts.rollouts.get(name)
        if found is None:
            raise HTTPException(404, f"There is no rollout {name}.")
        data = rollout_data(self._book, found)
        return self._answer(request, data, lambda: rollout_page(data, datetime.now(UTC)))

    async def runs(self, request: Request) -> Response:
        text, page, state = _text(request), _number(request), request.query_params.get("state", "")
        data = runs_data(self._book, text=text, state=state, page=page)
        return self._answer(request, data, lambda: runs_page(data))

    async def run(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._book.runs:
            raise HTTPException(404, f"There is no run {name}.")
        data = run_data(self._book.runs[name])
        return self._answer(request, data, lambda: run_page(data))

    def _answer(
        self, request: Request, data: dict[str, Any], shown: Callable[[], tuple[str, Html]]
    ) -> Response:
        if _is_api(request):
            body = encode_json({**data, "incomplete": self._following.problems})
            return _response(200, "application/json", body)
        title, main = shown()
        body = document(self._frame(request).around(title, main))
        return _response(200, "text/html; charset=utf-8", body)

    def _frame(self, request: Request) -> PageLayout:
        return PageLayout(
            request.url.path,
            rollouts=self._book.rollouts.is_enabled,
            runs=bool(self._book.runs),
            revision=self._book.revision,
            problems=self._following.problems,
            is_synced=self._following.is_synced,
        )

    # Errors.

    async def refuse(self, request: Request, error: HTTPException) -> Response:
        status = error.status_code
        detail = (
            "There is nothing at this address." if error.detail == "Not Found" else error.detail
        )
        if _is_api(request):
            return _response(status, "application/json", encode_json({"error": detail}))
        title, main = problem_page(status, detail)
        body = document(self._frame(request).around(title, main))
        return _response(status, "text/html; charset=utf-8", body)

    async def fail(self, request: Request, error: Exception) -> Response:
        del error  # Starlette raises it again, and the caller logs it
        detail = "This page could not be rendered; see the log of polyver."
        return await self.refuse(request, HTTPException(500, detail))

    # Live updates.

    async def events(self, request: Request) -> Response:
        if request.method == "HEAD":
            return _response(200, "text/event-stream", b"")
        if self._streams >= _MOST_STREAMS or self._ending.is_set():
            raise HTTPException(503, "Too many browsers receive events already.")
        response = StreamingResponse(self._told(), media_type="text/event-stream")
        response.headers.update(HEADERS)
        return response

    async def _told(self) -> AsyncIterator[bytes]:
        """Yield events for a browser: each new revision of the model, and heartbeats.

        Between two revisions at least `_CALM` seconds pass.
        """
        self._streams += 1
        seen = -1
        try:
            while not self._ending.is_set():
                if self._book.revision != seen:
                    seen = self._book.revision
                    yield b"data: %d\n\n" % seen
                    await self._until(asyncio.Event().wait(), _CALM)
                elif not await self._until(self._book.changed(seen), _HEARTBEAT):
                    yield b": still here\n\n"
        finally:
            self._streams -= 1

    async def _until(self, happens: Any, patience: float) -> bool:
        """Wait until `happens` is done or the server shuts down, but at most `patience` seconds.

        Return False if the time is over before.
        """
        tasks = [asyncio.ensure_future(each) for each in (happens, self._ending.wait())]
        try:
            done, _ = await asyncio.wait(
                tasks, timeout=patience, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in tasks:
                task.cancel()
        return bool(done)


# Requests.


def _is_api(request: Request) -> bool:
    return request.url.path.startswith("/api/")


def _where(request: Request) -> LineageKey:
    return LineageKey(request.path_params["capability"], request.path_params["path"])


def _text(request: Request) -> str:
    text = request.query_params.get("q", "").strip()
    if len(text) > _MOST_TEXT:
        raise HTTPException(400, f"A search may have at most {_MOST_TEXT} characters.")
    return text


def _number(request: Request) -> int:
    text = request.query_params.get("page", "1")
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise HTTPException(400, "The parameter page must be a number.")
    return int(text)


# Responses.


def _response(status: int, media: str, body: bytes) -> Response:
    return Response(body, status, {**HEADERS, "content-type": media})


def _static(name: str, media: str) -> Any:
    body = files("polyver.web").joinpath("static", name).read_bytes()

    async def answer(request: Request) -> Response:
        del request
        return _response(200, media, body)

    return answer
