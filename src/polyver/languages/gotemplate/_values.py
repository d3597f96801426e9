"""Values as Go holds them: plain data, with the types that Python does not tell apart.

Whole numbers from data are int64, those from templates int; texts are bytes to Go, so what counts
characters there counts the bytes of UTF-8.
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
    """What went wrong in a function, without the place, which only the caller knows."""

    def __init__(self, fact: str, hint: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.hint = hint


class Int(int):
    """A whole number written in a template, or counted by one."""

    __slots__ = ()


class Byte(int):
    """One byte of a text."""

    __slots__ = ()


class Wide(int):
    """A number of 64 bits without a sign: a part of a version."""

    __slots__ = ()


class Strings(list[Any]):
    """A list of texts and nothing else."""


class Ints(list[Any]):
    """A list of whole numbers and nothing else."""


class Lists(list[Any]):
    """A list of lists."""


class NilList(list[Any]):
    """A list that is not there, which prints as an empty one and is null in JSON."""


class NilStrings(Strings):
    """A list of texts that is not there."""


class NilDict(dict[str, Any]):
    """A mapping that is not there, into which nothing can be put."""


class Texts(dict[str, Any]):
    """A mapping from texts to texts."""


class Version:
    """A semantic version, read by `semver`."""

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
    """The name that Go has for the type of a value.

    >>> type_of(1), type_of(Int(1)), type_of({})
    ('int64', 'int', 'map[string]interface {}')
    """
    return _TYPES[type(value)][0]


def kind_of(value: object) -> str:
    """The name that Go has for the kind of a value."""
    return _TYPES[type(value)][1]


_TRUE: Final[dict[str, Callable[[Any], bool]]] = {"struct": lambda _: True, "ptr": lambda _: True}


def is_true(value: object) -> bool:
    """Whether a value counts as true: it is not nothing, zero, false or empty."""
    return _TRUE.get(kind_of(value), bool)(value)


def encoded(text: str) -> bytes:
    """The bytes of a text; those that were no UTF-8 are as they were."""
    return text.encode("utf-8", "surrogateescape")


def decoded(content: bytes) -> str:
    """A text from bytes; those that are no UTF-8 are kept."""
    return content.decode("utf-8", "surrogateescape")


def wrapped(number: int) -> int:
    """A number of 64 bits, as it comes out where there are no more."""
    return (number + 2**63) % 2**64 - 2**63
