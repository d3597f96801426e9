"""Checks of numbers: range of the type, minimum, maximum and multipleOf, as in kube-apiserver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyver.kube.objects.schema._errors import ValidationReport
from polyver.languages.values.strings import fits_int64, is_integral, number_text

__all__ = ["NumberConstraints", "read_numbers"]

_LARGEST_FLOAT = 3.4028235677973366e38


@dataclass(frozen=True, slots=True)
class _Limit:
    """A minimum, maximum or multipleOf in a schema."""

    value: float
    fits: bool
    """True if `value` itself is a number of the type and format that the schema states."""
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class NumberConstraints:
    """The constraints of a schema on a number."""

    type: str
    format: str
    multiple: _Limit | None
    least: _Limit | None
    most: _Limit | None

    @property
    def trivial(self) -> bool:
        """True if every integer is valid: the schema has no limits and not the format int32."""
        return not (self.multiple or self.least or self.most) and self.format != "int32"

    def check(self, value: int | float, path: str, report: ValidationReport) -> None:
        if not _in_range(value, self.type, self.format):
            self._out_of_range("Checked", path, report)
        if self.multiple is not None:
            self._check_multiple(self.multiple, value, path, report)
        if self.least is not None:
            self._check_least(self.least, value, path, report)
        if self.most is not None:
            self._check_most(self.most, value, path, report)

    def _out_of_range(self, what: str, path: str, report: ValidationReport) -> None:
        form = f"with format {self.format}" if self.format else "(default format)"
        report.general(f"{what} value must be of type {self.type} {form} in {path}")

    def _comparable(
        self, limit: _Limit, what: str, value: int | float, path: str, report: ValidationReport
    ) -> tuple[int | float, int | float]:
        """Return `value` and the value of `limit`, both as integers or both as floats.

        If the limit does not have the required type, also add an error, in which `what` names the
        limit.
        """
        if not limit.fits:
            self._out_of_range(what, path, report)
            return float(value), limit.value
        if not isinstance(value, int):
            return value, limit.value
        # As in kube-apiserver, a bound outside int64 becomes the smallest integer of int64.
        bound = int(limit.value)
        return value, bound if fits_int64(bound) else -(2**63)

    def _check_multiple(
        self, limit: _Limit, value: int | float, path: str, report: ValidationReport
    ) -> None:
        found, factor = self._comparable(limit, "MultipleOf", value, path, report)
        if factor <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {number_text(factor)}"
            report.invalid(path, factor, text)
        elif not _is_multiple(found, factor):
            text = f"{path} in body should be a multiple of {number_text(factor)}"
            report.invalid(path, found, text)

    def _check_least(
        self, limit: _Limit, value: int | float, path: str, report: ValidationReport
    ) -> None:
        found, least = self._comparable(limit, "Minimum boundary", value, path, report)
        if found < least or (limit.exclusive and found == least):
            words = "greater than" if limit.exclusive else "greater than or equal to"
            report.invalid(path, found, f"{path} in body should be {words} {number_text(least)}")

    def _check_most(
        self, limit: _Limit, value: int | float, path: str, report: ValidationReport
    ) -> None:
        found, most = self._comparable(limit, "Maximum boundary", value, path, report)
        if found > most or (limit.exclusive and found == most):
            words = "less than" if limit.exclusive else "less than or equal to"
            report.invalid(path, found, f"{path} in body should be {words} {number_text(most)}")


def read_numbers(schema: Mapping[str, Any], types: tuple[str, ...], form: str) -> NumberConstraints:
    """Read the constraints on numbers from a schema."""
    kind = types[0] if types in (("integer",), ("number",)) else ""
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(kind, ())
    form = form if form in known else ""

    def limit(name: str, exclusive: str = "") -> _Limit | None:
        value = schema.get(name)
        if value is None:
            return None
        fits = _in_range(float(value), kind, form)
        return _Limit(float(value), fits, bool(schema.get(exclusive)))

    return NumberConstraints(
        kind,
        form,
        limit("multipleOf"),
        limit("minimum", "exclusiveMinimum"),
        limit("maximum", "exclusiveMaximum"),
    )


def _in_range(value: int | float, kind: str, form: str) -> bool:
    if kind == "integer":
        if isinstance(value, float) and not value.is_integer():
            return False
        return -(2**31) <= value < 2**31 if form == "int32" else fits_int64(int(value))
    return form != "float" or abs(value) < _LARGEST_FLOAT


def _is_multiple(value: int | float, factor: int | float) -> bool:
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    return is_integral(1 / factor * value if factor < 1 else value / factor)
