"""The interface of argument types of blueprint functions, and the scalar argument types.

Scalars are strings, numbers, booleans and durations. A duration is a float with a number of
seconds, so a function can pass it to any code that takes seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from polyver.core import PolyverError
from polyver.languages.values.durations import nanoseconds
from polyver.languages.values.manifests import dotted

__all__ = [
    "ANYTHING",
    "DURATION",
    "FLAG",
    "NUMBER",
    "TEXT",
    "UNKNOWN",
    "WHOLE",
    "ArgumentProblem",
    "ArgumentReader",
    "ArgumentType",
    "Duration",
    "InvalidDuration",
    "Path",
    "found_words",
    "is_template",
]

_NANOS = 1_000_000_000
Path = tuple[str | int, ...]
UNKNOWN: Final = object()
"""The value of an argument that is invalid, or that is known only after templates are rendered."""


class InvalidDuration(PolyverError):
    """The string is not a duration."""

    def __init__(self, text: str) -> None:
        super().__init__(f'"{text}" is not a duration', hint="write one as 90s, 1m30s or 2h")
        self.text = text


class Duration(float):
    """A duration in seconds, from a number of seconds or a string in Go's syntax.

    >>> Duration("1m30s") + 1, str(Duration("1m30s"))
    (91.0, '1m30s')
    """

    __slots__ = ()

    def __new__(cls, value: float | str) -> Duration:
        if not isinstance(value, str):
            return super().__new__(cls, value)
        found = nanoseconds(value)
        if found is None:
            raise InvalidDuration(value)
        return super().__new__(cls, found / _NANOS)

    def __str__(self) -> str:
        seconds = round(abs(float(self)), 9)
        hours, rest = divmod(seconds, 3600)
        minutes, left = divmod(rest, 60)
        shown = f"{hours:.0f}h" if hours else ""
        shown += f"{minutes:.0f}m" if minutes else ""
        shown += f"{left:.9f}".rstrip("0").rstrip(".") + "s" if left or not shown else ""
        return f"-{shown}" if self < 0 else shown

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"


def is_template(value: object) -> bool:
    """Report whether a value is a string that contains a template."""
    return isinstance(value, str) and "{{" in value


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """A problem of an argument. `path` is the path of the value in the arguments."""

    path: Path
    fact: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{dotted(self.path)}: " if self.path else ""
        return f"{place}{self.fact}{f' ({self.hint})' if self.hint else ''}"


@dataclass(slots=True)
class ArgumentReader:
    """Collects the problems that occur while the arguments of one call are converted."""

    before_rendering: bool
    wrong: list[ArgumentProblem] = field(default_factory=list)

    def refuse(self, path: Path, fact: str, hint: str = "") -> object:
        self.wrong.append(ArgumentProblem(path, fact, hint))
        return UNKNOWN

    def may_be_anything(self, value: object) -> bool:
        return self.before_rendering and is_template(value)


class ArgumentType(Protocol):
    """A type that an argument may have."""

    @property
    def words(self) -> str:
        """The name of the type in messages, such as `list of strings`."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the type."""

    def fits(self, value: object) -> bool:
        """Report whether a value already has this type."""

    def read(self, value: object, path: Path, reading: ArgumentReader) -> object:
        """Convert a value to the value that the function gets.

        If this is not possible, add a problem to `reading` and return UNKNOWN.
        """


def found_words(value: object) -> str:
    """Return a description of a value for messages: `null`, `"text"`, `a list`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"{value}"
        case str():
            return f'"{value}"' if len(value) <= 40 else "a long string"
        case list() | tuple():
            return "a list"
        case _:
            return "a mapping"


# Scalar types.


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A scalar type."""

    words: str
    schema: dict[str, Any]
    fits: Callable[[object], bool]
    convert: Callable[[object], object]
    """Converts a value of another type. Raises ValueError, whose message is a hint for the user."""

    def read(self, value: object, path: Path, reading: ArgumentReader) -> object:
        if reading.may_be_anything(value):
            return UNKNOWN
        if self.fits(value):
            return value
        try:
            return self.convert(value)
        except ValueError as error:
            fact = f"expected {self.words}, found {found_words(value)}"
            return reading.refuse(path, fact, str(error))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    """Convert a number to a string.

    Refuse a boolean, because the user has probably forgotten the quotes of a string.
    """
    if _is_number(value):
        return f"{value}"
    raise ValueError("put it in quotes" if isinstance(value, bool) else "")


def _whole(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,19}\s*", value):
        return int(value)
    raise ValueError


def _number(value: object) -> float:
    if isinstance(value, str) and len(value) <= 40 and _DECIMAL.fullmatch(value.strip()):
        found = float(value)
        if math.isfinite(found):
            return found
    raise ValueError


_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


_FLAGS = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE"), False),
}


def _flag(value: object) -> bool:
    """Parse a boolean from the strings that Go's strconv.ParseBool accepts: `1`, `t`, `true`, …"""
    if isinstance(value, str) and value in _FLAGS:
        return _FLAGS[value]
    raise ValueError("write true or false")


def _duration(value: object) -> Duration:
    if value == 0 and _is_number(value):
        return Duration(0)
    if _is_number(value):
        raise ValueError(f'the unit is missing: write "{value}s" for seconds')
    try:
        return Duration(value if isinstance(value, str) else "")
    except InvalidDuration as error:
        raise ValueError(error.hint) from None


TEXT: Final = _Scalar("string", {"type": "string"}, lambda value: isinstance(value, str), _text)
WHOLE: Final = _Scalar("integer", {"type": "integer"}, _is_whole, _whole)
NUMBER: Final = _Scalar("number", {"type": "number"}, _is_number, _number)
FLAG: Final = _Scalar("boolean", {"type": "boolean"}, lambda value: isinstance(value, bool), _flag)
DURATION: Final = _Scalar(
    "duration",
    {"type": "string", "format": "duration"},
    lambda value: isinstance(value, Duration),
    _duration,
)
ANYTHING: Final = _Scalar("anything", {}, lambda _: True, lambda value: value)
