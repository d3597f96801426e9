"""Plain data as JSON, and the digest that tells whether two contents are the same."""

from __future__ import annotations

import hashlib

import msgspec

__all__ = ["digest", "encode_json"]

_canonical = msgspec.json.Encoder(order="sorted")


def encode_json(value: object, *, indent: int = 0) -> bytes:
    """Plain data as JSON."""
    encoded = msgspec.json.encode(value)
    return msgspec.json.format(encoded, indent=indent) if indent else encoded


def digest(content: object) -> str:
    """The digest of plain data; the order of a mapping's keys makes no difference.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return f"sha256:{hashlib.sha256(_canonical.encode(content)).hexdigest()}"
