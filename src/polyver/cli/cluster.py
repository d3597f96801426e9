"""Read objects from a cluster, for commands that compare files with it or report about it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from polyver.cli.exit_codes import UnreadableInput
from polyver.cli.output import warn
from polyver.client import CRDS, GroupVersionResource
from polyver.core.plain import Object
from polyver.kube.objects import Document, encode_json, load_manifests
from polyver.kube.objects.status import ApiError

if TYPE_CHECKING:
    from polyver.client import Client
    from polyver.client.cluster import ClusterAccess

__all__ = ["CLUSTER", "definitions_on", "documents_on", "list_all", "object_on", "on_cluster"]

CLUSTER = "cluster:"
"""The prefix for the name of a context in options that also accept files or git revisions.

`cluster:` alone means the current context.
"""
_PAGE = 500
T = TypeVar("T")


def definitions_on(context: str, names: Sequence[str]) -> tuple[str, dict[str, dict[str, Any]]]:
    """Read the named CRDs from a cluster; return the server's address, and CRDs by name."""
    from polyver.client.cluster import ClusterClient, find_access

    access = find_access(context)

    async def read() -> dict[str, dict[str, Any]]:
        async with ClusterClient(access) as client:
            return {name: crd for name in names if (crd := await _read(client, access, name))}

    return access.server, asyncio.run(read())


def documents_on(context: str, resources: Sequence[GroupVersionResource]) -> list[Document]:
    """Read all objects of some kinds in all namespaces; skip kinds that are not served."""
    from polyver.client.cluster import ClusterClient, find_access

    access = find_access(context)

    async def read() -> list[Document]:
        async with ClusterClient(access) as client:
            return [
                document
                for resource in resources
                for each in await _listed(client, access, resource)
                for document in _documents(each, resource, access)
            ]

    return asyncio.run(read())


def object_on(
    context: str, resource: GroupVersionResource, name: str, namespace: str
) -> tuple[ClusterAccess, dict[str, Any] | None]:
    """Read one object of a cluster; return the access to the cluster, and the object or None.

    An empty namespace stands for the namespace of the context.
    """
    from polyver.client import find
    from polyver.client.cluster import ClusterClient, find_access

    access = find_access(context)

    async def read() -> dict[str, Any] | None:
        async with ClusterClient(access) as client:
            return await find(client, resource, name, namespace or access.namespace)

    return access, asyncio.run(read())


def on_cluster(context: str, ask: Callable[[Client, ClusterAccess], Awaitable[T]]) -> T:
    """Call `ask` with a client of a cluster; return its result.

    An error names the server and the kubeconfig.
    """
    from polyver.client.cluster import ClusterClient, find_access

    access = find_access(context)

    async def asked() -> T:
        async with ClusterClient(access) as client:
            try:
                return await ask(client, access)
            except ApiError as error:
                place = f"{access.server}, {access.place}"
                raise UnreadableInput(
                    f"the cluster refused the request: {error.message}", at=place
                ) from None

    return asyncio.run(asked())


async def list_all(
    client: Client,
    resource: GroupVersionResource,
    namespace: str = "",
    *,
    keep: Callable[[Object], Object] = lambda obj: obj,
) -> list[Object]:
    """Read all objects of a kind, page by page. `keep` returns the fields to keep of an object."""
    found: list[Object] = []
    more = ""
    while True:
        page = await client.list(resource, namespace, limit=_PAGE, more=more)
        found += map(keep, page.items)
        more = page.more
        if not more:
            return found


async def _listed(
    client: Client, access: ClusterAccess, resource: GroupVersionResource
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    more = ""
    while True:
        try:
            page = await client.list(resource, limit=_PAGE, more=more)
        except ApiError as error:
            if error.code == 404:
                warn(f"{access.server} has no {resource.plural}.{resource.group}")
                return []
            raise
        found += page.items
        more = page.more
        if not more:
            return found


def _documents(
    obj: dict[str, Any], resource: GroupVersionResource, access: ClusterAccess
) -> list[Document]:
    metadata = obj.get("metadata") or {}
    path = "/".join(
        filter(None, (metadata.get("namespace"), resource.plural, metadata.get("name")))
    )
    obj = {"apiVersion": f"{resource.group}/{resource.version}", **obj}
    return load_manifests(encode_json(obj).decode(), f"{access.server} {path}")


async def _read(client: Client, access: ClusterAccess, name: str) -> dict[str, Any] | None:
    try:
        found = await client.get(CRDS, name)
    except ApiError as error:
        # A server that serves CRDs names the missing CRD in the details.
        if error.code == 404 and error.details:
            return None
        if error.at:
            raise
        place = f"{access.server}, {access.place}"
        raise UnreadableInput(f"{name} cannot be read: {error.message}", at=place) from None
    versions = found.get("spec", {}).get("versions") if isinstance(found.get("spec"), dict) else ()
    if not versions or not all(isinstance(each, dict) for each in versions):
        raise UnreadableInput(f"{name} is not a CustomResourceDefinition there", at=access.server)
    return found
