"""Values of the literals in a CEL expression: numbers, strings and bytes."""

from __future__ import annotations

import re
from typing import Any

from polyver.core import PolyverError
from polyver.languages.cel._tokens import CelToken
from polyver.languages.cel._values import Uint

__all__ = ["InvalidLiteral", "read_literal"]

_WORDS = {"true": True, "false": False, "null": None}
_SIMPLE = dict(zip("abfnrtv\\'\"`?", "\a\b\f\n\r\t\v\\'\"`?", strict=True))
_ESCAPE = re.compile(r"\\(?:([xX][0-9a-fA-F]{2}|u.{4}|U.{8})|([0-3][0-7]{2})|(.))", re.DOTALL)


class InvalidLiteral(PolyverError):
    """The literal is out of range or has an invalid escape."""


def read_literal(token: CelToken, *, negative: bool = False) -> Any:
    """Return the value of a literal token.

    With `negative`, a minus sign precedes the token, and the value is negative.
    """
    match token.kind:
        case "NUM_INT":
            return _int(token.text, negative=negative)
        case "NUM_UINT":
            return _uint(token.text[:-1])
        case "NUM_FLOAT":
            return _float(token.text, negative=negative)
        case "STRING":
            return _text(token.text)
        case "BYTES":
            return _bytes(token.text[1:])
    return _WORDS[token.kind]


def _int(text: str, *, negative: bool) -> int:
    number = _digits(text) * (-1 if negative else 1)
    if not -(2**63) <= number < 2**63:
        raise InvalidLiteral("invalid int literal")
    return number


def _uint(text: str) -> Uint:
    number = _digits(text)
    if number >= 2**64:
        raise InvalidLiteral("invalid uint literal")
    return Uint(number)


def _digits(text: str) -> int:
    """Convert digits to an integer; too many digits become an integer that is out of range."""
    if len(text.lstrip("0x")) > 30:
        return 2**100
    return int(text, 16 if text.startswith("0x") else 10)


def _float(text: str, *, negative: bool) -> float:
    number = float(text)
    if number == float("inf"):
        raise InvalidLiteral("invalid double literal")
    return -number if negative else number


def _inside(text: str) -> tuple[str, bool]:
    r"""Return the content between the quotes, and True if the literal is raw, such as `r"\d"`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[:1] in "rR"
    text = text[1:] if raw else text
    marks = 3 if len(text) >= 6 and text[:3] in ("'''", '"""') else 1
    return text[marks:-marks], raw


def _text(text: str) -> str:
    inside, raw = _inside(text)
    return inside if raw else _ESCAPE.sub(_char, inside)


def _char(found: re.Match[str]) -> str:
    if found[3]:
        return _SIMPLE[found[3]]
    code = int(found[1][1:], 16) if found[1] else int(found[2], 8)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise InvalidLiteral("invalid unicode code point")
    return chr(code)


def _bytes(text: str) -> bytes:
    inside, raw = _inside(text)
    if raw:
        return inside.encode()
    parts: list[bytes] = []
    end = 0
    for found in _ESCAPE.finditer(inside):
        parts += [inside[end : found.start()].encode(), _byte(found)]
        end = found.end()
    return b"".join([*parts, inside[end:].encode()])


def _byte(found: re.Match[str]) -> bytes:
    if found[3]:
        return _SIMPLE[found[3]].encode()
    if found[1] and found[1][0] in "uU":
        raise InvalidLiteral("unable to unescape string")
    return bytes([int(found[1][1:], 16) if found[1] else int(found[2], 8)])
