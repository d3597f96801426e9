"""Record the objects of an owner on it before they are applied; delete those not wanted any more.

If the owner has changed since it was read, the server refuses the write, and it is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from polyver.client import Client, GroupVersionResource, find
from polyver.controllers.applied_annotation import APPLIED, AppliedObject, resource_of, text_of
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = ["Inventory"]


class Inventory:
    """The applied objects of one controller, for the owners of one kind."""

    def __init__(self, client: Client, resource: GroupVersionResource, manager: str) -> None:
        self._client = client
        self._resource = resource
        self._manager = manager

    async def note(
        self,
        owner: Object,
        parts: Iterable[AppliedObject],
        *,
        annotations: Mapping[str, str] | None = None,
        finalizers: list[str] | None = None,
    ) -> Object:
        """Record the objects of an owner, and other metadata; return the updated owner."""
        metadata = owner["metadata"]
        said: dict[str, Any] = {APPLIED: text_of(parts), **(annotations or {})}
        known = metadata.get("annotations") or {}
        change: dict[str, Any] = {}
        if any(known.get(name) != text for name, text in said.items()):
            change["annotations"] = said
        if finalizers is not None and finalizers != (metadata.get("finalizers") or []):
            change["finalizers"] = finalizers
        if not change:
            return owner
        very = {name: metadata[name] for name in ("uid", "resourceVersion")}
        made = await self._client.patch(
            self._resource,
            metadata["name"],
            metadata.get("namespace", ""),
            change={"metadata": {**very, **change}},
            manager=self._manager,
        )
        return {**owner, "metadata": made["metadata"]}

    async def remove(
        self, part: AppliedObject, is_ours: Callable[[Object], bool]
    ) -> AppliedObject | None:
        """Delete an object that is not wanted any more; return it if its kind is not served.

        An object that another client has made, or taken over, is left as it is.
        """
        resource = resource_of(part, await self._client.discover())
        if resource is None:
            return part
        found = await find(self._client, resource, part.name, part.namespace)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return None
        if is_ours(found):
            await self._delete(resource, part, found["metadata"])
        return None

    async def _delete(
        self, resource: GroupVersionResource, part: AppliedObject, metadata: Mapping[str, Any]
    ) -> None:
        uid, revision = (metadata[name] for name in ("uid", "resourceVersion"))
        try:
            await self._client.delete(
                resource, part.name, part.namespace, uid=uid, resource_version=revision
            )
        except ApiError as error:
            if error.code != 404:
                raise
