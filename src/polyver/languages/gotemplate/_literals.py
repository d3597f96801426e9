"""Numbers, characters and strings in Go syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from polyver.languages.gotemplate._values import decoded, encoded

__all__ = [
    "InvalidTemplateLiteral",
    "TemplateNumber",
    "parse_float",
    "parse_int",
    "read_number",
    "unquoted",
]


class InvalidTemplateLiteral(Exception):
    """A literal with invalid syntax or out of range."""


@dataclass(frozen=True, slots=True)
class TemplateNumber:
    """A number in a template, as an integer and as a float where it can be one."""

    text: str
    whole: int | None
    real: float

    @property
    def is_real(self) -> bool:
        """True if the number is a float where no type is required."""
        hexadecimal = re.match("0[xX]", self.text) and not re.search("[pP]", self.text)
        is_char = self.text.startswith("'")
        return not hexadecimal and not is_char and re.search("[.eEpP]", self.text) is not None


_INT = re.compile(
    r"([+-]?)(?:(0[xX](?:_?[0-9a-fA-F])+)|(0[bB](?:_?[01])+)|0[oO]?((?:_?[0-7])+)|(0|[1-9](?:_?[0-9])*))"
)
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEX_FLOAT = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_SPECIAL = re.compile(r"(?i)([+-]?)(inf|infinity|nan)")


def parse_int(text: str) -> int | None:
    """Return a 64-bit integer in any syntax of Go, or None if the string is not one.

    >>> parse_int("0x_ff"), parse_int("0644"), parse_int("08"), parse_int("1_000")
    (255, 420, None, 1000)
    """
    number = _whole(text)
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _whole(text: str) -> int | None:
    found = _INT.fullmatch(text) if len(text) < 100 else None
    if found is None:
        return None
    sign = -1 if found[1] == "-" else 1
    for group, base in ((2, 16), (3, 2), (4, 8), (5, 10)):
        if found[group] is not None:
            digits = found[group].replace("_", "")
            return sign * int(digits[2:] if base in (16, 2) else digits, base)
    return None


def parse_float(text: str) -> float | None:
    """Return a float in any syntax of Go, without underscores, or None if the string is not one.

    >>> parse_float("1e3"), parse_float("0x1p-2"), parse_float("1e999"), parse_float(".")
    (1000.0, 0.25, None, None)
    """
    if len(text) > 1000:
        return None
    if _FLOAT.fullmatch(text):
        number = float(text)
    elif _HEX_FLOAT.fullmatch(text):
        number = float.fromhex(text)
    else:
        found = _SPECIAL.fullmatch(text)
        return float(text) if found and not (found[1] and found[2].lower() == "nan") else None
    return None if number in (float("inf"), float("-inf")) else number


def read_number(text: str, kind: str) -> TemplateNumber:
    """Return a number of a template; raise `InvalidTemplateLiteral` if the string is not one."""
    if kind == "char":
        code = _char(text)
        return TemplateNumber(text, code, float(code))
    if kind == "complex" or text.endswith("i"):
        raise InvalidTemplateLiteral(f"{text} is a complex number, which no template needs")
    whole = parse_int(text)
    if whole is not None:
        return TemplateNumber(text, whole, float(whole))
    plain = text.replace("_", "") if re.search("[0-9]_[0-9]", text) else text
    real = parse_float(plain)
    if real is None or "_" in plain:
        raise InvalidTemplateLiteral(f"illegal number syntax: {text}")
    if not re.search("[.eEpP]", text):
        # A number that fits only an unsigned 64-bit integer is an error only where it is used.
        large = _whole(text)
        if large is None or not 0 <= large < 2**64 or text.startswith("+"):
            raise InvalidTemplateLiteral(f"integer overflow: {text}")
        return TemplateNumber(text, None, real)
    exact = real.is_integer() and -(2.0**63) <= real < 2.0**63
    return TemplateNumber(text, int(real) if exact else None, real)


def _char(text: str) -> int:
    found = list(_characters(text[1:-1], "'"))
    if len(found) != 1 or len(found[0]) != 1:
        raise InvalidTemplateLiteral(f"malformed character constant: {text}")
    value = ord(found[0])
    return value - 0xDC00 if 0xDC80 <= value <= 0xDCFF else value


def unquoted(text: str) -> str:
    r"""Return the value of a quoted or raw string; raise `InvalidTemplateLiteral` if it is invalid.

    >>> unquoted(r'"a\tb\u00e4"'), unquoted("`a\\b`")
    ('a\tbä', 'a\\b')
    """
    if text.startswith("`"):
        return text[1:-1].replace("\r", "")
    # Escaped bytes may form a character together.
    joined = "".join(_characters(text[1:-1], '"'))
    return decoded(encoded(joined))


_ESCAPES = dict(zip("abfnrtv\\", "\a\b\f\n\r\t\v\\", strict=True))
_CODE = re.compile(r"x([0-9a-fA-F]{2})|([0-7]{3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})")


def _characters(text: str, mark: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            if char == mark:
                raise InvalidTemplateLiteral("invalid syntax")
            yield char
            continue
        after = text[at : at + 1]
        if after in _ESCAPES or after == mark:
            yield _ESCAPES.get(after, after)
            at += 1
            continue
        found = _CODE.match(text, at)
        if found is None:
            raise InvalidTemplateLiteral(f"invalid escape \\{after}")
        yield _coded(found)
        at = found.end()


def _coded(found: re.Match[str]) -> str:
    if found[1] is not None or found[2] is not None:
        value = int(found[1], 16) if found[1] is not None else int(found[2], 8)
        if value > 255:
            raise InvalidTemplateLiteral(f"invalid escape \\{found[0]}")
        return chr(value) if value < 0x80 else chr(0xDC00 + value)
    value = int(found[3] or found[4], 16)
    if value > 0x10FFFF or 0xD800 <= value < 0xE000:
        raise InvalidTemplateLiteral(f"invalid escape \\{found[0]}")
    return chr(value)
