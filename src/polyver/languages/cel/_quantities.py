"""CEL values for Kubernetes quantities such as `500m` and `1Gi`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from polyver.languages.cel._values import CelEvaluationError, Opaque

__all__ = ["QUANTITIES", "Quantity"]

_SHAPE = re.compile(r"([+-]?)([0-9]*)(\.[0-9]*)?([eEinumkKMGTP]*[-+]?[0-9]*)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_WRONG = "quantities must match the regular expression "
_WRONG += "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_MOST = 2**63 - 1
_LONGEST = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Quantity(Opaque):
    """A quantity in nanos (units of 1e-9). Fractions of a nano are rounded up."""

    nanos: int
    scale: int | None = 0
    """The power of ten of the last digit: -3 for `1m`, -1 for `0.1`, 3 for `1k`, and 0 for `1Ki`.

    None if the amount has too many digits or decimals.
    """
    type_name = "kubernetes.Quantity"

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Parse a quantity.

        >>> Quantity.parse("1.5Ki").nanos
        1536000000000
        """
        found = _SHAPE.fullmatch(text)
        if found is None or not text or len(text) > _LONGEST:
            raise CelEvaluationError(_WRONG)
        sign, whole, fraction, suffix = found.groups()
        factor = _factor(suffix)
        if factor is None:
            raise CelEvaluationError("unable to parse quantity's suffix")
        digits = (fraction or "")[1:]
        number = Fraction(int((whole + digits) or 0), 10 ** len(digits)) * factor
        nanos = min(int(-(-number * 10**9 // 1)), _MOST * 10**9)
        return cls(-nanos if sign == "-" else nanos, _scale(whole, digits, suffix))

    def equals(self, other: Opaque) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def compared(self, other: Quantity) -> int:
        return (self.nanos > other.nanos) - (self.nanos < other.nanos)

    def plus(self, other: Quantity, sign: int = 1) -> Quantity:
        nanos = self.nanos + sign * other.nanos
        if not other.nanos:
            return self
        if not self.nanos:
            return Quantity(nanos, other.scale)
        known = self.scale is not None and other.scale is not None
        return Quantity(nanos, min(self.scale or 0, other.scale or 0) if known else None)

    def as_integer(self) -> int | None:
        """Return the quantity as an integer, or None.

        The result is None if the last digit stands for less than 1, as in `1000m` and `1.0`, or if
        the quantity does not fit into a signed 64-bit integer.
        """
        whole, rest = divmod(self.nanos, 10**9)
        if self.scale is None or self.scale < 0 or rest or not -(2**63) <= whole < 2**63:
            return None
        return whole


def _scale(whole: str, digits: str, suffix: str) -> int | None:
    """Return the power of ten of the last digit; None if there are too many digits or decimals."""
    whole = whole.lstrip("0")
    if len(whole) + len(digits) > 18:
        return None
    if suffix in _BINARY:
        return None if digits else 0
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    found = exponent - len(digits)
    return found if found >= -9 else None


def _factor(suffix: str) -> Fraction | None:
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
    except CelEvaluationError:
        return False
    return True


def _as_integer(found: Quantity) -> int:
    whole = found.as_integer()
    if whole is None:
        raise CelEvaluationError("cannot convert value to integer")
    return whole


def _integer_quantity(number: int) -> Quantity:
    return Quantity(number * 10**9)


QUANTITIES: dict[str, Callable[..., Any]] = {
    "string_to_quantity": Quantity.parse,
    "is_quantity_string": _is_quantity,
    "quantity_sign": lambda found: (found.nanos > 0) - (found.nanos < 0),
    "quantity_add": Quantity.plus,
    "quantity_add_int": lambda found, number: found.plus(_integer_quantity(number)),
    "quantity_sub": lambda found, other: found.plus(other, -1),
    "quantity_sub_int": lambda found, number: found.plus(_integer_quantity(number), -1),
    "quantity_get_float": lambda found: found.nanos / 10**9,
    "quantity_get_int": _as_integer,
    "quantity_is_integer": lambda found: found.as_integer() is not None,
    "quantity_is_greater_than": lambda one, other: one.compared(other) > 0,
    "quantity_is_less_than": lambda one, other: one.compared(other) < 0,
    "quantity_compare_to": Quantity.compared,
}
