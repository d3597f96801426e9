"""The CEL functions that convert a value to another type, and the function `size`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from polyver.languages.cel._moments import (
    FIRST_SECOND,
    LAST_SECOND,
    duration_text,
    parse_duration,
    parse_timestamp,
    timestamp_text,
)
from polyver.languages.cel._networks import CIDR, IP
from polyver.languages.cel._values import (
    CelDuration,
    CelEvaluationError,
    List,
    Map,
    Timestamp,
    TypeValue,
    Uint,
    type_name,
)
from polyver.languages.values.strings import number_text

__all__ = ["CONVERSIONS", "SIZES", "double_text", "to_text"]

_SECOND = 1_000_000_000


def _cannot(value: Any, wanted: str) -> CelEvaluationError:
    return CelEvaluationError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


def double_text(value: float) -> str:
    """Write a double as Go does.

    >>> [double_text(each) for each in (1.0, 1e21, 1.5e-7, 100000.5, math.inf, -0.0)]
    ['1', '1e+21', '1.5e-07', '100000.5', '+Inf', '-0']
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    return number_text(value)


def to_text(value: Any) -> str:
    """Convert a value to a string."""
    known = _WRITTEN.get(type(value))
    if known is None:
        raise _cannot(value, "string")
    return known(value)


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelEvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


_WRITTEN: dict[type, Callable[[Any], str]] = {
    str: str,
    bool: lambda value: "true" if value else "false",
    int: str,
    Uint: lambda value: str(int(value)),
    float: double_text,
    bytes: _decoded,
    CelDuration: duration_text,
    Timestamp: timestamp_text,
    TypeValue: lambda value: value.name,
    IP: str,
    CIDR: str,
}


def _int_of_text(text: str) -> int:
    if not re.fullmatch("[+-]?[0-9]{1,40}", text) or not -(2**63) <= int(text) < 2**63:
        raise _cannot(text, "int")
    return int(text)


def _uint_of_text(text: str) -> Uint:
    if not re.fullmatch("[0-9]{1,40}", text) or int(text) >= 2**64:
        raise _cannot(text, "uint")
    return Uint(text)


_DOUBLE = re.compile(
    r"[+-]?(?:inf|infinity|nan|(?:[0-9](?:_?[0-9])*\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,9})?)",
    re.IGNORECASE,
)


def _double_of_text(text: str) -> float:
    if text.lower() in ("+nan", "-nan") or not _DOUBLE.fullmatch(text):
        raise _cannot(text, "double")
    found = float(text)
    if math.isinf(found) and "inf" not in text.lower():
        raise _cannot(text, "double")
    return found


_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


def _bool_of_text(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise _cannot(text, "bool")
    return text in _TRUE


def _int_of_double(value: float) -> int:
    if math.isnan(value) or math.isinf(value) or not -(2.0**63) < value < 2.0**63:
        raise CelEvaluationError("integer overflow")
    return math.trunc(value)


def _uint_of_double(value: float) -> Uint:
    if math.isnan(value) or math.isinf(value) or value < 0 or value >= 2.0**64:
        raise CelEvaluationError("unsigned integer overflow")
    return Uint(math.trunc(value))


def _int_of_uint(value: int) -> int:
    if value >= 2**63:
        raise CelEvaluationError("integer overflow")
    return int(value)


def _uint_of_int(value: int) -> Uint:
    if value < 0:
        raise CelEvaluationError("unsigned integer overflow")
    return Uint(value)


def _duration_of_text(text: str) -> CelDuration:
    found = parse_duration(text)
    if found is None:
        raise _cannot(text, "google.protobuf.Duration")
    return found


def _timestamp_of_text(text: str) -> Timestamp:
    found = parse_timestamp(text)
    if found is None:
        raise _cannot(text, "google.protobuf.Timestamp")
    return found


def _timestamp_of_int(value: int) -> Timestamp:
    if not FIRST_SECOND <= value <= LAST_SECOND:
        raise CelEvaluationError("timestamp overflow")
    return Timestamp(value * _SECOND)


def _same(value: Any) -> Any:
    return value


CONVERSIONS: dict[str, Callable[..., Any]] = {
    "bool_to_bool": _same,
    "string_to_bool": _bool_of_text,
    "bytes_to_bytes": _same,
    "string_to_bytes": lambda text: text.encode(),
    "double_to_double": _same,
    "int64_to_double": float,
    "string_to_double": _double_of_text,
    "uint64_to_double": float,
    "duration_to_duration": _same,
    "string_to_duration": _duration_of_text,
    "to_dyn": _same,
    "int64_to_int64": _same,
    "double_to_int64": _int_of_double,
    "duration_to_int64": lambda length: length.nanos,
    "string_to_int64": _int_of_text,
    "timestamp_to_int64": lambda moment: moment.nanos // _SECOND,
    "uint64_to_int64": _int_of_uint,
    "string_to_string": _same,
    "bool_to_string": to_text,
    "bytes_to_string": to_text,
    "double_to_string": to_text,
    "duration_to_string": to_text,
    "int64_to_string": to_text,
    "timestamp_to_string": to_text,
    "uint64_to_string": to_text,
    "ip_to_string": to_text,
    "cidr_to_string": to_text,
    "timestamp_to_timestamp": _same,
    "int64_to_timestamp": _timestamp_of_int,
    "string_to_timestamp": _timestamp_of_text,
    "type": lambda value: TypeValue(type_name(value)),
    "uint64_to_uint64": _same,
    "double_to_uint64": _uint_of_double,
    "int64_to_uint64": _uint_of_int,
    "string_to_uint64": _uint_of_text,
}


def _size(value: str | bytes | List | Map) -> int:
    return len(value)


SIZES: dict[str, Callable[..., Any]] = {
    f"{first}_{second}": _size
    for kind in ("bytes", "list", "map", "string")
    for first, second in (("size", kind), (kind, "size"))
}
