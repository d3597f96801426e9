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
    """A template function failed. The caller of the function adds the position in the template."""

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
    """A list that is nil in Go: it is printed as an empty list, and as null in JSON."""


class NilStrings(Strings):
    """A list of strings that is nil in Go."""


class NilDict(dict[str, Any]):
    """A mapping that is nil in Go: no key can be added to it."""


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
    """Return Go's name for the type of a value, such as `map[string]interface {}`.

    >>> type_of(1), type_of(Int(1)), type_of({})
    ('int64', 'int', 'map[string]interface {}')
    """
    return _TYPES[type(value)][0]


def kind_of(value: object) -> str:
    """Return Go's name for the kind of a value, such as `map` for every mapping."""
    return _TYPES[type(value)][1]


_TRUE: Final[dict[str, Callable[[Any], bool]]] = {"struct": lambda _: True, "ptr": lambda _: True}


def is_true(value: object) -> bool:
    """Report whether a value counts as true in `if`: it is not nil, zero, false or empty."""
    return _TRUE.get(kind_of(value), bool)(value)


def encoded(text: str) -> bytes:
    """Convert a string to bytes of UTF-8.

    A lone surrogate becomes the byte for which `decoded` made it.
    """
    return text.encode("utf-8", "surrogateescape")


def decoded(content: bytes) -> str:
    """Convert bytes to a string. Each byte that is not UTF-8 becomes a lone surrogate."""
    return content.decode("utf-8", "surrogateescape")


def wrapped(number: int) -> int:
    """Reduce a number to signed 64 bits: on overflow it starts again at the other end, as in Go."""
    return (number + 2**63) % 2**64 - 2**63
