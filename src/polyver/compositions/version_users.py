"""Compositions for a version of a composite resource that is to be retired."""

from __future__ import annotations

from polyver.capability.version_users import find_users
from polyver.client import Client, GroupVersionResource
from polyver.compositions.kinds import COMPOSITIONS
from polyver.core.plain import Object

__all__ = ["compositions_for"]

_COMPOSITIONS = GroupVersionResource(
    COMPOSITIONS.group, "v1", COMPOSITIONS.names.plural, namespaced=False
)


async def compositions_for(client: Client, group: str, kind: str, version: str) -> list[str]:
    """Return the Compositions for composite resources of a version of a kind."""

    def is_for(composition: Object) -> bool:
        target = composition["spec"]["compositeTypeRef"]
        return (target["apiVersion"], target["kind"]) == (f"{group}/{version}", kind)

    return await find_users(client, _COMPOSITIONS, "Composition", is_for)
