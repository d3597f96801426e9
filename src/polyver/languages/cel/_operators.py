"""CEL operators for arithmetic, comparison and membership; overflows of 64 bits are errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from polyver.languages.cel._moments import FIRST_SECOND, LAST_SECOND
from polyver.languages.cel._values import (
    CelDuration,
    CelEvaluationError,
    Dictionary,
    List,
    Map,
    Timestamp,
    Uint,
    compare,
    equal,
    no_overload,
    type_name,
)

__all__ = ["INSERTS", "OPERATORS", "fits", "index_of"]

_SECOND = 1_000_000_000
_LEAST, _MOST = FIRST_SECOND * _SECOND, (LAST_SECOND + 1) * _SECOND


def fits(number: int) -> int:
    """Return the integer; raise `CelEvaluationError` if it does not fit into signed 64 bits."""
    if not -(2**63) <= number < 2**63:
        raise CelEvaluationError("integer overflow")
    return number


def _unsigned(number: int) -> Uint:
    if not 0 <= number < 2**64:
        raise CelEvaluationError("unsigned integer overflow")
    return Uint(number)


def _length(nanos: int) -> CelDuration:
    if not -(2**63) <= nanos < 2**63:
        raise CelEvaluationError("integer overflow")
    return CelDuration(nanos)


def _moment(nanos: int, offset: int) -> Timestamp:
    if not _LEAST <= nanos < _MOST:
        raise CelEvaluationError("timestamp overflow")
    return Timestamp(nanos, offset)


def _lacks(function: str, value: Any) -> CelEvaluationError:
    """Build the error for an operand of a type that the operator does not support.

    For operands of some types, the error does not name the operator.
    """
    if isinstance(value, str | CelDuration | Timestamp):
        return no_overload()
    return CelEvaluationError(f"no such overload: {function}")


def _plus(one: Any, other: Any) -> Any:
    return one + other


def _add(one: Any, other: Any) -> Any:
    match one, other:
        case Timestamp(), CelDuration():
            return _moment(one.nanos + other.nanos, one.offset)
        case CelDuration(), Timestamp():
            return _moment(one.nanos + other.nanos, other.offset)
        case CelDuration(), CelDuration():
            return _length(one.nanos + other.nanos)
        case List(), _:
            return one.plus(other)
        case (str(), str()) | (bytes(), bytes()):
            return _plus(one, other)
    return _arithmetic(one, other, _plus, "_+_")


def _subtract(one: Any, other: Any) -> Any:
    match one, other:
        case Timestamp(), CelDuration():
            return _moment(one.nanos - other.nanos, one.offset)
        case Timestamp(), Timestamp():
            return _length(one.nanos - other.nanos)
        case CelDuration(), CelDuration():
            return _length(one.nanos - other.nanos)
    return _arithmetic(one, other, lambda a, b: a - b, "_-_")


def _multiply(one: Any, other: Any) -> Any:
    return _arithmetic(one, other, lambda a, b: a * b, "_*_")


_ADDED = (str, bytes, List, CelDuration, Timestamp)


def _arithmetic(one: Any, other: Any, made: Callable[[Any, Any], Any], name: str) -> Any:
    if isinstance(one, bool) or not isinstance(one, int | float):
        known = (name == "_+_" and isinstance(one, _ADDED)) or (
            name == "_-_" and isinstance(one, CelDuration | Timestamp)
        )
        raise no_overload() if known else _lacks(name, one)
    if type(one) is not type(other):
        raise no_overload()
    if isinstance(one, float):
        return _rounded(one, other, made)
    found = made(int(one), int(other))
    return _unsigned(found) if isinstance(one, Uint) else fits(found)


def _rounded(one: float, other: float, made: Callable[[Any, Any], Any]) -> float:
    return float(made(one, other))


def _divide(one: Any, other: Any) -> Any:
    if isinstance(one, float) and isinstance(other, float):
        return _quotient(one, other)
    return _integer_operation(one, other, "_/_", "division by zero", _truncated)


def _quotient(one: float, other: float) -> float:
    if other:
        return one / other
    if not one or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, other)


def _truncated(one: int, other: int) -> int:
    found = abs(one) // abs(other)
    return found if (one < 0) is (other < 0) else -found


def _modulo(one: Any, other: Any) -> Any:
    def rest(a: int, b: int) -> int:
        if a == -(2**63) and b == -1:
            raise CelEvaluationError("integer overflow")
        return a - b * _truncated(a, b)

    return _integer_operation(one, other, "_%_", "modulus by zero", rest)


def _integer_operation(
    one: Any, other: Any, name: str, by_zero: str, made: Callable[[int, int], int]
) -> Any:
    if isinstance(one, bool) or not isinstance(one, int | float):
        raise _lacks(name, one)
    if type(one) is not type(other) or (isinstance(one, float) and name == "_%_"):
        raise no_overload() if not isinstance(one, float) else _lacks(name, one)
    if not other:
        raise CelEvaluationError(by_zero)
    found = made(int(one), int(other))
    return _unsigned(found) if isinstance(one, Uint) else fits(found)


def _negate(value: Any) -> Any:
    match value:
        case bool() | Uint():
            raise _lacks("-_", value)
        case float():
            return -value
        case int():
            return fits(-value)
    raise _lacks("-_", value)


def _not(value: Any) -> bool:
    if not isinstance(value, bool):
        raise no_overload()
    return not value


def _ordered(holds: Callable[[int], bool], name: str) -> Callable[[Any, Any], bool]:
    def check(one: Any, other: Any) -> bool:
        if isinstance(one, List | Map) or one is None:
            raise _lacks(name, one)
        return holds(compare(one, other))

    return check


def _in(value: Any, inside: Any) -> bool:
    if isinstance(inside, List):
        return inside.contains(value)
    if isinstance(inside, Map):
        return inside.find(value)[1]
    raise no_overload()


def index_of(value: Any) -> int:
    """Convert a number to a list index; raise `CelEvaluationError` for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CelEvaluationError(f"unsupported index type '{type_name(value)}' in list")
    if isinstance(value, float) and not value.is_integer():
        raise CelEvaluationError(f"unsupported index value {value:g} in list")
    return int(value)


def _insert(found: Dictionary, key: Any, value: Any) -> Dictionary:
    if found.find(key)[1]:
        raise CelEvaluationError(f"insert failed: key {key} already exists")
    return found.plus(key, value)


def _insert_all(found: Dictionary, other: Map) -> Dictionary:
    for key in other:
        found = _insert(found, key, other.find(key)[0])
    return found


OPERATORS: dict[str, Callable[..., Any]] = {
    "_+_": _add,
    "_-_": _subtract,
    "_*_": _multiply,
    "_/_": _divide,
    "_%_": _modulo,
    "-_": _negate,
    "!_": _not,
    "_==_": equal,
    "_!=_": lambda one, other: not _same(one, other),
    "_<_": _ordered(lambda found: found < 0, "_<_"),
    "_<=_": _ordered(lambda found: found <= 0, "_<=_"),
    "_>_": _ordered(lambda found: found > 0, "_>_"),
    "_>=_": _ordered(lambda found: found >= 0, "_>=_"),
    "@in": _in,
}


def _same(one: Any, other: Any) -> bool:
    """Report whether two values are equal; values that cannot be compared are not equal."""
    try:
        return equal(one, other)
    except CelEvaluationError:
        return False


INSERTS: dict[str, Callable[..., Any]] = {
    "@mapInsert_map_key_value": _insert,
    "@mapInsert_map_map": _insert_all,
}
