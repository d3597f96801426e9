"""CEL values at run time: types that Python lacks, comparison, and type names.

Strings, signed integers, doubles, booleans, bytes and null are values of Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyver.core import PolyverError

__all__ = [
    "NONE",
    "CelDuration",
    "CelEvaluationError",
    "Dictionary",
    "List",
    "Map",
    "Opaque",
    "Optional",
    "Timestamp",
    "TypeValue",
    "Uint",
    "compare",
    "equal",
    "key_of",
    "no_overload",
    "type_name",
]


class CelEvaluationError(PolyverError):
    """An expression cannot be evaluated for the given values."""


def no_overload() -> CelEvaluationError:
    """Build the error for a function that does not accept its arguments."""
    return CelEvaluationError("no such overload")


class Uint(int):
    """An unsigned integer, which CEL distinguishes from a signed integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class CelDuration:
    """A duration in nanoseconds, which may be negative."""

    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A timestamp in nanoseconds since 1970.

    `offset` is the UTC offset in seconds with which it was written.
    """

    nanos: int
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type that is used as a value, such as `int` in `type(1) == int`."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Optional:
    """A value that may be absent."""

    value: Any = None
    present: bool = True


NONE = Optional(present=False)


class Opaque:
    """A value of a type that Kubernetes adds to CEL, such as a quantity or an IP address."""

    __slots__ = ()
    type_name = ""

    def equals(self, other: Opaque) -> bool:
        """Report whether this value equals another value of the same type."""
        return self == other


class List:
    """A CEL list. Lists of the list types `set` and `map` are subclasses that ignore the order."""

    __slots__ = ("_items",)

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    @property
    def items(self) -> Sequence[Any]:
        """The values of the list."""
        return self._items

    def __len__(self) -> int:
        return len(self.items)

    def equals(self, other: Any) -> bool:
        if not isinstance(other, List) or len(self) != len(other):
            return False
        return all(map(equal, self.items, other.items))

    def contains(self, wanted: Any) -> bool:
        return any(equal(wanted, item) for item in self.items)

    def plus(self, other: Any) -> List:
        if not isinstance(other, List):
            raise no_overload()
        if len(self) > _SHORT:
            return _Joined(self, other)
        return _Grown([*self.items, *other.items])

    @property
    def weight(self) -> int:
        """The cost of comparing this list by `==`: the number of values that are compared."""
        return len(self)


_SHORT = 32


class _Joined(List):
    """Concatenated lists, which are joined when the items are first read."""

    __slots__ = ("_parts",)

    def __init__(self, *parts: List) -> None:
        super().__init__(())
        self._parts = parts

    @property
    def items(self) -> Sequence[Any]:
        if self._parts:
            self._items = [item for part in self._parts for item in part.items]
            self._parts = ()
        return self._items

    def __len__(self) -> int:
        return sum(map(len, self._parts)) if self._parts else len(self._items)


class _Grown(List):
    """A list that an expression builds step by step, with `+`.

    The first list that extends this list shares its storage. Any further list copies the items.
    """

    __slots__ = ("_size",)

    def __init__(self, items: list[Any]) -> None:
        super().__init__(items)
        self._size = len(items)

    @property
    def items(self) -> Sequence[Any]:
        return self._items if len(self._items) == self._size else self._items[: self._size]

    def __len__(self) -> int:
        return self._size

    def plus(self, other: Any) -> List:
        if not isinstance(other, List) or len(self._items) != self._size:
            return super().plus(other)
        assert isinstance(self._items, list)
        self._items.extend(other.items)
        return _Grown(self._items)


class Map:
    """A mapping, or an object with its fields."""

    __slots__ = ()

    def find(self, key: Any) -> tuple[Any, bool]:
        """Return the value under a key, and True if there is one."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the keys."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def weight(self) -> int:
        """The cost of comparing this map by `==`: the number of values that are compared."""
        return len(self)

    def equals(self, other: Any) -> bool:
        if not isinstance(other, Map) or len(self) != len(other):
            return False
        for key in self:
            found, there = other.find(key)
            if not there or not equal(self.find(key)[0], found):
                return False
        return True


class Dictionary(Map):
    """A mapping that an expression made."""

    __slots__ = ("_entries", "_size")

    def __init__(self, entries: Iterable[tuple[Any, Any]]) -> None:
        self._entries: dict[Any, tuple[Any, Any, int]] = {}
        for key, value in entries:
            known = self._entries.get(key_of(key))
            position = len(self._entries) if known is None else known[2]
            self._entries[key_of(key)] = (key, value, position)
        self._size = len(self._entries)

    def find(self, key: Any) -> tuple[Any, bool]:
        found = self._entries.get(key_of(key))
        if found is None or found[2] >= self._size:
            return None, False
        return found[1], True

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _, _ in list(self._entries.values())[: self._size])

    def __len__(self) -> int:
        return self._size

    def plus(self, key: Any, value: Any) -> Dictionary:
        """Return a map with one more key.

        The first map that extends this map shares its storage. Any further map copies the entries.
        """
        made = Dictionary(())
        made._entries = self._entries
        if len(self._entries) != self._size:
            kept = list(self._entries.items())[: self._size]
            made._entries = dict(kept)
        made._entries[key_of(key)] = (key, value, self._size)
        made._size = self._size + 1
        return made


def key_of(key: Any) -> Any:
    """Convert a map key to the key that is used for lookups.

    Equal numbers of different types, such as 1 and 1.0, become the same key. A number and a boolean
    never become the same key.
    """
    if isinstance(key, bool):
        return (bool, key)
    return key if isinstance(key, str | int | float) else id(key)


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    CelDuration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    Optional: "optional_type",
}


def type_name(value: Any) -> str:
    """Return the name of the type of a value.

    >>> type_name(Uint(1)), type_name(1.5), type_name(None)
    ('uint', 'double', 'null_type')
    """
    known = _NAMES.get(type(value))
    if known is not None:
        return known
    if isinstance(value, Opaque):
        return value.type_name
    return "list" if isinstance(value, List) else "map"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(one: Any, other: Any) -> bool:
    """Report whether two values are equal; numbers may be of different types.

    >>> equal(1, 1.0), equal(1, True), equal(None, 0)
    (True, False, False)
    """
    if one is None or other is None:
        return one is other
    match one:
        case bool() | str() | bytes() | CelDuration() | Timestamp() | TypeValue():
            return type(one) is type(other) and bool(one == other)
        case int() | float():
            return _is_number(other) and bool(one == other)
        case List() | Map():
            return one.equals(other)
        case Optional():
            return _equal_optional(one, other)
    if type(one) is not type(other):
        raise no_overload()
    return bool(one.equals(other))


def _equal_optional(one: Optional, other: Any) -> bool:
    if not isinstance(other, Optional) or one.present is not other.present:
        return False
    return not one.present or equal(one.value, other.value)


_ORDERED = (bool, str, bytes, CelDuration, Timestamp)


def compare(one: Any, other: Any) -> int:
    """Return -1, 0 or 1 if a value is less than, equal to or greater than another.

    >>> compare(1, 1.5), compare("b", "a")
    (-1, 1)
    """
    if _is_number(one) and _is_number(other):
        if any(isinstance(each, float) and math.isnan(each) for each in (one, other)):
            raise CelEvaluationError("NaN values cannot be ordered")
        return int(one > other) - int(one < other)
    if type(one) is not type(other) or not isinstance(one, _ORDERED):
        raise no_overload()
    return int(one > other) - int(one < other)
