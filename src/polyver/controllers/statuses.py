"""Write the status of an object if it differs from the stored status."""

from __future__ import annotations

from polyver.client import Client, GroupVersionResource
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = ["write_status"]


async def write_status(
    client: Client,
    resource: GroupVersionResource,
    obj: Object,
    status: Object,
    *,
    manager: str = "",
) -> Object:
    """Write a status if it differs from the status of the object.

    Return the object as written, or the given object if nothing was written.

    The write contains the resourceVersion of the object. If the object has changed since it was
    read, the write fails with a conflict; the controller is then called again. If the object no
    longer exists, for example because its last finalizer was removed, nothing is written.
    """
    if status == (obj.get("status") or {}):
        return obj
    wanted = {**obj, "status": status}
    try:
        return await client.update(resource, wanted, subresource="status", manager=manager)
    except ApiError as error:
        if error.code != 404:
            raise
        return obj
