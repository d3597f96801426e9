"""The wire format of protobuf: the numbered fields of a message, without names and types.

If a message contains other messages, their bytes are not decoded here. Errors have the messages of
Go's generated code.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["MalformedError", "WireField", "empty_field", "fields", "signed"]

_VARINT, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)
_END = "unexpected EOF"
_EXPONENTS = 1e21
"""A number without a fraction becomes an integer if it is below this limit.

From the limit on, Go writes such a number with an exponent.
"""


class MalformedError(Exception):
    """Raised if bytes are not valid protobuf."""


class WireField(NamedTuple):
    """One field of a message: its number, its wire type, and its payload as a number or bytes."""

    number: int
    wire: int
    payload: int | bytes

    def bytes(self, name: str) -> bytes:
        """Return the bytes of a field that has a length: a string, a message or bytes.

        `name` is the name of the field for the error message.
        """
        if self.wire != _BYTES or not isinstance(self.payload, bytes):
            raise self._wrong(name)
        return self.payload

    def text(self, name: str) -> str:
        return self.bytes(name).decode(errors="replace")

    def integer(self, name: str, bits: int = 64) -> int:
        if not isinstance(self.payload, int):
            raise self._wrong(name)
        return signed(self.payload, bits)

    def real(self, name: str) -> float:
        """Return the number in a field of the type double; it may be infinite or NaN."""
        if self.wire != _FIXED64 or not isinstance(self.payload, bytes):
            raise self._wrong(name)
        value: float = struct.unpack("<d", self.payload)[0]
        return value

    def double(self, name: str) -> float:
        """Return a double as a JSON number: without a fraction, it becomes an integer."""
        value = self.real(name)
        if not math.isfinite(value):
            raise MalformedError(f"{value} cannot be written as JSON")
        return int(value) if value.is_integer() and abs(value) < _EXPONENTS else value

    def unpacked(self) -> Iterator[WireField]:
        """Yield the numbers that are packed in the bytes of this field, each as a field of its own.

        If the field has no packed numbers, yield the field itself.
        """
        if not isinstance(self.payload, bytes):
            yield self
            return
        offset = 0
        while offset < len(self.payload):
            value, offset = _varint(self.payload, offset)
            yield WireField(self.number, _VARINT, value)

    def _wrong(self, name: str) -> MalformedError:
        name = name[:1].upper() + name[1:]
        return MalformedError(f"proto: wrong wireType = {self.wire} for field {name}")


def empty_field(*, holds_number: bool) -> WireField:
    """Build a field with the default value: 0, or no bytes.

    It stands for a field that a message lacks.
    """
    return WireField(0, _VARINT, 0) if holds_number else WireField(0, _BYTES, b"")


def fields(data: bytes, message: str) -> Iterator[WireField]:
    """Yield the fields of a message; groups, an obsolete kind of fields, are skipped.

    Error messages name the message by `message`. For an entry of a mapping, `message` is empty, and
    field numbers are not checked.
    """
    offset = 0
    while offset < len(data):
        tag, offset = _varint(data, offset)
        number, wire = signed(tag >> 3, 32), tag & 7
        if wire == _GROUP_END:
            problem = f"{message}: wiretype end group for non-group"
            raise MalformedError(f"proto: {problem if message else 'unexpected end of group'}")
        if number <= 0 and message:
            raise MalformedError(f"proto: {message}: illegal tag {number} (wire type {tag})")
        if wire == _GROUP:
            offset = _after_group(data, offset)
            continue
        payload, offset = _payload(data, offset, wire)
        yield WireField(number, wire, payload)


def signed(value: int, bits: int) -> int:
    """Convert an unsigned number of `bits` bits to the signed number that it encodes."""
    if value < 0x4000_0000:
        return value
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _payload(data: bytes, offset: int, wire: int) -> tuple[int | bytes, int]:
    if wire == _VARINT:
        return _varint(data, offset)
    match wire:
        case 1:
            length = 8
        case 2:
            length, offset = _varint(data, offset)
            if signed(length, 64) < 0:
                raise MalformedError("proto: negative length found during unmarshaling")
        case 5:
            length = 4
        case _:
            raise MalformedError(f"proto: illegal wireType {wire}")
    end = offset + length
    if end > len(data):
        raise MalformedError(_END)
    return data[offset:end], end


def _after_group(data: bytes, offset: int) -> int:
    depth = 1
    while depth:
        tag, offset = _varint(data, offset)
        match tag & 7:
            case 3:
                depth += 1
            case 4:
                depth -= 1
            case wire:
                _, offset = _payload(data, offset, wire)
    return offset


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    if offset < len(data) and data[offset] < 0x80:  # a fast path: most numbers are small
        return data[offset], offset + 1
    value = 0
    for shift in range(0, 64, 7):
        if offset >= len(data):
            raise MalformedError(_END)
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, offset
    raise MalformedError("proto: integer overflow")
