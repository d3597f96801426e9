"""Sets of characters in regular expressions."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

__all__ = ["CLASSES", "NEWLINE", "POSIX", "Charset", "property_named"]

_END = 0x10FFFF


@dataclass(frozen=True, slots=True)
class Charset:
    """A set of characters: ranges, general categories and scripts.

    If `negated` is True, the set has all other characters.
    """

    ranges: tuple[tuple[int, int], ...] = ()
    properties: tuple[tuple[str, bool], ...] = ()
    """Names of categories (`Lu`, `L`) or scripts (`Greek`).

    The flag is True if the characters outside of the category or script belong to the set.
    """
    negated: bool = False
    folds: bool = False

    def __contains__(self, char: str) -> bool:
        variants = {char, char.lower(), char.upper(), char.swapcase()} if self.folds else {char}
        found = any(len(each) == 1 and self._holds(each) for each in variants)
        return found is not self.negated

    def _holds(self, char: str) -> bool:
        code = ord(char)
        if any(low <= code <= high for low, high in self.ranges):
            return True
        return any(_has(char, name) is not turned for name, turned in self.properties)

    def source(self) -> str | None:
        """Write the set in the syntax of Python's `re`; return None if that is impossible."""
        if self.properties:
            return None
        if not self.ranges:
            return r"[\s\S]" if self.negated else "(?!)"
        inside = "".join(
            _escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}"
            for low, high in self.ranges
        )
        text = f"[{'^' if self.negated else ''}{inside}]"
        return f"(?i:{text})" if self.folds else text


def _escaped(code: int) -> str:
    return chr(code) if chr(code).isalnum() and code < 128 else f"\\U{code:08x}"


def _has(char: str, name: str) -> bool:
    if name == "Any":
        return True
    if len(name) <= 2:
        return unicodedata.category(char).startswith(name)
    # Python does not know scripts, but the name of a character begins with its script.
    beginning = _SCRIPTS.get(name, name.upper().replace("_", " "))
    return unicodedata.name(char, "").startswith(beginning)


_SCRIPTS = {"Han": "CJK"}
_CATEGORIES = frozenset(
    "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc "
    "Cf Cs Co Cn Any".split()
)
_KNOWN_SCRIPTS = frozenset(
    "Arabic Armenian Bengali Bopomofo Braille Canadian_Aboriginal Cherokee Coptic Cyrillic "
    "Devanagari Ethiopic Georgian Gothic Greek Gujarati Gurmukhi Han Hangul Hebrew Hiragana "
    "Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Ogham Oriya Runic Sinhala "
    "Syriac Tamil Telugu Thaana Thai Tibetan Yi".split()
)


def property_named(name: str) -> str | None:
    """Return `name` if it is a general category or a script of Unicode; otherwise return None."""
    return name if name in _CATEGORIES or name in _KNOWN_SCRIPTS else None


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    pairs = zip(text[::2], text[1::2], strict=True)
    return tuple((ord(low), ord(high)) for low, high in pairs)


NEWLINE = ((10, 10),)
CLASSES = {"d": _ranges("09"), "s": _ranges("\t\n\f\r  "), "w": _ranges("09AZ__az")}
POSIX = {
    "alnum": _ranges("09AZaz"),
    "alpha": _ranges("AZaz"),
    "ascii": ((0, 127),),
    "blank": _ranges("\t\t  "),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _ranges("09"),
    "graph": _ranges("!~"),
    "lower": _ranges("az"),
    "print": _ranges(" ~"),
    "punct": _ranges("!/:@[`{~"),
    "space": _ranges("\t\r  "),
    "upper": _ranges("AZ"),
    "word": _ranges("09AZ__az"),
    "xdigit": _ranges("09AFaf"),
}


def without(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return the ranges of all characters that are in none of these ranges."""
    rest: list[tuple[int, int]] = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            rest.append((start, low - 1))
        start = max(start, high + 1)
    return (*rest, (start, _END)) if start <= _END else tuple(rest)
