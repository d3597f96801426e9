"""Semantic versions and version constraints, as in sprig."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from polyver.core import SemVer
from polyver.languages.gotemplate._values import TemplateFailure, Version

__all__ = ["compared", "parse_version", "satisfies"]

_TAIL = r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
_VERSION = re.compile(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?{_TAIL}")
_OPERATORS = r"(=>|=<|>=|<=|!=|~>|=|>|<|~|\^|)"
_PARTIAL = rf"v?([0-9|xX*]+)(?:\.([0-9|xX*]+))?(?:\.([0-9|xX*]+))?{_TAIL}"
_CONSTRAINT = re.compile(rf"\s*{_OPERATORS}\s*{_PARTIAL}\s*")
_RANGE = re.compile(rf"\s*({_PARTIAL})\s+-\s+({_PARTIAL})\s*")
_LONGEST: Final = 240  # `SemVer` accepts 256 characters, so zeros can be added


def parse_version(text: str) -> Version:
    """Parse a version. It may have a leading `v`, and fewer than three numbers: `v1.2`."""
    found = _VERSION.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None or any(len(found[each] or "") > 19 for each in (1, 2, 3)):
        raise TemplateFailure("Invalid Semantic Version")
    numbers = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    pre = found[4] or ""
    _check(pre)
    return Version(numbers, pre, found[5] or "", text)


def _check(pre: str) -> None:
    if any(re.fullmatch("0[0-9]+", part) for part in pre.split(".")):
        raise TemplateFailure("Version segment starts with 0")


def compared(one: Version, other: Version) -> int:
    """Return -1, 0 or 1 if a version is lower than, equal to or higher than another."""
    first, second = (SemVer.parse(str(version)) for version in (one, other))
    return (first > second) - (first < second)


@dataclass(frozen=True, slots=True)
class _Constraint:
    operator: str
    version: Version
    depth: int
    """The number of version parts in the constraint: 2 for `1.2`, 0 for `*`."""

    def check(self, version: Version) -> bool:
        if version.pre and not self.version.pre and (self.operator != "!=" or self.depth < 3):
            return False
        return _CHECKS[self.operator](self, version)

    def _compare(self, version: Version) -> int:
        return compared(version, self.version)


def _equal(wanted: _Constraint, version: Version) -> bool:
    return _tilde(wanted, version) if wanted.depth < 3 else wanted._compare(version) == 0


def _not_equal(wanted: _Constraint, version: Version) -> bool:
    if wanted.depth == 3:
        return wanted._compare(version) != 0
    if wanted.depth == 0:
        # If the constraint has no number, only 0.0.0 counts as equal.
        return version.numbers != (0, 0, 0)
    same = version.numbers[: wanted.depth] == wanted.version.numbers[: wanted.depth]
    if same and wanted.depth == 2 and (version.pre or wanted.version.pre):
        return version.pre != wanted.version.pre
    return not same


def _greater(wanted: _Constraint, version: Version) -> bool:
    if wanted.depth in (1, 2):
        return version.numbers[: wanted.depth] > wanted.version.numbers[: wanted.depth]
    return wanted._compare(version) > 0


def _at_most(wanted: _Constraint, version: Version) -> bool:
    if wanted.depth == 3:
        return wanted._compare(version) <= 0
    depth = 1 if wanted.depth == 1 else 2
    return version.numbers[:depth] <= wanted.version.numbers[:depth]


def _tilde(wanted: _Constraint, version: Version) -> bool:
    if wanted._compare(version) < 0:
        return False
    if wanted.version.numbers == (0, 0, 0) and wanted.depth in (0, 3):
        return True
    depth = 1 if wanted.depth == 1 else 2
    return version.numbers[:depth] == wanted.version.numbers[:depth]


def _caret(wanted: _Constraint, version: Version) -> bool:
    if wanted._compare(version) < 0:
        return False
    major, minor, _ = wanted.version.numbers
    if major > 0 or wanted.depth == 1:
        return version.numbers[0] == major
    if version.numbers[0] > 0:
        return False
    if minor > 0 or wanted.depth == 2:
        return version.numbers[1] == minor
    return version.numbers == wanted.version.numbers


_CHECKS: dict[str, Callable[[_Constraint, Version], bool]] = {
    "": _equal,
    "=": _equal,
    "!=": _not_equal,
    ">": _greater,
    "<": lambda wanted, version: wanted._compare(version) < 0,
    ">=": lambda wanted, version: wanted._compare(version) >= 0,
    "=>": lambda wanted, version: wanted._compare(version) >= 0,
    "<=": _at_most,
    "=<": _at_most,
    "~": _tilde,
    "~>": _tilde,
    "^": _caret,
}


def satisfies(constraint: str, version: Version) -> bool:
    """Report whether a version meets a constraint; `||` separates alternatives in the constraint.

    >>> satisfies(">=1.2, <2 || 3.x", parse_version("1.9.0"))
    True
    """
    if len(constraint) > _LONGEST:
        raise TemplateFailure("improper constraint: it is too long")
    alternatives = [_read_all(part) for part in _with_ranges(constraint).split("||")]
    return any(all(each.check(version) for each in group) for group in alternatives)


def _with_ranges(text: str) -> str:
    return _RANGE.sub(lambda found: f">= {found[1].strip()}, <= {found[7].strip()} ", text)


def _read_all(text: str) -> list[_Constraint]:
    found: list[_Constraint] = []
    at = 0
    while at < len(text) or not found:
        match = _CONSTRAINT.match(text, at)
        if match is None or (found and not _separated(text, at)):
            raise TemplateFailure(f"improper constraint: {text}")
        found.append(_read(match, text))
        at = match.end()
        if text.startswith(",", at):
            at += 1
            if not text[at:].strip():
                raise TemplateFailure(f"improper constraint: {text}")
    return found


def _separated(text: str, at: int) -> bool:
    return text[at - 1] in " \t\n\r\f," or text[at] in " \t\n\r\f"


def _read(found: re.Match[str], text: str) -> _Constraint:
    numbers: list[int] = []
    for part in (found[2], found[3], found[4]):
        if part is None or part in ("x", "X", "*"):
            break
        if not part.isdecimal() or len(part) > 19:
            raise TemplateFailure(f"constraint Parser Error in {text}")
        numbers.append(int(part))
    _check(found[5] or "")
    whole = (*numbers, *[0] * (3 - len(numbers)))
    version = Version((whole[0], whole[1], whole[2]), found[5] or "", "", "")
    return _Constraint(found[1], version, len(numbers))
