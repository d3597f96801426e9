"""Rendering beside the event loop, and how often things are put back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from typing import Any

from tests.client.fake import FakeApi
from tests.client.virtual import VirtualClock
from tests.deadlines import HANG
from tests.definitions.controllers.world import APPLICATIONS, DEFINITIONS, World, run
from tests.definitions.samples import SYSTEM, application, condition, definition, templated

from polyver.client import Backoff, Client, GroupVersionResource
from polyver.client.in_process import DirectClient
from polyver.controllers import ControllerManager
from polyver.controllers.owned_objects.revert_backoff import RevertBackoff
from polyver.core.plain import Object
from polyver.definitions.controllers.applications import ApplicationController
from polyver.definitions.controllers.applications._render import Renderer, RenderingTimeout
from polyver.definitions.publishing import decide, read_definition, revision_object
from polyver.definitions.rendering import Rendered, TemplateDocument, TemplateInput, TemplateOutput
from polyver.definitions.status import reason_of
from polyver.kube.server.http import User


class Stuck:
    """An engine that does not come to an end, but for parameters that say so."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def render(self, schematic: Mapping[str, Any], given: TemplateInput) -> TemplateOutput:
        if given.parameters.get("image") == "stuck":
            self.go_on.wait(HANG)
        if given.parameters.get("image") == "broken":
            raise ZeroDivisionError("by nothing")
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        return TemplateOutput(TemplateDocument(made, "document 1"))


class Kept(DirectClient):
    """A server that has some DefinitionRevisions and nothing else."""

    def __init__(self, *revisions: Object) -> None:
        super().__init__(FakeApi(), User("me"))
        self._kept = {each["metadata"]["name"]: each for each in revisions}
        self.asked: list[str] = []

    async def release(self) -> Object:
        return {"major": "1", "minor": "35", "gitVersion": "v1.35.0", "platform": "linux/amd64"}

    async def get(self, resource: GroupVersionResource, name: str, *_: Any, **__: Any) -> Object:
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


async def both(renderer: Renderer, one: Object, other: Object, *images: str) -> Rendered:
    """An application with a component of `slow` and one of `quick`."""
    app = application("both", "slow", "quick")
    for component, image in zip(app["spec"]["components"], images, strict=True):
        component["properties"] = {"image": image}
    [first], [second] = resolutions(one, "slow"), resolutions(other, "quick")
    second |= {"component": "c1", "at": "spec.components[1].type"}
    return await renderer.render(app, [first, second], revision="both-v1")


def test_a_template_that_takes_too_long_is_given_up_and_it_alone_is_slow() -> None:
    async def scenario() -> None:
        slow, quick, stuck, clock = revision("slow"), revision("quick"), Stuck(), VirtualClock()
        client: Client = Kept(slow, quick)
        renderer = Renderer(client, {"gotemplate": stuck}, clock, deadline=0.5)
        [late] = (await both(renderer, slow, quick, "stuck", "a")).errors
        assert isinstance(late, RenderingTimeout)
        assert reason_of(late) == "TookTooLong", "the condition has this reason"
        limit = "took longer than 0.5 seconds to render"
        assert str(late).startswith(f"the component {limit}, most of it slow 1.0.0")
        assert late.at == "spec.components[0]"
        # The other version of that application was not slow.
        assert not (await rendered(renderer, quick, "quick", "a")).errors
        # For a minute, other applications cannot use it either; their error has the reason.
        [left] = (await rendered(renderer, slow, "slow", "a")).errors
        told = (
            f"slow 1.0.0 {limit} a moment ago, for spec.components[0] of Application default/both"
        )
        assert (left.fact, left.at) == (told, "spec.components[0].type")
        await clock.advance(61)
        assert not (await rendered(renderer, slow, "slow", "a")).errors
        assert renderer.count == 3
        stuck.go_on.set()

    asyncio.run(scenario())


def test_each_component_has_the_whole_deadline() -> None:
    class Steady:
        """An engine that takes its time, but not too much of it."""

        def render(self, schematic: Mapping[str, Any], given: TemplateInput) -> TemplateOutput:
            time.sleep(1.5)
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": given.at}}
            return TemplateOutput(TemplateDocument(made, "document 1"))

    async def scenario() -> None:
        slow, quick = revision("slow"), revision("quick")
        renderer = Renderer(
            Kept(slow, quick), {"gotemplate": Steady()}, VirtualClock(), deadline=2.5
        )
        assert not (await both(renderer, slow, quick, "a", "b")).errors

    asyncio.run(scenario())


def test_who_waits_for_a_slow_one_is_not_called_slow() -> None:
    async def scenario() -> None:
        names = ("one", "two", "three", "quick")
        made, stuck = {each: revision(each) for each in names}, Stuck()
        renderer = Renderer(
            Kept(*made.values()), {"gotemplate": stuck}, VirtualClock(), deadline=0.5
        )
        # More than are rendered at a time: each gives its place to the next when it is given up.
        late = await asyncio.gather(
            *(rendered(renderer, made[each], each, "stuck") for each in names[:3]),
            rendered(renderer, made["quick"], "quick", "a"),
        )
        assert [[type(each) for each in found.errors] for found in late] == [
            *([[RenderingTimeout]] * 3),
            [],
        ]
        stuck.go_on.set()

    asyncio.run(scenario())


def test_one_slow_application_costs_itself_alone() -> None:
    async def scenario(world: World) -> None:
        stuck = Stuck()
        for name in ("slow", "quick"):
            await world.client.apply(
                DEFINITIONS, definition(name, templated("1.0.0")), manager="test"
            )
        bad = application("bad", "slow", "quick", properties={"image": "stuck"})
        bad["spec"]["components"][1]["properties"] = {"image": "a"}
        good = application("good", "quick", properties={"image": "a"})
        controller = ApplicationController(
            world.client, engines={"gotemplate": stuck}, deadline=0.5
        )
        async with ControllerManager(world.client, [controller]), asyncio.timeout(HANG):
            await world.client.apply(APPLICATIONS, bad, manager="test")
            told = await observed(world, "bad", "Rendered")
            assert told["status"] == "False"
            assert "most of it slow 1.0.0 (spec.components[0])" in told["message"]
            await world.client.apply(APPLICATIONS, good, manager="test")
            assert (await observed(world, "good", "Rendered"))["status"] == "True"
        stuck.go_on.set()

    asyncio.run(run(scenario))


async def observed(world: World, name: str, kind: str) -> Object:
    """A condition of an application, once it has it."""
    while True:
        found = await world.client.get(APPLICATIONS, name, "default")
        if said := condition(found, kind):
            return said
        await asyncio.sleep(0.01)


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
        patience = RevertBackoff[str](clock, Backoff(first=1, most=4, jitter=0), quiet=60)
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
