"""Error messages for expressions, in which the position of the error is marked."""

from __future__ import annotations

from collections.abc import Sequence

from polyver.languages.cel._tokens import CelProblem

__all__ = ["format_problems"]

_MOST = 100
_LONGEST = 16384


def format_problems(source: str, problems: Sequence[CelProblem]) -> str:
    """Write all errors in an expression as one message, sorted by position.

    >>> print(format_problems("1 + x", [CelProblem(4, "no x")]))
    ERROR: <input>:1:5: no x
     | 1 + x
     | ....^
    """
    lines = source.split("\n")
    placed = [(*_position(source, each.at), each.text) for each in problems]
    shown = [_one(lines, *each) for each in sorted(placed[:_MOST], key=lambda each: each[:2])]
    if len(placed) > _MOST:
        shown.append(f"{len(placed) - _MOST} more errors were truncated")
    return "\n".join(shown)


def _position(source: str, at: int) -> tuple[int, int]:
    """Return the line, counted from 1, and the column, counted from 0.

    If the position is unknown, both numbers are -1. If the expression is empty, the column is -1.
    """
    if at < 0 or not source:
        return (-1, -1) if at < 0 else (1, -1)
    before = source[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1)


def _one(lines: Sequence[str], line: int, column: int, text: str) -> str:
    result = f"ERROR: <input>:{line}:{column + 1}: {text}"
    if line < 1 or not "".join(lines) or len(lines[line - 1].encode()) > _LONGEST:
        return result
    shown = lines[line - 1].replace("\t", " ")
    dots = "".join("." if ord(char) < 128 else "\uff0e" for char in shown[:column])
    under = shown[column : column + 1]
    mark = "^" if not under or ord(under) < 128 else "\uff3e"
    return f"{result}\n | {shown}\n | {dots}{mark}"
