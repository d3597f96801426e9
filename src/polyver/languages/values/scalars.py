"""Plain YAML scalars as kubectl reads them, and numbers as JSON shows them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal

__all__ = ["number", "scalar"]

_LONGEST_INTEGER = 70  # 64 binary digits, a sign and a prefix, and some zeros


def scalar(text: str) -> str | int | float | bool | None:
    """Return the value that kubectl reads from a plain scalar.

    >>> [scalar(text) for text in ("0644", "1e3", "yes", "2026-01-02", "1:30")]
    [420, 1000, True, '2026-01-02', '1:30']
    """
    if not text:
        return None
    if text in _WORDS:
        return _WORDS[text]
    digits = text.replace("_", "")
    if not _MAY_BE_NUMBER.match(text):
        return text
    integer = _integer(digits)
    if integer is not None:
        return integer
    if _FLOAT.fullmatch(digits):
        return number(float(digits), text)
    return text


_WORDS: Mapping[str, bool | float | None] = {
    word: value
    for value, words in (
        (True, "y Y yes Yes YES on On ON true True TRUE"),
        (False, "n N no No NO off Off OFF false False FALSE"),
        (None, "~ null Null NULL"),
        (math.nan, ".nan .NaN .NAN"),
        (math.inf, ".inf .Inf .INF +.inf +.Inf +.INF"),
        (-math.inf, "-.inf -.Inf -.INF"),
    )
    for word in words.split()
}
_MAY_BE_NUMBER = re.compile("[-+.0-9]")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")


def _integer(digits: str) -> int | None:
    """Return an integer of 64 bits, signed or unsigned; None for others, which become floats."""
    found = _INTEGER.fullmatch(digits) if len(digits) <= _LONGEST_INTEGER else None
    if found is None:
        return None
    sign, *bases = found.groups()
    base, number = next((b, n) for b, n in zip((16, 2, 8, 10), bases, strict=True) if n)
    value = int(sign + number, base)
    return value if -(2**63) <= value < 2**64 and not (sign == "+" and value >= 2**63) else None


def number(value: float, text: str) -> str | int | float:
    """Return a number as JSON shows it, an integer if it has no decimals; `text` if not finite."""
    if not math.isfinite(value):
        return text
    if value.is_integer() and abs(value) < 1e21:
        return int(Decimal(repr(value)))
    return value
