"""JSON encoding of plain data, and digests of content."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

__all__ = ["digest", "encode_json", "prepare"]

_canonical = msgspec.json.Encoder(order="sorted")


def encode_json(value: object, *, indent: int = 0) -> bytes:
    """Return plain data as JSON."""
    encoded = msgspec.json.encode(value)
    return msgspec.json.format(encoded, indent=indent) if indent else encoded


def prepare(*kinds: Any) -> None:
    """Make msgspec analyse types now, in this thread.

    msgspec 0.22 does so when a type is first used, without a lock: two threads that use a Struct, a
    dataclass or a TypedDict for the first time at the same moment can end the process with a
    segmentation fault. Every module prepares its types when it is imported; code that makes a type
    at run time prepares it before another thread can see it. Encoding has no such step.
    """
    for kind in kinds:
        msgspec.json.Decoder(kind)


def digest(content: object) -> str:
    """Return the digest of plain data; the order of keys does not matter.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return f"sha256:{hashlib.sha256(_canonical.encode(content)).hexdigest()}"
