"""Objects that have another object as their controller, applied without taking any from others.

Each owner applies under a field manager of its own and names itself as the controller. An API
server refuses an object with two controllers, in the same step in which it stores an object. So of
two owners that apply the same object at the same moment one succeeds, and the other is refused as
a whole. One field manager for all owners would not do: an apply removes what its manager applied
before and does not name now, which would be the reference to the other owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from polyver.client import Client, GroupVersionResource, find
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.owners import controller_of, controller_reference
from polyver.kube.objects.status import ApiError

__all__ = ["AlreadyOwned", "apply_owned", "delete_owned", "manager_for", "stranger_in"]

_LONGEST: Final = 128
"""Characters that the name of a field manager may have."""
_TRIES: Final = 5


class AlreadyOwned(PolyverError):
    """An object has another controller."""

    def __init__(self, controller: str) -> None:
        hint = "give it another name, or delete the existing object"
        super().__init__(f"{controller} controls it", hint=hint)
        self.controller = controller
        """Its kind and name."""


def manager_for(family: str, kind: str, uid: str) -> str:
    """The field manager of one owner among those of a family.

    >>> manager_for("polyver-composites", "Shop", "7d3a")
    'polyver-composites-shop-7d3a'
    """
    end = f"-{kind.lower()}-{uid}"
    return f"{family[: _LONGEST - len(end)]}{end}"[-_LONGEST:]


def stranger_in(found: Object, owner: str) -> str:
    """The kind and name of the controller of an object if it has another uid; else empty."""
    reference = controller_reference(found)
    if reference is None or reference.get("uid") == owner:
        return ""
    return f"{reference.get('kind')} {reference.get('name')}"


async def apply_owned(
    client: Client, resource: GroupVersionResource, content: Object, *, family: str, manager: str
) -> Object:
    """Apply an object whose content names its controller; Taken if it has another one.

    An object without a controller is adopted. What other managers of the family have applied, such
    as an owner that was deleted without its objects, is removed unless the content names it.
    """
    try:
        made = await client.apply(resource, content, manager=manager, force=True)
    except ApiError as error:
        if error.code == 422:
            await _check_controller(client, resource, content)
        raise
    for former in [*_former(made, family, manager)]:
        made = await client.apply(resource, _bare(made, content), manager=former)
    return made


async def _check_controller(
    client: Client, resource: GroupVersionResource, content: Object
) -> None:
    metadata = content["metadata"]
    found = await find(client, resource, metadata["name"], metadata.get("namespace", ""))
    stranger = stranger_in(found, controller_of(content)) if found is not None else ""
    if stranger:
        raise AlreadyOwned(stranger)


def _former(made: Object, family: str, manager: str) -> Iterator[str]:
    """Other managers of the family, and the family itself, which once was one for all owners."""
    for each in made["metadata"].get("managedFields") or ():
        name = each.get("manager", "")
        applies = each.get("operation") == "Apply" and not each.get("subresource")
        if applies and name != manager and (name == family or name.startswith(f"{family}-")):
            yield name


def _bare(made: Object, content: Object) -> Object:
    """Return a configuration with no fields: a manager that applies it gives up its fields."""
    metadata: Mapping[str, Any] = made["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "uid") if metadata.get(name)}
    return {"apiVersion": content["apiVersion"], "kind": content["kind"], "metadata": kept}


async def delete_owned(
    client: Client, resource: GroupVersionResource, found: Object, owner: str
) -> None:
    """Delete an object that was found, as long as the owner controls it.

    The precondition is the state that was checked; after a change it is checked again.
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
