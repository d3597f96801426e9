"""The costs of calls of CEL functions at run time; most costs depend on the argument lengths."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from polyver.languages.cel._data import MapItems, SetItems
from polyver.languages.cel._named_formats import NamedFormat
from polyver.languages.cel._networks import CIDR, IP
from polyver.languages.cel._schema_types import MOST_BYTES
from polyver.languages.cel._values import List, Map, Opaque, Optional

__all__ = ["cost_of"]

_TEXT, _PATTERN = 0.1, 0.25
_LARGE = 100


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | List | Map | IP | CIDR):
        return len(value)
    if isinstance(value, Optional) and value.present:
        return _size(value.value)
    return 1


def _scan(size: float, factor: float = _TEXT) -> int:
    return math.ceil(size * factor)


def _walk(value: Any) -> int:
    match value:
        case str():
            return int(len(value.encode()) * _TEXT)
        case bytes():
            return int(len(value) * _TEXT)
        case List():
            return sum(map(_walk, value.items))
        case Map():
            return sum(_walk(key) + _walk(value.find(key)[0]) for key in value)
    return 1


Cost = Callable[[Sequence[Any]], int]


def cost_of(function: str, overload: str) -> Cost:
    """Build a function that computes the cost of a call from its arguments, roughly as cel-go does.

    >>> cost_of("startsWith", "starts_with_string")(["abc", "a" * 30])
    3
    """
    special = _SPECIAL.get(function)
    if special is not None:
        return lambda values: special(overload, values)
    counted, more = _COSTS.get(function), _EXCESS.get(function)
    if counted is None:
        return _plain
    return counted if more is None else lambda values: counted(values) + more(values)


def _plain(_: Sequence[Any]) -> int:
    return 1


# Costs that cel-go does not count, because Go is fast at operations on whole large values.


def _compared_whole(values: Sequence[Any]) -> int:
    weights = [each.weight for each in values if isinstance(each, List | Map)]
    return max((each for each in weights if each >= _LARGE), default=0)


def _merged(values: Sequence[Any]) -> int:
    one, other = values
    return (len(one) + _size(other)) // 10 if isinstance(one, SetItems | MapItems) else 0


def _replaced(values: Sequence[Any]) -> int:
    if not all(isinstance(each, str) for each in values[:3]):
        return 0
    made = (len(values[0]) // max(len(values[1]), 1) + 1) * len(values[2])
    return 0 if made < MOST_BYTES else made // 10


def _formatted(values: Sequence[Any]) -> int:
    text, given = values
    if not isinstance(text, str) or not isinstance(given, List):
        return 0
    made = text.count("%") * max(map(_size, given.items), default=0)
    return 0 if made < MOST_BYTES else made // 10


_EXCESS: dict[str, Cost] = {
    "_==_": _compared_whole,
    "_!=_": _compared_whole,
    "@in": _compared_whole,
    "_+_": _merged,
    "replace": _replaced,
    "format": _formatted,
}


def _joined(values: Sequence[Any]) -> int:
    """Return the length of the string that `join` makes of a list of strings."""
    if not isinstance(values[0], List):
        return 1
    between = _size(values[1]) if len(values) > 1 else 0
    return sum(map(_size, values[0].items)) + between * max(len(values[0]) - 1, 0)


def _compared(values: Sequence[Any]) -> int:
    if isinstance(values[0], Opaque):
        return 1
    return _scan(min(map(_size, values)))


def _added(values: Sequence[Any]) -> int:
    if not isinstance(values[0], str | bytes):
        return 1
    return _scan(_size(values[0]) + _size(values[1]))


def _searched(values: Sequence[Any]) -> int:
    return _scan(1 + _size(values[0])) * _scan(_size(values[1]), _PATTERN)


def _validated(values: Sequence[Any]) -> int:
    if not isinstance(values[0], NamedFormat):
        return 1
    return _scan(1 + _size(values[1])) * _scan(values[0].length, _PATTERN)


def _sliced(values: Sequence[Any]) -> int:
    _, start, end = values
    if not isinstance(start, int) or not isinstance(end, int):
        return 1
    return 11 + max(min(end, _size(values[0])) - start, 0)


def _ranged(values: Sequence[Any]) -> int:
    return 11 + max(values[0], 0) if isinstance(values[0], int) else 1


def _contained(values: Sequence[Any]) -> int:
    return 1 + _size(values[0]) * _size(values[1])


def _sorted(values: Sequence[Any]) -> int:
    return 11 + 2 * _size(values[-1]) ** 2


def _made(values: Sequence[Any]) -> int:
    return 11 + _size(values[0])


def _once(values: Sequence[Any]) -> int:
    return _scan(_size(values[0]))


def _twice(values: Sequence[Any]) -> int:
    return _scan(_size(values[0]), 2 * _TEXT)


def _second(values: Sequence[Any]) -> int:
    return _scan(_size(values[1]))


_BY_COST: dict[Cost, str] = {
    _once: "url lowerAscii upperAscii substring trim cidr isIP isCIDR quantity isQuantity semver "
    "isSemver format strings.quote bytes",
    _twice: "replace split ip.isCanonical",
    _second: "startsWith endsWith",
    _searched: "find findAll matches",
    _compared: "_<_ _<=_ _>_ _>=_ _==_ _!=_",
    _sorted: "sort distinct @sortByAssociatedKeys",
    _made: "reverse flatten",
    _contained: "sets.contains sets.equivalent sets.intersects",
}
_COSTS: dict[str, Cost] = {
    **{name: cost for cost, names in _BY_COST.items() for name in names.split()},
    **dict.fromkeys(
        "isSorted sum max min indexOf lastIndexOf".split(), lambda values: _walk(values[0])
    ),
    "join": lambda values: _scan(_joined(values), 2 * _TEXT),
    "contains": lambda values: _scan(_size(values[0])) * _scan(_size(values[1])),
    "@in": lambda values: len(values[1]) if isinstance(values[1], List) else 1,
    "_+_": _added,
    "validate": _validated,
    "slice": _sliced,
    "lists.range": _ranged,
    "string": lambda values: _once(values) if isinstance(values[0], bytes) else 1,
}


def _network(overload: str, values: Sequence[Any]) -> int:
    own = _scan(2 * _size(values[0]))
    more = _scan(_size(values[1])) if overload.endswith("string") else 0
    return own + more + (_scan(_size(values[0])) + 1 if "contains_cidr" in overload else 0)


_SPECIAL: dict[str, Callable[[str, Sequence[Any]], int]] = {
    "ip": lambda overload, values: 1 if overload == "cidr_ip" else _once(values),
    "containsIP": _network,
    "containsCIDR": _network,
}
