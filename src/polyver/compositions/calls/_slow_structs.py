"""The complete decoder of protobuf's Struct, and helpers for other protobuf messages.

The decoder accepts fields in any order, unknown fields and repeated fields. `_structs` has a faster
decoder, which accepts only the usual layout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from polyver.compositions.calls.errors import UnreadableMessage
from polyver.kube.objects.protobuf_wire import MalformedError, WireField, fields

__all__ = [
    "BYTES",
    "DEEPEST",
    "VARINT",
    "entry",
    "known",
    "load_slowly",
    "number",
    "text",
    "varint",
]

VARINT, FIXED, BYTES = 0, 1, 2
_ITEMS = {1: (BYTES,)}
_ENTRY = {1: (BYTES,), 2: (BYTES,)}
_KINDS = {1: (VARINT,), 2: (FIXED,), 3: (BYTES,), 4: (VARINT,), 5: (BYTES,), 6: (BYTES,)}
"""The numbers of the fields in the protobuf message Value, with the wire type of each field."""

DEEPEST = 200
"""Maximum nesting depth of objects, in levels. It is the same in all parts of polyver."""
_INTEGERS = 1 << 63
"""Limit for decoded numbers: a number without a fraction becomes an integer if it is at least the
negative limit and less than the limit. Kubernetes uses the same limit.
"""


def varint(number: int) -> bytes:
    """Encode a non-negative integer as a varint."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def number(double: float) -> int | float:
    """Convert a float without a fraction to an integer, as Kubernetes does in JSON.

    >>> number(2.0), number(2.5), number(1e30)
    (2, 2.5, 1e+30)
    """
    whole = int(double)
    return whole if whole == double and -_INTEGERS <= whole < _INTEGERS else double


def text(data: bytes) -> str:
    """Decode a string. Raise UnreadableMessage if the bytes are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UnreadableMessage("a string is not UTF-8") from None


def load_slowly(data: bytes, depth: int = 0) -> dict[str, Any]:
    """Decode a Struct. If the bytes are invalid, raise UnreadableMessage with the path."""
    _check_depth(depth)
    found: dict[str, Any] = {}
    for field in known(data, "Struct", _ITEMS):
        key, content = entry(field.bytes("fields"))
        try:
            found[key] = _value(content, depth)
        except UnreadableMessage as error:
            raise error.inside(key) from None
    return found


def known(data: bytes, message: str, wires: Mapping[int, tuple[int, ...]]) -> Iterator[WireField]:
    """Yield the fields of an encoded message whose number and wire type are in `wires`.

    Leave out all other fields. `message` is the name of the message type, for errors.
    """
    try:
        for field in fields(data, message):
            if field.wire in wires.get(field.number, ()):
                yield field
    except MalformedError as error:
        raise UnreadableMessage(str(error)) from None


def entry(data: bytes) -> tuple[str, bytes]:
    """Decode an entry of a map field into its key and its value, which is still encoded."""
    key, content = "", b""
    for field in known(data, "Entry", _ENTRY):
        if field.number == 1:
            key = text(field.bytes("key"))
        else:
            # If a message field occurs several times, the messages are merged. The result is the
            # same as decoding their joined bytes.
            content += field.bytes("value")
    return key, content


def _value(data: bytes, depth: int) -> Any:
    """Decode a protobuf message of type Value.

    If the message has several fields, the last one is the value. But if a list, or an object,
    occurs several times, the parts are merged.
    """
    kind, parts, last = 0, b"", None
    for field in known(data, "Value", _KINDS):
        if field.number in (5, 6):
            parts = parts + field.bytes("value") if kind == field.number else field.bytes("value")
        else:
            last = _scalar(field)
        kind = field.number
    match kind:
        case 5:
            return load_slowly(parts, depth + 1)
        case 6:
            return _list(parts, depth + 1)
    return last


def _list(data: bytes, depth: int) -> list[Any]:
    _check_depth(depth)
    found: list[Any] = []
    for field in known(data, "ListValue", _ITEMS):
        try:
            found.append(_value(field.bytes("values"), depth))
        except UnreadableMessage as error:
            raise error.inside(f"[{len(found)}]") from None
    return found


def _scalar(field: WireField) -> Any:
    match field.number:
        case 1:
            return None
        case 2:
            return _finite(field.real("number_value"))
        case 3:
            return text(field.bytes("string_value"))
    return field.payload != 0


def _finite(double: float) -> int | float:
    if not math.isfinite(double):
        raise UnreadableMessage(f"{double} cannot be expressed in JSON")
    return number(double)


def _check_depth(depth: int) -> None:
    if depth > DEEPEST:
        raise UnreadableMessage("it is nested too deeply")
