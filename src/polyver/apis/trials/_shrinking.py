"""Shrink an object that shows a failure, by removing and simplifying its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from polyver.core.plain import Object

__all__ = ["shrunk"]

_MOST_TRIES = 3000


def shrunk(obj: Object, is_bad: Callable[[Object], bool], *, tries: int = _MOST_TRIES) -> Object:
    """Return a smaller object for which `is_bad` still holds, and that cannot be reduced further.

    >>> shrunk({"a": [1, 5, 2], "b": "x"}, lambda obj: 5 in obj.get("a", []))
    {'a': [5]}
    """
    left = tries
    while left > 0:
        for simpler in _simpler_object(obj, whole=True):
            left -= 1
            if is_bad(simpler):
                obj = simpler
                break
            if left <= 0:
                break
        else:
            break
    return obj


def _simpler(value: Any) -> Iterator[Any]:
    """Yield simpler values, the simplest first."""
    match value:
        case dict():
            yield from _simpler_object(value)
        case list():
            yield from _simpler_list(value)
        case str():
            yield from _simpler_text(value)
        case bool():
            if value:
                yield False
        case int() | float():
            yield from _simpler_number(value)


_FIXED = ("apiVersion", "kind", "metadata")
_NAMED = {"name": "a"}


def _simpler_object(value: Object, *, whole: bool = False) -> Iterator[Object]:
    names = [name for name in value if not whole or name not in _FIXED]
    if whole and "metadata" in value and value["metadata"] != _NAMED:
        yield {**value, "metadata": _NAMED}
    if len(names) > 2:
        for half in (names[: len(names) // 2], names[len(names) // 2 :]):
            yield {name: each for name, each in value.items() if name not in half}
    for name in names:
        yield {key: each for key, each in value.items() if key != name}
    for name in names:
        for each in _simpler(value[name]):
            yield {**value, name: each}


def _simpler_list(value: list[Any]) -> Iterator[list[Any]]:
    if len(value) > 2:
        yield value[: len(value) // 2]
        yield value[len(value) // 2 :]
    for number in range(len(value)):
        yield [*value[:number], *value[number + 1 :]]
    for number, item in enumerate(value):
        for each in _simpler(item):
            yield [*value[:number], each, *value[number + 1 :]]


def _simpler_text(value: str) -> Iterator[str]:
    if value:
        yield ""
    if len(value) > 1:
        yield "a"
        yield value[: len(value) // 2]
        yield value[len(value) // 2 :]
        yield from (value[:n] + value[n + 1 :] for n in range(min(len(value), 20)))
    if not value.isascii():
        yield "".join(char if char.isascii() and char.isprintable() else "a" for char in value)


def _simpler_number(value: float) -> Iterator[float]:
    nearer = [0, 1, *([int(value)] if abs(value) < 1e15 else []), _half(value), abs(value)]
    for each in nearer:
        if _size(each) < _size(value):
            yield each
    if value > 1:
        yield value - 1


def _half(value: float) -> float:
    return value // 2 if isinstance(value, int) or abs(value) < 1 else value / 2


def _size(value: float) -> tuple[float, bool, bool]:
    """Return a sort key for the complexity of a number: a sign and a fraction count."""
    return (abs(value), value < 0, isinstance(value, float))
