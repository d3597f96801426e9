"""A control plane that composes: functions are real servers, in this process or in others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from tests.compositions import composing
from tests.compositions.calls.serving import V1, Context, serving
from tests.compositions.controllers.installing import ADMIN, NAMESPACES, MemoryRuntime
from tests.compositions.running import config, passing

from polyver import apis
from polyver.client import CRDS, Backoff, Client, GroupVersionResource, find
from polyver.client.in_process import DirectClient
from polyver.compositions.calls import Caller
from polyver.compositions.calls.protocol import decode_request, encode_response
from polyver.compositions.controllers.composites import (
    CompositeController,
    CompositeKey,
    CompositeLimits,
)
from polyver.compositions.controllers.packages import FUNCTION_REVISIONS
from polyver.compositions.decisions import (
    composition_changes,
    composition_revision_object,
    composition_revision_patch,
    definition_crd,
    known_composition_revision,
)
from polyver.compositions.kinds import COMPOSITION_KINDS, KINDS
from polyver.compositions.messages import Ready, Request, Response
from polyver.compositions.messages import Resource as Wanted
from polyver.controllers import Controller, ControllerManager, GarbageCollector
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.server.api import ApiServer
from polyver.kube.store import MemoryStore

GROUP = "apiextensions.crossplane.io"
DEFINITIONS = GroupVersionResource(GROUP, "v1", "compositeresourcedefinitions", namespaced=False)
COMPOSITIONS = GroupVersionResource(GROUP, "v1", "compositions", namespaced=False)
REVISIONS = GroupVersionResource(GROUP, "v1", "compositionrevisions", namespaced=False)
BUCKETS = GroupVersionResource(composing.GROUP, "v1alpha1", "acmebuckets", namespaced=False)
MAPS = GroupVersionResource("", "v1", "configmaps")
SECRETS = GroupVersionResource("", "v1", "secrets")
EVENTS = GroupVersionResource("", "v1", "events")
QUICK = CompositeLimits(seconds=5.0, backoff=Backoff(first=0.02, most=0.2))
PATIENT = CompositeLimits(seconds=5.0, backoff=Backoff(first=600.0, most=600.0))
Function = Callable[[Request], Response | Awaitable[Response]]


class World:
    """An API server with the kinds of compositions, and whoever a test wants to act on them."""

    def __init__(self, client: Client | None = None) -> None:
        """On a server of its own, unless there is a client of another one."""
        self.api = ApiServer(MemoryStore())
        own = DirectClient(self.api, ADMIN, agent="polyver")
        self.api.catalogue.subscribe(own.kinds_changed)
        self.client: Client = client or own
        self.runtime = MemoryRuntime()
        self.called: dict[str, int] = {}
        self._open = AsyncExitStack()

    async def prepare(self) -> None:
        for name in ("default", "shop"):
            if await find(self.client, NAMESPACES, name) is None:
                await self.client.create(NAMESPACES, {"metadata": {"name": name}})
        for kind in (*KINDS, *COMPOSITION_KINDS):
            await self.client.create(CRDS, apis.crd_of(kind.definition()))
        for kind in (*KINDS, *COMPOSITION_KINDS):
            await self.served(kind.definition().group, kind.kind)

    async def served(self, group: str, kind: str) -> None:
        """Wait until a kind is."""
        while not any((each.group, each.kind) == (group, kind) for each in await self._kinds()):
            await asyncio.sleep(0.001)

    async def _kinds(self) -> Sequence[ResourceKind]:
        return (await self.client.discover()).kinds

    async def close(self) -> None:
        await self._open.aclose()

    # What users and other controllers do.

    async def define(self, *versions: Object, **spec: Any) -> Object:
        """Have a kind of composite resources."""
        obj = composing.definition(*versions, **spec)
        del obj["metadata"]["uid"]
        made = await self.client.create(DEFINITIONS, obj)
        await self.client.create(CRDS, definition_crd(made))
        await self.served(composing.GROUP, composing.KIND)
        return made

    async def compose(self, obj: Object) -> str:
        """Have a composition, and the revision that is made of it; its name."""
        obj = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "uid"}}
        made = await self.client.apply(COMPOSITIONS, obj, manager="test", force=True)
        known = {}
        for each in (await self.client.list(REVISIONS)).items:
            if (
                each["metadata"]["labels"]["crossplane.io/composition-name"]
                == obj["metadata"]["name"]
            ):
                known[each["metadata"]["name"]] = known_composition_revision(each)
        changes = composition_changes(made, [*known.values()])
        if changes.create is not None:
            await self.client.create(REVISIONS, composition_revision_object(changes.create, made))
        for changed in changes.changes:
            change = composition_revision_patch(known[changed.name], changed, made)
            await self.client.patch(REVISIONS, changed.name, change=change)
        return changes.current

    async def serve(self, function: Function) -> str:
        """A function at an address."""

        async def answer(request: bytes, context: Context) -> bytes:
            del context
            found = function(decode_request(request))
            return encode_response(found if isinstance(found, Response) else await found)

        return await self._open.enter_async_context(serving({V1: answer}, shown=None))

    async def kind(self, group: str, kind: str, plural: str) -> None:
        """Have one more kind."""
        names = {"kind": kind, "plural": plural}
        schema = {"openAPIV3Schema": {"type": "object"}}
        versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
        spec = {"group": group, "names": names, "scope": "Cluster", "versions": versions}
        await self.client.create(CRDS, {"metadata": {"name": f"{plural}.{group}"}, "spec": spec})

    async def install(
        self, content: str, number: int, served: Function | str, **more: Any
    ) -> Object:
        """A revision of a function that is served, or is at an address."""
        made = composing.function_revision(content, number, **more)
        if isinstance(served, str):
            endpoint = served
        else:
            endpoint = await self.serve(self._counted(made["metadata"]["name"], served))
        made.pop("status", None)
        made = await self.client.create(FUNCTION_REVISIONS, made)
        return await self.endpoint(made, endpoint)

    def _counted(self, name: str, function: Function) -> Function:
        def called(request: Request) -> Response | Awaitable[Response]:
            self.called[name] = self.called.get(name, 0) + 1
            return function(request)

        return called

    async def endpoint(self, revision: Object, endpoint: str) -> Object:
        name = revision["metadata"]["name"]
        change = {"status": {"endpoint": endpoint or None}}
        return await self.client.patch(
            FUNCTION_REVISIONS, name, change=change, subresource="status"
        )

    async def bucket(self, name: str = "my-bucket", **spec: Any) -> Object:
        obj = composing.bucket(**spec)
        obj["metadata"] = {"name": name}
        return await self.client.create(BUCKETS, obj)

    # What is to be seen.

    async def until(
        self,
        holds: Callable[[Object], object],
        name: str = "my-bucket",
        namespace: str = "",
        resource: GroupVersionResource = BUCKETS,
    ) -> Object:
        """An object, as soon as it is as it should be; in vain this would go on for ever."""
        while True:
            found = await find(self.client, resource, name, namespace)
            if found is not None and holds(found):
                return found
            await asyncio.sleep(0.002)

    async def gone(self, name: str) -> None:
        while await find(self.client, BUCKETS, name) is not None:
            await asyncio.sleep(0.002)

    async def mapped(self, **maps: Mapping[str, str]) -> None:
        """Until there are these composed ConfigMaps and no others."""
        while await self.maps() != maps:
            await asyncio.sleep(0.002)

    async def maps(self) -> dict[str, Mapping[str, str]]:
        """Composed ConfigMaps: what they say, by what they are called in the pipeline."""
        found = (await self.client.list(MAPS, labels="crossplane.io/composite")).items
        note = "crossplane.io/composition-resource-name"
        return {each["metadata"]["annotations"][note]: each.get("data") or {} for each in found}

    async def told(self) -> list[tuple[str, str]]:
        found = (await self.client.list(EVENTS)).items
        return sorted((each["reason"], each["message"]) for each in found)

    async def until_told(self, reason: str, message: str) -> None:
        while (reason, message) not in await self.told():
            await asyncio.sleep(0.002)

    def engine(self, client: Client | None = None, **more: Any) -> ControllerManager:
        """Those who act: the controller of composite resources, and the collector of garbage."""
        client = client or self.client
        limits = more.pop("limits", QUICK)
        self.caller = Caller()
        self.controller = CompositeController(
            client, self.runtime, limits=limits, caller=self.caller, **more
        )
        around: list[Controller[Any]] = [self.controller, GarbageCollector(client)]
        self.running = ControllerManager(client, around, grace=0.1)
        return self.running

    async def ran(self, runs: int) -> None:
        """Until pipelines were run so often since the engine was started."""
        while self.controller.counts["runs"] < runs:
            await asyncio.sleep(0.002)

    async def idle(self) -> None:
        """Until nothing is worked on, and nothing waits that is not for later."""
        while self.running.metrics["composites"].active:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)

    key = CompositeKey(composing.GROUP, composing.KIND, "", "my-bucket")


def condition(found: Object, kind: str) -> Object:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})


def is_ready(found: Object) -> bool:
    return (
        condition(found, "Ready").get("status")
        == "True"
        == condition(found, "Synced").get("status")
    )


def says(reason: str) -> Callable[[Object], bool]:
    """Whether it is not composed for a reason."""

    def holds(found: Object) -> bool:
        synced = condition(found, "Synced")
        return synced.get("status") == "False" and synced.get("reason") == reason

    return holds


def run(
    scenario: Callable[[World], Awaitable[None]],
    *,
    acting: bool = True,
    patient: bool = False,
    within: float = 20,
) -> None:
    """Play a scenario on a control plane of its own; a patient one tries nothing again."""

    async def played() -> None:
        world = World()
        serving_api = asyncio.create_task(world.api.run())
        await world.prepare()
        try:
            if not acting:
                await asyncio.wait_for(scenario(world), within)
                return
            async with world.engine(limits=PATIENT if patient else QUICK):
                await asyncio.wait_for(scenario(world), within)
        finally:
            await world.close()
            serving_api.cancel()
            await asyncio.gather(serving_api, return_exceptions=True)

    asyncio.run(played())


def settings(request: Request) -> Response:
    """A function that composes one ConfigMap, which is ready when it is there."""
    spec = request.observed.composite.resource["spec"]
    ready = Ready.TRUE if "settings" in request.observed.resources else Ready.FALSE
    made = Wanted(config(size=str(int(spec.get("size", 0)))), ready=ready)
    desired = replace(request.desired, resources={**request.desired.resources, "settings": made})
    return passing(request, desired=desired)
