"""Scalar argument types: strings, numbers, booleans and durations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from polyver.functions.registering._duration import Duration, InvalidDuration
from polyver.functions.registering.arguments import UNKNOWN, ArgumentReader, Path, found_words

__all__ = ["ANYTHING", "DURATION", "FLAG", "NUMBER", "TEXT", "WHOLE"]


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A scalar type."""

    words: str
    schema: dict[str, Any]
    fits: Callable[[object], bool]
    convert: Callable[[object], object]
    """Converts a value of another type; raises ValueError with a hint."""

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
    """Convert a number to a string; a boolean is refused, because it was probably unquoted text."""
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
    """Parse a boolean like Go does."""
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
