"""Quoted strings and characters in Go syntax."""

from __future__ import annotations

from polyver.languages.values.strings import ESCAPES

__all__ = ["is_printable", "quoted_char", "quoted_text"]


def is_printable(char: str) -> bool:
    """Report whether Go prints a character without escaping it."""
    return char.isprintable() and not 0xD800 <= ord(char) < 0xE000


def quoted_text(text: str, *, ascii_only: bool = False) -> str:
    r"""Return a string in double quotes.

    >>> print(quoted_text('a"\n\x00ä'), quoted_text("ä", ascii_only=True))
    "a\"\n\x00ä" "\u00e4"
    """
    return f'"{"".join(_escaped(char, chr(34), ascii_only) for char in text)}"'


def quoted_char(code: int, *, ascii_only: bool = False) -> str:
    """Return the character of a code point in single quotes."""
    char = chr(code) if 0 <= code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else "\ufffd"
    return f"'{_escaped(char, chr(39), ascii_only)}'"


def _escaped(char: str, mark: str, ascii_only: bool) -> str:
    if char in (mark, "\\"):
        return f"\\{char}"
    if char in ESCAPES and char != '"':
        return ESCAPES[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if is_printable(char) and (code < 0x80 or not ascii_only):
        return char
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
