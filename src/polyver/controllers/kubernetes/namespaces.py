"""Controller of namespaces that are being deleted.

The controller deletes all objects in such a namespace. While objects remain, the conditions of the
namespace report them. When none remains, the controller removes the finalizer `kubernetes`, and the
namespace is deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyver.client import (
    Change,
    Client,
    Clock,
    Discovery,
    GroupVersionResource,
    SystemClock,
    find,
    preferred,
    timestamp,
)
from polyver.controllers.controller import Controller, Requeue, Watch, every, exactly
from polyver.controllers.identity import ObjectIdentity, identity_of
from polyver.controllers.kubernetes.garbage import EVENTS
from polyver.core.plain import Object
from polyver.kube.objects.conditions import set_condition
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["NAMESPACES", "NamespaceController", "Remains", "conditions"]

NAMESPACES = GroupVersionResource("", "v1", "namespaces", namespaced=False)
_FINALIZER = "kubernetes"
_AGAIN = Requeue(after=5.0)
"""The delay until the next attempt to delete the remaining objects.

Usually the next attempt is earlier, when a watch reports that an object in the namespace was
deleted.
"""


@dataclass(slots=True)
class Remains:
    """The objects that remain in a namespace after an attempt to delete all of them."""

    undiscovered: Mapping[str, str] = field(default_factory=dict)
    """The errors of group versions whose discovery failed, by group version."""
    failures: list[str] = field(default_factory=list)
    objects: Counter[str] = field(default_factory=Counter)
    """The number of remaining objects of each resource; the keys are like `deployments.apps`."""
    finalizers: Counter[str] = field(default_factory=Counter)
    """The number of remaining objects with each finalizer, by the name of the finalizer."""
    pods: int = 0
    """The number of remaining pods.

    Pods are deleted first. While there are pods, the other objects are not deleted or counted.
    """

    @property
    def nothing(self) -> bool:
        return not (self.undiscovered or self.failures or self.objects or self.pods)

    def count(self, kind: ResourceKind, held: Iterable[Sequence[str]]) -> None:
        """Count the remaining objects of a kind; `held` has the finalizers of each object."""
        for finalizers in held:
            self.objects[f"{kind.plural}.{kind.group}"] += 1
            self.finalizers.update(finalizers)


class NamespaceController(Controller[str]):
    """Deletes the objects in terminating namespaces, reports the rest, removes the finalizer."""

    name = "namespaces"

    def __init__(self, client: Client, *, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._discovery = Discovery()
        self._terminating: set[str] = set()

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        contents = every(but=[*EVENTS, ("", "namespaces")])
        return [
            Watch(
                kinds=exactly(NAMESPACES),
                observe=self._observe,
                keep=identity_of,
                metadata=True,
            ),
            Watch(
                kinds=lambda found: [kind for kind in contents(found) if kind.namespaced],
                observe=self._observe_content,
                keep=identity_of,
                metadata=True,
            ),
        ]

    def discovered(self, discovery: Discovery) -> Sequence[str]:
        self._discovery = discovery
        return list(self._terminating)

    def _observe(self, kind: ResourceKind, change: Change[ObjectIdentity]) -> Sequence[str]:
        del kind
        if change.after is None or not change.after.deleting:
            self._terminating.discard(change.key.name)
            return ()
        self._terminating.add(change.key.name)
        return (change.key.name,)

    def _observe_content(self, kind: ResourceKind, change: Change[ObjectIdentity]) -> Sequence[str]:
        del kind
        return (change.key.namespace,) if change.key.namespace in self._terminating else ()

    async def reconcile(self, key: str) -> Requeue | None:
        namespace = await find(self._client, NAMESPACES, key)
        if namespace is None or not _is_held(namespace):
            return None
        remains = await self._clear(key)
        namespace = await self._tell(namespace, remains)
        if not remains.nothing:
            return _AGAIN
        await self._finalize(namespace)
        return None

    async def _clear(self, namespace: str) -> Remains:
        """Delete all objects in a namespace: pods first, because they may use other objects."""
        remains = Remains(undiscovered=self._discovery.failures)
        kinds = preferred(self._discovery.kinds, verbs=("delete", "list"))
        inside = [kind for kind in kinds if kind.namespaced]
        for kind in sorted(inside, key=lambda kind: (kind.group, kind.plural) != ("", "pods")):
            await self._clear_kind(kind, namespace, remains)
            if remains.pods:
                break
        return remains

    async def _clear_kind(self, kind: ResourceKind, namespace: str, remains: Remains) -> None:
        try:
            held = await self._emptied(kind, namespace)
        except ApiError as error:
            if error.code != 404:  # a kind that is no longer served has no objects
                remains.failures.append(error.message)
            return
        if (kind.group, kind.plural) == ("", "pods"):
            remains.pods = len(held)
            return
        remains.count(kind, held)
        if held and not any(held):
            gvr = f"{kind.group}/{kind.version}, Resource={kind.plural}"
            remains.failures.append(
                f"unexpected items still remain in namespace: {namespace} for gvr: {gvr}"
            )

    async def _emptied(self, kind: ResourceKind, namespace: str) -> list[Sequence[str]]:
        """Delete all objects of a kind; return the finalizers of each object that remains."""
        resource = GroupVersionResource.of(kind)
        first = await self._client.list(resource, namespace, limit=1, metadata=True)
        if not first.items:
            return []
        if "deletecollection" in kind.verbs:
            await self._client.delete_collection(resource, namespace, propagation="Background")
        else:
            await self._delete_each(kind, namespace)
        return [each.finalizers for each in await self._all(kind, namespace)]

    async def _delete_each(self, kind: ResourceKind, namespace: str) -> None:
        for each in await self._all(kind, namespace):
            try:
                await self._client.delete(
                    GroupVersionResource.of(kind),
                    each.name,
                    namespace,
                    uid=each.uid,
                    propagation="Background",
                )
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    async def _all(self, kind: ResourceKind, namespace: str) -> list[ObjectIdentity]:
        found: list[ObjectIdentity] = []
        more = ""
        while True:
            page = await self._client.list(
                GroupVersionResource.of(kind), namespace, limit=500, more=more, metadata=True
            )
            found += (identity_of(kind, item) for item in page.items)
            more = page.more
            if not more:
                return found

    async def _tell(self, namespace: Object, remains: Remains) -> Object:
        status: Object = namespace.get("status") or {}
        before = status.get("conditions") or []
        after = conditions(before, remains, now=timestamp(self._clock))
        if after == before:
            return namespace
        told = namespace | {"status": status | {"conditions": after}}
        return await self._client.update(NAMESPACES, told, subresource="status")

    async def _finalize(self, namespace: Object) -> None:
        finalizers = [each for each in namespace["spec"]["finalizers"] if each != _FINALIZER]
        final = namespace | {"spec": namespace["spec"] | {"finalizers": finalizers}}
        try:
            await self._client.update(NAMESPACES, final, subresource="finalize")
        except ApiError as error:
            if error.code != 404:
                raise


def _is_held(namespace: Object) -> bool:
    """Report whether a namespace is being deleted and has the finalizer of this controller."""
    deleting = "deletionTimestamp" in namespace["metadata"]
    return deleting and _FINALIZER in (namespace.get("spec") or {}).get("finalizers", ())


# Conditions of a terminating namespace, with the reasons and messages of Kubernetes.


_FINE = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}


def conditions(before: Sequence[Object], remains: Remains, *, now: str) -> list[Object]:
    """Return the conditions of a namespace after an attempt to delete its content."""
    after = [*before]
    for kind in _FINE:
        after = set_condition(after, _condition(kind, remains), now)
    return after


def _condition(type: str, remains: Remains) -> Object:  # noqa: A002
    problem = _problem(type, remains)
    reason, message = problem or _FINE[type]
    return {
        "type": type,
        "status": "True" if problem else "False",
        "reason": reason,
        "message": message,
    }


def _problem(type: str, remains: Remains) -> tuple[str, str] | None:  # noqa: A002
    match type:
        case "NamespaceDeletionDiscoveryFailure" if remains.undiscovered:
            return "DiscoveryFailed", _undiscovered(remains.undiscovered)
        case "NamespaceDeletionContentFailure" if remains.failures:
            texts = ", ".join(sorted(remains.failures))
            count = len(remains.failures)
            failed = f"Failed to delete all resource types, {count} remaining: {texts}"
            return "ContentDeletionFailed", failed
        case "NamespaceContentRemaining" if remains.objects:
            texts = _counted("{} has {} resource instances", remains.objects)
            return "SomeResourcesRemain", f"Some resources are remaining: {texts}"
        case "NamespaceFinalizersRemaining" if remains.finalizers:
            texts = _counted("{} in {} resource instances", remains.finalizers)
            told = f"Some content in the namespace has finalizers remaining: {texts}"
            return "SomeFinalizersRemain", told
        case _:
            return None


def _counted(text: str, counts: Mapping[str, int]) -> str:
    return ", ".join(sorted(text.format(name, count) for name, count in counts.items()))


def _undiscovered(problems: Mapping[str, str]) -> str:
    texts = ", ".join(sorted(f"{version}: {problem}" for version, problem in problems.items()))
    unable = f"unable to retrieve the complete list of server APIs: {texts}"
    return f"Discovery failed for some groups, {len(problems)} failing: {unable}"
