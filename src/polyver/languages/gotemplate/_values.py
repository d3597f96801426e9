"""Values with Go's types: plain data, and subclasses for types that Python does not distinguish.

An integer from data has Go's type int64, and an integer from a template has the type int. Strings
in Go are bytes, so positions and lengths count bytes of UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

__all__ = [
    "Byte",
    "Int",
    "Ints",
    "Lists",
    "NilDict",
    "NilList",
    "NilStrings",
    "Strings",
    "TemplateFailure",
    "Texts",
    "Version",
    "Wide",
    "decoded",
    "encoded",
    "is_true",
    "kind_of",
    "type_of",
    "wrapped",
]


class TemplateFailure(Exception):
    """An error in a template function; the caller adds the position in the template."""

    def __init__(self, fact: str, hint: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.hint = hint


class Int(int):
    """Go's type int: an integer in a template, or the result of a function such as `len`."""

    __slots__ = ()


class Byte(int):
    """A uint8 of Go: one byte of a string."""

    __slots__ = ()


class Wide(int):
    """A uint64 of Go: a number of a version."""

    __slots__ = ()


class Strings(list[Any]):
    """A list of strings only."""


class Ints(list[Any]):
    """A list of integers only."""


class Lists(list[Any]):
    """A list of lists."""


class NilList(list[Any]):
    """Go's nil list, which is printed as an empty list and is null in JSON."""


class NilStrings(Strings):
    """A nil list of strings."""


class NilDict(dict[str, Any]):
    """Go's nil map, to which no key can be added."""


class Texts(dict[str, Any]):
    """A mapping from strings to strings."""


class Version:
    """A semantic version, parsed by `semver`."""

    __slots__ = ("metadata", "numbers", "original", "pre")

    def __init__(self, numbers: tuple[int, int, int], pre: str, metadata: str, text: str) -> None:
        self.numbers = numbers
        self.pre = pre
        self.metadata = metadata
        self.original = text

    def __str__(self) -> str:
        pre = f"-{self.pre}" if self.pre else ""
        metadata = f"+{self.metadata}" if self.metadata else ""
        return f"{'.'.join(map(str, self.numbers))}{pre}{metadata}"


_TYPES: Final[dict[type, tuple[str, str]]] = {
    type(None): ("<nil>", "invalid"),
    bool: ("bool", "bool"),
    Int: ("int", "int"),
    Byte: ("uint8", "uint8"),
    Wide: ("uint64", "uint64"),
    int: ("int64", "int64"),
    float: ("float64", "float64"),
    str: ("string", "string"),
    dict: ("map[string]interface {}", "map"),
    NilDict: ("map[string]interface {}", "map"),
    Texts: ("map[string]string", "map"),
    list: ("[]interface {}", "slice"),
    NilList: ("[]interface {}", "slice"),
    Strings: ("[]string", "slice"),
    NilStrings: ("[]string", "slice"),
    Ints: ("[]int", "slice"),
    Lists: ("[][]interface {}", "slice"),
    datetime: ("time.Time", "struct"),
    Version: ("*semver.Version", "ptr"),
}


def type_of(value: object) -> str:
    """Return Go's name for the type of a value.

    >>> type_of(1), type_of(Int(1)), type_of({})
    ('int64', 'int', 'map[string]interface {}')
    """
    return _TYPES[type(value)][0]


def kind_of(value: object) -> str:
    """Return Go's name for the kind of a value."""
    return _TYPES[type(value)][1]


_TRUE: Final[dict[str, Callable[[Any], bool]]] = {"struct": lambda _: True, "ptr": lambda _: True}


def is_true(value: object) -> bool:
    """Report whether a value counts as true: it is not nil, zero, false or empty."""
    return _TRUE.get(kind_of(value), bool)(value)


def encoded(text: str) -> bytes:
    """Convert a string to bytes; lone surrogates become bytes again (see `decoded`)."""
    return text.encode("utf-8", "surrogateescape")


def decoded(content: bytes) -> str:
    """Convert bytes to a string; bytes that are not UTF-8 become lone surrogates."""
    return content.decode("utf-8", "surrogateescape")


def wrapped(number: int) -> int:
    """Reduce a number to signed 64 bits, as Go's arithmetic does on overflow."""
    return (number + 2**63) % 2**64 - 2**63
