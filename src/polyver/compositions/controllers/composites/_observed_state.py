"""Reads the objects that a run of a pipeline needs from the API server.

- `Kinds` finds served kinds.
- `ComposedOutputs` indexes and caches composed resources.
- `CompositeObserver` reads the composed resources, Secrets and connection details of one composite
  resource.
- `RequiredResourceReader` reads the resources and schemas that functions require.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct

from polyver.capability import Refusal
from polyver.client import CRDS, Change, Client, Discovery, GroupVersionResource, find
from polyver.compositions.controllers.composites._known_composites import CompositeKey
from polyver.compositions.decisions import Composite, Secret
from polyver.compositions.messages import (
    Requirements,
    Resource,
    ResourceSelector,
    SchemaSelector,
    State,
)
from polyver.compositions.names import COMPOSITE
from polyver.compositions.pipeline import FoundRequirements, connection_secret, observe
from polyver.controllers.owned_objects.index import AppliedObjects, number_of
from polyver.controllers.owned_objects.inventory import AppliedObject
from polyver.core import Labels
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.owners import controller_of
from polyver.kube.objects.status import ApiError

__all__ = [
    "SECRETS",
    "ComposedOutputs",
    "CompositeObserver",
    "Kinds",
    "Observation",
    "RequiredResourceReader",
    "shown_to_functions",
]

_KEPT: Final = 4096
SECRETS = GroupVersionResource("", "v1", "secrets")
_PAGE: Final = 500
_MOST: Final = 5000
"""Maximum number of objects for one requirement. With more objects, the request to the function
would become too large.
"""
_AT: Final = "requirements"


class Kinds:
    """Finds served kinds, with the data of the last discovery."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], ResourceKind] = {}
        self._any: dict[tuple[str, str], ResourceKind] = {}
        self._discovery = Discovery()

    def discovered(self, discovery: Discovery) -> None:
        self._discovery = discovery
        self._kinds = {(each.api_version, each.kind): each for each in discovery.kinds}
        self._any = {(each.group, each.kind): each for each in reversed(discovery.kinds)}

    def find(self, api_version: str, kind: str) -> ResourceKind | None:
        return self._kinds.get((api_version, kind))

    def nearest(self, api_version: str, kind: str) -> ResourceKind | None:
        """Return the kind in this API version.

        If this version is not served, return the kind in another version of the group.
        """
        found = self._kinds.get((api_version, kind))
        return found or self._any.get((api_version.rpartition("/")[0], kind))

    def is_unknown(self, api_version: str) -> bool:
        """Report whether discovery of this API version failed, so that its kinds are not known."""
        return api_version in self._discovery.failures


class ObservedComposedResource(Struct, frozen=True, gc=False):
    """The indexed fields of a composed resource."""

    owner: str
    """The uid of the object's controller; empty if it has no controller."""
    revision: int
    """The resourceVersion of the object."""

    def differs(self, other: ObservedComposedResource | None) -> bool:
        """Report whether any field of the object has changed.

        Functions get the whole object, so each field counts.
        """
        return other is None or self.revision != other.revision


def seen_in(kind: ResourceKind, obj: Object) -> ObservedComposedResource:
    """Return the indexed fields of a composed resource."""
    del kind
    return ObservedComposedResource(controller_of(obj), number_of(obj))


