"""Template functions for numbers: 64-bit integers, floats, decimals and sequences."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

from polyver.languages.gotemplate._budget import RenderBudget
from polyver.languages.gotemplate._functions import FunctionTable
from polyver.languages.gotemplate._printing import float_text, printed
from polyver.languages.gotemplate._tokens import parse_float, parse_int
from polyver.languages.gotemplate._values import Int, Ints, TemplateFailure, wrapped

__all__ = ["MATH", "to_float", "to_integer"]

MATH = FunctionTable("numbers")


def to_integer(value: object) -> int:
    """Convert any value to an integer; a value that cannot be converted becomes 0.

    >>> to_integer("12.0"), to_integer(2.9), to_integer(True), to_integer("x"), to_integer("0x10")
    (12, 2, 1, 0, 16)
    """
    match value:
        case bool() | int():
            return wrapped(int(value))
        case float():
            return _truncated(value)
        case str():
            return parse_int(_without_zeros(value)) or 0
    return 0


def _truncated(value: float) -> int:
    if not math.isfinite(value) or not -(2.0**63) <= value < 2.0**63:
        return -(2**63)
    return int(value)


def _without_zeros(text: str) -> str:
    shorter = text.rstrip("0")
    return shorter[:-1] if shorter.endswith(".") and shorter != text else text


def to_float(value: object) -> float:
    """Convert any value to a float; a value that is not a number becomes 0."""
    match value:
        case bool() | int() | float():
            return float(value)
        case str():
            number = parse_float(value)
            return 0.0 if number is None else number
    return 0.0


MATH.put("int64", "any", to_integer)
MATH.put("int", "any", lambda value: Int(to_integer(value)))
MATH.put("float64", "any", to_float)
MATH.put("add", "any...", lambda *values: wrapped(sum(map(to_integer, values))))
MATH.put("add1", "any", lambda value: wrapped(to_integer(value) + 1))
MATH.put("sub", "any any", lambda one, other: wrapped(to_integer(one) - to_integer(other)))
MATH.put("max biggest", "any any...", lambda *values: max(map(to_integer, values)))
MATH.put("min", "any any...", lambda *values: min(map(to_integer, values)))
MATH.put("floor", "any", lambda value: _integral_float(math.floor, value))
MATH.put("ceil", "any", lambda value: _integral_float(math.ceil, value))


@MATH.add("atoi", "string")
def _atoi(text: str) -> Int:
    """Parse a decimal integer; anything else becomes 0."""
    sign = text[:1] in ("+", "-")
    digits = text[1:] if sign else text
    if not (digits.isascii() and digits.isdecimal()):
        return Int(0)
    # A number that is too large becomes the nearest 64-bit integer.
    number = int(digits[:30]) * (-1 if text[0] == "-" else 1)
    return Int(max(-(2**63), min(number, 2**63 - 1)))


@MATH.add("mul", "any any...")
def _product(*values: object) -> int:
    result = 1
    for value in values:
        result = wrapped(result * to_integer(value))
    return result


def _quotient(one: int, other: int) -> int:
    if other == 0:
        raise TemplateFailure("runtime error: integer divide by zero")
    result = abs(one) // abs(other)
    return result if (one < 0) == (other < 0) else -result


@MATH.add("div", "any any")
def _divided(one: object, other: object) -> int:
    return wrapped(_quotient(to_integer(one), to_integer(other)))


@MATH.add("mod", "any any")
def _rest(one: object, other: object) -> int:
    first, second = to_integer(one), to_integer(other)
    return first - _quotient(first, second) * second


def _integral_float(rounded: Callable[[float], int], value: object) -> float:
    number = to_float(value)
    if not math.isfinite(number):
        return number
    return math.copysign(float(rounded(number)), number)


@MATH.add("round", "any int float64...")
def _round(value: object, places: int, *on: float) -> float:
    edge = on[0] if on else 0.5
    number = to_float(value)
    try:
        power = math.pow(10, places)
    except OverflowError:
        power = math.inf
    shifted = power * number
    if not math.isfinite(shifted) or power == 0:
        return math.nan if power in (0, math.inf) else shifted
    fraction = math.modf(shifted)[0]
    whole = math.ceil(shifted) if fraction >= edge else math.floor(shifted)
    return math.copysign(float(whole), shifted) / power


@MATH.add("toDecimal", "any", budgeted=True)
def _from_octal(budget: RenderBudget, value: object) -> int:
    text = printed(value, budget)
    if len(text) > 40 or not text or text.strip("+-01234567"):
        return 0
    try:
        number = int(text, 8)
    except ValueError:
        return 0
    return number if -(2**63) <= number < 2**63 else 0


# Floats, computed as decimals


def _decimals(operation: Callable[[Decimal, Decimal], Decimal]) -> Callable[..., float]:
    def compute(first: object, *others: object) -> float:
        with localcontext() as context:
            context.prec = 2000
            result = _decimal(first)
            for other in others:
                result = operation(result, _decimal(other))
            return float(result) + 0.0  # turns -0.0 into 0.0

    return compute


def _decimal(value: object) -> Decimal:
    number = to_float(value)
    if not math.isfinite(number):
        raise TemplateFailure(f"Cannot create a Decimal from {float_text(number)}")
    return Decimal(repr(number))


def _decimal_quotient(one: Decimal, other: Decimal) -> Decimal:
    if other == 0:
        raise TemplateFailure("decimal division by 0")
    # sprig rounds decimals to sixteen digits after the point.
    return (one / other).quantize(Decimal("1e-16"), rounding="ROUND_HALF_UP")


_ADD: Callable[..., float] = _decimals(lambda one, other: one + other)
MATH.put("addf", "any...", lambda *values: _ADD(0.0, *values))
MATH.put("add1f", "any", lambda value: _ADD(value, 1))
MATH.put("subf", "any any...", _decimals(lambda one, other: one - other))
MATH.put("mulf", "any any...", _decimals(lambda one, other: one * other))
MATH.put("divf", "any any...", _decimals(_decimal_quotient))
MATH.put("maxf", "any any...", lambda *values: _extreme(max, values))
MATH.put("minf", "any any...", lambda *values: _extreme(min, values))


def _extreme(choose: Callable[..., float], values: tuple[object, ...]) -> float:
    numbers = [to_float(value) for value in values]
    return math.nan if any(map(math.isnan, numbers)) else choose(numbers)


# Sequences


def _steps(budget: RenderBudget, start: int, stop: int, step: int) -> Ints:
    if step == 0 or (stop < start) != (step < 0):
        return Ints()
    budget.spend(abs(stop - start) // abs(step))
    return Ints(map(Int, range(int(start), int(stop), int(step))))


@MATH.add("until", "int", budgeted=True)
def _until(budget: RenderBudget, count: int) -> Ints:
    return _steps(budget, 0, count, -1 if count < 0 else 1)


MATH.add("untilStep", "int int int", budgeted=True)(_steps)


@MATH.add("seq", "int...", budgeted=True)
def _sequence(budget: RenderBudget, *given: Any) -> str:
    match given:
        case [end]:
            start, step = 1, -1 if end < 1 else 1
        case [start, end]:
            step = -1 if end < start else 1
        case [start, step, end]:
            if end < start and step > 0:
                return ""
        case _:
            return ""
    beyond = end + (-1 if end < start else 1)
    numbers = _steps(budget, int(start), int(beyond), int(step))
    budget.hold(len(numbers) * 20)
    return " ".join(str(int(number)) for number in numbers)
