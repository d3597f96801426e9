"""CEL functions for lists, sets and optional values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from polyver.languages.cel._operators import OPERATORS
from polyver.languages.cel._values import (
    NONE,
    CelDuration,
    CelEvaluationError,
    List,
    Opaque,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    compare,
    equal,
    type_name,
)

__all__ = ["COLLECTIONS"]

_MOST_RANGE = 1_000_000
_SIMPLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_LONG = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
_ZEROS = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": CelDuration(0)}


def _is_sorted(found: List) -> bool:
    pairs = zip(found.items, found.items[1:], strict=False)
    return all(_compared(one, other) <= 0 for one, other in pairs)


def _compared(one: Any, other: Any) -> int:
    """Return -1, 0 or 1, as `compare` does; values that cannot be compared count as equal."""
    try:
        return compare(one, other)
    except CelEvaluationError:
        return 0


def _sum(zero: Any) -> Callable[[List], Any]:
    return lambda found: functools.reduce(OPERATORS["_+_"], found.items, zero)


def _best(name: str, sign: int) -> Callable[[List], Any]:
    def best(found: List) -> Any:
        if not found.items:
            raise CelEvaluationError(f"{name} called on empty list")
        return functools.reduce(
            lambda one, other: other if _compared(one, other) == sign else one, found.items
        )

    return best


def _index_of(found: List, wanted: Any) -> int:
    indexes = (number for number, item in enumerate(found.items) if _same(item, wanted))
    return next(indexes, -1)


def _last_index_of(found: List, wanted: Any) -> int:
    for number in range(len(found) - 1, -1, -1):
        if _same(found.items[number], wanted):
            return number
    return -1


def _same(one: Any, other: Any) -> bool:
    try:
        return equal(one, other)
    except CelEvaluationError:
        return False


def _distinct(found: List) -> List:
    kept: list[Any] = []
    for item in found.items:
        if not any(_same(item, each) for each in kept):
            kept.append(item)
    return List(kept)


def _flatten(found: List, depth: int = 1) -> List:
    if depth < 0:
        raise CelEvaluationError("level must be non-negative")
    return List(_flat(found.items, depth))


def _flat(items: Sequence[Any], depth: int) -> list[Any]:
    flat: list[Any] = []
    for item in items:
        flat += _flat(item.items, depth - 1) if isinstance(item, List) and depth else [item]
    return flat


def _range(size: int) -> List:
    if size < 0:
        raise CelEvaluationError(f"lists.range: size must be non-negative, got {size}")
    if size > _MOST_RANGE:
        raise CelEvaluationError(
            f"lists.range: size {size} exceeds maximum allowed ({_MOST_RANGE})"
        )
    return List(range(size))


def _slice(found: List, start: int, end: int) -> List:
    if start < 0 or end < 0:
        text = "negative indexes not supported"
    elif start > end:
        text = "start index must be less than or equal to end index"
    elif len(found) < end:
        text = f"list is length {len(found)}"
    else:
        return List(found.items[start:end])
    raise CelEvaluationError(f"cannot slice({start}, {end}), {text}")


def _sort(found: List) -> List:
    return _sort_by(found, found)


def _sort_by(found: List, keys: List) -> List:
    if len({*map(type_name, keys.items)}) > 1:
        raise CelEvaluationError("list elements must have the same type")
    ranked = functools.cmp_to_key(compare)
    indexes = sorted(range(len(found)), key=lambda index: ranked(keys.items[index]))
    return List([found.items[index] for index in indexes])


def _holds_all(found: List, wanted: List) -> bool:
    return all(any(_same(item, each) for item in found.items) for each in wanted.items)


def _equivalent(one: List, other: List) -> bool:
    return _holds_all(one, other) and _holds_all(other, one)


def _intersects(one: List, other: List) -> bool:
    return any(_same(item, each) for item in one.items for each in other.items)


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Any) -> bool:
    match value:
        case None:
            return True
        case CelDuration():
            return value.nanos == 0
        case Timestamp():
            return value.nanos == -62135596800 * 1_000_000_000
        case Optional():
            return not value.present
        case TypeValue() | Opaque():
            return False
    return not value


def _unwrap(found: List) -> List:
    return List([item.value for item in found.items if item.present])


def value_of(found: Optional) -> Any:
    """Return the value inside an optional value; raise `CelEvaluationError` if there is none."""
    if not found.present:
        raise CelEvaluationError("optional.none() dereference")
    return found.value


def _first(found: List) -> Optional:
    return Optional(found.items[0]) if len(found) else NONE


def _last(found: List) -> Optional:
    return Optional(found.items[-1]) if len(found) else NONE


COLLECTIONS: dict[str, Callable[..., Any]] = {
    **{f"list_{each}_is_sorted_bool": _is_sorted for each in _SIMPLE},
    **{f"list_{each}_sum_{each}": _sum(zero) for each, zero in _ZEROS.items()},
    **{f"list_{each}_max_{each}": _best("max", -1) for each in _SIMPLE},
    **{f"list_{each}_min_{each}": _best("min", 1) for each in _SIMPLE},
    **{f"list_{_LONG.get(each, each)}_sort": _sort for each in _SIMPLE},
    **{f"list_{_LONG.get(each, each)}_sortByAssociatedKeys": _sort_by for each in _SIMPLE},
    "list_a_index_of_int": _index_of,
    "list_a_last_index_of_int": _last_index_of,
    "list_distinct": _distinct,
    "list_first": _first,
    "list_last": _last,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": lambda found: List(found.items[::-1]),
    "list_slice": _slice,
    "list_sets_contains_list": _holds_all,
    "list_sets_equivalent_list": _equivalent,
    "list_sets_intersects_list": _intersects,
    "optional_none": lambda: NONE,
    "optional_of": Optional,
    "optional_ofNonZeroValue": _of_non_zero,
    "optional_unwrap": _unwrap,
    "optional_unwrapOpt": _unwrap,
    "optional_hasValue": lambda found: found.present,
    "optional_value": value_of,
}
