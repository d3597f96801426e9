"""Helpers of strategic merge patches: the order of merged lists, and Go's formatting of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from polyver.kube.objects.codec import encode_json
from polyver.kube.objects.status import bad_request

Identity = tuple[type, Any]

_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    dict: "map[string]interface {}",
    list: "[]interface {}",
    type(None): "%!s(<nil>)",
}


def identity(value: Any) -> Identity:
    """Return a key by which scalars are compared. The keys of 1, 1.0 and true are different.

    >>> identity(1) == identity(True)
    False
    """
    if isinstance(value, dict | list):
        raise bad_request("the patch has a mapping or a list where it needs a scalar value")
    return type(value), value


def go_type(value: Any) -> str:
    """Return Go's name for the type of a value."""
    return _TYPES.get(type(value), type(value).__name__)


def go_text(value: Any, verb: str = "v") -> str:
    """Write a value as Go prints it with `%v` or `%s`.

    With `%s`, Go marks a value that is not a string.

    >>> go_text({"b": [1, None], "a": {"c": "d"}})
    'map[a:map[c:d] b:[1 <nil>]]'
    >>> go_text(1, "s")
    '%!s(int64=1)'
    """
    match value:
        case str():
            return value
        case dict():
            pairs = " ".join(f"{key}:{go_text(value[key], verb)}" for key in sorted(value))
            return f"map[{pairs}]"
        case list():
            return f"[{' '.join(go_text(each, verb) for each in value)}]"
        case None:
            return "<nil>"
    text = _number(value) if isinstance(value, float) else encode_json(value).decode()
    return f"%!s({go_type(value)}={text})" if verb == "s" else text


def _number(value: float) -> str:
    """Write a number with as few digits as possible; large and small numbers with an exponent."""
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if -4 <= exponent < 6:
        return f"{number:f}"
    return f"{number.scaleb(-exponent):f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def in_order(pairs: list[tuple[Identity, Any]], ranks: Mapping[Identity, int]) -> list[Any]:
    """Sort items by rank: the ranks of their keys are in `ranks`.

    If an item has no rank, the order is that of kube-apiserver's insertion sort: it moves each item
    before its predecessor if the predecessor has a higher rank, or if one of the two has no rank.
    """
    if all(key in ranks for key, _ in pairs):
        return [item for _, item in sorted(pairs, key=lambda pair: ranks[pair[0]])]
    placed: list[tuple[Identity, Any]] = []
    for key, item in pairs:
        index = len(placed)
        while index and _goes_before(key, placed[index - 1][0], ranks):
            index -= 1
        placed.insert(index, (key, item))
    return [item for _, item in placed]


def _goes_before(key: Identity, other: Identity, ranks: Mapping[Identity, int]) -> bool:
    if key not in ranks or other not in ranks:
        return True
    return ranks[key] < ranks[other]


def interleaved(
    others: list[Any],
    named: list[Any],
    ranks: Mapping[Identity, int],
    key_of: Callable[[Any], Identity],
) -> list[Any]:
    """Merge two lists into one, in which the items of each list keep their order.

    An item of `others` comes before the items of `named` that have a higher rank.
    """
    merged: list[Any] = []
    left = list(reversed(others))
    for item in named:
        rank = ranks.get(key_of(item), -1)
        while left and 0 <= ranks.get(key_of(left[-1]), -1) < rank:
            merged.append(left.pop())
        merged.append(item)
    return merged + left[::-1]
