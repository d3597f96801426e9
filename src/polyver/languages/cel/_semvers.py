"""CEL values for semantic versions, parsed as by the CEL library of Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyver.languages.cel._values import CelEvaluationError, Opaque
from polyver.languages.values.strings import quoted

__all__ = ["SEMVERS", "Semver"]

_NUMBERS = ("Major", "Minor", "Patch")


@dataclass(frozen=True, slots=True)
class Semver(Opaque):
    """A semantic version without its build metadata, which comparisons ignore."""

    numbers: tuple[int, int, int]
    pre: tuple[str, ...] = ()
    type_name = "kubernetes.Semver"

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        return f"{text}-{'.'.join(self.pre)}" if self.pre else text

    def compared(self, other: Semver) -> int:
        """Return -1, 0 or 1 if this version is lower than, equal to or higher than another."""
        one, two = self._order(), other._order()
        return (one > two) - (one < two)

    def _order(self) -> tuple[Any, ...]:
        parts = tuple((0, int(each), "") if each.isdigit() else (1, 0, each) for each in self.pre)
        return (self.numbers, not self.pre, parts)


def read(text: str) -> Semver:
    """Parse a full version."""
    if not text:
        raise CelEvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelEvaluationError("No Major.Minor.Patch elements found")
    last, _, build = parts[2].partition("+")
    patch, dash, pre = last.partition("-")
    found = [_number(name, each) for name, each in zip(_NUMBERS, (*parts[:2], patch), strict=True)]
    named = tuple(_pre(each) for each in pre.split(".")) if dash else ()
    for each in build.split(".") if "+" in parts[2] else ():
        if not each:
            raise CelEvaluationError("Build meta data is empty")
        if not re.fullmatch("[0-9A-Za-z-]+", each):
            raise CelEvaluationError(
                f"Invalid character(s) found in build meta data {quoted(each)}"
            )
    return Semver((found[0], found[1], found[2]), named)


def _number(name: str, text: str) -> int:
    if not re.fullmatch("[0-9]*", text):
        raise CelEvaluationError(
            f"Invalid character(s) found in {name.lower()} number {quoted(text)}"
        )
    if len(text) > 1 and text.startswith("0"):
        raise CelEvaluationError(f"{name} number must not contain leading zeroes {quoted(text)}")
    if not text:
        raise CelEvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if int(text[:30]) >= 2**64:
        raise CelEvaluationError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return int(text)


def _pre(text: str) -> str:
    if not text:
        raise CelEvaluationError("Prerelease is empty")
    if text.isascii() and text.isdigit():
        if len(text) > 1 and text.startswith("0"):
            raise CelEvaluationError(
                f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}"
            )
    elif not re.fullmatch("[0-9A-Za-z-]+", text):
        raise CelEvaluationError(f"Invalid character(s) found in prerelease {quoted(text)}")
    return text


def _read_loose(text: str, loose: bool) -> Semver:
    return read(_completed(text)) if loose else read(text)


def _completed(text: str) -> str:
    """Write a version with three numbers, without a leading v and without leading zeros."""
    parts = [_stripped(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise CelEvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3] if len(parts) < 3 else parts)


def _stripped(part: str) -> str:
    if len(part) < 2:
        return part
    rest = part.lstrip("0")
    return rest if rest[:1].isdigit() else f"0{rest}"


def _is(text: str, loose: bool = False) -> bool:
    try:
        _read_loose(text, loose)
    except CelEvaluationError:
        return False
    return True


SEMVERS: dict[str, Callable[..., Any]] = {
    "string_to_semver": read,
    "string_bool_to_semver": _read_loose,
    "is_semver_string": _is,
    "is_semver_string_bool": _is,
    "semver_major": lambda found: found.numbers[0],
    "semver_minor": lambda found: found.numbers[1],
    "semver_patch": lambda found: found.numbers[2],
    "semver_is_greater_than": lambda one, other: one.compared(other) > 0,
    "semver_is_less_than": lambda one, other: one.compared(other) < 0,
    "semver_compare_to": Semver.compared,
}
