"""Plain values: fingerprints, and casts from one type to another.

A cast returns the same value in another type. If this type cannot express the value, the cast
returns the nearest value. To find out whether a cast was exact, a caller casts the result back and
compares it with the original value.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from enum import Enum
from fractions import Fraction
from typing import Any, Final, Literal

import msgspec

from polyver.core.plain import Schema
from polyver.kube.objects.codec import encode_sorted

__all__ = ["MISSING", "TYPES", "Missing", "Type", "cast", "fingerprint", "fits_64_bits", "scaled"]

Type = Literal["string", "integer", "number", "boolean"]
TYPES: Final[tuple[Type, ...]] = ("string", "integer", "number", "boolean")

_LEAST, _MOST = -(2**63), 2**63 - 1
_WHOLE: Final = re.compile(r"\s*[+-]?[0-9]{1,19}\s*", re.ASCII)
_NUMBER: Final = re.compile(
    r"\s*[+-]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?\s*", re.ASCII
)


class Missing(Enum):
    """The value MISSING, which stands for a field that does not exist. It differs from null."""

    MISSING = 0


MISSING: Final = Missing.MISSING


def fingerprint(values: Sequence[Any]) -> str:
    """Return a hash of values to detect changes; a value may be MISSING.

    >>> fingerprint([1, MISSING]) == fingerprint([1.0, MISSING]) != fingerprint([1, None])
    True
    """
    plain = [[] if value is MISSING else [_settled(value)] for value in values]
    return hashlib.blake2b(encode_sorted(plain), digest_size=9).hexdigest()


def _settled(value: Any) -> Any:
    """Return a value in the form in which an API server may write it: 1.0 becomes 1."""
    if type(value) is dict:
        return {key: _settled(each) for key, each in value.items()}
    if type(value) is list:
        return [_settled(each) for each in value]
    return int(value) if type(value) is float and value.is_integer() else value


def cast(value: Any, source: Type, target: Type) -> Any:
    """Convert a value to another type; if that is impossible, to the nearest value or to MISSING.

    >>> cast("8080", "string", "integer"), cast("08080", "string", "integer")
    (8080, 8080)
    >>> cast("abc", "string", "integer")
    <Missing.MISSING: 0>
    """
    if not _is(value, source):
        return MISSING
    if source == target:
        return value
    return _CASTS[target](value)


def _is(value: Any, kind: Type) -> bool:
    match kind:
        case "string":
            return type(value) is str
        case "boolean":
            return type(value) is bool
        case "integer":
            return type(value) is int
        case "number":
            return type(value) in (int, float)


def _text(value: Any) -> Any:
    return msgspec.json.encode(value).decode()


def _integer(value: Any) -> Any:
    if type(value) is str:
        if not _WHOLE.fullmatch(value):
            return MISSING
        value = int(value)
    if type(value) is float and not _LEAST <= value <= _MOST:
        return MISSING
    value = int(value)
    return value if _LEAST <= value <= _MOST else MISSING


def _decimal(value: Any) -> Any:
    if type(value) is not str:
        return int(value) if type(value) is bool else value
    if not _NUMBER.fullmatch(value):
        return MISSING
    if _WHOLE.fullmatch(value):
        return _integer(value)
    return float(value)


def _boolean(value: Any) -> Any:
    if type(value) is str:
        return {"true": True, "false": False}.get(value, MISSING)
    return bool(value) if value in (0, 1) else MISSING


_CASTS: Final = {"string": _text, "integer": _integer, "number": _decimal, "boolean": _boolean}


def scaled(value: Any, factor: Fraction, target: Type) -> Any:
    """Multiply a number by a factor; round towards zero if the result must be an integer.

    >>> scaled(1500, Fraction(1, 1000), "integer"), scaled(1500, Fraction(1, 1000), "number")
    (1, 1.5)
    """
    if type(value) is float:
        # Use the decimal notation: 0.1 then is exactly one tenth, and not the nearest
        # floating-point number.
        exact = Fraction(repr(value)) if abs(value) < 1e300 else None
    else:
        exact = Fraction(value) if type(value) is int else None
    if exact is None:
        return MISSING
    exact *= factor
    if exact.denominator == 1 or target == "integer":
        whole = int(exact)
        return whole if _LEAST <= whole <= _MOST else MISSING
    try:
        return float(exact)
    except OverflowError:
        return MISSING


def fits_64_bits(schema: Schema, factor: Fraction) -> bool:
    """Report whether each product of the factor and a number that a schema allows fits 64 bits.

    >>> fits_64_bits({"type": "integer", "maximum": 100, "minimum": 0}, Fraction(1000))
    True
    """
    if schema.get("type") == "number":
        return False
    bits = 31 if schema.get("format") == "int32" else 63
    least, most = schema.get("minimum", -(2**bits)), schema.get("maximum", 2**bits - 1)
    return bool(least * factor >= _LEAST and most * factor <= _MOST)
