"""What sources watch: what cannot be read costs itself alone, and is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, ClassVar, cast

from polyver.client import Change, Client, GroupVersionResource, Listing, WatchEvent
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects.status import ApiError
from polyver.web import Page
from polyver.web._informers import PageInformers, PageSource, WatchedCollection
from polyver.web.view_model import PageModel

WIDGETS = GroupVersionResource("ex.io", "v1", "widgets")


def widget(name: str, size: object) -> Object:
    return {"metadata": {"name": name, "namespace": "a", "resourceVersion": "1"}, "size": size}


class _Server:
    """A collection that changes as a test says."""

    def __init__(self, *items: Object) -> None:
        self.items = [*items]
        self.events: asyncio.Queue[WatchEvent] = asyncio.Queue()
        self.refuses = False

    async def list(self, resource: GroupVersionResource, namespace: str, **options: Any) -> Listing:
        if self.refuses:
            raise ApiError(403, "Forbidden", "widgets is forbidden")
        return Listing(self.items, "1")

    async def watch(
        self, resource: GroupVersionResource, namespace: str, **options: Any
    ) -> AsyncGenerator[WatchEvent, None]:
        while True:
            yield await self.events.get()


class _Widgets(PageSource):
    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.changed = asyncio.Event()

    def open(self, book: PageModel, following: PageInformers) -> None:
        following.follow(
            self, WatchedCollection(WIDGETS, lambda obj: int(obj["size"]), self.observe)
        )

    async def observe(self, change: Change[int]) -> None:
        if change.after is None:
            del self.sizes[change.key.name]
        else:
            self.sizes[change.key.name] = change.after
        self.changed.set()


def following(server: _Server) -> tuple[PageInformers, _Widgets]:
    found, source = PageInformers(cast("Client", server)), _Widgets()
    source.open(PageModel(), found)
    return found, source


def test_an_odd_object_hides_no_other_and_is_told_until_it_is_right() -> None:
    async def scenario() -> None:
        server = _Server(widget("one", 1), widget("odd", "x"), widget("two", 2))
        found, source = following(server)
        await found.synced(60)
        assert source.sizes == {"one": 1, "two": 2}
        assert found.problems == {"widgets.ex.io": "a/odd is malformed"}
        source.changed.clear()
        server.events.put_nowait(WatchEvent("MODIFIED", widget("odd", 3)))
        await source.changed.wait()
        assert source.sizes == {"one": 1, "two": 2, "odd": 3}
        assert found.problems == {}
        source.changed.clear()
        server.events.put_nowait(WatchEvent("MODIFIED", widget("odd", "y")))
        await source.changed.wait()
        assert source.sizes == {"one": 1, "two": 2}
        server.events.put_nowait(WatchEvent("DELETED", widget("odd", "y")))
        source.changed.clear()
        server.events.put_nowait(WatchEvent("ADDED", widget("three", 3)))
        await source.changed.wait()
        assert found.problems == {}
        await found.close()

    asyncio.run(scenario())


def test_a_collection_that_may_not_be_read_is_told_and_not_waited_for_for_ever() -> None:
    async def scenario() -> None:
        server = _Server()
        server.refuses = True
        found, _ = following(server)
        await found.synced(0.02)
        assert not found.is_synced
        assert "widgets is forbidden" in found.problems["widgets.ex.io"]
        await found.close()

    asyncio.run(scenario())


def test_what_is_no_longer_watched_is_told_with_what_was_known() -> None:
    async def scenario() -> None:
        found, source = following(_Server(widget("one", 1), widget("odd", "x")))
        await found.synced(60)
        known = await found.unfollow(source, WIDGETS)
        assert {key.name: size for key, size in known.items()} == {"one": 1}
        assert found.problems == {}
        assert await found.unfollow(source, WIDGETS) == {}
        await found.close()

    asyncio.run(scenario())


def test_a_page_that_cannot_be_opened_says_so_and_is_tried_again() -> None:
    class _Quiet(Log):
        told: ClassVar[list[str]] = []

        def failure(self, event: str, error: BaseException, **facts: object) -> None:
            self.told.append(f"{event}: {error}")

    failing = [True]

    def sources() -> list[PageSource]:
        if failing.pop(0):
            failing.append(False)
            raise RuntimeError("no functions")
        return []

    async def scenario() -> list[int]:
        page = Page(cast("Client", _Server()), sources, token="t", log=_Quiet())
        found = [await _status(page), await _status(page)]
        await page.close()
        return found

    assert asyncio.run(scenario()) == [500, 200]
    assert _Quiet.told == ["a request for the page failed: no functions"]


async def _status(page: Page) -> int:
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"authorization", b"Bearer t")],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    await page(scope, receive, send)
    assert b"no functions" not in b"".join(each.get("body", b"") for each in sent)
    return int(sent[0]["status"])
