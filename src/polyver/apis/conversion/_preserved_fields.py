"""Preserved fields: values that the version of an object cannot express, kept in the object.

They are stored as JSON with sorted keys: `{"format": 1, "lost": {"v1": {"spec.legacyMode": {"is":
…}}}}`. The JSON is the value of an annotation, or of a field that the kind reserves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Protocol, TypedDict

import msgspec
from msgspec import Raw, json

from polyver.apis.conversion._delta import Lost, without
from polyver.apis.conversion._runtime import Unusual
from polyver.apis.conversion.paths import PATTERN, Path, fits_metadata, parse_path
from polyver.core import PolyverError, listed
from polyver.core.plain import Object
from polyver.kube.objects.codec import encode_sorted

__all__ = [
    "ANNOTATION",
    "BESIDE",
    "NOTHING_PRESERVED",
    "CarryTooLarge",
    "PreservedFields",
    "PreservedFieldsLocation",
    "PreservedFieldsStore",
    "PreservedInAnnotation",
    "PreservedInField",
    "format_of",
    "preserved_in_version",
    "without_version",
]

FORMAT: Final = 1


class CarryTooLarge(PolyverError):
    """The preserved fields of an object exceed the size limit."""

    def __init__(self, carry: PreservedFields, size: int, room: int) -> None:
        sizes = {
            f"{path} of {version} ({len(encode_sorted(entry))} bytes)": len(encode_sorted(entry))
            for version, lost in carry.lost.items()
            for path, entry in lost.items()
        }
        largest = sorted(sizes, key=lambda name: -sizes[name])
        super().__init__(
            f"preserved fields take {size} bytes, and at most {room} are allowed: "
            f"{listed(largest, most=5)}",
            hint="make these fields smaller, or add fields for them to the other versions",
        )


@dataclass(slots=True)
class PreservedFields:
    """The preserved fields of an object by version, and other data to restore the object."""

    lost: dict[str, Lost] = field(default_factory=dict)
    was_empty: bool = False
    """True if the original object had an empty map of annotations, which must be restored."""
    was_bare: bool = False
    """True if the original object had no metadata."""
    unknown: str = ""
    """Preserved fields in a format that this version of polyver does not know, as a string.

    The string is written back unchanged. It is empty if there are no such preserved fields.
    """


_Lost = dict[Annotated[str, msgspec.Meta(pattern=PATTERN)], "_Entry"]
_Place = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}\Z")]
_Item = TypedDict("_Item", {"in": "_Lost", "if": str})
_Entry = TypedDict(
    "_Entry",
    {
        "is": Any,
        "absent": bool,
        "if": str,
        "whole": str,
        "in": "_Lost",
        "first": "_Entry",
        "rest": list[Any],
        "by": dict[str, _Lost],
        "at": dict[_Place, _Item],
        "kept": dict[str, Any],
        "order": list[str],
    },
    total=False,
)
"""The allowed form of `Lost`. polyver checks the form, because any client can write the annotation.
"""


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    lost: dict[str, _Lost]
    empty: bool = False
    bare: bool = False


_decode = msgspec.json.Decoder(_Written).decode


def _read(text: object) -> PreservedFields:
    """Parse preserved fields; if the format is unknown, return the text unchanged in `unknown`.

    An earlier or later version of polyver may have written the text. This other version can read
    the text again, if it replaces the running version.
    """
    if not isinstance(text, str):
        return PreservedFields()
    try:
        written = _decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return PreservedFields(unknown=text)
    if written.format != FORMAT:
        return PreservedFields(unknown=text)
    lost = {
        version: without({p: entry for p, entry in each.items() if _may_restore(p, entry)}, ())
        for version, each in written.lost.items()
    }
    return PreservedFields(lost, written.empty, written.bare)


def _may_restore(text: str, entry: Mapping[str, Any]) -> bool:
    """Report whether a conversion may restore a preserved field.

    In the metadata, it may restore only valid labels and annotations. `text` is the path of the
    field.
    """
    if not text.startswith(_FIXED_FIELDS):
        return True
    path = parse_path(text)
    if path[0] not in _FIXED_FIELDS:
        return True
    if path[0] != "metadata" or path[1:2] not in (("labels",), ("annotations",)):
        return False
    if "absent" in entry:
        return len(path) in (2, 3)
    value = entry.get("is")
    if len(path) == 2:
        return type(value) is dict and all(fits_metadata(path, each) for each in value.values())
    return len(path) == 3 and fits_metadata(path, value)


_FIXED_FIELDS = ("apiVersion", "kind", "metadata", "[")


def format_of(text: str) -> str:
    """Describe a format of preserved fields that polyver cannot read, such as `format 2`."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return "not JSON"
    number = found.get("format") if isinstance(found, dict) else None
    if type(number) is not int:
        return "no format number"
    return f"format {number}" if number != FORMAT else f"format {FORMAT}, with other fields"


