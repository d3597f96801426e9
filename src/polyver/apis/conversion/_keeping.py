"""Locations of preserved fields: an annotation, or a field that the kind reserves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw, json

from polyver.apis.conversion._carry import PreservedFields, read, write
from polyver.apis.conversion._runtime import Unusual
from polyver.apis.conversion.paths import Path, parse_path
from polyver.core.plain import Object

__all__ = [
    "ANNOTATION",
    "BESIDE",
    "PreservedFieldsLocation",
    "PreservedFieldsStore",
    "PreservedInAnnotation",
    "PreservedInField",
]

ANNOTATION: Final = "conversion.polyver.dev/carry"
BESIDE: Final = f"{ANNOTATION}-beside"
"""Annotation for preserved fields while the usual location has fields in an unknown format."""
_ANNOTATIONS_LIMIT: Final = 256 * 1024
"""The limit for all annotations of an object together."""
_FIELD_LIMIT: Final = 1024 * 1024
"""A little less than the limit of etcd for a whole object."""


class PreservedFieldsLocation(Protocol):
    """A location of preserved fields."""

    @property
    def path(self) -> Path:
        """Its path in an object."""
        ...

    def split(self, obj: Object) -> tuple[Object, PreservedFields]:
        """Return an object without its preserved fields, and the preserved fields."""
        ...

    def join(self, obj: Object, carry: PreservedFields) -> Object:
        """Return an object with its preserved fields at the location, if there are any."""
        ...

    def may_be_in(self, top: Object) -> bool:
        """Return True if an object, whose fields may still be bytes, may have preserved fields."""
        ...

    def split_raw(self, top: Object) -> tuple[Object, PreservedFields]:
        """Do the same as `split` for an object some of whose fields are still bytes."""
        ...

    def join_raw(self, top: Object, carry: PreservedFields) -> Object:
        """Do the same as `join` for an object some of whose fields are still bytes."""
        ...

    def put(self, obj: Object, text: str) -> Object:
        """Return an object with this string at the location."""
        ...

    def restore(self, obj: Object, old: Mapping[str, Any]) -> None:
        """Copy the preserved fields of the old object if the client omitted them in its update."""
        ...


@dataclass(frozen=True, slots=True)
class PreservedInAnnotation:
    """Preserved fields in an annotation, for kinds whose schemas do not reserve a field."""

    name: str = ANNOTATION

    @property
    def path(self) -> Path:
        return ("metadata", "annotations", self.name)

    def split(self, obj: Object) -> tuple[Object, PreservedFields]:
        """Return an object and its preserved fields, separated; drop empty annotations."""
        metadata = obj.get("metadata")
        annotations = metadata.get("annotations") if type(metadata) is dict else None
        if type(annotations) is not dict or type(metadata) is not dict:
            return obj, PreservedFields()
        if annotations and self.name not in annotations:
            return obj, PreservedFields()
        carry = read(annotations[self.name]) if annotations else PreservedFields(was_empty=True)
        rest = {name: value for name, value in annotations.items() if name != self.name}
        kept = {name: value for name, value in metadata.items() if name != "annotations"}
        if rest:
            kept["annotations"] = rest
        if carry.was_bare and not kept:
            return {name: value for name, value in obj.items() if name != "metadata"}, carry
        return {**obj, "metadata": kept}, carry

    def join(self, obj: Object, carry: PreservedFields) -> Object:
        lost = {version: each for version, each in carry.lost.items() if each}
        metadata = obj.get("metadata")
        metadata = metadata if type(metadata) is dict else {}
        annotations = metadata.get("annotations")
        annotations = annotations if type(annotations) is dict else {}
        if not lost and not (carry.was_empty and annotations):
            return {**obj, "metadata": {**metadata, "annotations": {}}} if carry.was_empty else obj
        used = sum(len(key.encode()) + _size(each) for key, each in annotations.items())
        whole = PreservedFields(lost, carry.was_empty, "metadata" not in obj)
        text = write(whole, room=_ANNOTATIONS_LIMIT - len(self.name) - used)
        return {**obj, "metadata": {**metadata, "annotations": {**annotations, self.name: text}}}

    def may_be_in(self, top: Object) -> bool:
        return "metadata" in top and self.name.encode() in bytes(top["metadata"])

    def split_raw(self, top: Object) -> tuple[Object, PreservedFields]:
        opened = _fields(top["metadata"])
        if "annotations" not in opened:
            return top, PreservedFields()
        opened["annotations"] = json.decode(opened["annotations"])
        return self.split({**top, "metadata": opened})

    def join_raw(self, top: Object, carry: PreservedFields) -> Object:
        if not carry.lost and not carry.was_empty:
            return top
        if "metadata" not in top:
            return self.join(top, carry)
        metadata = top["metadata"]
        if type(metadata) is Raw:
            metadata = _fields(metadata)
        if type(metadata.get("annotations")) is Raw:
            metadata["annotations"] = _fields(metadata["annotations"])
            if not metadata["annotations"]:
                del metadata["annotations"]
                carry.was_empty = True
        top["metadata"] = metadata
        return self.join(top, carry)

    def put(self, obj: Object, text: str) -> Object:
        metadata = obj.get("metadata")
        metadata = metadata if type(metadata) is dict else {}
        annotations = {**(metadata.get("annotations") or {}), self.name: text}
        return {**obj, "metadata": {**metadata, "annotations": annotations}}

    def restore(self, obj: Object, old: Mapping[str, Any]) -> None:
        carry = (old["metadata"].get("annotations") or {}).get(self.name)
        annotations = obj["metadata"].get("annotations") or {}
        if carry is not None and self.name not in annotations:
            obj["metadata"]["annotations"] = {**annotations, self.name: carry}


@dataclass(frozen=True, slots=True)
class PreservedInField:
    """Preserved fields in a field beside `spec`, which all versions of the kind have for it."""

    name: str

    @property
    def path(self) -> Path:
        return (self.name,)

    def split(self, obj: Object) -> tuple[Object, PreservedFields]:
        if self.name not in obj:
            return obj, PreservedFields()
        rest = {name: value for name, value in obj.items() if name != self.name}
        carry = read(obj[self.name])
        for lost in carry.lost.values():
            for text in [each for each in lost if parse_path(each)[0] == self.name]:
                del lost[text]
        return rest, carry

    def join(self, obj: Object, carry: PreservedFields) -> Object:
        lost = {version: each for version, each in carry.lost.items() if each}
        rest, _ = self.split(obj)
        return rest | {self.name: write(PreservedFields(lost), room=_FIELD_LIMIT)} if lost else rest

    def may_be_in(self, top: Object) -> bool:
        return self.name in top

    def split_raw(self, top: Object) -> tuple[Object, PreservedFields]:
        return self.split({**top, self.name: json.decode(top[self.name])})

    def join_raw(self, top: Object, carry: PreservedFields) -> Object:
        return self.join(top, carry)

    def put(self, obj: Object, text: str) -> Object:
        return {**obj, self.name: text}

    def restore(self, obj: Object, old: Mapping[str, Any]) -> None:
        if self.name in old and self.name not in obj:
            obj[self.name] = old[self.name]


class PreservedFieldsStore:
    """The location of preserved fields, with a second annotation while the location is occupied.

    The location is occupied by preserved fields in a format that this release does not know. They
    stay as they are: another release of polyver wrote them, and reads them again when it returns.
    """

    def __init__(self, place: PreservedFieldsLocation) -> None:
        self.place = place
        self.path = place.path
        self.paths = (place.path, _BESIDE.path)
        """Paths at which an object may have preserved fields."""

    def split(self, obj: Object) -> tuple[Object, PreservedFields]:
        """Return an object without its preserved fields, and the preserved fields."""
        rest, carry = self.place.split(obj)
        if not _has_beside(rest):
            return rest, carry
        rest, beside = _BESIDE.split(rest)
        carry.lost = {**beside.lost, **carry.lost}
        carry.was_empty |= beside.was_empty
        return rest, carry

    def join(self, obj: Object, carry: PreservedFields) -> Object:
        """Return an object with its preserved fields at the location, if there are any."""
        if not carry.unknown:
            return self.place.join(obj, carry)
        return _BESIDE.join(self.place.put(obj, carry.unknown), carry)

    def may_be_in(self, top: Object) -> bool:
        """Return True if an object, whose fields may still be bytes, may have preserved fields."""
        # The names of both annotations begin with the same characters, so one search finds both.
        if "metadata" in top and _NAME in bytes(top["metadata"]):
            return True
        return type(self.place) is PreservedInField and self.place.may_be_in(top)

    def split_raw(self, top: Object) -> tuple[Object, PreservedFields]:
        """Do the same as `split` for an object some of whose fields are still bytes."""
        if _BESIDE.may_be_in(top):
            raise Unusual
        top, carry = self.place.split_raw(top)
        if carry.unknown:
            raise Unusual
        return top, carry

    def join_raw(self, top: Object, carry: PreservedFields) -> Object:
        """Do the same as `join` for an object some of whose fields are still bytes."""
        return self.place.join_raw(top, carry)

    def restore(self, obj: Object, old: Mapping[str, Any]) -> None:
        """Copy the preserved fields of the old object if the client omitted them in its update."""
        self.place.restore(obj, old)
        _BESIDE.restore(obj, old)


_BESIDE = PreservedInAnnotation(BESIDE)
_NAME: Final = ANNOTATION.encode()


def _has_beside(obj: Object) -> bool:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if type(metadata) is dict else None
    return type(annotations) is dict and BESIDE in annotations


_fields = json.Decoder(dict[str, Raw]).decode


def _size(value: Any) -> int:
    """Return the size in bytes of an annotation's value, which may still be JSON."""
    text = msgspec.json.decode(value) if type(value) is msgspec.Raw else value
    return len(text.encode()) if isinstance(text, str) else 0
