"""Namespaces: what goes with them, what holds them and is told, and what all of them have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.client.fake import ACCOUNT, CONFIG_MAP, NAMESPACE, SECRET, WIDGET, FakeApi
from tests.client.virtual import VirtualClock, settle
from tests.deadlines import HANG
from tests.kube.record import transcript

from polyver.client import GroupVersionResource
from polyver.client.in_process import DirectClient
from polyver.controllers import (
    AccountController,
    Controller,
    ControllerManager,
    NamespaceController,
)
from polyver.controllers.kubernetes.accounts import published
from polyver.controllers.kubernetes.namespaces import Remains, conditions
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.kube.server.http import User

SPACES, MAPS, SECRETS = map(GroupVersionResource.of, (NAMESPACE, CONFIG_MAP, SECRET))


class World:
    """A server with the namespace `a`."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.clock = VirtualClock()
        self.client = DirectClient(self.api, User("me"), clock=self.clock)

    async def space(self, name: str) -> None:
        await self.client.create(SPACES, {"metadata": {"name": name}})
        await settle()

    async def end(self, name: str) -> None:
        await self.client.delete(SPACES, name)
        await settle()

    async def conditions(self, name: str) -> dict[str, Object]:
        found = await self.client.get(SPACES, name)
        return {each["type"]: each for each in found["status"].get("conditions", [])}


def run(
    make: Callable[[World], Controller[Any]], scenario: Callable[[World], Awaitable[None]]
) -> None:
    async def within() -> None:
        world = World()
        await world.space("a")
        async with ControllerManager(world.client, [make(world)], clock=world.clock) as engine:
            await engine.ready()
            await settle()
            await asyncio.wait_for(scenario(world), HANG)

    asyncio.run(within())


def terminator(world: World) -> NamespaceController:
    return NamespaceController(world.client, clock=world.clock)


def accountant(world: World) -> AccountController:
    return AccountController(world.client, ca="the CA")


def test_a_namespace_goes_with_all_that_is_in_it() -> None:
    async def scenario(world: World) -> None:
        await world.space("b")
        for space in "ab":
            await world.client.create(MAPS, {"metadata": {"name": "m"}}, space)
            await world.client.create(SECRETS, {"metadata": {"name": "s"}}, space)
        await world.end("a")
        assert world.api.names("namespaces") == {"b"}
        assert {path[2] for path in world.api.objects if path[2]} == {"b"}

    run(terminator, scenario)


def test_a_namespace_that_is_held_says_by_what_and_goes_when_that_ends() -> None:
    async def scenario(world: World) -> None:
        held = {"metadata": {"name": "s", "finalizers": ["ex.io/one"]}}
        await world.client.create(SECRETS, held, "a")
        await world.client.create(MAPS, {"metadata": {"name": "m"}}, "a")
        await world.end("a")
        assert world.api.names("configmaps") == set()
        found = await world.conditions("a")
        assert found["NamespaceContentRemaining"]["message"] == (
            "Some resources are remaining: secrets. has 1 resource instances"
        )
        assert found["NamespaceFinalizersRemaining"]["reason"] == "SomeFinalizersRemain"
        change = {"metadata": {"finalizers": None}}
        await world.client.patch(SECRETS, "s", "a", change=change)
        await settle()
        assert world.api.names("namespaces") == set()

    run(terminator, scenario)


def test_a_namespace_that_is_held_is_not_written_over_and_over() -> None:
    async def scenario(world: World) -> None:
        held = {"metadata": {"name": "s", "finalizers": ["ex.io/one"]}}
        await world.client.create(SECRETS, held, "a")
        await world.end("a")
        version = world.api.version
        await world.clock.advance(60)
        assert world.api.version == version

    run(terminator, scenario)


def test_a_finalizer_of_somebody_else_stays() -> None:
    async def scenario(world: World) -> None:
        spec = {"finalizers": ["ex.io/mine", "kubernetes"]}
        await world.client.create(SPACES, {"metadata": {"name": "b"}, "spec": spec})
        await world.end("b")
        found = await world.client.get(SPACES, "b")
        assert found["spec"]["finalizers"] == ["ex.io/mine"]

    run(terminator, scenario)


