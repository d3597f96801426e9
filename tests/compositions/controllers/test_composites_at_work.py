"""Composite resources when things go wrong: hung functions, restarts, fights, and many at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import count

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.compositions import composing
from tests.compositions.controllers.composing import (
    BUCKETS,
    GROUP,
    MAPS,
    QUICK,
    Function,
    World,
    condition,
    is_ready,
    run,
    says,
    settings,
)
from tests.compositions.controllers.installing import ADMIN
from tests.compositions.running import config, passing
from tests.controllers.mortal import Mortal

from polyver.client import Backoff
from polyver.client.client import ClientRequest, ClientResponse
from polyver.client.in_process import DirectClient
from polyver.compositions.controllers.packages import FUNCTION_REVISIONS
from polyver.compositions.messages import Ready, Request, Resource, Response, ResponseMeta, State
from polyver.controllers.metrics import collector_of
from polyver.kube.server.api import ApiServer


async def hang(request: Request) -> Response:
    del request
    await asyncio.Event().wait()
    raise AssertionError


# Functions that are slow or dead.


def test_a_function_that_never_answers_holds_up_nobody_else() -> None:
    async def scenario(world: World) -> None:
        await world.define()
        await world.install("h", 1, hang, function="hung")
        await world.compose(composing.composition("hung", composing.step(function="hung")))
        await world.install("a", 1, settings)
        await world.compose(composing.composition("fine"))
        for number in range(200):
            await world.bucket(f"hung-{number}", compositionRef={"name": "hung"})
        # Less than one call may take.
        limits = replace(QUICK, seconds=300.0)
        async with world.engine(limits=limits):
            while world.called.get(composing.name_of("h", "hung"), 0) < limits.lane:
                await asyncio.sleep(0.002)
            for number in range(20):
                await world.bucket(f"fine-{number}", compositionRef={"name": "fine"})
            for number in range(20):
                await world.until(is_ready, f"fine-{number}")
            assert world.called[composing.name_of("h", "hung")] == limits.lane

    run(scenario, acting=False)


def test_when_it_answers_again_all_are_composed() -> None:
    async def scenario(world: World) -> None:
        fixed = False

        async def moody(request: Request) -> Response:
            return settings(request) if fixed else await hang(request)

        await world.define()
        await world.install("a", 1, moody)
        await world.compose(composing.composition())
        for number in range(30):
            await world.bucket(f"b-{number}")
        # On a busy machine calls are late by chance.
        soon = Backoff(first=0.1, most=0.2)
        async with world.engine(limits=replace(QUICK, seconds=0.1, lane=4, quarantine=soon)):
            found = await world.until(says("DeadlineExceeded"), "b-0")
            assert "0.1s" in condition(found, "Synced")["message"]
            fixed = True
            for number in range(30):
                await world.until(is_ready, f"b-{number}")

    run(scenario, acting=False)


def test_one_that_makes_a_function_hang_is_quarantined_until_it_changes() -> None:
    async def scenario(world: World) -> None:
        def calls(name: str) -> int:
            return seen.count(name)

        seen: list[str] = []

        async def moody(request: Request) -> Response:
            composite = request.observed.composite.resource
            seen.append(composite["metadata"]["name"])
            return await hang(request) if composite["spec"]["size"] == 13 else settings(request)

        await world.define()
        await world.install("a", 1, moody)
        await world.compose(composing.composition())
        await world.bucket("fine", size=1)
        await world.bucket("poison", size=13)
        async with world.engine(limits=replace(QUICK, seconds=0.2)):
            size = 1
            while True:
                size += 1
                await world.client.patch(BUCKETS, "fine", change={"spec": {"size": 20 + size}})
                await world.mapped(settings={"size": str(20 + size)})
                found = await world.client.get(BUCKETS, "poison")
                if "quarantined: " in condition(found, "Synced").get("message", ""):
                    break
            before = calls("poison")
            for size in range(5):
                await world.client.patch(BUCKETS, "fine", change={"spec": {"size": 60 + size}})
                await world.mapped(settings={"size": str(60 + size)})
            assert calls("poison") == before
            await world.client.patch(BUCKETS, "poison", change={"spec": {"size": 7}})
            await world.until(is_ready, "poison")

    run(scenario, acting=False)


def test_one_that_moves_to_another_address_is_called_there() -> None:
    async def scenario(world: World) -> None:
        await world.define()
        revision = await world.install("a", 1, "127.0.0.1:9")
        await world.compose(composing.composition())
        await world.bucket()
        await world.until(says("Unreachable"))
        await world.endpoint(revision, await world.serve(settings))
        await world.until(is_ready)

    run(scenario, patient=True)


def test_a_function_that_is_elsewhere_after_a_restart_is_no_news() -> None:
    async def scenario(world: World) -> None:
        await world.define()
        revision = await world.install("a", 1, settings)
        await world.compose(composing.composition())
        await world.bucket()
        async with world.engine():
            ready = await world.until(is_ready)
            await world.idle()
        await world.endpoint(revision, "127.0.0.1:9")
        async with world.engine():
            await world.ran(2)
            await world.endpoint(revision, await world.serve(settings))
            while world.caller.metrics.of(composing.name_of("a")).results.get("Success", 0) < 1:
                await asyncio.sleep(0.002)
            await world.idle()
        assert await world.client.get(BUCKETS, "my-bucket") == ready
        await world.endpoint(revision, "127.0.0.1:9")
        async with world.engine(limits=replace(QUICK, quiet=0.01)):
            await world.until(says("Unreachable"))

    run(scenario, acting=False)


def test_a_new_revision_that_is_not_served_yet_is_no_trouble() -> None:
    async def scenario(world: World) -> None:
        await world.define()
        await world.install("a", 1, settings)
        await world.compose(composing.composition())
        await world.bucket()
        async with world.engine():
            ready = await world.until(is_ready)
            await world.idle()
            revision = await world.install("b", 2, "")
            await world.bucket("two")
            await world.until(says("RevisionNotServed"), "two")
            assert await world.client.get(BUCKETS, "my-bucket") == ready
            await world.endpoint(revision, await world.serve(settings))
            await world.until(
                lambda found: found["status"]["pipeline"][0]["revision"] == composing.name_of("b")
            )
            await world.until(is_ready, "two")
        await world.install("c", 3, "")
        async with world.engine(limits=replace(QUICK, quiet=0.01)):
            found = await world.until(
                lambda found: condition(found, "Updated").get("reason") == "RevisionNotServed"
            )
            assert is_ready(found)

    run(scenario, acting=False)


def test_a_run_that_began_ends_with_what_it_resolved() -> None:
    async def scenario(world: World) -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        def named(name: str) -> Resource:
            return Resource(config(by=name), ready=Ready.TRUE)

        async def first(request: Request) -> Response:
            begun.set()
            await go.wait()
            return passing(request, desired=State(resources={"one": named("first")}))

        def adding(name: str) -> Function:
            def answer(request: Request) -> Response:
                made = {**request.desired.resources, "two": named(name)}
                return passing(request, desired=State(resources=made))

            return answer

        await world.define()
        await world.install("f", 1, first, function="first")
        await world.install("a", 1, adding("old"))
        steps = composing.step("one", "first"), composing.step("two")
        await world.compose(composing.composition("example", *steps))
        await world.compose(composing.composition("short"))
        await world.bucket(compositionRef={"name": "example"})
        await begun.wait()
        assert composing.name_of("a") not in world.called
        await world.install("b", 2, adding("new"))
        await world.bucket("two", compositionRef={"name": "short"})
        found = await world.until(is_ready, "two")
        assert found["status"]["pipeline"][0]["revision"] == composing.name_of("b")
        go.set()
        found = await world.until(is_ready)
        assert found["status"]["pipeline"][1]["revision"] == composing.name_of("a")
        assert world.called[composing.name_of("a")] == 1
        await world.until(
            lambda found: found["status"]["pipeline"][1]["revision"] == composing.name_of("b")
        )

    run(scenario)


def test_what_is_gone_is_called_no_longer_and_calls_are_counted() -> None:
    async def scenario(world: World) -> None:
        await world.define()
        await world.install("a", 1, settings)
        await world.compose(composing.composition())
        engine = world.engine()
        async with engine:
            await world.bucket()
            await world.until(is_ready)
            registry = CollectorRegistry()
            registry.register(collector_of(lambda: engine)())
            told = generate_latest(registry).decode()
            name = composing.name_of("a")
            assert f'polyver_function_calls_total{{result="Success",revision="{name}"}} 2.0' in told
            assert 'polyver_controller_done_total{controller="composites",what="runs"} 2.0' in told
            assert world.caller.connections == 1
            await world.client.delete(FUNCTION_REVISIONS, name)
            await world.until(says("FunctionNotInstalled"))
            while world.caller.connections:
                await asyncio.sleep(0.002)

    run(scenario, acting=False)


# What is written, and how often.


class Counting(DirectClient):
    """Counts what it is asked."""

    def __init__(self, api: ApiServer) -> None:
        super().__init__(api, ADMIN)
        self.asked: Counter[str] = Counter()

    async def _send(self, ask: ClientRequest) -> ClientResponse:
        apart = "/api/v1/namespaces/default/events", "/openapi", f"/apis/{GROUP}/v1/compositions"
        if not ask.path.startswith(apart):
            self.asked["read" if ask.method == "GET" else "write"] += 1
        return await super()._send(ask)


def test_what_is_as_it_should_be_is_not_written_again() -> None:
    async def scenario(world: World) -> None:
        def telling(request: Request) -> Response:
            made = settings(request)
            status = {"size": 1, "inner": {"a": [1]}}
            return replace(
                made, desired=replace(made.desired, composite=Resource({"status": status}))
            )

        version = composing.version()
        schema = version["schema"]["openAPIV3Schema"]
        schema["properties"]["status"] = {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
        }
        await world.define(version)
        await world.install("a", 1, telling)
        await world.compose(composing.composition())
        client = Counting(world.api)
        async with world.engine(client):
            await world.bucket()
            ready = await world.until(is_ready)
            await world.idle()
            # Its references twice, what it is composed of, and its status twice.
            assert client.asked["write"] == 5
            client.asked.clear()
            world.controller.wake(world.key)
            await world.ran(3)
            await world.idle()
            assert client.asked["write"] == 0
            assert client.asked["read"] == 1
        again = Counting(world.api)
        async with world.engine(again):
            await world.ran(1)
            await world.idle()
        assert await world.client.get(BUCKETS, "my-bucket") == ready

    run(scenario, acting=False)


def test_a_function_that_wants_something_else_each_time_is_not_run_in_a_loop() -> None:
    async def scenario(world: World) -> None:
        numbers = count()

        def restless(request: Request) -> Response:
            made = {"one": Resource(config(size=str(next(numbers))), ready=Ready.TRUE)}
            return passing(request, desired=State(resources=made))

        await world.define()
        await world.install("a", 1, restless)
        await world.compose(composing.composition())
        await world.bucket()
        await world.until(is_ready)
        # Without a pause this would be some hundred.
        await asyncio.sleep(0.3)
        assert world.called[composing.name_of("a")] < 8

    run(scenario)


def test_an_answer_that_holds_for_some_time_is_asked_for_again() -> None:
    async def scenario(world: World) -> None:
        def brief(request: Request) -> Response:
            return replace(settings(request), meta=ResponseMeta(ttl=0.01))

        await world.define()
        await world.install("a", 1, brief)
        await world.compose(composing.composition())
        async with world.engine(limits=replace(QUICK, shortest=0.02)):
            await world.bucket()
            await world.ran(5)

    run(scenario, acting=False)


# Interrupted.


def two(request: Request) -> Response:
    """Composes one or the other, and what is always there."""
    size = request.observed.composite.resource["spec"]["size"]
    names = ["always", "small" if size < 5 else "large"]
    seen = request.observed.resources
    made = {
        name: Resource(
            config(size=str(int(size))), ready=Ready.TRUE if name in seen else Ready.FALSE
        )
        for name in names
    }
    return passing(request, desired=State(resources=made))


# References, those of resources, two of these, the status; and the status again when all is there.
@pytest.mark.parametrize("after", range(1, 7))
def test_killed_while_it_is_made_it_is_made_once(after: int) -> None:
    async def scenario(world: World) -> None:
        await world.define()
        await world.install("a", 1, two)
        await world.compose(composing.composition())
        await world.bucket(size=1)
        mortal = Mortal(world.api, ADMIN, after)
        async with world.engine(mortal):
            await mortal.killed.wait()
        async with world.engine():
            await world.until(is_ready)
            assert len((await world.client.list(MAPS, labels="crossplane.io/composite")).items) == 2

    run(scenario, acting=False)


# One is deleted, references, two are applied, the status, and the status again.
@pytest.mark.parametrize("after", range(1, 7))
def test_killed_while_it_changes_nothing_is_left_over(after: int) -> None:
    async def scenario(world: World) -> None:
        await world.define()
        await world.install("a", 1, two)
        await world.compose(composing.composition())
        await world.bucket(size=1)
        async with world.engine():
            await world.until(is_ready)
        await world.client.patch(BUCKETS, "my-bucket", change={"spec": {"size": 9}})
        mortal = Mortal(world.api, ADMIN, after)
        async with world.engine(mortal):
            await mortal.killed.wait()
        async with world.engine():
            await world.mapped(always={"size": "9"}, large={"size": "9"})
            found = await world.until(is_ready)
            assert len(found["spec"]["resourceRefs"]) == 2

    run(scenario, acting=False)
