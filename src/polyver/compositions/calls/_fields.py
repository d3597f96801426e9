"""Encodes and decodes protobuf messages, described by the number, name and type of each field.

As proto3 requires, a field with its default value is not written, and a field that is missing in
the data gets its default value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import IntEnum
from typing import Any, Generic, Protocol, TypeVar

from polyver.compositions.calls._slow_structs import BYTES, VARINT, entry, known, text, varint
from polyver.compositions.calls._structs import dump_struct, load_struct
from polyver.compositions.calls.errors import (
    MessageError,
    UnreadableMessage,
    UnwritableMessage,
)
from polyver.kube.objects.protobuf_wire import MalformedError, WireField

__all__ = [
    "BytesContent",
    "DurationContent",
    "EnumField",
    "ExplicitPresenceField",
    "ImplicitPresenceField",
    "MapField",
    "Message",
    "MessageField",
    "RepeatedEnumField",
    "RepeatedField",
    "SingleFieldContent",
    "StringContent",
    "StructContent",
]

T = TypeVar("T")


class Content(Protocol):
    """Encodes the value of a field as bytes, without the tag of the field, and decodes it."""

    def dump(self, value: Any) -> bytes: ...

    def load(self, data: bytes) -> Any: ...


class MessageField(Protocol):
    """A field of a protobuf message."""

    number: int
    name: str
    wires: tuple[int, ...]
    """The wire types that are accepted for the field."""

    def write(self, value: Any) -> Iterable[bytes]:
        """Encode the field as byte strings; no byte strings if the value is the default."""

    def read(self, found: list[WireField]) -> Any:
        """Decode the value from all occurrences of the field in the data; there is at least one."""


class Message(Generic[T]):
    """A protobuf message type. Its messages are decoded into values of the Python type T."""

    def __init__(
        self, made: Callable[..., T], *slots: MessageField, either: Collection[int] = ()
    ) -> None:
        """Create a message type from its fields.

        `made` creates a value from the decoded fields. `either` has the numbers of the fields of a
        oneof: if the data has several of them, only the last one is used.
        """
        self._made = made
        self._slots = slots
        self._either = frozenset(either)
        self._wires = {slot.number: slot.wires for slot in slots}

    def dump(self, value: T) -> bytes:
        parts: list[bytes] = []
        for slot in self._slots:
            try:
                parts.extend(slot.write(getattr(value, slot.name)))
            except MessageError as error:
                raise error.inside(slot.name) from None
        return b"".join(parts)

    def load(self, data: bytes) -> T:
        found: dict[int, list[WireField]] = {}
        for field in known(data, "message", self._wires):
            if field.number in self._either:
                for other in self._either - {field.number}:
                    found.pop(other, None)
            found.setdefault(field.number, []).append(field)
        values: dict[str, Any] = {}
        for slot in self._slots:
            if slot.number in found:
                try:
                    values[slot.name] = slot.read(found[slot.number])
                except MessageError as error:
                    raise error.inside(slot.name) from None
        return self._made(**values)


# Contents of fields.


class StringContent:
    """Encodes a string as UTF-8."""

    def dump(self, value: str) -> bytes:
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise UnwritableMessage("half of a surrogate pair cannot be encoded as UTF-8") from None

    def load(self, data: bytes) -> str:
        return text(data)


class BytesContent:
    """Encodes bytes unchanged."""

    def dump(self, value: bytes) -> bytes:
        return value

    def load(self, data: bytes) -> bytes:
        return data


class StructContent:
    """Encodes a JSON object as protobuf's Struct."""

    def dump(self, value: dict[str, Any]) -> bytes:
        return dump_struct(value)

    def load(self, data: bytes) -> dict[str, Any]:
        return load_struct(data)


class DurationContent:
    """Encodes a number of seconds, which is a float, as protobuf's Duration.

    A Duration has an integer number of seconds, and nanoseconds.
    """

    _WIRES: Mapping[int, tuple[int, ...]] = {1: (VARINT,), 2: (VARINT,)}

    def dump(self, value: float) -> bytes:
        nanos = round(value * 1e9)
        sign = -1 if nanos < 0 else 1
        seconds, rest = divmod(abs(nanos), 10**9)
        parts = ((b"\x08", sign * seconds), (b"\x10", sign * rest))
        return b"".join(tag + varint(part & _ALL) for tag, part in parts if part)

    def load(self, data: bytes) -> float:
        parts = {1: 0, 2: 0}
        for field in known(data, "Duration", self._WIRES):
            parts[field.number] = field.integer("duration", 64 if field.number == 1 else 32)
        return parts[1] + parts[2] / 1e9


