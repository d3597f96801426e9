"""Releases that do not work: composite resources stay with the one that made what they have."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

from tests.compositions import composing
from tests.compositions.controllers.composing import (
    BUCKETS,
    COMPOSITIONS,
    MAPS,
    QUICK,
    REVISIONS,
    Function,
    World,
    condition,
    is_ready,
    run,
    says,
    settings,
)
from tests.compositions.running import config, passing

from polyver.client import Backoff
from polyver.compositions.controllers.packages import FUNCTION_REVISIONS, FUNCTIONS
from polyver.compositions.messages import (
    Ready,
    Request,
    Resource,
    Response,
    Result,
    Severity,
    State,
)
from polyver.core.plain import Object

ALLOWED = {"metadata": {"annotations": {"polyver.dev/allow-deletion": "true"}}}


def making(*names: str, stamp: str = "") -> Function:
    """A function that composes ConfigMaps; the first `size` of them if the spec has one."""

    def answer(request: Request) -> Response:
        size = request.observed.composite.resource["spec"].get("size", len(names))
        made = {
            name: Resource(config(name, by=stamp), ready=Ready.TRUE) for name in names[: int(size)]
        }
        return passing(request, desired=State(resources=made))

    return answer


def fatal(request: Request) -> Response:
    return passing(request, results=(Result(Severity.FATAL, "no luck"),))


def updated(reason: str, status: str = "False") -> Any:
    def holds(found: Object) -> bool:
        said = condition(found, "Updated")
        return (said.get("status"), said.get("reason")) == (status, reason)

    return holds


def uses(found: Object) -> str:
    [step] = found["status"]["pipeline"]
    return str(step["revision"])


async def composed(world: World, function: Function = settings) -> Object:
    """A composite resource that the first revision of a function has composed."""
    await world.define()
    await world.install("a", 1, function)
    await world.compose(composing.composition())
    await world.bucket(size=3)
    return await world.until(is_ready)


def test_a_function_that_fails_for_it_is_not_taken_and_the_old_one_goes_on() -> None:
    async def scenario(world: World) -> None:
        await composed(world)
        await world.install("b", 2, fatal)
        found = await world.until(updated("FatalResult"))
        message = condition(found, "Updated")["message"]
        assert composing.name_of("b") in message
        assert "no luck" in message
        assert is_ready(found)
        assert uses(found) == composing.name_of("a")
        # The old one still does what its user asks for, and restores what others change.
        await world.client.patch(BUCKETS, "my-bucket", change={"spec": {"size": 5}})
        await world.mapped(settings={"size": "5"})
        [reference] = found["spec"]["resourceRefs"]
        await world.client.delete(MAPS, reference["name"], "shop")
        await world.mapped(settings={"size": "5"})
        assert uses(await world.client.get(BUCKETS, "my-bucket")) == composing.name_of("a")
        await world.install("c", 3, settings)
        found = await world.until(updated("Updated", "True"))
        assert uses(found) == composing.name_of("c")

    run(scenario)


def test_if_the_old_one_is_inactive_everything_stays_as_it_is() -> None:
    async def scenario(world: World) -> None:
        await composed(world)
        old = composing.name_of("a")
        inactive = {"spec": {"desiredState": "Inactive"}}
        await world.client.patch(FUNCTION_REVISIONS, old, change=inactive)
        await world.until(says("NoActiveRevision"))
        before = await world.maps()
        await world.install("b", 2, fatal)
        found = await world.until(updated("FatalResult"))
        assert uses(found) == old
        assert await world.maps() == before

    run(scenario)


def test_a_revision_of_a_composition_that_fails_is_not_taken() -> None:
    async def scenario(world: World) -> None:
        first = (await composed(world))["spec"]["compositionRevisionRef"]
        step = composing.step(function="missing")
        second = await world.compose(composing.composition("example", step))
        found = await world.until(updated("FunctionNotInstalled"))
        assert second in condition(found, "Updated")["message"]
        assert found["spec"]["compositionRevisionRef"] == first
        assert is_ready(found)
        third = await world.compose(composing.composition("example", labels={"fixed": "yes"}))
        found = await world.until(updated("Updated", "True"))
        assert found["spec"]["compositionRevisionRef"] == {"name": third}

    run(scenario)


def test_a_release_that_would_delete_objects_is_held_until_that_is_allowed() -> None:
    async def scenario(world: World) -> None:
        await composed(world, making("one", "two", "three", stamp="a"))
        revision = await world.install("b", 2, making("one", stamp="b"))
        found = await world.until(updated("WouldDelete"))
        message = condition(found, "Updated")["message"]
        assert "ConfigMap shop/three, ConfigMap shop/two" in message
        assert uses(found) == composing.name_of("a")
        await world.mapped(one={"by": "a"}, two={"by": "a"}, three={"by": "a"})
        # The controller still deletes an object that an edit of the spec removes.
        await world.client.patch(BUCKETS, "my-bucket", change={"spec": {"size": 2}})
        await world.mapped(one={"by": "a"}, two={"by": "a"})
        await world.client.patch(FUNCTION_REVISIONS, revision["metadata"]["name"], change=ALLOWED)
        await world.mapped(one={"by": "b"})
        await world.until(updated("Updated", "True"))

    run(scenario)


def test_what_has_something_in_its_place_is_no_loss() -> None:
    async def scenario(world: World) -> None:
        await composed(world, making("one", "two", stamp="a"))
        await world.install("b", 2, making("one", "other", stamp="b"))
        await world.mapped(one={"by": "b"}, other={"by": "b"})
        found = await world.client.get(BUCKETS, "my-bucket")
        assert condition(found, "Updated") == {}

    run(scenario)


def test_a_composition_may_allow_deletion_for_its_revisions() -> None:
    async def scenario(world: World) -> None:
        await world.define()
        await world.install("a", 1, making("one", "two"))
        await world.install("n", 1, making(), function="nothing")
        first = await world.compose(composing.composition())
        await world.bucket()
        await world.until(is_ready)
        await world.compose(composing.composition("example", composing.step(function="nothing")))
        found = await world.until(updated("WouldDelete"))
        assert found["spec"]["compositionRevisionRef"] == {"name": first}
        await world.client.patch(COMPOSITIONS, "example", change=ALLOWED)
        step = composing.step("again", "nothing")
        last = await world.compose(composing.composition("example", step))
        await world.mapped()
        found = await world.until(updated("Updated", "True"))
        assert found["spec"]["compositionRevisionRef"] == {"name": last}
        await world.client.get(REVISIONS, last)

    run(scenario)


def test_what_its_user_chooses_is_no_release_that_is_held() -> None:
    async def scenario(world: World) -> None:
        await world.define()
        await world.install("a", 1, making("one", "two"))
        await world.install("n", 1, making(), function="nothing")
        await world.compose(composing.composition("full"))
        await world.compose(composing.composition("empty", composing.step(function="nothing")))
        await world.bucket(compositionRef={"name": "full"})
        await world.until(is_ready)
        change = {"spec": {"compositionRef": {"name": "empty"}}}
        await world.client.patch(BUCKETS, "my-bucket", change=change)
        await world.mapped()
        assert condition(await world.until(is_ready), "Updated") == {}

    run(scenario)


def test_a_function_that_does_not_answer_is_tried_again_and_the_old_one_goes_on() -> None:
    async def scenario(world: World) -> None:
        await composed(world)
        revision = await world.install("b", 2, "127.0.0.1:9")
        await world.client.patch(BUCKETS, "my-bucket", change={"spec": {"size": 5}})
        await world.mapped(settings={"size": "5"})
        found = await world.client.get(BUCKETS, "my-bucket")
        assert uses(found) == composing.name_of("a")
        assert is_ready(found)
        await world.endpoint(revision, await world.serve(settings))
        await world.until(lambda found: uses(found) == composing.name_of("b"))

    run(scenario)


def test_a_function_that_is_not_served_is_tried_less_and_less_often() -> None:
    backoff = Backoff(first=0.01, most=600.0, factor=3.0, jitter=0.0)
    limits = replace(QUICK, quiet=0.0, backoff=backoff)

    async def scenario(world: World) -> None:
        async with world.engine(limits=limits):
            await composed(world)
            await world.idle()
            before, began = world.called[composing.name_of("a")], time.monotonic()
            await world.install("b", 2, "")
            # After each try, the function in use composes what its user wants.
            while world.called[composing.name_of("a")] < before + 6:
                await asyncio.sleep(0.01)
            assert time.monotonic() - began > 1.0

    run(scenario, acting=False)


# The condition `Adopted` and its Events, for the authors of releases.


def adopted(reason: str, message: str) -> Any:
    def holds(found: Object) -> bool:
        said = condition(found, "Adopted")
        return (said.get("reason"), said.get("message")) == (reason, message)

    return holds


def test_compositions_and_functions_say_who_has_their_releases() -> None:
    async def scenario(world: World) -> None:
        def choosy(request: Request) -> Response:
            name = request.observed.composite.resource["metadata"]["name"]
            if name == "loses":
                return passing(request, desired=State())
            return fatal(request) if name == "fails" else settings(request)

        await world.define()
        about = {"apiVersion": "pkg.crossplane.io/v1", "kind": "Function"}
        package = {"metadata": {"name": composing.FUNCTION}, "spec": {"package": "x.io/a:v1"}}
        await world.client.create(FUNCTIONS, about | package)
        await world.install("a", 1, settings)
        first = await world.compose(composing.composition())
        for name in ("fine", "loses", "fails"):
            await world.bucket(name)
            await world.until(is_ready, name)
        message = f"{first}: 3 followers, 3 on it, 0 held, 0 failing"
        await world.until(adopted("Adopted", message), "example", resource=COMPOSITIONS)
        await world.install("b", 2, choosy)
        message = f"{composing.name_of('b')}: 3 followers, 1 on it, 1 held, 1 failing"
        await world.until(adopted("Failing", message), composing.FUNCTION, resource=FUNCTIONS)
        await world.until_told("NotAdopted", message)
        told = [text for reason, text in await world.told() if reason == "NotAdopted"]
        assert told == [message]
        for name in ("fine", "loses", "fails"):
            await world.client.delete(BUCKETS, name)
        await world.until(
            adopted("NoFollowers", "nothing follows it"), "example", resource=COMPOSITIONS
        )

    run(scenario, within=60)