class ComposedOutputs(AppliedObjects[ObservedComposedResource, CompositeKey]):
    """Index and cache of the composed resources of all composite resources."""

    def __init__(
        self, changed: Callable[[], None], owner: Callable[[str], CompositeKey | None]
    ) -> None:
        """Create an index.

        `changed` is called when other kinds must be watched than before. `owner` returns the key of
        the composite resource with a uid, or None if there is no such composite resource.
        """
        super().__init__(
            changed, keep=seen_in, whose=lambda seen: owner(seen.owner), labels=COMPOSITE
        )
        self._objects: OrderedDict[AppliedObject, Object] = OrderedDict()
        self._awaited: dict[AppliedObject, set[CompositeKey]] = {}

    def await_release(self, part: AppliedObject, key: CompositeKey) -> None:
        """Reconcile the key when the object has been deleted, or has lost its controller."""
        self._awaited.setdefault(part, set()).add(key)

    def forget(self, key: CompositeKey) -> None:
        """Remove the data about a composite resource that no longer exists."""
        for keys in self._awaited.values():
            keys.discard(key)
        self._awaited = {part: keys for part, keys in self._awaited.items() if keys}

    def _observe(
        self, kind: ResourceKind, change: Change[ObservedComposedResource]
    ) -> Iterable[CompositeKey]:
        found = {*super()._observe(kind, change)}
        if self._awaited and (change.after is None or not change.after.owner):
            found |= self._awaited.pop(AppliedObject(kind.group, kind.kind, *change.key), set())
        return found

    def keep(self, part: AppliedObject, obj: Object) -> None:
        """Store a whole object in the cache for later reconciles."""
        self.note(part, obj)
        self._objects[part] = obj
        self._objects.move_to_end(part)
        if len(self._objects) > _KEPT:
            self._objects.popitem(last=False)

    def kept(self, part: AppliedObject) -> Object | None:
        """Return the whole object from the cache; None if it is missing or may be outdated."""
        obj, seen = self._objects.get(part), self.of(part)
        if obj is None or seen is None or not self.is_followed(part):
            return None
        return obj if number_of(obj) == seen.revision else None


@dataclass(frozen=True, slots=True)
class Observation:
    """The observed state of a composite resource and its composed resources."""

    state: State
    """The observed state in the form that functions get."""
    objects: Mapping[AppliedObject, Object]
    """The composed resources as whole objects."""


class CompositeObserver:
    """Reads composed resources and Secrets.

    Composed resources are read from the cache if possible.
    """

    def __init__(self, client: Client, kinds: Kinds, outputs: ComposedOutputs) -> None:
        self._client = client
        self._kinds = kinds
        self._outputs = outputs

    async def observe(self, composite: Composite, published: Secret | None) -> Observation:
        """Read the composed resources and connection details of a composite resource.

        `published` is the Secret to which its connection details are published. Raise Refusal if it
        is unknown whether a composed resource exists.
        """
        objects: dict[AppliedObject, Object] = {}
        for reference in composite.resources:
            part, obj = await self._referenced(reference, composite)
            if obj is not None:
                objects[part] = obj
        found = []
        for obj in objects.values():
            secret = connection_secret(obj)
            details = await self.data(secret) if secret is not None else None
            found.append((shown_to_functions(obj), details or {}))
        own_details = await self.data(published) if published is not None else None
        own = Resource(shown_to_functions(dict(composite.obj)), own_details or {})
        return Observation(State(own, observe(composite.obj, found)), objects)

    async def _referenced(
        self, reference: Mapping[str, str], composite: Composite
    ) -> tuple[AppliedObject, Object | None]:
        version, named = reference["apiVersion"], reference["kind"]
        own = composite.obj["metadata"].get("namespace", "")
        namespace, name = reference.get("namespace", own), reference["name"]
        part = AppliedObject(version.rpartition("/")[0], named, namespace, name)
        kept = self._outputs.kept(part)
        if kept is not None and kept["apiVersion"] == version:
            return part, kept
        kind = self._kinds.nearest(version, named)
        if kind is None:
            if self._kinds.is_unknown(version):
                # The object may exist, so its reference must stay in `resourceRefs`.
                fact = f"it is unknown whether {named} {name} exists: {version} does not answer"
                raise Refusal("KindNotServed", fact, at=f"{composite.at}.resourceRefs")
            return part, None
        obj = await find(self._client, GroupVersionResource.of(kind), name, namespace)
        if obj is None:
            self._outputs.note(part, None)
        else:
            self._outputs.keep(part, obj)
        return part, obj

    async def data(self, secret: Secret) -> dict[str, bytes] | None:
        """Return the data of a Secret, or None if it does not exist."""
        found = await find(self._client, SECRETS, secret.name, secret.namespace)
        if found is None:
            return None
        return {name: base64.b64decode(text) for name, text in (found.get("data") or {}).items()}

    async def credentials(self, secrets: Iterable[Secret]) -> dict[Secret, dict[str, bytes]]:
        """Read the Secrets that exist, and return their data.

        Raise Refusal if polyver is not allowed to read one of the Secrets.
        """
        known = {}
        for secret in sorted(secrets, key=str):
            try:
                data = await self.data(secret)
            except ApiError as error:
                if error.code != 403:
                    raise
                raise Refusal("CredentialsNotFound", error.message) from None
            if data is not None:
                known[secret] = data
        return known


