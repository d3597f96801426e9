"""Conversion rules for strings that stand for a number, or for a list of strings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

from polyver.apis.conversion.rules import (
    ConversionRule,
    InvalidRule,
    Ports,
    SingleFieldRule,
)
from polyver.apis.conversion.values import MISSING, Type, fits_64_bits, scaled
from polyver.core import listed
from polyver.core.plain import Schema
from polyver.languages.values.canonical_values import (
    is_binary_unit,
    quantity_amount,
    quantity_text,
    quantity_unit,
)
from polyver.languages.values.durations import UNITS, duration_text, nanoseconds, short_duration

__all__ = ["DurationRule", "JoinRule", "NumberTextRule", "QuantityRule", "TypedRule"]


Place = tuple[str | None, ...]


class TypedRule(ConversionRule):
    """A rule that determines the types of its fields, or of the fields inside of them."""

    @abstractmethod
    def samples(self) -> Iterator[Any]:
        """Yield strings and numbers that this rule converts in different ways, for tests."""

    def copies(self) -> Iterator[tuple[Place, Place]]:
        """Yield the paths of values that the rule copies without a change.

        The first path is in the version `from`, and the second path in the version `to`. None
        stands for all items of a list.
        """
        yield from ()

    def is_exact(self, schema: Schema, *, back: bool) -> bool:  # noqa: ARG002 - used by subclasses
        """Report whether the rule converts, without loss, each value that a schema allows."""
        return False


@dataclass(frozen=True, eq=False)
class NumberTextRule(TypedRule, SingleFieldRule):
    """Base class of rules for a string that stands for a number of units."""

    types: tuple[Type, Type]
    """The type in the version `from`, and the type in the version `to`. One of them is string."""
    unit: Fraction
    form: str

    @abstractmethod
    def amount(self, value: Any) -> Fraction | None:
        """Return the number for which a string stands; None if it stands for no number."""

    @abstractmethod
    def text(self, amount: Fraction) -> str:
        """Write a number of at most 64 bits as a string."""

    @abstractmethod
    def number(self, amount: Fraction, kind: Type) -> Any:
        """Return a number of units with a type; MISSING if the type has no such number."""

    def run(self, values: Ports, *, back: bool) -> Ports:
        kind = self.types[0 if back else 1]
        if kind != "string":
            amount = self.amount(values[0])
            return (MISSING if amount is None else self.number(amount / self.unit, kind),)
        amount = _exact(values[0])
        if amount is None or abs(amount * self.unit) > _MOST:
            return (MISSING,)
        return (self.text(amount * self.unit),)

    def schemas(self, *, back: bool) -> tuple[Schema, ...]:
        return ({"type": self.types[1 if back else 0]},)

    def is_exact(self, schema: Schema, *, back: bool) -> bool:
        if self.types[1 if back else 0] != "integer" or schema.get("type") != "integer":
            return False
        return fits_64_bits(schema, max(self.unit, Fraction(1)))


_MOST: Final = 2**63 - 1


def _exact(value: Any) -> Fraction | None:
    """Return a number as it is written in decimal notation; None if the value is no number."""
    if type(value) is float and abs(value) < 1e300:
        return Fraction(repr(value))
    return Fraction(value) if type(value) is int else None


@dataclass(frozen=True, eq=False)
class DurationRule(NumberTextRule):
    """Converts a duration such as `1m30s` to a number of time units such as seconds, and back."""

    name: ClassVar[str] = "duration"

    @classmethod
    def check(cls, unit: str, form: str) -> Fraction:
        """Return the number of nanoseconds of a unit; raise an error for unknown arguments."""
        if unit not in UNITS:
            raise InvalidRule(
                f"{unit!r} is not a unit of durations", hint=f"known: {listed([*UNITS])}"
            )
        if form not in ("go", "short"):
            raise InvalidRule(f"{form!r} is not a form of durations", hint="known: go, short")
        return Fraction(UNITS[unit])

    def amount(self, value: Any) -> Fraction | None:
        nanos = nanoseconds(value) if type(value) is str else None
        return None if nanos is None else Fraction(nanos)

    def text(self, amount: Fraction) -> str:
        text = duration_text(int(amount))
        return short_duration(text) if self.form == "short" else text

    def number(self, amount: Fraction, kind: Type) -> Any:
        return scaled(1, amount, kind)

    def samples(self) -> Iterator[Any]:
        yield from ("5m", "5m0s", "1h30m0s", "1500ms", "-2s", "0", "1d", "0.5s")
        yield from (duration_text(int(self.unit)), 0, 1, 90, 300, -1, 1.5, 2**62)


@dataclass(frozen=True, eq=False)
class QuantityRule(NumberTextRule):
    """Converts a Kubernetes quantity such as `1Gi` or `500m` to a number of units, and back."""

    name: ClassVar[str] = "quantity"

    @classmethod
    def check(cls, unit: str, form: str) -> tuple[Fraction, str]:
        """Return the number for which a unit stands, and the form of the quantities to write.

        Raise an error for unknown arguments.
        """
        factor = quantity_unit(unit)
        if factor is None:
            raise InvalidRule(
                f"{unit!r} is not a unit of quantities", hint="write a suffix such as m, k, Ki, Gi"
            )
        if form not in ("", "decimal", "binary"):
            raise InvalidRule(
                f"{form!r} is not a form of quantities", hint="known: decimal, binary"
            )
        return factor, form or ("binary" if is_binary_unit(unit) else "decimal")

    def amount(self, value: Any) -> Fraction | None:
        return quantity_amount(value) if type(value) is str else _exact(value)

    def text(self, amount: Fraction) -> str:
        return quantity_text(amount, binary=self.form == "binary")

    def number(self, amount: Fraction, kind: Type) -> Any:
        if kind == "integer":  # as Kubernetes rounds quantities: away from zero
            up = -(-abs(amount) // 1)
            amount = Fraction(-up if amount < 0 else up)
        return scaled(1, amount, kind)

    def samples(self) -> Iterator[Any]:
        yield from ("1", "500m", "1Gi", "1024Mi", "1.5Gi", "1e3", "0.1", "-1k", "1 Gi", "")
        yield from (quantity_text(self.unit, binary=self.form == "binary"), 0, 1, 1500, -1, 0.5)


@dataclass(frozen=True, eq=False)
class JoinRule(TypedRule, SingleFieldRule):
    """Joins a list of strings of the version `from` to one string, and splits it again."""

    separator: str
    name: ClassVar[str] = "join"

    def run(self, values: Ports, *, back: bool) -> Ports:
        value = values[0]
        if back:
            if type(value) is not str:
                return (MISSING,)
            return (value.split(self.separator) if value else [],)
        if type(value) is not list or any(type(item) is not str for item in value):
            return (MISSING,)
        return (self.separator.join(value),)

    def schemas(self, *, back: bool) -> tuple[Schema, ...]:
        text = {"type": "string"}
        return (text if back else {"type": "array", "items": text},)

    def is_exact(self, schema: Schema, *, back: bool) -> bool:
        return back and schema.get("type") == "string"

    def samples(self) -> Iterator[Any]:
        yield from ("", "a", self.separator, f"a{self.separator}b", f"a{self.separator * 2}")
