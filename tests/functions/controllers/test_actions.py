"""ActionSets on the embedded server: what runs, what is told, and how they end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from tests.deadlines import HANG

from polyver import apis
from polyver.client import Client, GroupVersionResource, find
from polyver.client.in_process import DirectClient
from polyver.controllers import ControllerManager
from polyver.core.plain import Object
from polyver.functions import AsyncContext, Cancelled, Context, Registry
from polyver.functions.controllers.actions import CANCEL, FINALIZER, ActionSetController, CallLimits
from polyver.functions.controllers.calls import ThreadCalls
from polyver.functions.kinds import ACTION_SETS, BLUEPRINTS
from polyver.functions.registering import known_functions
from polyver.kube.objects.status import ApiError
from polyver.kube.server.api import ApiServer
from polyver.kube.server.http import User
from polyver.kube.store import MemoryStore

ADMIN = User("admin", ("system:masters", "system:authenticated"))
CRDS = GroupVersionResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)
NAMESPACES = GroupVersionResource("", "v1", "namespaces", namespaced=False)
MAPS = GroupVersionResource("", "v1", "configmaps")
SECRETS = GroupVersionResource("", "v1", "secrets")
PODS = GroupVersionResource("", "v1", "pods")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
BLUEPRINT = GroupVersionResource("cr.kanister.io", "v1alpha1", "blueprints")
SETS = GroupVersionResource("cr.kanister.io", "v1alpha1", "actionsets")
EVENTS = GroupVersionResource("", "v1", "events")


class World:
    """An embedded server with the kinds, functions that are told what to do, and a controller."""

    def __init__(self) -> None:
        self.api = ApiServer(MemoryStore())
        self.client = DirectClient(self.api, ADMIN)
        self.api.catalogue.subscribe(self.client.kinds_changed)
        self.calls: list[str] = []
        self.gate = threading.Event()
        self.registry = Registry()
        self._register()

    def _register(self) -> None:  # noqa: C901 - functions, each simple
        calls, gate = self.calls, self.gate

        @self.registry.register("Say")
        def say(ctx: Context, text: str = "") -> dict[str, Any]:
            calls.append(f"{ctx.phase}: {text}")
            return {"text": text}

        @self.registry.register("Fail")
        def fail(ctx: Context, text: str = "") -> None:
            raise ValueError(text)

        @self.registry.register("Block")
        def block(ctx: Context) -> None:
            calls.append(f"{ctx.phase} began")
            gate.wait(HANG)

        @self.registry.register("Stuck")
        async def stuck(ctx: AsyncContext) -> None:
            calls.append(f"{ctx.phase} began")
            gate.wait(HANG)  # which no async function should do

        @self.registry.register("Sleep")
        async def sleep(ctx: AsyncContext) -> None:
            calls.append(f"{ctx.phase} began")
            try:
                await asyncio.sleep(60)
            finally:
                calls.append(f"{ctx.phase} stopped")

        @self.registry.register("Watch")
        def watch(ctx: Context) -> None:
            calls.append(f"{ctx.phase} began")
            try:
                listed = ctx.client.get(NAMESPACES, "a")["metadata"]["resourceVersion"]
                for _ in ctx.client.watch(MAPS, "a", resource_version=listed):
                    pass
            except Cancelled:
                calls.append(f"{ctx.phase} stopped")
                raise

        @self.registry.register("Return")
        def give(ctx: Context, what: Any = None) -> Any:
            deep: Any = "x"
            for _ in range(500):
                deep = [deep]
            known = {"list": ["a"], "large": {"x": "y" * 300_000}, "odd": {"x": object()}}
            return (known | {"deep": {"x": deep}, "some": {"x": "y" * 1000}})[what]

        @self.registry.register("Api")
        async def api(ctx: AsyncContext) -> dict[str, Any]:
            made = {"metadata": {"name": f"made-{ctx.phase}"}, "data": {"a": "b"}}
            found = await ctx.client.create(MAPS, made, ctx.namespace)
            return {"uid": found["metadata"]["uid"], "seconds": int(ctx.remaining)}

    async def prepare(self) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": "a"}})
        for kind in (BLUEPRINTS, ACTION_SETS):
            await self.client.create(CRDS, apis.crd_of(kind.definition()))
        while not await self._is_served():
            await asyncio.sleep(0.001)

    async def _is_served(self) -> bool:
        found = await self.client.discover()
        return all(found.find("cr.kanister.io/v1alpha1", k) for k in ("Blueprint", "ActionSet"))

    @asynccontextmanager
    async def controller(self, **limits: Any) -> AsyncIterator[ActionSetController]:
        known = known_functions(self.registry)
        may = CallLimits(**{"grace": 0.1, **limits})
        calls = ThreadCalls(self.client, may)
        controller = ActionSetController(self.client, known, calls=calls, limits=may)
        async with ControllerManager(self.client, [controller]):
            yield controller

    async def blueprint(self, *phases: dict[str, Any], **action: Any) -> None:
        content = {
            "apiVersion": "cr.kanister.io/v1alpha1",
            "kind": "Blueprint",
            "metadata": {"name": "bp"},
            "actions": {"go": {"phases": [*phases], **action}},
        }
        await self.client.create(BLUEPRINT, content, "a")

    async def run(self, action_set: str = "one", count: int = 1, **action: Any) -> None:
        spec = {"name": "go", "blueprint": "bp", **action}
        content = {
            "apiVersion": "cr.kanister.io/v1alpha1",
            "kind": "ActionSet",
            "metadata": {"name": action_set},
            "spec": {"actions": [spec] * count},
        }
        await self.client.create(SETS, content, "a")

    async def over(self, name: str = "one") -> Any:
        """The status, when it is over; in vain this would go on for ever."""
        while True:
            found = await self.client.get(SETS, name, "a")
            status = found.get("status") or {}
            if status.get("state") in ("complete", "failed"):
                return status
            await asyncio.sleep(0.002)

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.002)


def phase(function: str, name: str, **args: Any) -> dict[str, Any]:
    return {"func": function, "name": name, "args": args}


def lived(scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def live() -> None:
        world = World()
        async with asyncio.timeout(HANG):
            pump = asyncio.create_task(world.api.run())
            await world.prepare()
            try:
                await scenario(world)
            finally:
                world.gate.set()
                pump.cancel()

    asyncio.run(live())


def states(status: Any, number: int = 0) -> list[str]:
    action = status["actions"][number]
    calls = [*action["phases"], *([action["deferPhase"]] if "deferPhase" in action else [])]
    return [each["state"] for each in calls]


def waiting(status: Any) -> list[Any]:
    return [each["waiting"] for each in status["actions"] if "waiting" in each]


def test_a_failure_ends_the_phases_and_the_deferred_one_runs_all_the_same() -> None:
    async def scenario(world: World) -> None:
        last = phase("Say", "last", text="bye")
        phases = [phase("Say", "a"), phase("Fail", "b", text="no room"), phase("Say", "c")]
        await world.blueprint(*phases, deferPhase=last)
        async with world.controller():
            await world.run()
            status = await world.over()
            while FINALIZER in (await world.client.get(SETS, "one", "a"))["metadata"].get(
                "finalizers", []
            ):
                await asyncio.sleep(0.002)
        assert states(status) == ["complete", "failed", "pending", "complete"]
        assert world.calls == ["a: ", "last: bye"]
        reason = "Fail v0.0.0 raised ValueError: no room"
        assert status["actions"][0]["phases"][1]["reason"] == reason
        assert status["error"]["message"] == f"blueprint bp, action go, phase b: {reason}"
        events = await world.client.list(EVENTS, "a")
        assert {(each["reason"], each["type"]) for each in events.items} == {
            ("ActionSetFailed", "Warning")
        }

    lived(scenario)


def test_functions_use_the_api_and_have_their_time() -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Api", "x"))
        async with world.controller(seconds=1000):
            await world.run()
            status = await world.over()
        made = await world.client.get(MAPS, "made-x", "a")
        output = status["actions"][0]["phases"][0]["output"]
        assert output["uid"] == made["metadata"]["uid"]
        assert 900 < output["seconds"] <= 1000

    lived(scenario)


@pytest.mark.parametrize("function", ["Block", "Sleep", "Watch"])
@pytest.mark.parametrize("how", ["annotation", "deletion"])
def test_a_running_phase_is_cancelled_and_the_deferred_one_runs(function: str, how: str) -> None:
    async def scenario(world: World) -> None:
        last = phase("Say", "last")
        await world.blueprint(phase(function, "x"), phase("Say", "y"), deferPhase=last)
        async with world.controller():
            await world.run()
            await world.until(lambda: world.calls == ["x began"])
            if how == "annotation":
                change = {"metadata": {"annotations": {CANCEL: "true"}}}
                await world.client.patch(SETS, "one", "a", change=change)
                status = await world.over()
                assert states(status) == ["failed", "pending", "complete"]
                assert "it was cancelled by the annotation" in status["error"]["message"]
            else:
                await world.client.delete(SETS, "one", "a")
                while await find(world.client, SETS, "one", "a") is not None:
                    await asyncio.sleep(0.002)
        stopped = [] if function == "Block" else ["x stopped"]
        assert world.calls == ["x began", *stopped, "last: "]

    lived(scenario)


@pytest.mark.parametrize("function", ["Block", "Sleep"])
def test_what_takes_longer_than_it_may_fails(function: str) -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase(function, "x"))
        async with world.controller(seconds=0.05):
            await world.run()
            status = await world.over()
        reason = status["actions"][0]["phases"][0]["reason"]
        assert reason == f"{function} v0.0.0 took longer than 0.05s"

    lived(scenario)


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("list", "Return v0.0.0 returned a list, not a mapping of strings to data"),
        (
            "large",
            "Return v0.0.0 returned 300008 bytes, more than 262144; store the data elsewhere",
        ),
        ("odd", "Return v0.0.0 returned a value that is not JSON data"),
        ("deep", "Return v0.0.0 returned a value nested deeper than 90 levels"),
    ],
)
def test_an_output_that_cannot_be_kept_fails_its_phase(what: str, told: str) -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Return", "x", what=what))
        async with world.controller():
            await world.run()
            status = await world.over()
        assert status["actions"][0]["phases"][0]["reason"].startswith(told)

    lived(scenario)


def test_many_actions_run_at_once_but_not_more_than_may() -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Block", "x"), phase("Say", "y"))
        # Of six slots one namespace takes three, and leaves three to others.
        async with world.controller(at_once=6):
            await world.run(count=5)
            await world.until(lambda: len(world.calls) == 3)
            found = await world.client.get(SETS, "one", "a")
            while len(waiting(found["status"])) < 2:
                await asyncio.sleep(0.002)
                found = await world.client.get(SETS, "one", "a")
            running = [states(found["status"], number)[0] for number in range(5)]
            assert sorted(running) == ["pending"] * 2 + ["running"] * 3
            assert [each["place"] for each in waiting(found["status"])] == [1, 2]
            assert waiting(found["status"])[1]["message"] == (
                "it waits for a slot to call phase x: it is number 2 of 2 in the queue, 3 of at "
                "most 6 calls run, 3 of them in this namespace"
            )
            assert found["status"]["progress"]["runningPhase"] == "x, x, x"
            world.gate.set()
            status = await world.over()
        assert all(states(status, number) == ["complete"] * 2 for number in range(5))
        assert waiting(status) == []

    lived(scenario)


def test_the_blueprint_of_the_start_counts_to_the_end() -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Block", "x"), phase("Say", "y", text="old"))
        async with world.controller():
            await world.run()
            await world.until(lambda: bool(world.calls))
            change = {"actions": {"go": {"phases": [phase("Say", "z", text="new")]}}}
            await world.client.patch(BLUEPRINT, "bp", "a", change=change)
            world.gate.set()
            await world.over()
        assert world.calls == ["x began", "y: old"]

    lived(scenario)


def test_templates_see_the_object_its_pods_and_what_is_named() -> None:
    async def scenario(world: World) -> None:
        labels = {"app": "db"}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        spec = {"selector": {"matchLabels": labels}, "template": template}
        for resource, content in (
            (DEPLOYMENTS, {"metadata": {"name": "db"}, "spec": spec}),
            (PODS, {"metadata": {"name": "db-0", "labels": labels}, "spec": template["spec"]}),
            (MAPS, {"metadata": {"name": "settings"}, "data": {"path": "/x"}}),
            (SECRETS, {"metadata": {"name": "login"}, "stringData": {"user": "ann"}}),
        ):
            await world.client.create(resource, content, "a")
        text = "{{ .Object.kind }} {{ index .Deployment.Pods 0 }} {{ .ConfigMaps.s.Data.path }} "
        text += "{{ .Secrets.l.Data.user | toString }} {{ .Phases.x.Secrets.own.Data.user }}"
        own = {"own": {"kind": "Secret", "name": "{{ .Options.login }}", "namespace": "a"}}
        await world.blueprint(phase("Say", "x", text=text) | {"objects": own})
        async with world.controller():
            await world.run(
                object={"kind": "deployment", "name": "db", "namespace": "a"},
                configMaps={"s": {"name": "settings"}},
                secrets={"l": {"name": "login", "namespace": "a"}},
                options={"login": "login"},
            )
            status = await world.over()
        assert world.calls == ["x: Deployment db-0 /x ann ann"], status
        # Secrets are read when they are needed, and written nowhere but where a template puts them.
        assert "ann" not in str(status["actions"][0]["snapshot"])

    lived(scenario)


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ({"object": {"kind": "Deployment", "name": "db"}}, "there is no deployments a/db"),
        ({"object": {"kind": "Thing", "name": "x"}}, "a Thing, which is not served"),
        ({"blueprint": "other"}, "there is no blueprint other (spec.actions[0].blueprint)"),
    ],
)
def test_what_is_not_there_stops_the_actions_before_the_first_phase(action: Any, told: str) -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Say", "x"))
        async with world.controller():
            await world.run(**action)
            status = await world.over()
        assert status["state"] == "failed"
        assert told in status["error"]["message"]
        assert world.calls == []

    lived(scenario)


def test_a_secret_that_is_not_there_fails_the_phase() -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Say", "x"), deferPhase=phase("Say", "last"))
        async with world.controller():
            await world.run(secrets={"l": {"name": "none"}})
            status = await world.over()
        assert states(status) == ["failed", "failed"]
        assert (
            "there is no secrets a/none (spec.actions[0].secrets.l)" in status["error"]["message"]
        )

    lived(scenario)


class Stubborn:
    """A client that loses some answers to writes of status."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.conflicts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def update(
        self, resource: GroupVersionResource, content: Object, **options: Any
    ) -> Object:
        if resource == SETS and self.conflicts < 6:
            self.conflicts += 1
            stale = {**content["metadata"], "resourceVersion": "1"}
            return await self._client.update(resource, {**content, "metadata": stale}, **options)
        return await self._client.update(resource, content, **options)


