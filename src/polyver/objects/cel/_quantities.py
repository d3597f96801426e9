"""Amounts of resources such as `500m` and `1Gi`, which Kubernetes reads exactly."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from polyver.objects.cel._values import Failure, Opaque

__all__ = ["QUANTITIES", "Quantity"]

_SHAPE = re.compile(r"([+-]?)([0-9]*)(\.[0-9]*)?(.*)", re.DOTALL)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_WRONG = "quantities must match the regular expression "
_WRONG += "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_MOST = 2**63 - 1
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Quantity(Opaque):
    """An amount; what is smaller than a nano is rounded up."""

    nanos: int
    type_name = "kubernetes.Quantity"

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read an amount.

        >>> Quantity.parse("1.5Ki").nanos
        1536000000000
        """
        found = _SHAPE.fullmatch(text)
        assert found is not None
        sign, whole, fraction, suffix = found.groups()
        digits = (fraction or "")[1:]
        if not text or len(text) > _LONGEST or not (whole or fraction):
            raise Failure(_WRONG if text != "" and not suffix else _WRONG)
        if not re.fullmatch(r"[eEinumkKMGTP]*[-+]?[0-9]*", suffix):
            raise Failure(_WRONG)
        scale = _scale(suffix)
        if scale is None:
            raise Failure("unable to parse quantity's suffix")
        if not whole and not digits and not fraction:
            raise Failure("unable to parse numeric part of quantity")
        number = Fraction(int((whole or "0") + digits or 0), 10 ** len(digits)) * scale
        nanos = -(-number * 10**9 // 1)
        nanos = min(int(nanos), _MOST * 10**9)
        return cls(-nanos if sign == "-" else nanos)

    def compared(self, other: Quantity) -> int:
        return (self.nanos > other.nanos) - (self.nanos < other.nanos)

    def as_integer(self) -> int | None:
        whole, rest = divmod(self.nanos, 10**9)
        return None if rest or not -(2**63) <= whole < 2**63 else whole


def _scale(suffix: str) -> Fraction | None:
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix]
    if suffix in _BINARY:
        return Fraction(2 ** _BINARY[suffix])
    exponent = re.fullmatch(r"[eE]([+-]?[0-9]{1,9})", suffix)
    if exponent is None:
        return None
    return Fraction(10) ** max(min(int(exponent[1]), 400), -400)


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except Failure:
        return False
    return True


def _as_integer(found: Quantity) -> int:
    whole = found.as_integer()
    if whole is None:
        raise Failure("cannot convert value to integer")
    return whole


def _whole(number: int) -> Quantity:
    return Quantity(number * 10**9)


def _add(one: Quantity, other: Quantity) -> Quantity:
    return Quantity(one.nanos + other.nanos)


def _sub(one: Quantity, other: Quantity) -> Quantity:
    return Quantity(one.nanos - other.nanos)


QUANTITIES: dict[str, Callable[..., Any]] = {
    "string_to_quantity": Quantity.parse,
    "is_quantity_string": _is_quantity,
    "quantity_sign": lambda found: (found.nanos > 0) - (found.nanos < 0),
    "quantity_add": _add,
    "quantity_add_int": lambda found, number: _add(found, _whole(number)),
    "quantity_sub": _sub,
    "quantity_sub_int": lambda found, number: _sub(found, _whole(number)),
    "quantity_get_float": lambda found: found.nanos / 10**9,
    "quantity_get_int": _as_integer,
    "quantity_is_integer": lambda found: found.as_integer() is not None,
    "quantity_is_greater_than": lambda one, other: one.compared(other) > 0,
    "quantity_is_less_than": lambda one, other: one.compared(other) < 0,
    "quantity_compare_to": Quantity.compared,
}
