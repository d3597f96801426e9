"""Add and remove finalizers.

Each write has a precondition: the object must still have the uid and the resourceVersion that were
read. So if another client changes the finalizers at the same moment, the write fails, and does not
overwrite this change.
"""

from __future__ import annotations

from polyver.client import Client, GroupVersionResource, precondition
from polyver.core.plain import Object, ReadOnlyObject

__all__ = [
    "add_finalizer",
    "has_finalizer",
    "remove_finalizer",
    "with_finalizer",
    "without_finalizer",
]


def has_finalizer(obj: ReadOnlyObject, finalizer: str) -> bool:
    """Report whether an object has a finalizer."""
    return finalizer in (obj["metadata"].get("finalizers") or ())


def with_finalizer(obj: ReadOnlyObject, finalizer: str) -> list[str]:
    """Return the finalizers of an object, with this finalizer added."""
    there = obj["metadata"].get("finalizers") or []
    return [*there] if finalizer in there else [*there, finalizer]


def without_finalizer(obj: ReadOnlyObject, finalizer: str) -> list[str]:
    """Return the finalizers of an object, with this finalizer removed."""
    return [each for each in obj["metadata"].get("finalizers") or () if each != finalizer]


async def add_finalizer(
    client: Client,
    resource: GroupVersionResource,
    obj: Object,
    finalizer: str,
    *,
    manager: str = "",
) -> Object:
    """Add a finalizer if it is missing; return the updated object."""
    if has_finalizer(obj, finalizer):
        return obj
    return await _write(client, resource, obj, with_finalizer(obj, finalizer), manager)


async def remove_finalizer(
    client: Client,
    resource: GroupVersionResource,
    obj: Object,
    finalizer: str,
    *,
    manager: str = "",
) -> Object:
    """Remove a finalizer if the object has it; return the updated or the given object."""
    if not has_finalizer(obj, finalizer):
        return obj
    return await _write(client, resource, obj, without_finalizer(obj, finalizer), manager)


async def _write(
    client: Client,
    resource: GroupVersionResource,
    obj: Object,
    finalizers: list[str],
    manager: str,
) -> Object:
    metadata = obj["metadata"]
    return await client.patch(
        resource,
        metadata["name"],
        metadata.get("namespace", ""),
        change={"metadata": {**precondition(obj), "finalizers": finalizers}},
        manager=manager,
    )
