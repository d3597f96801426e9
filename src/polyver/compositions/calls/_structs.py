"""Encoder and fast decoder of JSON objects as protobuf's Struct.

Requests consist mostly of such objects, so this module is optimized for speed. The decoder accepts
only the byte layout that encoders usually produce; it calls `_slow_structs` for any other layout.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from polyver.compositions.calls._slow_structs import DEEPEST, load_slowly, number, varint
from polyver.compositions.calls.errors import UnreadableMessage, UnwritableMessage
from polyver.core.plain import Object

__all__ = ["dump_struct", "load_struct"]


_EXACT = 1 << 53
"""Limit below which an integer is encoded without a check: a double represents all integers up to
this absolute value exactly.
"""
_MOST_KEYS, _LONGEST_KEY = 4096, 64
"""Limits of the cache of encoded keys: the number of keys, and the length of a key.

Users choose the keys, so without limits the cache could fill the memory.
"""
_READY = 512

_tagged_double = struct.Struct("<cd").pack
_double = struct.Struct("<d").unpack_from


def _heads(tag: int) -> list[bytes]:
    """Return the encoded tag and length that precede a value in the data, for each length.

    The index in the list is the length of the value.
    """
    return [bytes((tag,)) + varint(length) for length in range(_READY)]


_FIELD, _VALUE, _TEXT, _STRUCT, _LIST = 0x0A, 0x12, 0x1A, 0x2A, 0x32
_NUMBER, _BOOL, _NULL = 0x11, 0x20, 0x08
_fields, _values, _texts, _structs, _lists = map(_heads, (_FIELD, _VALUE, _TEXT, _STRUCT, _LIST))
_keys: dict[str, bytes] = {}
"""Encoded keys with tag and length. They are cached because most objects have the same keys."""


# Encoding.


def dump_struct(value: Object) -> bytes:
    r"""Encode an object as a Struct. Raise UnwritableMessage if a value cannot be encoded exactly.

    >>> dump_struct({"a": True})
    b'\n\x07\n\x01a\x12\x02 \x01'
    """
    try:
        return _dumped(value)
    except RecursionError:
        raise UnwritableMessage("it is nested too deeply") from None


def _dumped(value: Object) -> bytes:
    parts: list[bytes] = []
    for key, inner in value.items():
        try:
            name = _keys.get(key) or _key(key)
            content = _dumped_value(inner)
        except UnwritableMessage as error:
            raise error.inside(str(key)) from None
        size = len(content)
        entry = name + (_values[size] if size < _READY else _head(_VALUE, size)) + content
        size = len(entry)
        parts.append(_fields[size] if size < _READY else _head(_FIELD, size))
        parts.append(entry)
    return b"".join(parts)


def _dumped_value(value: Any) -> bytes:
    kind = type(value)
    if kind is str:
        content = value.encode() if value.isascii() else _encoded(value)
        size = len(content)
        return (_texts[size] if size < _READY else _head(_TEXT, size)) + content
    if kind is dict:
        content = _dumped(value)
        size = len(content)
        return (_structs[size] if size < _READY else _head(_STRUCT, size)) + content
    if kind is list:
        content = _dumped_list(value)
        size = len(content)
        return (_lists[size] if size < _READY else _head(_LIST, size)) + content
    return _dumped_scalar(value)


def _dumped_list(value: list[Any]) -> bytes:
    parts: list[bytes] = []
    for place, inner in enumerate(value):
        try:
            content = _dumped_value(inner)
        except UnwritableMessage as error:
            raise error.inside(f"[{place}]") from None
        size = len(content)
        parts.append(_fields[size] if size < _READY else _head(_FIELD, size))
        parts.append(content)
    return b"".join(parts)


def _dumped_scalar(value: Any) -> bytes:
    match value:
        case None:
            return b"\x08\x00"
        case bool():
            return b"\x20\x01" if value else b"\x20\x00"
        case int():
            if not -_EXACT <= value <= _EXACT:
                _check_integer(value)
            return _tagged_double(b"\x11", value)
        case float():
            if not math.isfinite(value):
                raise UnwritableMessage(f"{value} cannot be expressed in JSON")
            return _tagged_double(b"\x11", value)
    return _dumped_value(_plain(value))


def _plain(value: Any) -> Any:
    """Convert an instance of a subclass of str, dict or list to a plain str, dict or list.

    Raise UnwritableMessage for a value of another type.
    """
    kinds: tuple[type[Any], ...] = (str, dict, list)
    for kind in kinds:
        if isinstance(value, kind):
            return kind(value)
    raise UnwritableMessage(f"a {type(value).__name__} cannot be expressed in JSON")


def _check_integer(value: int) -> None:
    """Raise UnwritableMessage if a double cannot represent this integer exactly."""
    try:
        same = int(float(value)) == value
    except OverflowError:
        same = False
    if not same:
        raise UnwritableMessage(
            f"{value} cannot be sent: functions get numbers as doubles, which are exact up to 2^53"
        )


def _key(key: object) -> bytes:
    if not isinstance(key, str):
        raise UnwritableMessage(f"a {type(key).__name__} cannot be a key in JSON")
    content = _encoded(key)
    written = _head(_FIELD, len(content)) + content
    if len(content) <= _LONGEST_KEY and len(_keys) < _MOST_KEYS:
        _keys[key] = written
    return written


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UnwritableMessage("half of a surrogate pair cannot be encoded as UTF-8") from None


def _head(tag: int, size: int) -> bytes:
    return bytes((tag,)) + varint(size)


# Decoding.


class _Unusual(Exception):
    """The bytes are invalid, or their layout is not the usual one."""


def load_struct(data: bytes) -> Object:
    """Decode a Struct. If the bytes are invalid, raise UnreadableMessage with the path.

    >>> load_struct(dump_struct({"a": [1, 2.5, None]}))
    {'a': [1, 2.5, None]}
    """
    try:
        return _loaded(data, 0, len(data), 0)
    except (_Unusual, IndexError, ValueError, OverflowError, struct.error, RecursionError):
        pass
    try:
        return load_slowly(data)
    except RecursionError:
        raise UnreadableMessage("it is nested too deeply") from None


def _loaded(data: bytes, place: int, end: int, depth: int) -> Object:
    if depth > DEEPEST:
        raise _Unusual
    found: Object = {}
    while place < end:
        if data[place] != _FIELD:
            raise _Unusual
        size = data[place + 1]
        place += 2
        if size > 0x7F:
            size, place = _size(data, place - 1)
        stop = place + size
        if stop > end or data[place] != _FIELD:
            raise _Unusual
        size = data[place + 1]
        place += 2
        if size > 0x7F:
            size, place = _size(data, place - 1)
        key = data[place : place + size].decode()
        place += size
        if data[place] != _VALUE:
            raise _Unusual
        size = data[place + 1]
        place += 2
        if size > 0x7F:
            size, place = _size(data, place - 1)
        if size < 2 or place + size != stop:
            raise _Unusual
        found[key] = _loaded_value(data, place, stop, depth)
        place = stop
    return found


def _loaded_value(data: bytes, place: int, end: int, depth: int) -> Any:
    tag = data[place]
    if tag in _SCALARS:
        return _loaded_scalar(data, place, end, tag)
    size = data[place + 1]
    place += 2
    if size > 0x7F:
        size, place = _size(data, place - 1)
    if place + size != end:
        raise _Unusual
    if tag == _TEXT:
        return data[place:end].decode()
    if tag == _STRUCT:
        return _loaded(data, place, end, depth + 1)
    if tag == _LIST:
        return _loaded_list(data, place, end, depth + 1)
    raise _Unusual


_SCALARS = frozenset((_NUMBER, _BOOL, _NULL))


def _loaded_list(data: bytes, place: int, end: int, depth: int) -> list[Any]:
    if depth > DEEPEST:
        raise _Unusual
    found = []
    while place < end:
        if data[place] != _FIELD:
            raise _Unusual
        size = data[place + 1]
        place += 2
        if size > 0x7F:
            size, place = _size(data, place - 1)
        stop = place + size
        if size < 2 or stop > end:
            raise _Unusual
        found.append(_loaded_value(data, place, stop, depth))
        place = stop
    return found


def _loaded_scalar(data: bytes, place: int, end: int, tag: int) -> Any:
    if tag == _NUMBER:
        if end != place + 9:
            raise _Unusual
        return number(_double(data, place + 1)[0])
    if end != place + 2 or data[place + 1] > 1:
        raise _Unusual
    return None if tag == _NULL else data[place + 1] == 1


def _size(data: bytes, place: int) -> tuple[int, int]:
    """Decode a length that is encoded in several bytes. Return it, and the position after it."""
    size = shift = 0
    while True:
        byte = data[place]
        place += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size, place
        shift += 7
        if shift > 28:
            raise _Unusual
