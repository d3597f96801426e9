"""The direct client's own affairs: streams cut anywhere, texts instead of a Status, new kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.fake import WIDGET, FakeApi
from tests.client.virtual import VirtualClock, settle

from polyver.client import GroupVersionResource, WatchEvent
from polyver.client.in_process import DirectClient
from polyver.kube.objects.status import ApiError, expired
from polyver.kube.server.http import HttpRequest, HttpResponse, User

ME = User("me")
MAPS = GroupVersionResource("", "v1", "configmaps")


class _Always:
    """Answers everything with the same."""

    def __init__(self, status: int, *pieces: bytes) -> None:
        self.asked: list[HttpRequest] = []
        self.closed = False
        self._status = status
        self._pieces = pieces

    async def handle(self, request: HttpRequest) -> HttpResponse:
        self.asked.append(request)
        return HttpResponse(self._status, [], self._stream())

    async def _stream(self) -> AsyncGenerator[bytes, None]:
        try:
            for piece in self._pieces:
                yield piece
        finally:
            self.closed = True


def _lines(*events: object) -> bytes:
    return b"".join(msgspec.json.encode(event) + b"\n" for event in events)


async def _all(api: _Always) -> list[WatchEvent]:
    events = DirectClient(api, ME).watch(MAPS, resource_version="1")
    return [event async for event in events]


@given(cuts=st.lists(st.integers(0, 200), max_size=20))
def test_a_stream_may_be_cut_anywhere(cuts: list[int]) -> None:
    told = [{"type": "ADDED", "object": {"metadata": {"name": f"ü\n{each}"}}} for each in range(4)]
    whole = _lines(*told)
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    pieces = [whole[start:end] for start, end in pairwise(places)]
    found = asyncio.run(_all(_Always(200, *pieces)))
    assert [event.object for event in found] == [each["object"] for each in told]


def test_an_error_in_a_stream_is_raised() -> None:
    error = {"type": "ERROR", "object": expired("too old resource version: 1 (7)").status}
    with pytest.raises(ApiError, match="too old") as caught:
        asyncio.run(_all(_Always(200, _lines(error))))
    assert caught.value.code == 410


def test_a_text_is_a_refusal_too() -> None:
    async def ask() -> None:
        await DirectClient(_Always(404, b"404 page not found\n"), ME).get(MAPS, "a", "b")

    with pytest.raises(ApiError, match="404 page not found") as caught:
        asyncio.run(ask())
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")


def test_a_watch_that_nobody_reads_any_more_is_closed() -> None:
    api = _Always(200, _lines({"type": "ADDED", "object": {}}), _lines({"type": "ADDED"}))

    async def read_one() -> None:
        async with aclosing(DirectClient(api, ME).watch(MAPS, resource_version="1")) as events:
            await anext(events)

    asyncio.run(read_one())
    assert api.closed


def test_a_request_says_who_asks_for_what() -> None:
    api = _Always(200, b"{}")

    async def ask() -> None:
        client = DirectClient(api, ME, agent="collector")
        change = {"data": {"a": "b"}}
        await client.patch(MAPS, "m", "n", change=change, manager="me", dry_run=True)

    asyncio.run(ask())
    [request] = api.asked
    assert (request.method, request.path) == ("PATCH", "/api/v1/namespaces/n/configmaps/m")
    assert request.query == "fieldManager=me&dryRun=All"
    assert request.user is ME
    assert request.headers["user-agent"] == "collector"
    assert request.headers["content-type"] == "application/merge-patch+json"
    assert msgspec.json.decode(request.body) == {"data": {"a": "b"}}


@pytest.mark.parametrize("told", [True, False])
def test_new_kinds_are_noticed_when_told_and_otherwise_later(told: bool) -> None:
    async def scenario() -> None:
        api, clock = FakeApi(), VirtualClock()
        client = DirectClient(api, ME, clock=clock, interval=30)
        async with aclosing(client.watch_kinds()) as found:
            first = await anext(found)
            assert first.find("ex.io/v1", "Widget") is None
            waiting = asyncio.create_task(anext(found))
            await settle()
            api.kinds.append(WIDGET)
            if told:
                client.kinds_changed()
            else:
                await clock.advance(31)
            assert (await waiting).find("ex.io/v1", "Widget") is not None

    asyncio.run(scenario())


def test_kinds_that_stay_as_they_are_are_not_told_again() -> None:
    async def scenario() -> None:
        api, clock = FakeApi(), VirtualClock()
        client = DirectClient(api, ME, clock=clock)
        async with aclosing(client.watch_kinds()) as found:
            await anext(found)
            waiting = asyncio.create_task(anext(found))
            await settle()
            client.kinds_changed()
            await settle()
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    asyncio.run(scenario())


def test_versions_that_could_not_be_asked_for_are_told() -> None:
    async def ask() -> None:
        api = FakeApi()
        api.kinds.append(WIDGET)
        api.stale.add("ex.io/v1")
        found = await DirectClient(api, ME).discover()
        assert found.find("ex.io/v1", "Widget") is None
        assert found.failures == {"ex.io/v1": "stale GroupVersion discovery: ex.io/v1"}

    asyncio.run(ask())