def shown_to_functions(obj: Object) -> Object:
    """Return an object in the form that functions get: without `managedFields`."""
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    return {**obj, "metadata": metadata}


class RequiredResourceReader:
    """Reads the resources and schemas that functions require from an API server."""

    def __init__(self, client: Client, kinds: Kinds) -> None:
        self._client = client
        self._kinds = kinds

    async def look(self, wanted: Requirements) -> FoundRequirements:
        """Read the required resources and schemas that exist. Raise Refusal if reading fails."""
        return FoundRequirements(
            await self._all(wanted.resources, "resources"),
            await self._all(wanted.extra_resources, "extra_resources"),
            {name: await self._schema(each) for name, each in wanted.schemas.items()},
        )

    async def _all(
        self, wanted: Mapping[str, ResourceSelector], field: str
    ) -> dict[str, tuple[Resource, ...]]:
        found = {}
        for name, selector in wanted.items():
            at = f"{_AT}.{field}[{name}]"
            try:
                there = await self._selected(selector, at)
            except ApiError as error:
                if error.code >= 500 or error.code == 429:
                    raise Refusal("NotReadable", error.message, at=at) from None
                raise Refusal(error.reason or "NotReadable", error.message, at=at) from None
            found[name] = tuple(Resource(shown_to_functions(each)) for each in there)
        return found

    async def _selected(self, selector: ResourceSelector, at: str) -> list[Object]:
        kind = self._kinds.find(selector.api_version, selector.kind)
        if kind is None:
            fact = f"no {selector.api_version} {selector.kind} is served"
            raise Refusal("KindNotServed", fact, at=at, hint="install its CustomResourceDefinition")
        namespace = (selector.namespace or "") if kind.namespaced else ""
        place = GroupVersionResource.of(kind)
        if selector.match_name is not None:
            if kind.namespaced and not namespace:
                fact = f"{selector.kind} {selector.match_name} is requested without a namespace"
                raise Refusal("InvalidRequirement", fact, at=at)
            one = await find(self._client, place, selector.match_name, namespace)
            return [] if one is None else [one]
        if selector.match_labels is None:
            raise Refusal("InvalidRequirement", "it has neither a name nor labels", at=at)
        return await self._labelled(kind, namespace, selector.match_labels, at)

    async def _labelled(
        self, kind: ResourceKind, namespace: str, labels: Mapping[str, str], at: str
    ) -> list[Object]:
        asked = str(Labels.of(labels)) if labels else ""
        place, typed = (
            GroupVersionResource.of(kind),
            {"apiVersion": kind.api_version, "kind": kind.kind},
        )
        found: list[Object] = []
        more = ""
        while True:
            page = await self._client.list(place, namespace, labels=asked, limit=_PAGE, more=more)
            # Servers omit the kind of items in lists.
            found += [{**typed, **each} for each in page.items]
            if len(found) > _MOST:
                fact = f"more than {_MOST:,} objects have {asked or 'any labels'}"
                raise Refusal("TooMany", fact, at=at, hint="request fewer")
            if not (more := page.more):
                return found

    async def _schema(self, wanted: SchemaSelector) -> dict[str, Any]:
        """Return the schema of a kind from its CustomResourceDefinition.

        Return {} if there is no schema.
        """
        kind = self._kinds.find(wanted.api_version, wanted.kind)
        if kind is None:
            return {}
        definition = await find(self._client, CRDS, f"{kind.plural}.{kind.group}")
        versions = definition["spec"]["versions"] if definition is not None else ()
        for each in versions:
            if each["name"] == kind.version:
                found: dict[str, Any] = (each.get("schema") or {}).get("openAPIV3Schema") or {}
                return found
        return {}
