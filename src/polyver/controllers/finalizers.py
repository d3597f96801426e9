"""Add and remove a finalizer, with the resourceVersion as precondition."""

from __future__ import annotations

from polyver.client import Client, GroupVersionResource
from polyver.core.plain import Object

__all__ = ["hold", "release"]


async def hold(
    client: Client, resource: GroupVersionResource, obj: Object, finalizer: str
) -> Object:
    """Add a finalizer to an object; return the updated object."""
    there = obj["metadata"].get("finalizers") or []
    if finalizer in there:
        return obj
    return await _with(client, resource, obj, [*there, finalizer])


async def release(
    client: Client, resource: GroupVersionResource, obj: Object, finalizer: str
) -> Object:
    """Remove a finalizer from an object; return the updated object."""
    there = obj["metadata"].get("finalizers") or []
    if finalizer not in there:
        return obj
    return await _with(client, resource, obj, [each for each in there if each != finalizer])


async def _with(
    client: Client, resource: GroupVersionResource, obj: Object, finalizers: list[str]
) -> Object:
    metadata = obj["metadata"]
    known = {name: metadata[name] for name in ("uid", "resourceVersion")}
    return await client.patch(
        resource,
        metadata["name"],
        metadata.get("namespace", ""),
        change={"metadata": {**known, "finalizers": finalizers}},
    )
