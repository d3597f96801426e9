"""What is on a cluster: the CustomResourceDefinitions that a command compares with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polyver.cli._exit import Unreadable
from polyver.client import Resource
from polyver.objects.status import ApiError

if TYPE_CHECKING:
    from polyver.client import Client
    from polyver.client.cluster import Access

__all__ = ["CLUSTER", "definitions_on"]

CLUSTER = "cluster:"
"""What a name of a context begins with where files and revisions could be meant as well."""
_DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)


def definitions_on(context: str, names: Sequence[str]) -> tuple[str, dict[str, dict[str, Any]]]:
    """The server of a context, and those of the named definitions that it has."""
    from polyver.client.cluster import ClusterClient, find_access

    access = find_access(context)

    async def read() -> dict[str, dict[str, Any]]:
        async with ClusterClient(access) as client:
            return {name: crd for name in names if (crd := await _read(client, access, name))}

    return access.server, asyncio.run(read())


async def _read(client: Client, access: Access, name: str) -> dict[str, Any] | None:
    try:
        found = await client.get(_DEFINITIONS, name)
    except ApiError as error:
        # A server that knows definitions names the one that it does not have.
        if error.code == 404 and error.details:
            return None
        if error.at:
            raise
        place = f"{access.server}, {access.place}"
        raise Unreadable(f"{name} cannot be read: {error.message}", at=place) from None
    versions = found.get("spec", {}).get("versions") if isinstance(found.get("spec"), dict) else ()
    if not versions or not all(isinstance(each, dict) for each in versions):
        raise Unreadable(f"{name} is no CustomResourceDefinition there", at=access.server)
    return found
