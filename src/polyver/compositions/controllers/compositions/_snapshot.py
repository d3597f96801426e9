"""Reads CRDs, CompositionRevisions and composite resources from an API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from polyver.client import CRDS, Client, GroupVersionResource, find, preferred
from polyver.compositions.kinds import COMPOSITION_GROUP, COMPOSITION_KINDS, COMPOSITION_STORED
from polyver.compositions.names import COMPOSITION
from polyver.compositions.packages import revision_used
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.languages.values.names import label_value_problems

__all__ = [
    "COMPOSITIONS",
    "COMPOSITION_REVISIONS",
    "DEFINITIONS",
    "ClientCompositionLookup",
    "shown",
    "state_of",
]

_PAGE = 500
_SOME = 20


DEFINITIONS, COMPOSITIONS, COMPOSITION_REVISIONS = (
    GroupVersionResource(COMPOSITION_GROUP, COMPOSITION_STORED, kind.names.plural, namespaced=False)
    for kind in COMPOSITION_KINDS
)


def shown(kind: str, name: str, namespace: str = "") -> str:
    """Return the kind and name of a composite resource, for messages.

    >>> shown("AcmeBucket", "my-bucket", "shop")
    'AcmeBucket shop/my-bucket'
    """
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def state_of(kind: ResourceKind, obj: Object) -> tuple[Any, ...]:
    """Return those metadata fields of an object that require a reconcile when they change."""
    del kind
    metadata = obj["metadata"]
    seen = (metadata.get(name) for name in ("uid", "generation", "deletionTimestamp"))
    return (*seen, *(str(metadata.get(n)) for n in ("labels", "annotations", "finalizers")))


class ClientCompositionLookup:
    """Reads, on demand, CRDs, CompositionRevisions and composite resources from an API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def crd(self, definition: str) -> Object | None:
        """Return the CRD that has the name of a CompositeResourceDefinition.

        Return None if the CRD does not exist.

        The CRD may have another owner.
        """
        return await find(self._client, CRDS, definition)

    async def revisions(self, composition: str) -> list[Object]:
        """Return the CompositionRevisions of a Composition."""
        if not composition or label_value_problems(composition):
            return []  # the name is not a valid label value, so no revision has it
        labels = f"{COMPOSITION}={composition}"
        return (await self._client.list(COMPOSITION_REVISIONS, labels=labels)).items

    async def composites(self, crd: Object) -> list[str]:
        """Return the names of a few objects of a CRD's kind; empty if there are no objects.

        Raise ApiError if the objects cannot be read in any version, which can happen for a short
        time after a change of the versions.
        """
        spec = crd["spec"]
        if not _is_established(crd):
            return []  # the kind is not served, so it has no objects
        namespaced = spec["scope"] == "Namespaced"
        for version in [each["name"] for each in spec["versions"] if each["served"]]:
            resource = GroupVersionResource(
                spec["group"], version, spec["names"]["plural"], namespaced
            )
            try:
                found = await self._client.list(resource, limit=_SOME, metadata=True)
            except ApiError as error:
                if error.code != 404:  # not served yet
                    raise
            else:
                return [_shown(spec["names"]["kind"], each) for each in found.items]
        name = crd["metadata"]["name"]
        problem = f"the objects of {name} cannot be read at the moment; try again"
        raise ApiError(503, "ServiceUnavailable", problem)

    async def users(self, revisions: Iterable[Object]) -> Mapping[str, Sequence[str]]:
        """Return the composite resources that use each of these revisions, by revision name."""
        found: dict[str, list[str]] = {}
        wanted = {each["metadata"]["name"]: each for each in revisions}
        targets = {_target(each) for each in wanted.values()}
        served = preferred((await self._client.discover()).kinds, verbs=("list",))
        for kind in served:
            if (kind.group, kind.kind) not in targets:
                continue
            async for each in self._all(GroupVersionResource.of(kind)):
                if (name := revision_used(each)) in wanted:
                    found.setdefault(name, []).append(_shown(kind.kind, each))
        return found

    async def _all(self, resource: GroupVersionResource) -> AsyncIterator[Object]:
        more = ""
        while True:
            page = await self._client.list(resource, limit=_PAGE, more=more)
            for each in page.items:
                yield each
            more = page.more
            if not more:
                return


def _shown(kind: str, obj: Object) -> str:
    metadata = obj["metadata"]
    return shown(kind, metadata["name"], metadata.get("namespace", ""))


def _is_established(crd: Object) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any((e["type"], e["status"]) == ("Established", "True") for e in conditions)


def _target(revision: Object) -> tuple[str, str]:
    """Return the group and the kind of the composite resources that a revision composes."""
    target = revision["spec"]["compositeTypeRef"]
    return target["apiVersion"].rpartition("/")[0], target["kind"]
