"""A control plane that installs functions, and a runtime of which tests say how it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.compositions.samples import digest_of
from tests.deadlines import HANG

from polyver import apis
from polyver.client import CRDS, Backoff, GroupVersionResource, find
from polyver.client.in_process import DirectClient
from polyver.compositions.calls import Endpoint
from polyver.compositions.capability import package_links
from polyver.compositions.controllers.packages import (
    FUNCTION_REVISIONS,
    FUNCTIONS,
    DigestLimits,
    FunctionController,
    FunctionRevisionController,
)
from polyver.compositions.kinds import KINDS
from polyver.compositions.packages import FunctionPin, StepFunctionUse, function_of
from polyver.compositions.runtimes import DesiredRevision, Figures, ServingStatus
from polyver.controllers import ControllerManager, GarbageCollector, Watch
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.kube.server.api import ApiServer
from polyver.kube.server.http import User
from polyver.kube.store import MemoryStore, Store

ADMIN = User("admin", ("system:masters", "system:authenticated"))
PROVIDERS = GroupVersionResource("pkg.crossplane.io", "v1", "providers", namespaced=False)
NAMESPACES = GroupVersionResource("", "v1", "namespaces", namespaced=False)
EVENTS = GroupVersionResource("", "v1", "events")


class MemoryRuntime:
    """Serves nothing, and says that it does, unless a test says otherwise."""

    def __init__(self) -> None:
        self.contents: dict[str, str] = {}
        """Digests by reference; a reference that is not here has that of its text."""
        self.unknown: dict[str, Exception] = {}
        self.asked: list[str] = []
        self.wanted: dict[str, DesiredRevision] = {}
        self.failing: dict[str, ServingStatus] = {}
        self.closed = False
        self._observers: list[Callable[[str], None]] = []

    async def digest(self, package: str, *, address: str = "") -> str:
        self.asked.append(package)
        await asyncio.sleep(0)
        if package in self.unknown:
            raise self.unknown[package]
        return package if address else self.contents.get(package, digest_of(package))

    async def serve(self, wanted: DesiredRevision) -> ServingStatus:
        self.wanted[wanted.name] = wanted
        at = wanted.address or f"127.0.0.1:{9000 + len(self.wanted)}"
        return self.failing.get(wanted.name, ServingStatus(at, "Serving"))

    async def end(self, name: str) -> None:
        self.wanted.pop(name, None)

    async def reach(self, name: str, endpoint: str) -> Endpoint:
        return Endpoint(name, endpoint)

    def observe(self, changed: Callable[[str], None]) -> None:
        self._observers.append(changed)

    def tell(self, name: str, served: ServingStatus | None) -> None:
        """Have news about a revision; without any it is served again."""
        self.failing.pop(name, None)
        if served is not None:
            self.failing[name] = served
        for each in self._observers:
            each(name)

    def figures(self) -> Iterator[Figures]:
        for name in self.wanted:
            yield Figures(name, up=name not in self.failing)

    async def close(self) -> None:
        self.closed = True
        self.wanted.clear()


class Users:
    """Whoever a test says uses functions."""

    def __init__(self) -> None:
        self.known: list[StepFunctionUse] = []

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return ()

    async def uses(self, function: str) -> Sequence[StepFunctionUse]:
        return [each for each in self.known if each.function == function]

    def pins(self, function: str) -> Mapping[FunctionPin, tuple[str, ...]]:
        del function
        return {}


class World:
    """An API server that asks admission, and the controllers at work."""

    def __init__(self, store: Store, runtime: MemoryRuntime, *, several: bool) -> None:
        self.api = ApiServer(store)
        self.client = DirectClient(self.api, ADMIN, agent="polyver")
        self.api.catalogue.subscribe(self.client.kinds_changed)
        self.runtime = runtime
        self.users = Users()
        self.links = package_links(self.client, self.users, several=several)
        limits = DigestLimits(seconds=5.0, every=0.05, backoff=Backoff(first=0.01, most=0.05))
        self.functions = FunctionController(
            self.client, runtime, dependents=self.users, several=several, limits=limits
        )
        self.engine = ControllerManager(
            self.client,
            [
                self.functions,
                FunctionRevisionController(self.client, runtime),
                GarbageCollector(self.client),
            ],
        )

    async def prepare(self) -> None:
        if await find(self.client, NAMESPACES, "default") is None:
            await self.client.create(NAMESPACES, {"metadata": {"name": "default"}})
        for kind in KINDS:
            definition = kind.definition()
            if await find(self.client, CRDS, definition.name) is None:
                await self.client.create(CRDS, apis.crd_of(definition))
        while len([each for each in (await self.client.discover()).kinds if _ours(each)]) < 6:
            await asyncio.sleep(0.001)

    def admit(self) -> None:
        for link in self.links:
            self.api.admission.add(link)

    async def write(self, obj: Object) -> Object:
        """Create a Function, or replace what it says."""
        name = obj["metadata"]["name"]
        while True:
            found = await find(self.client, FUNCTIONS, name)
            if found is None:
                return await self.client.create(FUNCTIONS, obj)
            about = {key: obj["metadata"].get(key) or {} for key in ("labels", "annotations")}
            metadata = {**found["metadata"], **about}
            try:
                return await self.client.update(
                    FUNCTIONS, {**found, "metadata": metadata, "spec": obj["spec"]}
                )
            except ApiError as error:
                if error.reason != "Conflict":
                    raise

    async def install(self, obj: Object) -> Object:
        """Write a Function, and wait until its package is the current one and all is settled."""
        written = await self.write(obj)
        generation = written["metadata"]["generation"]

        def is_installed(found: Object) -> bool:
            status = found.get("status") or {}
            seen = condition(found, "Healthy").get("observedGeneration") == generation
            return seen and bool(status.get("currentIdentifier") == obj["spec"]["package"])

        return await self.until(obj["metadata"]["name"], is_installed)

    async def until(
        self, name: str, holds: Callable[[Object], bool], resource: GroupVersionResource = FUNCTIONS
    ) -> Object:
        """An object, as soon as it is as it should be; in vain this would go on for ever."""
        while True:
            found = await find(self.client, resource, name)
            if found is not None and holds(found):
                return found
            await asyncio.sleep(0.002)

    async def revisions(self, function: str) -> list[Object]:
        """By their numbers."""
        found = (await self.client.list(FUNCTION_REVISIONS)).items
        mine = [each for each in found if function_of(each) == function]
        return sorted(mine, key=lambda each: int(each["spec"]["revision"]))

    async def states(self, function: str) -> list[tuple[int, str]]:
        found = await self.revisions(function)
        return [(each["spec"]["revision"], each["spec"]["desiredState"]) for each in found]

    async def settled(self, function: str, *states: tuple[int, str]) -> list[Object]:
        """The revisions, as soon as they have these numbers and states."""
        while await self.states(function) != [*states]:
            await asyncio.sleep(0.002)
        return await self.revisions(function)

    async def served(self, *names: str) -> None:
        """Wait until the runtime serves these and nothing else."""
        while self.runtime.wanted.keys() != {*names}:
            await asyncio.sleep(0.002)


def _ours(kind: Any) -> bool:
    return bool(kind.group == "pkg.crossplane.io")


def condition(found: Object, kind: str) -> Object:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})


def run(
    scenario: Callable[[World], Awaitable[None]],
    *,
    store: Store | None = None,
    runtime: MemoryRuntime | None = None,
    several: bool = True,
    admitted: bool = True,
) -> None:
    """Play a scenario on a control plane of its own."""

    async def within() -> None:
        world = World(store or MemoryStore(), runtime or MemoryRuntime(), several=several)
        serving = asyncio.create_task(world.api.run())
        await world.prepare()
        if admitted:
            world.admit()
        async with world.engine:
            await asyncio.wait_for(scenario(world), HANG)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(within())


class NotToBeHad(PolyverError):
    """A package that a test takes away."""

    reason = "NotAllowed"