def test_conflicts_cost_nothing_but_another_attempt() -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Say", "x"), phase("Say", "y"))
        stubborn = Stubborn(world.client)
        client = cast("Client", stubborn)
        controller = ActionSetController(
            client, known_functions(world.registry), calls=ThreadCalls(client)
        )
        async with ControllerManager(world.client, [controller]):
            await world.run()
            await world.over()
        assert stubborn.conflicts == 6
        assert world.calls == ["x: ", "y: "]

    lived(scenario)


async def restarted(world: World, act: Callable[[], Awaitable[None]]) -> Any:
    """End the controller in the middle of a phase, and start another one."""
    async with world.controller(grace=0.01):
        await world.run()
        await world.until(lambda: bool(world.calls))
    await act()
    async with world.controller():
        return await world.over()


def test_a_controller_that_ends_leaves_its_calls_to_the_next_one() -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Sleep", "x"), phase("Say", "y"))

        async def nothing() -> None:
            found = await world.client.get(SETS, "one", "a")
            assert states(found["status"]) == ["running", "pending"]

        status = await restarted(world, nothing)
        assert states(status) == ["failed", "pending"]
        assert "it is not idempotent" in status["error"]["message"]
        assert world.calls == ["x began", "x stopped"]

    lived(scenario)


def test_a_function_that_is_gone_after_a_restart_is_named() -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Block", "x"), phase("Say", "y"))
        async with world.controller():
            await world.run()
            await world.until(lambda: bool(world.calls))

            async def change() -> None:
                world.registry = Registry(each for each in world.registry if each.name != "Block")

            await change()
        async with world.controller():
            status = await world.over()
        assert "Block v0.0.0 was running" in status["error"]["message"]

    lived(scenario)


