"""Refuses to remove a version from a CRD while objects or conversions need this version.

kube-apiserver checks only `status.storedVersions`, and clients may remove versions from this field.
An object that is stored in a removed version can no longer be read or deleted. An object whose
managedFields name a removed version can no longer be changed by server-side apply, because the
server would have to convert the object to this version.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from polyver.core import listed
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import Cause, invalid
from polyver.kube.server.admission import AdmissionRequest
from polyver.kube.server.call import ServerContext
from polyver.kube.server.conversion.converters import ObjectConverter
from polyver.kube.store import StoreEntry

__all__ = ["DroppedVersions"]

_SOME: Final = 200
"""The number of objects that are checked at a time; in between, other requests can run."""
_NAMED: Final = 3


class _Owner(msgspec.Struct, rename="camel"):
    api_version: str = ""
    manager: str = ""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    managed_fields: list[_Owner] | None = None


class _Stored(msgspec.Struct, rename="camel"):
    metadata: _Metadata
    api_version: str = ""


_decode = msgspec.json.Decoder(_Stored).decode


@dataclass(slots=True)
class _Needs:
    """The stored objects, and the managers in managedFields, that need one removed version."""

    stored: list[str] = field(default_factory=list)
    """The names of objects that are stored in the version."""
    owned: list[str] = field(default_factory=list)
    """The names of objects that have a managedFields entry in the version."""
    managers: set[str] = field(default_factory=set)

    def note(self, obj: _Stored, api_version: str) -> None:
        metadata = obj.metadata
        name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
        if obj.api_version == api_version:
            self.stored.append(name)
        owners = [e for e in metadata.managed_fields or () if e.api_version == api_version]
        if owners:
            self.owned.append(name)
            self.managers |= {each.manager for each in owners}

    def messages(self, version: str) -> Iterator[str]:
        if self.stored:
            names = listed(self.stored, most=_NAMED)
            yield f"objects are stored in {version}: {names}; rewrite them without changes"
        if self.owned:
            names = listed(self.owned, most=_NAMED)
            yield (
                f"managedFields name {version}, of {listed(sorted(self.managers))} in {names}; "
                f"have these apply in another version, or remove the entries of {version}"
            )


class DroppedVersions:
    """The admission link that refuses to remove a version from a CRD while it is still needed.

    A version is needed if objects are stored in it, if managedFields name it, or if a conversion
    between two other versions leads through it.
    """

    def __init__(self, server: ServerContext) -> None:
        self._server = server

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        known = ("apiextensions.k8s.io", "customresourcedefinitions")
        return operation == "UPDATE" and (kind.group, kind.plural) == known

    async def mutate(self, review: AdmissionRequest) -> None:
        pass

    async def validate(self, review: AdmissionRequest) -> None:
        if review.object is None or review.old is None or review.subresource:
            return
        dropped = [*_names(review.old) - _names(review.object)]
        if not dropped or "deletionTimestamp" in review.old["metadata"]:
            return
        texts = [*self._paths(review), *await self._uses(review.old["spec"], sorted(dropped))]
        if texts:
            causes = [Cause("spec.versions", f"Invalid value: {each}") for each in texts]
            raise invalid(review.kind, review.name, causes)

    def _paths(self, review: AdmissionRequest) -> Iterator[str]:
        converter = self._server.conversions.get(review.name)
        if converter is not None and review.object is not None:
            yield from needed_between(converter, _names(review.object))

    async def _uses(self, spec: Mapping[str, Any], dropped: Collection[str]) -> list[str]:
        needs = {version: _Needs() for version in dropped}
        async for entries in self._pages(f"/{spec['group']}/{spec['names']['plural']}/"):
            for obj in map(_read, entries):
                for version, each in needs.items():
                    each.note(obj, f"{spec['group']}/{version}")
        return [text for version, each in needs.items() for text in each.messages(version)]

    async def _pages(self, prefix: str) -> AsyncIterator[list[StoreEntry]]:
        after = ""
        while True:
            page = self._server.store.page(prefix, after=after, limit=_SOME)
            yield page.entries
            if not page.remaining or not page.entries:
                return
            after = page.entries[-1].key
            await asyncio.sleep(0)


def needed_between(converter: ObjectConverter, staying: Collection[str]) -> Iterator[str]:
    """Yield a message for each removed version through which a conversion still leads.

    Only conversions between two versions that stay in the CRD (`staying`) count.
    """
    known = [each for each in converter.versions if each in staying]
    reported = set()
    for source, target in _pairs(known):
        for version in converter.versions_between(source, target):
            if version not in staying and version not in reported:
                reported.add(version)
                yield (
                    f"the Conversion leads from {source} to {target} through {version}; add "
                    "another path between these two first"
                )


def _pairs(names: list[str]) -> Iterable[tuple[str, str]]:
    return [(one, other) for at, one in enumerate(names) for other in names[at + 1 :]]


def _names(definition: Mapping[str, Any]) -> set[str]:
    return {each["name"] for each in definition["spec"].get("versions") or ()}


def _read(entry: StoreEntry) -> _Stored:
    return _decode(entry.value)
