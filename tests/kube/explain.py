"""Says how two transcripts differ, as a person would: the step, the field, both values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

NOTHING = object()

Leeway = Callable[[str, Any, Any], bool]
"""Whether a field may be as it is, given what the real server says."""


@dataclass(frozen=True)
class Difference:
    """The first thing in which an answer differs from what the real server said."""

    case: str
    step: int
    title: str
    field: str
    expected: str
    got: str

    def __str__(self) -> str:
        where = f"{self.case}, step {self.step} ({self.title}): {self.field}"
        return f"{where}: the real server says {self.expected}, got {self.got}"


def differences(
    case: str,
    expected: list[Any],
    got: list[Any],
    known: Callable[[str, int, str], bool] = lambda case, step, field: False,
    leeway: Leeway = lambda field, theirs, ours: False,
) -> Iterator[Difference]:
    """One difference for each step that has any: the first in it that is not known."""
    for number, (one, other) in enumerate(zip(expected, got, strict=False), start=1):
        for field, theirs, ours in _compare(one, other, "", leeway):
            if known(case, number, field):
                continue
            title = str(one.get("step", ""))
            yield Difference(case, number, title, field, _shown(theirs), _shown(ours))
            break
    if len(expected) != len(got):
        steps = f"{len(expected)} steps", f"{len(got)}"
        yield Difference(case, min(len(expected), len(got)) + 1, "", "steps", *steps)


def _compare(one: Any, other: Any, path: str, leeway: Leeway) -> Iterator[tuple[str, Any, Any]]:
    if leeway(path, one, other):
        return
    match one, other:
        case dict(), dict():
            for key in sorted(one.keys() | other.keys(), key=_importance):
                inner = f"{path}.{key}" if path else key
                theirs, ours = one.get(key, NOTHING), other.get(key, NOTHING)
                yield from _compare(theirs, ours, inner, leeway)
        case list(), list():
            for number in range(max(len(one), len(other))):
                theirs = one[number] if number < len(one) else NOTHING
                ours = other[number] if number < len(other) else NOTHING
                yield from _compare(theirs, ours, f"{path}[{number}]", leeway)
        case _ if one is not other and (type(one) is not type(other) or one != other):
            yield path, one, other


def _importance(key: str) -> tuple[int, str]:
    """The status before the message, and that before the details that follow from it."""
    order = {"step": 0, "status": 1, "exit": 1, "message": 2, "reason": 2}
    return order.get(key, 3), key


def _shown(value: Any) -> str:
    if value is NOTHING:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:297]}…"