class Late(Stubborn):
    """A client whose answers come later than the events of what they answer."""

    async def update(
        self, resource: GroupVersionResource, content: Object, **options: Any
    ) -> Object:
        found = await self._client.update(resource, content, **options)
        await asyncio.sleep(0.02)
        return found


def test_events_may_come_before_answers() -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(*(phase("Say", f"p{number}") for number in range(4)))
        late = cast("Client", Late(world.client))
        controller = ActionSetController(
            late, known_functions(world.registry), calls=ThreadCalls(late)
        )
        async with ControllerManager(world.client, [controller]):
            await world.run()
            await world.over()
        assert world.calls == [f"p{number}: " for number in range(4)]

    lived(scenario)


def test_what_something_else_has_started_is_left_to_that() -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Say", "x"))
        await world.run()
        found = await world.client.get(SETS, "one", "a")
        phases = [{"name": "x", "state": "running"}]
        status = {"state": "running", "actions": [{"name": "go", "phases": phases}]}
        await world.client.update(SETS, {**found, "status": status}, subresource="status")
        async with world.controller():
            await world.run("two")
            await world.over("two")
        found = await world.client.get(SETS, "one", "a")
        assert found["status"] == status

    lived(scenario)


def test_an_async_function_that_blocks_holds_up_nobody_else() -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Stuck", "x"))
        other = {"phases": [phase("Api", "y")]}
        await world.client.patch(BLUEPRINT, "bp", "a", change={"actions": {"other": other}})
        async with world.controller():
            await world.run()
            await world.until(lambda: bool(world.calls))
            await world.run("two", name="other")
            assert (await world.over("two"))["state"] == "complete"
            found = await world.client.get(SETS, "one", "a")
            assert found["status"]["state"] == "running"
            world.gate.set()
            await world.over()

    lived(scenario)


