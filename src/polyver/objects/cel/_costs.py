"""What calls cost while they run: mostly how long the texts are that they walk over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from polyver.objects.cel._data import MapItems, SetItems
from polyver.objects.cel._named_formats import NamedFormat
from polyver.objects.cel._networks import CIDR, IP
from polyver.objects.cel._places import MOST_BYTES
from polyver.objects.cel._values import List, Map, Opaque, Optional

__all__ = ["call_cost"]

_TEXT, _PATTERN = 0.1, 0.25
_LARGE = 100
_ONCE = frozenset("url lowerAscii upperAscii substring trim cidr isIP isCIDR".split()) | {
    *("quantity", "isQuantity", "semver", "isSemver")
}
_WALKED = frozenset("isSorted sum max min indexOf lastIndexOf".split())
_ORDERED = frozenset(("_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"))


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
            return sum(_walk(key) + _walk(value.find(key)[0]) for key in value.keys())
    return 1


def call_cost(function: str, overload: str, values: Sequence[Any]) -> int:
    """What a call costs, roughly as the real thing counts it; what makes much costs more."""
    return _counted(function, overload, values) + _excess(function, values)


def _excess(function: str, values: Sequence[Any]) -> int:
    """What the real thing does not count, because it is quick there: large values as a whole."""
    match function:
        case "_==_" | "_!=_" | "@in":
            found = max(getattr(each, "weight", 0) for each in values)
            return 0 if found < _LARGE else found
        case "_+_" if isinstance(values[0], SetItems | MapItems):
            return (len(values[0]) + _size(values[1])) // 10
        case "replace" if all(isinstance(each, str) for each in values[:3]):
            made = (len(values[0]) // max(len(values[1]), 1) + 1) * len(values[2])
            return 0 if made < MOST_BYTES else made // 10
        case "format" if isinstance(values[0], str) and isinstance(values[1], List):
            made = values[0].count("%") * max(map(_size, values[1].items), default=0)
            return 0 if made < MOST_BYTES else made // 10
    return 0


def _counted(function: str, overload: str, values: Sequence[Any]) -> int:
    if function in _WALKED:
        return _walk(values[0])
    if function in _ONCE:
        return _scan(_size(values[0]))
    if function in _ORDERED:
        return _compared(values)
    match function:
        case "replace" | "split" | "ip.isCanonical":
            return _scan(_size(values[0]), 2 * _TEXT)
        case "join":
            return _scan(_joined(values), 2 * _TEXT)
        case "find" | "findAll" | "matches":
            return _scan(1 + _size(values[0])) * _scan(_size(values[1]), _PATTERN)
        case "contains":
            return _scan(_size(values[0])) * _scan(_size(values[1]))
        case "startsWith" | "endsWith":
            return _scan(_size(values[1]))
        case "@in" if isinstance(values[1], List):
            return len(values[1])
        case "_+_" if isinstance(values[0], str | bytes):
            return _scan(_size(values[0]) + _size(values[1]))
    return _other(function, overload, values)


def _joined(values: Sequence[Any]) -> int:
    """How long a list is as one text."""
    if not isinstance(values[0], List):
        return 1
    between = _size(values[1]) if len(values) > 1 else 0
    return sum(map(_size, values[0].items)) + between * max(len(values[0]) - 1, 0)


def _compared(values: Sequence[Any]) -> int:
    if isinstance(values[0], Opaque):
        return 1
    return _scan(min(map(_size, values)))


def _other(function: str, overload: str, values: Sequence[Any]) -> int:
    match function:
        case "ip" if overload != "cidr_ip":
            return _scan(_size(values[0]))
        case "containsIP" | "containsCIDR":
            own = _scan(2 * _size(values[0]))
            more = _scan(_size(values[1])) if overload.endswith("string") else 0
            return own + more + (_scan(_size(values[0])) + 1 if function == "containsCIDR" else 0)
        case "validate" if isinstance(values[0], NamedFormat):
            return _scan(1 + _size(values[1])) * _scan(values[0].length, _PATTERN)
        case "format" | "strings.quote" | "bytes":
            return _scan(_size(values[0]))
        case "string" if isinstance(values[0], bytes):
            return _scan(_size(values[0]))
        case "sort" | "distinct" | "@sortByAssociatedKeys":
            return 11 + 2 * _size(values[-1]) ** 2
        case "reverse" | "flatten":
            return 11 + _size(values[0])
        case "lists.range" if isinstance(values[0], int):
            return 11 + max(values[0], 0)
        case "slice" if isinstance(values[1], int) and isinstance(values[2], int):
            return 11 + max(min(values[2], _size(values[0])) - values[1], 0)
        case "sets.contains" | "sets.equivalent" | "sets.intersects":
            return 1 + _size(values[0]) * _size(values[1])
    return 1