def test_a_kind_that_cannot_be_deleted_is_told_and_tried_again() -> None:
    async def scenario(world: World) -> None:
        await world.client.create(SECRETS, {"metadata": {"name": "s"}}, "a")
        broken = ApiError(500, "InternalError", "broken")
        world.api.breaks = lambda request: (
            broken if request.method == "DELETE" and "secrets" in request.path else None
        )
        await world.end("a")
        failed = (await world.conditions("a"))["NamespaceDeletionContentFailure"]
        assert failed["status"] == "True"
        assert failed["message"] == "Failed to delete all resource types, 1 remaining: broken"
        world.api.breaks = lambda _: None
        await world.clock.advance(6)
        assert world.api.names("namespaces") == set()

    run(terminator, scenario)


def test_custom_kinds_are_emptied_too() -> None:
    async def scenario(world: World) -> None:
        world.api.kinds.append(WIDGET)
        world.client.kinds_changed()
        await world.client.create(GroupVersionResource.of(WIDGET), {"metadata": {"name": "w"}}, "a")
        await settle()
        await world.end("a")
        assert world.api.names("widgets") == set()
        assert world.api.names("namespaces") == set()

    run(terminator, scenario)


def test_the_conditions_are_those_of_a_real_cluster() -> None:
    steps = transcript("namespace-held-by-a-finalizer")
    assert steps
    recorded = steps[2]["body"]["status"]["conditions"]
    remains = Remains()
    kind = WIDGET
    remains.count(kind, [["ex.io/one"]])
    found = conditions([], remains, now="<time>")
    text = "namespace-held-by-a-finalizer.ex.io"
    for condition in found:
        condition["message"] = condition["message"].replace("widgets.ex.io", f"plains.{text}")
    assert found == recorded


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    first, second = Remains(), Remains()
    first.count(WIDGET, [["x"]])
    second.count(WIDGET, [["x"], ["x", "y"]])
    before = conditions([], first, now="1")
    after = conditions(before, second, now="2")
    assert {each["lastTransitionTime"] for each in after} == {"1"}
    assert after[4]["message"].endswith("x in 2 resource instances, y in 1 resource instances")
    ended = conditions(after, Remains(), now="3")
    assert [each["lastTransitionTime"] for each in ended] == ["1", "1", "1", "3", "3"]


def test_conditions_of_others_stay_where_they_are() -> None:
    other = {"type": "Other", "status": "True"}
    assert conditions([other], Remains(), now="1")[0] == other


def test_kinds_that_cannot_be_asked_for_hold_a_namespace() -> None:
    remains = Remains(undiscovered={"ex.io/v1": "down"})
    assert not remains.nothing
    [told] = [each for each in conditions([], remains, now="1") if each["status"] == "True"]
    assert told["message"] == (
        "Discovery failed for some groups, 1 failing: "
        "unable to retrieve the complete list of server APIs: ex.io/v1: down"
    )


def test_every_namespace_has_an_account_and_the_ca() -> None:
    async def scenario(world: World) -> None:
        await world.space("b")
        for space in "ab":
            await world.client.get(GroupVersionResource.of(ACCOUNT), "default", space)
            found = await world.client.get(MAPS, "kube-root-ca.crt", space)
            assert found["data"] == {"ca.crt": "the CA"}

    run(accountant, scenario)


def test_what_is_taken_away_or_changed_comes_back() -> None:
    async def scenario(world: World) -> None:
        await world.client.delete(GroupVersionResource.of(ACCOUNT), "default", "a")
        change = {"data": {"ca.crt": "another"}, "metadata": {"labels": {"x": "y"}}}
        await world.client.patch(MAPS, "kube-root-ca.crt", "a", change=change)
        await settle()
        assert world.api.names("serviceaccounts") == {"default"}
        found = await world.client.get(MAPS, "kube-root-ca.crt", "a")
        assert found["data"] == {"ca.crt": "the CA"}
        assert found["metadata"]["labels"] == {"x": "y"}

    run(accountant, scenario)


def test_nothing_is_made_in_a_namespace_that_goes() -> None:
    async def scenario(world: World) -> None:
        await world.end("a")
        await world.client.delete(GroupVersionResource.of(ACCOUNT), "default", "a")
        await world.clock.advance(60)
        assert world.api.names("serviceaccounts") == set()

    run(accountant, scenario)


def test_what_is_right_is_not_written() -> None:
    right = published(None, "a", "the CA")
    assert published(right, "a", "the CA") == right
    described = right["metadata"] | {"annotations": {"kubernetes.io/description": "mine"}}
    mine = right | {"metadata": described}
    assert published(mine, "a", "the CA") == mine
