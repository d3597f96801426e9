"""Rendering beside the event loop, and how often things are put back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

from tests.capabilities.definitions.samples import SYSTEM, application, definition, templated
from tests.client.fake import FakeApi
from tests.client.virtual import VirtualClock
from tests.deadlines import HANG

from polyver.capabilities.definitions.publishing import (
    decide,
    read_definition,
    revision_object,
)
from polyver.capabilities.definitions.rendering import Document, Documents, Given, Rendered
from polyver.client import Backoff, Client, Object, Resource
from polyver.engine._patience import Patience
from polyver.engine.applications._rendering import Renderer, TookTooLong
from polyver.server._http import User
from polyver.server.direct import DirectClient


class Stuck:
    """An engine that does not come to an end, but for parameters that say so."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def render(self, schematic: Mapping[str, Any], given: Given) -> Documents:
        if given.parameters.get("image") == "stuck":
            self.go_on.wait(HANG)
        if given.parameters.get("image") == "broken":
            raise ZeroDivisionError("by nothing")
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        return Documents(Document(made, "document 1"))


class Kept(DirectClient):
    """A server that has some DefinitionRevisions and nothing else."""

    def __init__(self, *revisions: Object) -> None:
        super().__init__(FakeApi(), User("me"))
        self._kept = {each["metadata"]["name"]: each for each in revisions}
        self.asked: list[str] = []

    async def release(self) -> Object:
        return {"major": "1", "minor": "35", "gitVersion": "v1.35.0", "platform": "linux/amd64"}

    async def get(self, resource: Resource, name: str, *_: Any, **__: Any) -> Object:
        self.asked.append(name)
        return self._kept[name]


def revision(name: str) -> Object:
    whole = definition(name, templated("1.0.0"))
    read, _ = read_definition(whole)
    [new] = decide(read, []).create
    return dict(
        revision_object(read, new, {**whole, "metadata": {**whole["metadata"], "uid": "1"}})
    )


def resolutions(made: Object, name: str) -> list[Object]:
    about = {"kind": "Component", "component": "c0", "at": "spec.components[0].type"}
    used = {"definition": f"{SYSTEM}/{name}", "version": "1.0.0", "requested": ""}
    return [{**about, **used, "revision": f"{name}-v1.0.0", "digest": made["spec"]["digest"]}]


async def rendered(renderer: Renderer, made: Object, name: str, image: str) -> Rendered:
    app = application("shop", name, properties={"image": image})
    return await renderer.render(app, resolutions(made, name), revision="shop-v1")


def test_what_takes_too_long_is_given_up_and_others_go_on() -> None:
    async def scenario() -> None:
        slow, quick, stuck, clock = revision("slow"), revision("quick"), Stuck(), VirtualClock()
        client: Client = Kept(slow, quick)
        renderer = Renderer(client, {"gotemplate": stuck}, clock, deadline=0.05)
        late = await rendered(renderer, slow, "slow", "stuck")
        assert [type(each) for each in late.errors] == [TookTooLong]
        assert "rendering took longer than 0.05 seconds" in str(late.errors[0])
        assert not (await rendered(renderer, quick, "quick", "a")).errors
        # Of the version that took too long no other application is tried for a while.
        [left] = (await rendered(renderer, slow, "slow", "a")).errors
        assert "slow-v1.0.0 took longer than 0.05 seconds just now" in str(left)
        await clock.advance(61)
        assert not (await rendered(renderer, slow, "slow", "a")).errors
        assert renderer.count == 3
        stuck.go_on.set()

    asyncio.run(scenario())


def test_an_engine_that_breaks_is_told_of() -> None:
    async def scenario() -> None:
        made = revision("web")
        renderer = Renderer(Kept(made), {"gotemplate": Stuck()}, VirtualClock())
        [error] = (await rendered(renderer, made, "web", "broken")).errors
        assert str(error) == "rendering ended with ZeroDivisionError: by nothing"

    asyncio.run(scenario())


def test_a_version_is_read_once() -> None:
    async def scenario() -> None:
        made = revision("web")
        client = Kept(made)
        renderer = Renderer(client, {"gotemplate": Stuck()}, VirtualClock())
        for image in "abc":
            assert len((await rendered(renderer, made, "web", image)).outputs) == 1
        assert client.asked == ["web-v1.0.0"]

    asyncio.run(scenario())


def test_what_is_changed_again_and_again_is_put_back_ever_more_slowly() -> None:
    async def scenario() -> None:
        clock = VirtualClock()
        patience = Patience[str](clock, Backoff(first=1, most=4, jitter=0), quiet=60)
        waits = []
        for _ in range(5):
            assert patience.left("a") == 0
            patience.spend("a")
            waits.append(patience.left("a"))
            await clock.advance(waits[-1])
        assert waits == [1, 2, 4, 4, 4]
        assert patience.left("b") == 0
        await clock.advance(61)
        patience.spend("a")
        assert patience.left("a") == 1

    asyncio.run(scenario())
