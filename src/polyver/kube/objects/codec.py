"""Plain data as JSON, and the digest that tells whether two contents are the same."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

__all__ = ["digest", "encode_json", "prepare"]

_canonical = msgspec.json.Encoder(order="sorted")


def encode_json(value: object, *, indent: int = 0) -> bytes:
    """Plain data as JSON."""
    encoded = msgspec.json.encode(value)
    return msgspec.json.format(encoded, indent=indent) if indent else encoded


def prepare(*kinds: Any) -> None:
    """Have msgspec work out how to read types, now and in this thread.

    msgspec 0.22 does so when a type is first used, without a lock: two threads that use a Struct,
    a dataclass or a TypedDict for the first time at the same moment can end the process with a
    segmentation fault. Every module prepares its types when it is imported; code that makes a
    type at run time prepares it before another thread can see it. Writing has no such step.
    """
    for kind in kinds:
        msgspec.json.Decoder(kind)


def digest(content: object) -> str:
    """The digest of plain data; the order of a mapping's keys makes no difference.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return f"sha256:{hashlib.sha256(_canonical.encode(content)).hexdigest()}"