def preserved_in_version(text: object, version: str) -> list[str] | None:
    """Return the paths of the preserved fields that only one version can restore.

    `text` is the value of the annotation or of the reserved field. The result is None if this
    release cannot read its format.
    """
    carry = _read(text)
    return None if carry.unknown else [*carry.lost.get(version, ())]


def without_version(text: str, version: str) -> str:
    """Return preserved fields without those of one version, or NOTHING_PRESERVED if none are left.

    If this release cannot read the format, return `text` unchanged.
    """
    if not preserved_in_version(text, version):
        return text
    written = msgspec.json.decode(text)
    written["lost"] = {name: each for name, each in written["lost"].items() if name != version}
    return encode_sorted(written).decode() if any(written["lost"].values()) else NOTHING_PRESERVED


NOTHING_PRESERVED: Final = '{"format":1,"lost":{}}'
"""The text without any preserved fields.

If an update leaves out the preserved fields of an object, admission restores them. It does not
restore this text. So a client removes preserved fields in two writes: first it writes this text.
"""


def _write(carry: PreservedFields, *, room: int) -> str:
    """Format preserved fields as a string; raise CarryTooLarge if it has more than `room` bytes."""
    said: dict[str, Any] = {"format": FORMAT, "lost": carry.lost}
    flags = {"empty": carry.was_empty, "bare": carry.was_bare}
    text = encode_sorted(said | {name: True for name, is_so in flags.items() if is_so})
    if len(text) > room:
        raise CarryTooLarge(carry, len(text), room)
    return text.decode()


# Locations of preserved fields.


ANNOTATION: Final = "conversion.polyver.dev/carry"
BESIDE: Final = f"{ANNOTATION}-beside"
"""The annotation in which polyver stores preserved fields if their normal location is occupied.

The location is occupied if it contains preserved fields in an unknown format, which are kept.
"""
_ANNOTATIONS_LIMIT: Final = 256 * 1024
"""The maximum size in bytes of all annotations of an object together, as in Kubernetes."""
_FIELD_LIMIT: Final = 1024 * 1024
"""The maximum size in bytes of preserved fields that are stored in a field of the object.

It is below the limit of etcd for a whole object.
"""


class PreservedFieldsLocation(Protocol):
    """A location in objects at which preserved fields are stored."""

    @property
    def path(self) -> Path:
        """The path of the location in an object."""
        ...

    def split(self, obj: Object) -> tuple[Object, PreservedFields]:
        """Separate an object from its preserved fields; return both."""
        ...

    def join(self, obj: Object, carry: PreservedFields) -> Object:
        """Return an object with the preserved fields `carry` added at this location.

        If `carry` contains no fields, return the object unchanged.
        """
        ...

    def may_be_in(self, top: Object) -> bool:
        """Report whether an object may have preserved fields; its fields may be undecoded JSON."""
        ...

    def split_raw(self, top: Object) -> tuple[Object, PreservedFields]:
        """Do the same as `split` for an object in which some fields are undecoded JSON."""
        ...

    def join_raw(self, top: Object, carry: PreservedFields) -> Object:
        """Do the same as `join` for an object in which some fields are undecoded JSON."""
        ...

    def put(self, obj: Object, text: str) -> Object:
        """Return an object with the string `text` at the location."""
        ...

    def restore(self, obj: Object, old: Mapping[str, Any]) -> None:
        """Copy the preserved fields of the `old` object to its update `obj` if they are missing."""
        ...


@dataclass(frozen=True, slots=True)
class PreservedInAnnotation:
    """Preserved fields in an annotation, for kinds whose schemas do not reserve a field."""

    name: str = ANNOTATION

    @property
    def path(self) -> Path:
        return ("metadata", "annotations", self.name)

    def split(self, obj: Object) -> tuple[Object, PreservedFields]:
        """Separate an object from its preserved fields; return both.

        If the object has no other annotations, its map of annotations is removed.
        """
        metadata = obj.get("metadata")
        annotations = metadata.get("annotations") if type(metadata) is dict else None
        if type(annotations) is not dict or type(metadata) is not dict:
            return obj, PreservedFields()
        if annotations and self.name not in annotations:
            return obj, PreservedFields()
        carry = _read(annotations[self.name]) if annotations else PreservedFields(was_empty=True)
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
        text = _write(whole, room=_ANNOTATIONS_LIMIT - len(self.name) - used)
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
        if carry not in (None, NOTHING_PRESERVED) and self.name not in annotations:
            obj["metadata"]["annotations"] = {**annotations, self.name: carry}


