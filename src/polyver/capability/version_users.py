"""Find the objects that use a version of a kind, which is to be retired."""

from __future__ import annotations

from collections.abc import Callable

from polyver.client import Client, GroupVersionResource
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = ["find_users"]

_PAGE = 500


async def find_users(
    client: Client, resource: GroupVersionResource, kind: str, uses: Callable[[Object], bool]
) -> list[str]:
    """Return descriptions of the objects of a kind for which `uses` is true.

    If the server does not serve the kind, return [].
    """
    found: list[str] = []
    more = ""
    while True:
        try:
            page = await client.list(resource, limit=_PAGE, more=more)
        except ApiError as error:
            if error.code != 404:
                raise
            return found
        for each in filter(uses, page.items):
            metadata = each["metadata"]
            names = [metadata[part] for part in ("namespace", "name") if metadata.get(part)]
            found.append(f"{kind} {'/'.join(names)}")
        more = page.more
        if not more:
            return found
