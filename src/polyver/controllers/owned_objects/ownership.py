"""Apply objects that name an owner as their controller, without taking them from other owners.

Each owner has its own field manager. Each applied object has an owner reference with `controller:
true` that names the owner. An API server refuses to store an object with two controllers. So if two
owners apply the same object at the same moment, one request succeeds, and the other is refused
completely. A single field manager for all owners would not work. By server-side apply, a manager
loses the fields that its new request does not contain. So the second request would remove the owner
reference to the first owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from polyver.client import Client, GroupVersionResource, find
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.owners import controller_of, controller_reference
from polyver.kube.objects.status import ApiError

__all__ = ["AlreadyOwned", "apply_owned", "delete_owned", "stranger_in"]

_TRIES: Final = 5


class AlreadyOwned(PolyverError):
    """Another object is the controller of the object that was to be applied."""

    def __init__(self, controller: str) -> None:
        hint = "give it another name, or delete the existing object"
        super().__init__(f"{controller} controls it", hint=hint)
        self.controller = controller
        """The kind and name of the existing controller of the object."""


def stranger_in(found: Object, owner: str) -> str:
    """Return the kind and name of an object's controller, if its uid is not `owner`.

    Return an empty string if the object has no controller, or if `owner` is the uid of its
    controller.
    """
    reference = controller_reference(found)
    if reference is None or reference.get("uid") == owner:
        return ""
    return f"{reference.get('kind')} {reference.get('name')}"


async def apply_owned(
    client: Client, resource: GroupVersionResource, content: Object, *, family: str, manager: str
) -> Object:
    """Apply an object whose owner references name its controller.

    Raise AlreadyOwned if the existing object has another controller. An object without a controller
    is adopted. Other field managers of the `family` may have applied fields earlier, for example
    for an owner that was deleted without its objects. These fields are removed, except fields that
    are in `content`.
    """
    try:
        made = await client.apply(resource, content, manager=manager, force=True)
    except ApiError as error:
        if error.code == 422:
            await _check_controller(client, resource, content)
        raise
    for each in made["metadata"].get("managedFields") or ():
        name = each.get("manager", "")
        applies = each.get("operation") == "Apply" and not each.get("subresource")
        # Earlier versions of polyver used the name of the family itself.
        if applies and name != manager and (name == family or name.startswith(f"{family}-")):
            made = await client.apply(resource, _bare(made, content), manager=name)
    return made


async def _check_controller(
    client: Client, resource: GroupVersionResource, content: Object
) -> None:
    metadata = content["metadata"]
    found = await find(client, resource, metadata["name"], metadata.get("namespace", ""))
    stranger = stranger_in(found, controller_of(content)) if found is not None else ""
    if stranger:
        raise AlreadyOwned(stranger)


def _bare(made: Object, content: Object) -> Object:
    """Build an object that has only an apiVersion, a kind, a name, a namespace and a uid.

    A field manager that applies it removes all fields that only this field manager owns.
    """
    metadata: Mapping[str, Any] = made["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "uid") if metadata.get(name)}
    return {"apiVersion": content["apiVersion"], "kind": content["kind"], "metadata": kept}


async def delete_owned(
    client: Client, resource: GroupVersionResource, found: Object, owner: str
) -> None:
    """Delete an object, if `owner` is the uid of its controller.

    The precondition of each delete request is the uid and resourceVersion of the checked object.
    After a conflict, the object is read and checked again.
    """
    there: Object | None = found
    for _ in range(_TRIES):
        if there is None or "deletionTimestamp" in there["metadata"]:
            return
        metadata = there["metadata"]
        if metadata["uid"] != found["metadata"]["uid"] or controller_of(there) != owner:
            return
        name, namespace = metadata["name"], metadata.get("namespace", "")
        very = {"uid": metadata["uid"], "resource_version": metadata["resourceVersion"]}
        try:
            await client.delete(resource, name, namespace, propagation="Background", **very)
        except ApiError as error:
            if error.code == 404:
                return
            if error.code != 409:
                raise
            there = await find(client, resource, name, namespace)
        else:
            return
    raise ApiError(409, "Conflict", f"{found['metadata']['name']} is changed again and again")
