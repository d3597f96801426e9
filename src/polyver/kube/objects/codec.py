"""JSON of plain data: encoding, digests, size, and decoding of only the outer levels."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType, field

__all__ = [
    "Opened",
    "digest",
    "encode_json",
    "encode_sorted",
    "is_larger",
    "open_object",
    "prepare",
]

encode_sorted = msgspec.json.Encoder(order="sorted").encode
"""Encode plain data as JSON with sorted keys: equal data gives equal bytes."""


def encode_json(value: object, *, indent: int = 0) -> bytes:
    """Encode plain data as JSON."""
    encoded = msgspec.json.encode(value)
    return msgspec.json.format(encoded, indent=indent) if indent else encoded


def prepare(*kinds: Any) -> None:
    """Make msgspec analyse types now, in this thread.

    msgspec 0.22 analyses a Struct, a dataclass or a TypedDict when it first decodes the type, and
    takes no lock. If two threads do that at the same moment, the process can end with a
    segmentation fault. So every module prepares its types when it is imported, and code that
    creates a type at run time prepares the type before another thread can use it. Encoding does
    not analyse types.
    """
    for kind in kinds:
        msgspec.json.Decoder(kind)


def digest(content: object) -> str:
    """Compute the SHA-256 digest of plain data; the order of keys does not matter.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return f"sha256:{hashlib.sha256(encode_sorted(content)).hexdigest()}"


_NONE = Raw()


class Opened(Struct, forbid_unknown_fields=True):
    """An object of which only the outer levels are decoded; it has no other fields than these.

    The fields inside the spec, the metadata and the status stay JSON (`Raw`). Code that changes a
    few fields of many objects then does not decode the other fields.
    """

    api_version: str = field(name="apiVersion")
    kind: str
    metadata: Raw = _NONE
    spec: dict[str, Raw] | UnsetType = UNSET
    status: Raw = _NONE

    def fields(self) -> dict[str, Any]:
        """Return all fields that are set, in a new dictionary."""
        found: dict[str, Any] = {"apiVersion": self.api_version, "kind": self.kind}
        if self.metadata is not _NONE:
            found["metadata"] = self.metadata
        if self.spec is not UNSET:
            found["spec"] = self.spec
        if self.status is not _NONE:
            found["status"] = self.status
        return found


prepare(Opened)
_opened = msgspec.json.Decoder(Opened).decode
_fields = msgspec.json.Decoder(dict[str, Raw]).decode


def open_object(raw: bytes | Raw) -> dict[str, Any]:
    """Decode the outer levels of an object; the values on deeper levels stay JSON (`Raw`).

    If the object has a field that `Opened` does not declare, only its own fields are decoded, and
    their values stay JSON.

    >>> raw = b'{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}'
    >>> bytes(open_object(raw)["data"])
    b'{"a": "b"}'
    """
    try:
        return _opened(raw).fields()
    except (MsgspecError, UnicodeError, RecursionError):
        return _fields(raw)


def is_larger(value: Any, size: int) -> bool:
    """Report whether plain data would take more than about `size` bytes of JSON.

    The function stops counting at `size`, so it is fast even for large data.

    >>> is_larger({"a": ["b"] * 10}, 100), is_larger({"a": ["b"] * 100}, 100)
    (False, True)
    """
    waiting = [value]
    while waiting and size >= 0:
        found = waiting.pop()
        size -= 4
        if isinstance(found, str):
            size -= len(found)
        elif isinstance(found, dict):
            size -= sum(map(len, found)) if len(found) * 4 <= size else size + 1
            waiting += found.values() if size >= 0 else ()
        elif isinstance(found, list):
            size -= 0 if len(found) * 4 <= size else size + 1
            waiting += found if size >= 0 else ()
    return size < 0
