"""Keeps an APIService for every served version of a group, as the aggregator of Kubernetes does.

Clients read from APIServices which groups and versions a server serves. APIServices of built-in
groups are created when the server starts. APIServices of custom kinds are created and deleted
together with the versions that CustomResourceDefinitions serve.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress

import msgspec

from polyver.core.plain import Object
from polyver.kube.objects import encode_json
from polyver.kube.objects.conditions import set_condition
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.server.call import ServerContext
from polyver.kube.server.http import HttpRequest, HttpResponse
from polyver.kube.server.identity import SERVER
from polyver.kube.server.kinds import availability
from polyver.kube.store import Compacted, Lagging, StoreClosed

__all__ = ["Registrations", "builtin_registrations"]

_API = "apiregistration.k8s.io/v1"
_PATH = f"/apis/{_API}/apiservices"
_PREFIX = "/apiregistration.k8s.io/apiservices/"
_MANAGED = "kube-aggregator.kubernetes.io/automanaged"
_WATCH_TIMEOUT = 60.0
_LOOK_AGAIN = 1.0
_CUSTOM = 1000, 100
_MOST = 15
_VERSIONS = {"v1": 1, "autoscaling/v2": 30}
"""The `versionPriority` of some built-in versions, by apiVersion; all others have `_MOST`."""
_GROUPS: Mapping[str, int] = {
    "": 18000,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "apps": 17800,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "coordination.k8s.io": 16500,
    "discovery.k8s.io": 16200,
    "events.k8s.io": 17750,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "storagemigration.k8s.io": 15800,
}
"""The `groupPriorityMinimum` of each built-in group that has APIServices.

The group apiregistration.k8s.io has no APIService.
"""

_decoder = msgspec.json.Decoder()
Handle = Callable[[HttpRequest], Awaitable[HttpResponse]]


def builtin_registrations(kinds: Iterable[ResourceKind]) -> Iterator[Object]:
    """Yield an APIService for each version of each built-in group."""
    for group, version in dict.fromkeys((kind.group, kind.version) for kind in kinds):
        if group in _GROUPS:
            own = f"{group}/{version}" if group else version
            priorities = _GROUPS[group], _VERSIONS.get(own, _MOST)
            yield _registration(group, version, priorities, managed="onstart")


def _registration(group: str, version: str, priorities: tuple[int, int], *, managed: str) -> Object:
    return {
        "apiVersion": _API,
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}", "labels": {_MANAGED: managed}},
        "spec": {
            **({"group": group} if group else {}),
            "version": version,
            "groupPriorityMinimum": priorities[0],
            "versionPriority": priorities[1],
        },
    }


class Registrations:
    """Creates, repairs and deletes APIServices so that they match the served versions."""

    def __init__(self, server: ServerContext, handle: Handle) -> None:
        self._server = server
        self._handle = handle
        self._changed = asyncio.Event()
        self._stored: dict[str, Object] = {}
        """The APIServices in the store, by their store keys."""
        server.catalogue.subscribe(self._changed.set)

    async def run(self) -> None:
        """Keep the APIServices up to date until the store is closed."""
        keeping = asyncio.create_task(self._keep())
        try:
            while True:
                with suppress(Lagging, Compacted):
                    await self._follow()
        except StoreClosed:
            return
        finally:
            keeping.cancel()
            await asyncio.wait((keeping,))

    async def _follow(self) -> None:
        page = self._server.store.page(_PREFIX)
        self._stored = {each.key: _decoder.decode(each.value) for each in page.entries}
        watch = self._server.store.watch(_PREFIX, page.revision)
        try:
            while True:
                self._changed.set()
                for event in await watch.batch(_WATCH_TIMEOUT):
                    if event.deleted:
                        self._stored.pop(event.entry.key, None)
                    else:
                        self._stored[event.entry.key] = _decoder.decode(event.entry.value)
        finally:
            watch.close()

    async def _keep(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            answers = [await self._handle(each) for each in list(self._requests())]
            if any(answer.status >= 500 for answer in answers):
                await asyncio.sleep(_LOOK_AGAIN)
                self._changed.set()

    def _requests(self) -> Iterator[HttpRequest]:
        """Yield requests that create, repair and delete APIServices.

        After these requests, each served version has its APIService, and there are no others.
        """
        served = {
            f"{_PREFIX}{kind.version}.{kind.group}": _registration(
                kind.group, kind.version, _CUSTOM, managed="true"
            )
            for kind in (resource.kind for resource in self._server.catalogue)
            if kind.custom
        }
        for key, wanted in served.items():
            if key not in self._stored:
                yield _request("POST", "", wanted)
        for key, found in self._stored.items():
            name, wanted = f"/{found['metadata']['name']}", served.get(key, {})
            managed = found["metadata"].get("labels", {}).get(_MANAGED) == "true"
            if managed and not wanted:
                yield _request("DELETE", name, {})
            elif managed and found["spec"] != wanted["spec"]:
                others = dict.fromkeys(found["spec"])
                yield _request("PATCH", name, {"spec": others | wanted["spec"]})
            elif status := self._status(found):
                yield _request("PATCH", f"{name}/status", status)

    def _status(self, found: Object) -> Object | None:
        """Build the new status of an APIService.

        Return None if its condition Available is right already.
        """
        known = found.get("status", {}).get("conditions") or []
        conditions = set_condition(known, availability(found["spec"]), self._server.timestamp())
        return {"status": {"conditions": conditions}} if conditions != known else None


def _request(method: str, rest: str, body: Object) -> HttpRequest:
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = {"content-type": media, "user-agent": "kube-apiserver"}
    return HttpRequest(method, f"{_PATH}{rest}", "", headers, encode_json(body), SERVER)
