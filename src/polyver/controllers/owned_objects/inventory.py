"""The record of objects that a controller has applied for an owner, in an annotation of the owner.

A controller adds an object to the record before it applies the object, and removes the object from
the record after it has deleted the object. So after a restart, the controller knows which applied
objects are no longer wanted. It need not search all kinds for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from polyver.client import Client, Discovery, GroupVersionResource, find, precondition, preferred
from polyver.core.plain import Object
from polyver.kube.objects import digest, encode_json
from polyver.kube.objects.status import ApiError

__all__ = [
    "APPLIED",
    "AppliedObject",
    "Inventory",
    "fields_of",
    "is_made_for",
    "noted",
    "part_of",
    "resource_of",
    "text_of",
    "unwanted",
]

APPLIED = "polyver.dev/applied"


class AppliedObject(NamedTuple):
    """The identity of an applied object; the API version is not part of the identity."""

    group: str
    kind: str
    namespace: str
    """The namespace of the object; empty for cluster-scoped objects."""
    name: str


def part_of(content: Object) -> AppliedObject:
    """Return the identity of an object: its group, kind, namespace and name."""
    metadata = content.get("metadata") or {}
    group = content["apiVersion"].rpartition("/")[0]
    return AppliedObject(
        group, content["kind"], metadata.get("namespace", ""), metadata.get("name", "")
    )


def noted(owner: Object) -> list[AppliedObject]:
    """Return the objects that an owner's annotation records; [] if the annotation is invalid."""
    text = (owner["metadata"].get("annotations") or {}).get(APPLIED, "")
    try:
        return sorted({AppliedObject(*each) for each in _decode(text)})
    except (msgspec.MsgspecError, UnicodeError):
        return []


_decode = msgspec.json.Decoder(list[tuple[str, str, str, str]]).decode


def text_of(parts: Iterable[AppliedObject]) -> str | None:
    """Return the value of the annotation for these objects; None if there are no objects."""
    found = sorted(set(parts))
    return encode_json(found).decode() if found else None


def unwanted(
    before: Iterable[AppliedObject], wanted: Iterable[AppliedObject]
) -> list[AppliedObject]:
    """Return the objects in `before` that are not in `wanted`.

    >>> a, b = (AppliedObject("", "ConfigMap", "default", name) for name in "ab")
    >>> [part.name for part in unwanted([a, b], [b])]
    ['a']
    """
    return sorted(set(before) - set(wanted))


def resource_of(part: AppliedObject, discovery: Discovery) -> GroupVersionResource | None:
    """Return the resource of an object's kind in its preferred version.

    Return None if the server does not serve the kind.
    """
    served = preferred(discovery.kinds, verbs=("delete", "get"))
    found = [each for each in served if (each.group, each.kind) == (part.group, part.kind)]
    return GroupVersionResource.of(found[0]) if found else None


def is_made_for(found: Object, owner: Object, managers: Collection[str]) -> bool:
    """Report whether `owner` is an object's only owner, and one of `managers` applied it."""
    metadata = found["metadata"]
    owners: Sequence[Mapping[str, Any]] = metadata.get("ownerReferences") or ()
    entries: Sequence[Mapping[str, Any]] = metadata.get("managedFields") or ()
    is_owned = [each["uid"] for each in owners] == [owner["metadata"]["uid"]]
    return is_owned and any(_applied_by(each) in managers for each in entries)


def fields_of(found: Object, manager: str) -> str:
    """Return a digest of the names of the fields of an object that a field manager owns.

    The digest changes when another client changes or removes one of these fields, because the field
    manager then no longer owns the field. It does not change when another client adds a field.
    """
    entries: Sequence[Mapping[str, Any]] = found["metadata"].get("managedFields") or ()
    mine = [each.get("fieldsV1") for each in entries if _applied_by(each) == manager]
    return digest(mine).removeprefix("sha256:")[:16] if mine else ""


def _applied_by(entry: Mapping[str, Any]) -> str:
    return str(entry.get("manager", "")) if entry.get("operation") == "Apply" else ""


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
        """Record the objects of an owner in its annotation; return the updated owner.

        Other annotations and the finalizers can be set in the same write.
        """
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
        made = await self._client.patch(
            self._resource,
            metadata["name"],
            metadata.get("namespace", ""),
            change={"metadata": {**precondition(owner), **change}},
            manager=self._manager,
        )
        return {**owner, "metadata": made["metadata"]}

    async def remove(
        self, part: AppliedObject, is_ours: Callable[[Object], bool]
    ) -> AppliedObject | None:
        """Delete an object that is not wanted any more.

        The object is deleted only if `is_ours` returns True for it. So an object that another
        client has created or taken over is kept. Return None; but return `part` if the server does
        not serve the kind now, so that the caller can try again later.
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
