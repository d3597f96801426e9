"""Served resources (one kind in one version) and the catalogue of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from polyver.core.plain import Object
from polyver.kube.objects.codec import encode_sorted
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.kube.objects.tables import Printer
from polyver.kube.objects.type_shapes import ANYTHING, Shape
from polyver.kube.server.rules import KindRules, ObjectView, StatusView, WholeObjectView
from polyver.kube.store import StoreEntry, StoreWatch

__all__ = ["ResourceCatalogue", "ServedResource", "metadata_alone", "rewritten"]

_decode = msgspec.json.Decoder()


class Conform(Protocol):
    """Changes data in place so that it fits a schema; returns the paths of removed fields."""

    def __call__(self, obj: Object, *, drop_nulls: bool = True) -> Sequence[str]: ...


class EntryNotConverted(Exception):
    """A stored object cannot be converted to the requested version."""

    def __init__(self, entry: StoreEntry, problem: ApiError) -> None:
        super().__init__(str(problem))
        self.entry = entry
        self.problem = problem


class StorageConversion(Protocol):
    """Conversion between the storage version and another version."""

    async def shown(self, obj: Object, *, kept: bool = False) -> Object:
        """Convert a stored object to this version; with `kept`, a cached result may be returned."""

    async def stored(self, obj: Object) -> Object: ...

    async def convert(self, obj: Object, api_version: str) -> Object:
        """Convert an object to any version of its kind."""


@dataclass(frozen=True, slots=True)
class ServedResource:
    """One kind in one version: its names and rules, and how its objects are stored."""

    kind: ResourceKind
    rules: KindRules
    printer: Printer
    shape: Shape = ANYTHING
    stored: ResourceKind | None = None
    """The kind in its storage version; None if this version is the storage version."""
    selectable: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    """The fields that a field selector may name, besides the name and the namespace."""
    since: int = 0
    """The first revision from which a watch of the resource can start."""
    settled: int = 0
    """Objects that were stored at or after this revision fit the current schema of the kind."""
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    """The shapes of all versions of the kind, by API version."""
    conform: Conform | None = None
    """For custom kinds: changes data so that it fits the schema of the CRD."""
    schema: Mapping[str, Any] | None = None
    """For custom kinds: the OpenAPI schema in the CRD."""
    warning: str = ""
    """A warning that every request for this resource gets; "" for none."""
    parts: Mapping[str, ObjectView] = field(default_factory=dict)
    """The views of subresources other than status, by name."""
    conversion: StorageConversion | None = None
    """Conversion between this version and the storage version, if they differ."""
    watches: set[StoreWatch] = field(default_factory=set, compare=False)
    """Open watches of this resource. A watch ends when the resource changes or is removed."""
    review: bool = False
    """True for the resources of reviews: a review is answered, but not stored."""
    prefix: str = field(init=False)
    head: bytes = field(init=False)

    def __post_init__(self) -> None:
        stored = self.stored or self.kind
        # No custom kind has the same prefix, because the groups of built-in kinds are reserved.
        object.__setattr__(self, "prefix", f"/{stored.group}/{stored.plural}/")
        object.__setattr__(self, "head", _head(self.kind))

    def key(self, namespace: str, name: str) -> str:
        """Return the store key of an object."""
        return f"{self.prefix}{namespace}/{name}" if namespace else f"{self.prefix}{name}"

    def range(self, namespace: str) -> str:
        """Return the prefix of the store keys in one namespace; "" means all namespaces."""
        return f"{self.prefix}{namespace}/" if namespace else self.prefix

    def view(self, subresource: str) -> ObjectView:
        """Return the view of a subresource; "" means the view of the whole object."""
        if not subresource:
            return WholeObjectView(self.rules)
        return self.parts.get(subresource) or StatusView(self.rules)

    def encode(self, obj: Object) -> tuple[bytes, bytes]:
        """Encode an object of this version as the bytes before and after its revision."""
        return _written(self.head, obj)

    async def stored_form(self, obj: Object) -> tuple[bytes, bytes]:
        """Encode an object for the store as the bytes before and after its revision."""
        if self.conversion is None:
            return _written(self.head, obj)
        return _written(_head(self.stored or self.kind), await self.conversion.stored(obj))

    def is_shown(self, entry: StoreEntry) -> bool:
        """Report whether the stored bytes of an entry can be sent unchanged; usually they can."""
        return entry.revision >= self.settled and entry.value.startswith(self.head)

    def as_stored(self, entry: StoreEntry) -> Object:
        """Decode a stored object without converting it to this version."""
        obj: Object = _decode.decode(entry.value)
        return obj

    async def decode(self, entry: StoreEntry, *, kept: bool = False) -> Object:
        """Decode a stored object and convert it to this version."""
        obj = self.as_stored(entry)
        if self.is_shown(entry) or not self.conversion:
            return obj
        try:
            return await self.conversion.shown(obj, kept=kept)
        except ApiError as error:
            raise EntryNotConverted(entry, error) from None

    async def shown(self, entry: StoreEntry, *, kept: bool = False) -> bytes:
        """Return the JSON of a stored object in this version, as clients receive it."""
        if self.is_shown(entry) or not self.conversion:
            return entry.value
        head, tail = _written(self.head, await self.decode(entry, kept=kept))
        return b"%b%d%b" % (head, entry.revision, tail)


def _head(kind: ResourceKind) -> bytes:
    """Return the JSON with which every stored object of a kind begins: the apiVersion and kind."""
    named = encode_sorted({"apiVersion": kind.api_version, "kind": kind.kind})
    return named[:-1] + b","


def _written(head: bytes, obj: Object) -> tuple[bytes, bytes]:
    metadata = {key: value for key, value in obj["metadata"].items() if key != _REVISION}
    rest = {key: value for key, value in obj.items() if key not in _NAMED}
    written = encode_sorted(metadata)
    before = b"," if metadata else b""
    start = b'%b"metadata":%b%b"resourceVersion":"' % (head, written[:-1], before)
    return start, b'"},%b' % encode_sorted(rest)[1:] if rest else b'"}}'


class _About(msgspec.Struct):
    """The metadata of a stored object as JSON; the rest of the object is not decoded."""

    metadata: msgspec.Raw


_about = msgspec.json.Decoder(_About)


def metadata_alone(value: bytes, api_version: str) -> bytes:
    """Build a PartialObjectMetadata from a stored object, without decoding the metadata."""
    return b'{"kind":"PartialObjectMetadata","apiVersion":"%b","metadata":%b}' % (
        api_version.encode(),
        _about.decode(value).metadata,
    )


def rewritten(value: bytes) -> tuple[bytes, bytes]:
    """Split a stored object into the bytes before and after its revision, to replace it."""
    obj: Object = _decode.decode(value)
    named = encode_sorted({"apiVersion": obj["apiVersion"], "kind": obj["kind"]})
    return _written(named[:-1] + b",", obj)


_REVISION = "resourceVersion"
_NAMED = frozenset({"apiVersion", "kind", "metadata"})


class ResourceCatalogue:
    """All served resources by group, version and plural; CRDs add and remove resources."""

    def __init__(self, resources: Iterable[ServedResource] = ()) -> None:
        self._by_key: dict[tuple[str, str, str], ServedResource] = {}
        self._listeners: list[Callable[[], None]] = []
        self.edition = 0
        """A number that grows with every change of the catalogue.

        Documents about the catalogue record this number, to find out when they are outdated.
        """
        for resource in resources:
            self._by_key[_resource_key(resource)] = resource
        self._builtin = frozenset(group for group, _, _ in self._by_key)

    def __iter__(self) -> Iterator[ServedResource]:
        return iter(list(self._by_key.values()))

    def get(self, group: str, version: str, plural: str) -> ServedResource | None:
        return self._by_key.get((group, version, plural))

    def is_builtin(self, group: str) -> bool:
        return group in self._builtin

    def replace(self, gone: Sequence[ServedResource], new: Sequence[ServedResource]) -> None:
        """Remove the resources in `gone` and add the resources in `new`, in one step."""
        for resource in gone:
            if self._by_key.get(_resource_key(resource)) is resource:
                del self._by_key[_resource_key(resource)]
        for resource in new:
            self._by_key[_resource_key(resource)] = resource
        self.edition += 1
        for listener in self._listeners:
            listener()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function after every change of the catalogue."""
        self._listeners.append(listener)


def _resource_key(resource: ServedResource) -> tuple[str, str, str]:
    return resource.kind.group, resource.kind.version, resource.kind.plural
