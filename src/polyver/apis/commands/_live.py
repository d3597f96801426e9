"""Read the objects of a cluster for `polyver check --live`, and compare how they are converted.

polyver only reads: it lists the objects page by page, and keeps one page in memory.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from polyver.apis.commands.check_output import progress_bar
from polyver.apis.trials import BehaviourComparison
from polyver.cli.cluster import definitions_on, on_cluster
from polyver.cli.output import warn
from polyver.client import Client, GroupVersionResource, Listing
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = ["compare_live"]

_PAGE = 100
_EXPIRED = 410


def compare_live(context: str, comparisons: Sequence[BehaviourComparison]) -> dict[str, int]:
    """Compare every object of a cluster; return the number of objects of each kind, by its name."""
    names = [*dict.fromkeys(each.subject.name for each in comparisons)]
    server, crds = definitions_on(context, names)
    compared: dict[str, int] = {}
    for each in comparisons:
        name = each.subject.name
        version = _version_to_read(crds[name], each.versions) if name in crds else ""
        if not version:
            continue
        resource = _resource(crds[name], version)
        stored = (crds[name].get("status") or {}).get("storedVersions") or ()
        seen = on_cluster(
            context,
            lambda client, _, of=(each, resource, stored): _compare(client, *of),  # type: ignore[misc]
        )
        compared[name] = max(seen, compared.get(name, 0))
    for name in names:
        if name not in crds:
            warn(f"{server} has no {name}: no objects are compared")
        elif name not in compared:
            warn(f"{server} serves no version of {name} that is compared")
    return compared


def _version_to_read(crd: Mapping[str, Any], known: Sequence[str]) -> str:
    """Return the version in which to read objects: the storage version, if clients can read it."""
    served = [each for each in crd["spec"]["versions"] if each.get("served", True)]
    names = sorted(served, key=lambda each: not each.get("storage"))
    return next((each["name"] for each in names if each["name"] in known), "")


def _resource(crd: Mapping[str, Any], version: str) -> GroupVersionResource:
    spec = crd["spec"]
    namespaced = spec.get("scope") != "Cluster"
    return GroupVersionResource(
        spec["group"], version, spec["names"]["plural"], namespaced=namespaced
    )


async def _compare(
    client: Client,
    comparison: BehaviourComparison,
    resource: GroupVersionResource,
    stored: Sequence[str],
) -> int:
    pages = _pages(client, resource)
    first = await anext(pages)
    total = len(first.items) + first.remaining
    with progress_bar(f"{comparison.subject.name} on the cluster", total) as progress:
        count = _look(comparison, first, resource, stored)
        progress(count)
        async for page in pages:
            seen = _look(comparison, page, resource, stored)
            progress(seen)
            count += seen
    return count


async def _pages(client: Client, resource: GroupVersionResource) -> AsyncIterator[Listing]:
    """Yield the objects of a kind in all namespaces, page by page.

    A server forgets the state of a list after some minutes. It then offers to continue with the
    current state.
    """
    more = ""
    while True:
        try:
            page = await client.list(resource, limit=_PAGE, more=more)
        except ApiError as error:
            fresh = error.metadata.get("continue")
            if error.code != _EXPIRED or not fresh or not more:
                raise
            more = fresh
            continue
        yield page
        more = page.more
        if not more:
            return


def _look(
    comparison: BehaviourComparison,
    page: Listing,
    resource: GroupVersionResource,
    stored: Sequence[str],
) -> int:
    kind = comparison.subject.converter.kind
    about = {"apiVersion": f"{resource.group}/{resource.version}", "kind": kind}
    for each in page.items:
        obj = {**about, **each, "metadata": _metadata(each)}
        comparison.look(obj, resource.version, stored=stored, name=_name_of(each))
    return len(page.items)


def _metadata(obj: Object) -> Object:
    """Return the metadata without managedFields, which conversions do not change."""
    return {name: value for name, value in obj["metadata"].items() if name != "managedFields"}


def _name_of(obj: Object) -> str:
    metadata = obj["metadata"]
    return re.sub("^/", "", f"{metadata.get('namespace', '')}/{metadata['name']}")