_ALL = (1 << 64) - 1


class SingleFieldContent:
    """Encodes a protobuf message of which polyver uses only one field.

    In Python, the value of this field stands for the whole message.
    """

    def __init__(self, slot: MessageField, empty: Callable[[], Any]) -> None:
        self._slot = slot
        self._empty = empty

    def dump(self, value: Any) -> bytes:
        return b"".join(self._slot.write(value))

    def load(self, data: bytes) -> Any:
        found = list(known(data, "message", {self._slot.number: self._slot.wires}))
        return self._slot.read(found) if found else self._empty()


# Kinds of fields.


def _head(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


class _Lengthy:
    """Base of fields whose encoded values begin with their length."""

    wires: tuple[int, ...] = (BYTES,)

    def __init__(self, number: int, name: str, content: Content) -> None:
        self.number = number
        self.name = name
        self._content = content
        self._tag = _head(number, BYTES)

    def _part(self, content: bytes) -> bytes:
        return self._tag + varint(len(content)) + content


class ExplicitPresenceField(_Lengthy):
    """An optional field with one value. The value None means that the field is missing."""

    def write(self, value: Any) -> Iterable[bytes]:
        return () if value is None else (self._part(self._content.dump(value)),)

    def read(self, found: list[WireField]) -> Any:
        if isinstance(self._content, StringContent | BytesContent):
            return self._content.load(_payload(found[-1]))
        # If a message field occurs several times, the messages are merged. The result is the same
        # as decoding their joined bytes.
        return self._content.load(b"".join(map(_payload, found)))


class ImplicitPresenceField(ExplicitPresenceField):
    """A field with one value that is never None. An empty value is not written."""

    def write(self, value: Any) -> Iterable[bytes]:
        content = self._content.dump(value)
        return (self._part(content),) if content else ()


class RepeatedField(_Lengthy):
    """A repeated field. It occurs once in the data for each item."""

    def write(self, value: Any) -> Iterable[bytes]:
        parts = []
        for place, item in enumerate(value):
            try:
                parts.append(self._part(self._content.dump(item)))
            except MessageError as error:
                raise error.inside(f"[{place}]") from None
        return parts

    def read(self, found: list[WireField]) -> tuple[Any, ...]:
        items = []
        for place, field in enumerate(found):
            try:
                items.append(self._content.load(_payload(field)))
            except MessageError as error:
                raise error.inside(f"[{place}]") from None
        return tuple(items)


class MapField(_Lengthy):
    """A map field. It occurs once in the data for each key."""

    def write(self, value: Any) -> Iterable[bytes]:
        items = []
        for key, item in value.items():
            try:
                name, content = _TEXT.dump(key), self._content.dump(item)
            except MessageError as error:
                raise error.inside(f"[{key}]") from None
            parts = (b"\x0a", varint(len(name)), name, b"\x12", varint(len(content)), content)
            items.append(self._part(b"".join(parts)))
        return items

    def read(self, found: list[WireField]) -> dict[str, Any]:
        items: dict[str, Any] = {}
        for field in found:
            key, content = entry(_payload(field))
            try:
                items[key] = self._content.load(content)
            except MessageError as error:
                raise error.inside(f"[{key}]") from None
        return items


_TEXT = StringContent()


class EnumField:
    """An enum field. An unknown number is decoded as 0."""

    wires: tuple[int, ...] = (VARINT,)

    def __init__(self, number: int, name: str, names: type[IntEnum]) -> None:
        self.number = number
        self.name = name
        self._names = names

    def write(self, value: Any) -> Iterable[bytes]:
        return (_head(self.number, VARINT), varint(value)) if value else ()

    def read(self, found: list[WireField]) -> Any:
        return self._named(found[-1].integer(self.name, 32))

    def _named(self, chosen: int) -> IntEnum:
        return self._names(chosen if chosen in self._names._value2member_map_ else 0)


class RepeatedEnumField(EnumField):
    """A repeated enum field. It is written packed; both packed and unpacked data can be read."""

    wires: tuple[int, ...] = (BYTES, VARINT)

    def write(self, value: Any) -> Iterable[bytes]:
        together = b"".join(map(varint, value))
        return (_head(self.number, BYTES), varint(len(together)), together) if together else ()

    def read(self, found: list[WireField]) -> Any:
        try:
            numbers = [each for field in found for each in field.unpacked()]
        except MalformedError as error:
            raise UnreadableMessage(str(error)) from None
        return tuple(self._named(each.integer(self.name, 32)) for each in numbers)


def _payload(field: WireField) -> bytes:
    return field.bytes("value")
