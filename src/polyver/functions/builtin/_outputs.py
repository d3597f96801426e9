"""Converts the text that a program prints to the values that a function returns.

These values are the text itself, and the values in its lines `###Phase-output###: …`, as in
Kanister.
"""

from __future__ import annotations

from typing import Any

import msgspec

from polyver.core import PolyverError

__all__ = ["LARGEST", "BadOutput", "outputs_in", "text_of"]

LARGEST = 4 * 1024 * 1024
"""Maximum number of bytes that a program may print."""
_KEPT = 32 * 1024
_MARK = "###Phase-output###:"


class BadOutput(PolyverError):
    """The text that a program printed is too long, or has an invalid `###Phase-output###` line."""


class _Line(msgspec.Struct):
    key: str
    value: Any


_decode = msgspec.json.Decoder(_Line).decode


def outputs_in(printed: bytes) -> dict[str, Any]:
    """Parse the `###Phase-output###` lines in the text that a program printed.

    >>> outputs_in(b'hello\\n###Phase-output###: {"key": "size", "value": "12"}\\n')
    {'size': '12'}
    """
    found: dict[str, Any] = {}
    for line in printed.decode(errors="replace").splitlines():
        _, mark, told = line.partition(_MARK)
        if mark:
            try:
                read = _decode(told.strip())
            except msgspec.MsgspecError as error:
                fact = f"a line that begins with {_MARK} cannot be read: {error}"
                raise BadOutput(fact, hint='expected {"key": "NAME", "value": …}') from None
            found[read.key] = read.value
    return found


def text_of(printed: bytes) -> str:
    """Decode the text that a program printed. Return only the end of a long text."""
    text = printed.decode(errors="replace")
    return text if len(text) <= _KEPT else f"…{text[-_KEPT:]}"