def test_outputs_that_are_too_large_together_fail_the_phase_that_is_too_much() -> None:
    async def scenario(world: World) -> None:
        phases = [phase("Return", f"p{number}", what="some") for number in range(9)]
        await world.blueprint(*phases, deferPhase=phase("Say", "last"))
        async with world.controller(status=6_000):
            await world.run()
            status = await world.over()
        found = states(status)
        assert found[0] == "complete"
        assert found[-1] == "complete"
        assert found.count("failed") == 1
        assert "too large to be recorded in the status" in status["error"]["message"]

    lived(scenario)


def test_actions_that_are_too_large_do_not_start() -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Say", "x", text="y" * 3000))
        async with world.controller(status=2_000):
            await world.run()
            status = await world.over()
        assert status["error"]["message"].startswith("its actions are too large")
        assert world.calls == []

    lived(scenario)


class Forbidding(Stubborn):
    """A client that may not read secrets."""

    async def get(self, resource: GroupVersionResource, *arguments: Any, **options: Any) -> Object:
        if resource == SECRETS:
            raise ApiError(403, "Forbidden", "you may not read secrets")
        return await self._client.get(resource, *arguments, **options)


def test_what_a_controller_may_not_read_fails_the_phase_and_is_not_tried_for_ever() -> None:
    async def scenario(world: World) -> None:
        await world.blueprint(phase("Say", "x"))
        client = cast("Client", Forbidding(world.client))
        async with ControllerManager(
            world.client,
            [
                ActionSetController(
                    client, known_functions(world.registry), calls=ThreadCalls(client)
                )
            ],
        ):
            await world.run(secrets={"l": {"name": "login"}})
            status = await world.over()
        assert "you may not read secrets" in status["error"]["message"]

    lived(scenario)


