"""Reads the resources and schemas that functions require besides their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from polyver.capability import Refusal
from polyver.client import CRDS, Client, find
from polyver.client import GroupVersionResource as Place
from polyver.compositions.controllers.composites._kinds import Kinds
from polyver.compositions.messages import Requirements, Resource, ResourceSelector, SchemaSelector
from polyver.compositions.pipeline import FoundRequirements
from polyver.core import Labels
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["RequiredResourceReader", "shown_to_functions"]

_PAGE: Final = 500
_MOST: Final = 5000
"""Maximum number of objects; more would exceed the size of a request."""
_AT: Final = "requirements"


def shown_to_functions(obj: Object) -> Object:
    """Return an object as functions get it: without field ownership."""
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    return {**obj, "metadata": metadata}


class RequiredResourceReader:
    """Reads required resources from an API server."""

    def __init__(self, client: Client, kinds: Kinds) -> None:
        self._client = client
        self._kinds = kinds

    async def look(self, wanted: Requirements) -> FoundRequirements:
        """Return the resources and schemas that exist; raise Refusal if they cannot be read."""
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
            raise Refusal("KindNotServed", fact, at=at, hint="install its definition")
        namespace = (selector.namespace or "") if kind.namespaced else ""
        place = Place.of(kind)
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
        place, typed = Place.of(kind), {"apiVersion": kind.api_version, "kind": kind.kind}
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
        """Return the schema of a custom kind; empty for other kinds."""
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
