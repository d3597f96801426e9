"""Writes values in the form of kube-apiserver's error messages, which differs from Python and JSON.

Clients show these messages and compare them in tests, so the messages must be identical.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

__all__ = [
    "ESCAPES",
    "as_number",
    "fits_int64",
    "float_text",
    "is_integral",
    "json_text",
    "number_text",
    "quoted",
    "same",
    "shown",
    "without_nulls",
]

ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    '"': '\\"',
    "\\": "\\\\",
}
"""The characters that quoted strings cannot contain directly, with the escapes to write instead."""
_HTML = str.maketrans({each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"})
_LARGEST = 2**53 - 1


def quoted(text: str) -> str:
    r"""Write a string in quotes, with Go's escapes.

    >>> print(quoted('a "b"\n'), quoted("ä\x00\u200b"))
    "a \"b\"\n" "ä\x00\u200b"
    """
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in ESCAPES:
        return ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shown(value: Any) -> str:
    """Write a value as error messages show it.

    >>> shown("a"), shown(1e-7), shown(5.0), shown([1.0, "<"]), shown(None)
    ('"a"', '1e-07', '5', '[1,"\\\\u003c"]', 'null')
    """
    match value:
        case str():
            return quoted(value)
        case bool() | int() | float():
            return number_text(value)
        case _:
            return json_text(value)


def number_text(value: int | float) -> str:
    """Write a number or a boolean as error messages show it.

    >>> number_text(100000.0), number_text(1e6), number_text(0.5), number_text(True)
    ('100000', '1e+06', '0.5', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and fits_int64(value):
        return str(value)
    return _float(float(value), smallest=1e-4, largest=1e6)


def _float(value: float, *, smallest: float, largest: float) -> str:
    """Write a float with as few digits as possible.

    Below `smallest` and from `largest` on, it is written with an exponent.
    """
    number = Decimal(repr(value))
    if value == 0 or smallest <= abs(value) < largest:
        text = f"{number:f}"
        return text.rstrip("0").removesuffix(".") if "." in text else text
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    sign, exponent = "-" if value < 0 else "", number.adjusted()
    point = f".{digits[1:]}" if digits[1:] else ""
    return f"{sign}{digits[0]}{point}e{exponent:+03d}"


def json_text(value: Any) -> str:
    """Write a value as JSON, as error messages show objects and lists."""
    match value:
        case dict():
            pairs = (f"{json_text(str(key))}:{json_text(value[key])}" for key in sorted(value))
            return f"{{{','.join(pairs)}}}"
        case list() | tuple():
            return f"[{','.join(map(json_text, value))}]"
        case str():
            return json.dumps(value, ensure_ascii=False).translate(_HTML)
        case None:
            return "null"
        case float():
            return float_text(value).replace("e-0", "e-")
        case _:
            return number_text(value)


def float_text(value: float) -> str:
    """Write a float as Go's JSON encoder does.

    >>> float_text(1e-6), float_text(1e-7), float_text(1e21)
    ('0.000001', '1e-07', '1e+21')
    """
    return _float(value, smallest=1e-6, largest=1e21)


def fits_int64(value: int) -> bool:
    """Report whether an integer fits int64; kube-apiserver reads larger integers as floats."""
    return -(2**63) <= value < 2**63


def as_number(value: int | float) -> int | float:
    """Convert an integer that does not fit int64 to a float, as kube-apiserver does.

    Return other numbers unchanged.
    """
    return value if isinstance(value, float) or fits_int64(value) else float(value)


def is_integral(value: float) -> bool:
    """Report whether a float is an integer, or differs from one only by a rounding error."""
    if not math.isfinite(value) or abs(value) > _LARGEST:
        return False
    rounded = float(round(value))
    if value == rounded:
        return True
    return rounded != 0 and abs(value - rounded) < 1e-9 * abs(rounded)


def same(one: Any, other: Any) -> bool:
    """Report whether two values and their types are equal: 1, 1.0 and true differ.

    >>> same({"a": [1]}, {"a": [1]}), same(1, 1.0), same(True, 1)
    (True, False, False)
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def without_nulls(value: Any) -> Any:
    """Remove each key whose value is null from mappings in plain data. Nulls in lists stay.

    >>> without_nulls({"a": [None, {"b": None}], "c": None})
    {'a': [None, {}]}
    """
    match value:
        case dict():
            return {key: without_nulls(each) for key, each in value.items() if each is not None}
        case list():
            return [without_nulls(each) for each in value]
    return value
