"""Kinds as the pipeline works with them, and the catalogue of all that are served."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.kube.objects.tables import Printer
from polyver.kube.objects.type_shapes import ANYTHING, Shape
from polyver.kube.server.rules import KindRules, ObjectView
from polyver.kube.store import StoreEntry, StoreWatch

__all__ = ["ResourceCatalogue", "ServedResource", "encode_sorted", "metadata_alone", "rewritten"]

_sorted = msgspec.json.Encoder(order="sorted")
_decode = msgspec.json.Decoder()


class Conform(Protocol):
    """Changes data in place; the paths of the fields that it dropped are returned."""

    def __call__(self, obj: Object, *, drop_nulls: bool = True) -> Sequence[str]: ...


class EntryNotConverted(Exception):
    """What is stored cannot be shown in the version that is asked for."""

    def __init__(self, entry: StoreEntry, problem: ApiError) -> None:
        super().__init__(str(problem))
        self.entry = entry
        self.problem = problem


class StorageConversion(Protocol):
    """Between the version that is stored and another one."""

    async def shown(self, obj: Object, *, kept: bool = False) -> Object:
        """What is stored in this version; lists and watches take what was converted before."""

    async def stored(self, obj: Object) -> Object: ...

    async def convert(self, obj: Object, api_version: str) -> Object:
        """An object in any version that there is."""


@dataclass(frozen=True, slots=True)
class ServedResource:
    """One kind in one version: its names, its rules, and where and how its objects are stored."""

    kind: ResourceKind
    rules: KindRules
    printer: Printer
    shape: Shape = ANYTHING
    stored: ResourceKind | None = None
    """The kind in the version that is stored, if it is another."""
    selectable: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    """The fields that a field selector may name, besides the name and the namespace."""
    since: int = 0
    """The revision from which on there is something to watch."""
    settled: int = 0
    """The revision from which on what is stored is as the kind is described now."""
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    """The shapes of all versions of the kind, by API version."""
    conform: Conform | None = None
    """Of custom kinds: brings data into the shape that the definition describes."""
    schema: Mapping[str, Any] | None = None
    """Of custom kinds: the OpenAPI schema as the definition states it."""
    warning: str = ""
    """What every request for it is warned of."""
    parts: Mapping[str, ObjectView] = field(default_factory=dict)
    """Paths below an object that are more than its status."""
    conversion: StorageConversion | None = None
    """Between this version and the one that is stored, if that is another."""
    watches: set[StoreWatch] = field(default_factory=set, compare=False)
    """What is watching it now, to be ended when it is no longer served as it was."""
    review: bool = False
    """Whether it is a question that is answered and not stored."""
    prefix: str = field(init=False)
    head: bytes = field(init=False)

    def __post_init__(self) -> None:
        stored = self.stored or self.kind
        # Built-in kinds keep out of the way of custom ones by their group, which is reserved.
        object.__setattr__(self, "prefix", f"/{stored.group}/{stored.plural}/")
        object.__setattr__(self, "head", _head(self.kind))

    def key(self, namespace: str, name: str) -> str:
        """Where an object is stored."""
        return f"{self.prefix}{namespace}/{name}" if namespace else f"{self.prefix}{name}"

    def range(self, namespace: str) -> str:
        """Where the objects of a namespace, or of all, are stored."""
        return f"{self.prefix}{namespace}/" if namespace else self.prefix

    def encode(self, obj: Object) -> tuple[bytes, bytes]:
        """An object in this version in two parts, between which its revision belongs."""
        return _written(self.head, obj)

    async def stored_form(self, obj: Object) -> tuple[bytes, bytes]:
        """An object as it is stored, in two parts, between which its revision belongs."""
        if self.conversion is None:
            return _written(self.head, obj)
        return _written(_head(self.stored or self.kind), await self.conversion.stored(obj))

    def is_shown(self, entry: StoreEntry) -> bool:
        """Whether what is stored is what is sent, as it is most of the time."""
        return entry.revision >= self.settled and entry.value.startswith(self.head)

    def as_stored(self, entry: StoreEntry) -> Object:
        """A stored object as data, in the version that it was written in."""
        obj: Object = _decode.decode(entry.value)
        return obj

    async def decode(self, entry: StoreEntry, *, kept: bool = False) -> Object:
        """A stored object as data, in this version."""
        obj = self.as_stored(entry)
        if self.is_shown(entry) or not self.conversion:
            return obj
        try:
            return await self.conversion.shown(obj, kept=kept)
        except ApiError as error:
            raise EntryNotConverted(entry, error) from None

    async def shown(self, entry: StoreEntry, *, kept: bool = False) -> bytes:
        """A stored object as it is sent, in this version."""
        if self.is_shown(entry) or not self.conversion:
            return entry.value
        head, tail = _written(self.head, await self.decode(entry, kept=kept))
        return b"%b%d%b" % (head, entry.revision, tail)


def _head(kind: ResourceKind) -> bytes:
    """How every object of a kind begins."""
    named = _sorted.encode({"apiVersion": kind.api_version, "kind": kind.kind})
    return named[:-1] + b","


def _written(head: bytes, obj: Object) -> tuple[bytes, bytes]:
    metadata = {key: value for key, value in obj["metadata"].items() if key != _REVISION}
    rest = {key: value for key, value in obj.items() if key not in _NAMED}
    written = _sorted.encode(metadata)
    before = b"," if metadata else b""
    start = b'%b"metadata":%b%b"resourceVersion":"' % (head, written[:-1], before)
    return start, b'"},%b' % _sorted.encode(rest)[1:] if rest else b'"}}'


class _About(msgspec.Struct):
    """What a stored object holds, of which its metadata stays as it is written."""

    metadata: msgspec.Raw


_about = msgspec.json.Decoder(_About)


def metadata_alone(value: bytes, api_version: str) -> bytes:
    """A stored object's metadata as an object of its own; nothing of it is decoded."""
    return b'{"kind":"PartialObjectMetadata","apiVersion":"%b","metadata":%b}' % (
        api_version.encode(),
        _about.decode(value).metadata,
    )