@dataclass(frozen=True, slots=True)
class PreservedInField:
    """Preserved fields in a top-level field that all versions of the kind reserve."""

    name: str

    @property
    def path(self) -> Path:
        return (self.name,)

    def split(self, obj: Object) -> tuple[Object, PreservedFields]:
        if self.name not in obj:
            return obj, PreservedFields()
        rest = {name: value for name, value in obj.items() if name != self.name}
        carry = _read(obj[self.name])
        for lost in carry.lost.values():
            for text in [each for each in lost if parse_path(each)[0] == self.name]:
                del lost[text]
        return rest, carry

    def join(self, obj: Object, carry: PreservedFields) -> Object:
        lost = {version: each for version, each in carry.lost.items() if each}
        rest, _ = self.split(obj)
        return (
            rest | {self.name: _write(PreservedFields(lost), room=_FIELD_LIMIT)} if lost else rest
        )

    def may_be_in(self, top: Object) -> bool:
        return self.name in top

    def split_raw(self, top: Object) -> tuple[Object, PreservedFields]:
        return self.split({**top, self.name: json.decode(top[self.name])})

    def join_raw(self, top: Object, carry: PreservedFields) -> Object:
        return self.join(top, carry)

    def put(self, obj: Object, text: str) -> Object:
        return {**obj, self.name: text}

    def restore(self, obj: Object, old: Mapping[str, Any]) -> None:
        if self.name in old and self.name not in obj and old[self.name] != NOTHING_PRESERVED:
            obj[self.name] = old[self.name]


class PreservedFieldsStore:
    """The location of preserved fields, and a second annotation if the location is occupied.

    The location is occupied if it contains preserved fields in a format that this version of
    polyver does not know. polyver keeps these preserved fields unchanged, so that the version of
    polyver that wrote them can read them again.
    """

    def __init__(self, place: PreservedFieldsLocation) -> None:
        self.place = place
        self.path = place.path
        self.paths = (place.path, _BESIDE.path)
        """Paths at which an object may have preserved fields."""

    def split(self, obj: Object) -> tuple[Object, PreservedFields]:
        """Separate an object from its preserved fields; return both."""
        rest, carry = self.place.split(obj)
        metadata = rest.get("metadata")
        annotations = metadata.get("annotations") if type(metadata) is dict else None
        if type(annotations) is not dict or BESIDE not in annotations:
            return rest, carry
        rest, beside = _BESIDE.split(rest)
        carry.lost = {**beside.lost, **carry.lost}
        carry.was_empty |= beside.was_empty
        return rest, carry

    def join(self, obj: Object, carry: PreservedFields) -> Object:
        """Return an object with the preserved fields `carry` added.

        If `carry` contains no fields, return the object unchanged.
        """
        if not carry.unknown:
            return self.place.join(obj, carry)
        return _BESIDE.join(self.place.put(obj, carry.unknown), carry)

    def may_be_in(self, top: Object) -> bool:
        """Report whether an object may have preserved fields; its fields may be undecoded JSON."""
        # The names of both annotations begin with the same characters, so one search finds both.
        if "metadata" in top and _NAME in bytes(top["metadata"]):
            return True
        return type(self.place) is PreservedInField and self.place.may_be_in(top)

    def split_raw(self, top: Object) -> tuple[Object, PreservedFields]:
        """Do the same as `split` for an object in which some fields are undecoded JSON."""
        if _BESIDE.may_be_in(top):
            raise Unusual
        top, carry = self.place.split_raw(top)
        if carry.unknown:
            raise Unusual
        return top, carry

    def join_raw(self, top: Object, carry: PreservedFields) -> Object:
        """Do the same as `join` for an object in which some fields are undecoded JSON."""
        return self.place.join_raw(top, carry)

    def restore(self, obj: Object, old: Mapping[str, Any]) -> None:
        """Copy the preserved fields of the `old` object to its update `obj` if they are missing."""
        self.place.restore(obj, old)
        _BESIDE.restore(obj, old)


_BESIDE = PreservedInAnnotation(BESIDE)
_NAME: Final = ANNOTATION.encode()


_fields = json.Decoder(dict[str, Raw]).decode


def _size(value: Any) -> int:
    """Return the size in bytes of an annotation's value, which may be undecoded JSON."""
    text = msgspec.json.decode(value) if type(value) is msgspec.Raw else value
    return len(text.encode()) if isinstance(text, str) else 0