def test_sensitive_outputs_are_there_after_a_restart_and_never_in_the_status() -> None:
    async def scenario(world: World) -> None:
        @world.registry.register("Make", sensitive=True)
        def make(ctx: Context) -> dict[str, Any]:
            return {"password": "made-p4ss"}

        last = phase("Say", "last", text="{{ .Phases.make.Output.password }}")
        await world.blueprint(phase("Make", "make"), phase("Block", "x"), deferPhase=last)
        async with world.controller():
            await world.run()
            await world.until(lambda: world.calls == ["x began"])
        # The controller ends while a phase runs; the next one has nothing in memory.
        async with world.controller():
            status = await world.over()
        assert world.calls == ["x began", "last: made-p4ss"]
        assert states(status) == ["complete", "failed", "complete"]
        assert status["actions"][0]["deferPhase"]["output"] == {"text": "***"}
        assert "made-p4ss" not in str(await world.client.get(SETS, "one", "a"))

    lived(scenario)


def test_a_sensitive_output_that_cannot_be_kept_fails_its_phase() -> None:
    async def scenario(world: World) -> None:
        content = phase("Say", "x", text="s3cret-text") | {"sensitiveOutputs": ["text"]}
        await world.blueprint(content)
        client = cast("Client", Forbidding(world.client))
        known, calls = known_functions(world.registry), ThreadCalls(client)
        async with ControllerManager(
            world.client, [ActionSetController(client, known, calls=calls)]
        ):
            await world.run()
            status = await world.over()
        told = status["error"]["message"]
        assert "its result cannot be stored: its sensitive outputs cannot be kept" in told
        assert "you may not read secrets" in told
        assert "output" not in status["actions"][0]["phases"][0]

    lived(scenario)