def rewritten(value: bytes) -> tuple[bytes, bytes]:
    """A stored object in two parts, between which another revision belongs."""
    obj: Object = _decode.decode(value)
    named = _sorted.encode({"apiVersion": obj["apiVersion"], "kind": obj["kind"]})
    return _written(named[:-1] + b",", obj)


def encode_sorted(value: object) -> bytes:
    """Plain data as JSON with its keys in order: equal data is equal text."""
    return _sorted.encode(value)


_REVISION = "resourceVersion"
_NAMED = frozenset({"apiVersion", "kind", "metadata"})


class ResourceCatalogue:
    """All that is served, by group, version and plural; it changes as definitions come and go."""

    def __init__(self, resources: Iterable[ServedResource] = ()) -> None:
        self._by_place: dict[tuple[str, str, str], ServedResource] = {}
        self._listeners: list[Callable[[], None]] = []
        self.edition = 0
        """Grows with every change, so that documents made of it know when they are old."""
        for resource in resources:
            self._by_place[_place(resource)] = resource
        self._builtin = frozenset(group for group, _, _ in self._by_place)

    def __iter__(self) -> Iterator[ServedResource]:
        return iter(list(self._by_place.values()))

    def get(self, group: str, version: str, plural: str) -> ServedResource | None:
        return self._by_place.get((group, version, plural))

    def is_builtin(self, group: str) -> bool:
        return group in self._builtin

    def replace(self, gone: Sequence[ServedResource], new: Sequence[ServedResource]) -> None:
        """Take some away and put others in their place, at once."""
        for resource in gone:
            if self._by_place.get(_place(resource)) is resource:
                del self._by_place[_place(resource)]
        for resource in new:
            self._by_place[_place(resource)] = resource
        self.edition += 1
        for listener in self._listeners:
            listener()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call a function whenever something comes or goes."""
        self._listeners.append(listener)


def _place(resource: ServedResource) -> tuple[str, str, str]:
    return resource.kind.group, resource.kind.version, resource.kind.plural
