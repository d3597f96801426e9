"""Output of programs as phase output: Kanister's `###Phase-output###` lines, and the whole text."""

from __future__ import annotations

from typing import Any

import msgspec

from polyver.core import PolyverError

__all__ = ["LARGEST", "BadOutput", "outputs_in", "text_of"]

LARGEST = 4 * 1024 * 1024
"""Maximum output of a program in bytes."""
_KEPT = 32 * 1024
_MARK = "###Phase-output###:"


class BadOutput(PolyverError):
    """A program's output cannot be used."""


class _Line(msgspec.Struct):
    key: str
    value: Any


_decode = msgspec.json.Decoder(_Line).decode


def outputs_in(printed: bytes) -> dict[str, Any]:
    """Return the phase outputs in a program's output.

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
    """Return the output as a string; only the end if it is long."""
    text = printed.decode(errors="replace")
    return text if len(text) <= _KEPT else f"…{text[-_KEPT:]}"
