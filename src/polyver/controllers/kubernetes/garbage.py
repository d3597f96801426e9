"""The garbage collector, which deletes or orphans the dependents of deleted objects.

An object is deleted when none of its owners exists any more. The behaviour is that of the garbage
collector in kube-controller-manager, with one difference: a new kind is watched immediately, so
that its objects are collected within milliseconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from polyver.client import (
    Change,
    Client,
    Clock,
    Discovery,
    GroupVersionResource,
    SystemClock,
    timestamp,
)
from polyver.controllers.controller import Controller, Requeue, Watch, every
from polyver.controllers.identity import ObjectIdentity, Owner, identity_of
from polyver.controllers.kubernetes._graph import (
    Delete,
    Effect,
    Graph,
    RemoveFinalizer,
    ReportInvalidOwner,
    SetOwners,
    coordinates,
    is_orphaning,
    plan,
    touched,
)
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["EVENTS", "GarbageCollector"]

EVENTS = (("", "events"), ("events.k8s.io", "events"))
"""The kinds that are not watched: there are many short-lived Events, and they never have owners."""

_WATCHED = ("delete", "list", "watch")
_SOON, _LATER = Requeue(after=1.0), Requeue(after=60.0)
_REPORTED = 1_000
_NOT_FOUND, _CONFLICT = 404, 409


class GarbageCollector(Controller[str]):
    """Watches all kinds, keeps the graph of owners, and deletes objects that lost all owners."""

    name = "garbage-collector"

    def __init__(
        self, client: Client, *, clock: Clock | None = None, settling: float = 0.05
    ) -> None:
        """Create the garbage collector.

        Before it orphans the dependents of an object, it waits `settling` seconds, because watch
        events about new dependents may arrive late.
        """
        self._client = client
        self._settling = settling
        self._orphaning: dict[str, float] = {}
        self._clock = clock or SystemClock()
        self._graph = Graph()
        self._unserved: set[str] = set()
        self._reported: OrderedDict[tuple[str, str], None] = OrderedDict()

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return [
            Watch(
                kinds=every(verbs=_WATCHED, but=EVENTS),
                observe=self._observe,
                keep=identity_of,
                metadata=True,
                forget=self._forget,
            )
        ]

    def discovered(self, discovery: Discovery) -> Iterable[str]:
        self._graph.serve(discovery)
        waiting, self._unserved = self._unserved, set()
        return waiting

    def _observe(self, kind: ResourceKind, change: Change[ObjectIdentity]) -> list[str]:
        del kind
        before, after = change.before, change.after
        if before is not None and (after is None or after.uid != before.uid):
            self._graph.remove(before.uid)
            self._unserved.discard(before.uid)
            self._orphaning.pop(before.uid, None)
        if after is not None:
            self._graph.put(after)
        return touched(self._graph, before, after)

    def _forget(self, kind: ResourceKind, known: Iterable[ObjectIdentity]) -> list[str]:
        """Remove from the graph the objects of a kind that is no longer watched.

        It is unknown whether these objects still exist, so their dependents are not deleted.
        """
        del kind
        for node in known:
            self._graph.forget(node.uid)
        return []

    async def reconcile(self, key: str) -> Requeue | None:
        found = plan(self._graph, key, complete=self._is_complete(key))
        item = self._graph.nodes.get(key)
        seen: dict[str, ObjectIdentity] = {}
        for owner, kind in found.look:
            # Read owners from the server that are not in the graph (yet).
            assert item is not None
            live = await self._live(item, owner, kind)
            if live is None:
                self._graph.lose(coordinates(item, owner, kind))
            else:
                seen[owner.uid] = live
        if found.look:
            found = plan(self._graph, key, seen=seen)
        if found.unserved:
            self._unserved.add(key)
        for effect in found.effects:
            await self._act(effect)
        if found.unsure:
            return Requeue(after=self._settling)
        # If the kind of an owner is not watched, the deletion of the owner causes no event. So look
        # at the owner again later.
        unobserved = [owner for uid, owner in seen.items() if uid not in self._graph.nodes]
        if not unobserved:
            return None
        return _SOON if all(_is_watched(owner.kind) for owner in unobserved) else _LATER

    def _is_complete(self, key: str) -> bool:
        """Report whether all dependents of an object are known.

        A watch may not have reported the newest dependents yet. So if the dependents of a deleted
        object must be orphaned, the controller first waits `settling` seconds.
        """
        node = self._graph.nodes.get(key)
        if node is None or not is_orphaning(node):
            return self.synced
        since = self._orphaning.setdefault(key, self._clock.time())
        return self.synced and self._clock.time() - since >= self._settling

    async def _live(
        self, item: ObjectIdentity, owner: Owner, kind: ResourceKind
    ) -> ObjectIdentity | None:
        namespace = item.namespace if kind.namespaced else ""
        try:
            found = await self._client.get(
                GroupVersionResource.of(kind), owner.name, namespace, metadata=True
            )
        except ApiError as error:
            if error.code == _NOT_FOUND:
                return None
            raise
        live = identity_of(kind, found)
        return live if live.uid == owner.uid else None

    async def _act(self, effect: Effect) -> None:
        try:
            match effect:
                case Delete(item, _):
                    await self._delete(effect, item)
                case SetOwners(item, owners):
                    await self._change(item, ownerReferences=_written(owners))
                case RemoveFinalizer(item, finalizer):
                    rest = [each for each in item.finalizers if each != finalizer]
                    await self._change(item, finalizers=rest or None)
                case ReportInvalidOwner(item, owner):
                    await self._report(item, owner)
        except ApiError as error:
            if error.code != _NOT_FOUND:
                raise

    async def _delete(self, effect: Delete, item: ObjectIdentity) -> None:
        """Delete an object, but only if it still has the owners on which the decision was based."""
        resource, propagation = GroupVersionResource.of(item.kind), effect.propagation
        version = item.resource_version
        try:
            await self._client.delete(
                resource,
                item.name,
                item.namespace,
                propagation=propagation,
                uid=item.uid,
                resource_version=version,
            )
        except ApiError as error:
            if error.code != _CONFLICT or not await self._owned_alike(item):
                raise
            # The conflict comes from a change of other fields. Delete the object without the
            # resourceVersion as precondition, so that frequent changes cannot prevent the deletion.
            await self._client.delete(
                resource, item.name, item.namespace, propagation=propagation, uid=item.uid
            )

    async def _owned_alike(self, item: ObjectIdentity) -> bool:
        found = await self._client.get(
            GroupVersionResource.of(item.kind), item.name, item.namespace, metadata=True
        )
        live = identity_of(item.kind, found)
        return live.uid == item.uid and live.owners == item.owners

    async def _change(self, item: ObjectIdentity, **metadata: object) -> None:
        known = {"uid": item.uid, "resourceVersion": item.resource_version}
        change = {"metadata": known | metadata}
        await self._client.patch(
            GroupVersionResource.of(item.kind),
            item.name,
            item.namespace,
            change=change,
            type="merge",
        )

    async def _report(self, item: ObjectIdentity, owner: Owner) -> None:
        if (item.uid, owner.uid) in self._reported:
            return
        self._reported[item.uid, owner.uid] = None
        if len(self._reported) > _REPORTED:
            self._reported.popitem(last=False)
        event = misplaced_event(item, owner, timestamp(self._clock))
        await self._client.create(_EVENTS, event)


_EVENTS = GroupVersionResource("", "v1", "events")


def _is_watched(kind: ResourceKind) -> bool:
    return set(_WATCHED) <= set(kind.verbs) and (kind.group, kind.plural) not in EVENTS


def _written(owners: tuple[Owner, ...]) -> object:
    return msgspec.to_builtins(owners) or None


def misplaced_event(item: ObjectIdentity, owner: Owner, now: str) -> Object:
    """Build the Event for an object that names an owner in another namespace."""
    reference = (
        f"[{owner.api_version}/{owner.kind}, namespace: {item.namespace}, "
        f"name: {owner.name}, uid: {owner.uid}]"
    )
    involved = {
        "apiVersion": item.kind.api_version,
        "kind": item.kind.kind,
        "name": item.name,
        "uid": item.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{item.name}.{uuid4().hex[:16]}",
            "namespace": item.namespace or "default",
        },
        "involvedObject": involved | ({"namespace": item.namespace} if item.namespace else {}),
        "type": "Warning",
        "reason": "OwnerRefInvalidNamespace",
        "message": f'ownerRef {reference} does not exist in namespace "{item.namespace}"',
        "source": {"component": "garbage-collector-controller"},
        "reportingComponent": "garbage-collector-controller",
        "reportingInstance": "",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
