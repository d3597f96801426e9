"""The data of an object that garbage collection needs: its identity, owners and finalizers.

A control plane has many objects, so only a few hundred bytes are kept in memory for each object.
"""

from __future__ import annotations

from sys import intern

from msgspec import Struct

from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind

__all__ = ["ObjectIdentity", "Owner", "identity_of"]


class Owner(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """An owner reference of an object."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class ObjectIdentity(Struct, frozen=True, gc=False):
    """The identity of an object, its owners and finalizers, and its resourceVersion."""

    kind: ResourceKind
    namespace: str
    name: str
    uid: str
    resource_version: str
    owners: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    deleting: bool = False


def identity_of(kind: ResourceKind, content: Object) -> ObjectIdentity:
    """Return the identity of an object; strings that many objects share are interned."""
    metadata = content["metadata"]
    return ObjectIdentity(
        kind=kind,
        namespace=intern(metadata.get("namespace", "")),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        resource_version=metadata.get("resourceVersion", ""),
        owners=tuple(
            Owner(
                api_version=intern(each.get("apiVersion", "")),
                kind=intern(each.get("kind", "")),
                name=intern(each.get("name", "")),
                uid=intern(each.get("uid", "")),
                controller=each.get("controller"),
                block_owner_deletion=each.get("blockOwnerDeletion"),
            )
            for each in metadata.get("ownerReferences") or ()
        ),
        finalizers=tuple(map(intern, metadata.get("finalizers") or ())),
        deleting=metadata.get("deletionTimestamp") is not None,
    )
