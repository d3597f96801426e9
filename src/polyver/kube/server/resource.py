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
    """A function that changes data so that it fits a schema.

    It returns the paths of removed fields.
    """

    def __call__(self, obj: Object, *, drop_nulls: bool = True) -> Sequence[str]: ...


class EntryNotConverted(Exception):
    """Raised if a stored object cannot be converted to the requested version."""

    def __init__(self, entry: StoreEntry, problem: ApiError) -> None:
        super().__init__(str(problem))
        self.entry = entry
        self.problem = problem


class StorageConversion(Protocol):
    """Conversion between one version of a kind and its storage version."""

    async def shown(self, obj: Object, *, kept: bool = False) -> Object:
        """Convert a stored object to this version; with `kept`, the result may be from a cache."""

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
    """Fields that a field selector may name, with functions that return their values.

    Name and namespace are always allowed and not in this mapping.
    """
    since: int = 0
    """A watch of the resource cannot start at an older revision than this one."""
    settled: int = 0
    """Objects that were written at this revision or later fit the current schema of the kind."""
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    """The shape of the kind in each of its API versions."""
    conform: Conform | None = None
    """For custom kinds: the function that makes data fit the schema of the CRD."""
    schema: Mapping[str, Any] | None = None
    """For custom kinds: the OpenAPI schema in the CRD."""
    warning: str = ""
    """A warning for requests in this version, such as that it is deprecated; "" for none."""
    parts: Mapping[str, ObjectView] = field(default_factory=dict)
    """The views of subresources by name, such as `scale`. The subresource status is not here."""
    conversion: StorageConversion | None = None
    """The conversion between this version and the storage version; None if they are the same."""
    watches: set[StoreWatch] = field(default_factory=set, compare=False)
    """Open watches of this resource. A watch ends when the resource changes or is removed."""
    review: bool = False
    """True for kinds such as TokenReview, whose objects are answered but not stored."""
    prefix: str = field(init=False)
    head: bytes = field(init=False)

    def __post_init__(self) -> None:
        stored = self.stored or self.kind
        # No custom kind has the same prefix, because the groups of built-in kinds are reserved.
        object.__setattr__(self, "prefix", f"/{stored.group}/{stored.plural}/")
        object.__setattr__(self, "head", _head(self.kind))

    def key(self, namespace: str, name: str) -> str:
        """Return the key of an object in the store, such as `/apps/deployments/default/web`."""
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
        """Encode an object of this version; return the bytes before and after its resourceVersion.

        The store inserts the resourceVersion between the two parts.
        """
        return _written(self.head, obj)

    async def stored_form(self, obj: Object) -> tuple[bytes, bytes]:
        """Convert an object to the storage version and encode it, in two parts like `encode`."""
        if self.conversion is None:
            return _written(self.head, obj)
        return _written(_head(self.stored or self.kind), await self.conversion.stored(obj))

    def is_shown(self, entry: StoreEntry) -> bool:
        """Report whether the bytes of a stored object can be sent to clients without any change."""
        return entry.revision >= self.settled and entry.value.startswith(self.head)

    def as_stored(self, entry: StoreEntry) -> Object:
        """Decode a stored object in the version in which it is stored."""
        obj: Object = _decode.decode(entry.value)
        return obj

    async def decode(self, entry: StoreEntry, *, kept: bool = False) -> Object:
        """Decode a stored object and convert it to this version.

        With `kept`, a cache may be used.
        """
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
    """Split a stored object into the bytes before and after its resourceVersion.

    The caller puts another resourceVersion between the two parts.
    """
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
        """A number that increases with every change of the catalogue.

        Documents about the catalogue store this number. If it has increased, they are outdated.
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
