"""Estimate the cost of a call of each CEL function, from the sizes of the arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from polyver.languages.cel._bounds import ENDLESS, ONE, Bounds, Called, cut, fixed
from polyver.languages.cel._nodes import CelCall, CelLiteral, CelNode

__all__ = ["call_estimate"]

_TEXT, _PATTERN = 0.1, 0.25
_FORMAT_PATTERN: Final = 128
Sizes = Sequence[Bounds]
Estimate = Callable[[CelCall, Sizes], Called]


def call_estimate(node: CelCall, overload: str, sizes: Sizes) -> Called:
    """Estimate the cost of a call, without the cost of evaluating its arguments.

    `sizes` has the size of each argument. For a method call, the first size is that of its target.
    """
    known = _BY_FUNCTION.get(node.function.removeprefix(".")) or _BY_OVERLOAD.get(overload)
    if known is not None:
        return known(node, sizes)
    if overload.startswith("list_") and overload.endswith(("_sort", "_sortByAssociatedKeys")):
        factor = 2.1 if overload.startswith(("list_string", "list_bytes")) else 2.0
        return _made(sizes[-1].times(sizes[-1]), factor)
    return Called(ONE)


def _once(_: CelCall, sizes: Sizes) -> Called:
    return Called(sizes[0].by(_TEXT))


def _kept(_: CelCall, sizes: Sizes) -> Called:
    return Called(sizes[0].by(_TEXT), sizes[0])


def _twice(_: CelCall, sizes: Sizes) -> Called:
    return Called(sizes[0].by(2 * _TEXT))


def _equality(node: CelCall, sizes: Sizes) -> Called:
    kinds = {each.type.name for each in node.args if each.type is not None}
    if kinds <= _AT_ONCE:
        return Called(ONE)
    if kinds == {"kubernetes.NamedFormat"}:
        return Called(Bounds(1, 64).by(_TEXT))
    return _comparison(node, sizes)


def _comparison(_: CelCall, sizes: Sizes) -> Called:
    most = min(sizes[0].most, sizes[1].most)
    return Called(Bounds(1 if most else 0, most).by(_TEXT))


def _replace(_: CelCall, sizes: Sizes) -> Called:
    size, old, new = sizes[:3]
    if old.least == 0:
        most, kept = cut(size.most + 1), size.most
    elif new.most <= old.least:
        most, kept = 0, size.most
    else:
        most, kept = math.ceil(size.most / old.least), 0
    if old.most == 0:
        least, left = cut(size.least + 1), size.least
    elif old.most <= new.least:
        least, left = 0, size.least
    else:
        least, left = math.ceil(size.least / old.most), 0
    made = Bounds(least, most).times(new).plus(Bounds(left, kept))
    return Called(size.by(2 * _TEXT), made)


def _split(node: CelCall, sizes: Sizes) -> Called:
    most = sizes[0].most
    if len(node.args) > 1 and isinstance(node.args[1], CelLiteral):
        most = node.args[1].value % 2**64
    return Called(sizes[0].by(2 * _TEXT), Bounds(0, most))


def _find(node: CelCall, sizes: Sizes) -> Called:
    return Called(_matches(node, sizes).cost, Bounds(0, sizes[0].most))


def _matches(_: CelCall, sizes: Sizes) -> Called:
    return Called(sizes[0].plus(ONE).by(_TEXT).times(sizes[1].by(_PATTERN)))


def _contains(_: CelCall, sizes: Sizes) -> Called:
    return Called(sizes[0].by(_TEXT).times(sizes[1].by(_TEXT)))


def _validate(_: CelCall, sizes: Sizes) -> Called:
    return Called(sizes[1].by(_TEXT).by(_FORMAT_PATTERN * _PATTERN))


def _to_bytes(_: CelCall, sizes: Sizes) -> Called:
    return Called(sizes[0].by(_TEXT), Bounds(sizes[0].least, sizes[0].most * 4 % 2**64))


def _from_bytes(_: CelCall, sizes: Sizes) -> Called:
    return Called(sizes[0].by(_TEXT), Bounds(sizes[0].least // 4, sizes[0].most))


def _quote(_: CelCall, sizes: Sizes) -> Called:
    most = (sizes[0].most * 2 + 2) % 2**64
    return Called(sizes[0].by(_TEXT), Bounds(sizes[0].least + 2, most))


def _network(*, whole: bool, text: bool) -> Estimate:
    def estimated(_: CelCall, sizes: Sizes) -> Called:
        size = Bounds(4, 16)
        cost = size.plus(size).by(_TEXT)
        if whole:
            cost = cost.plus(size.by(_TEXT)).plus(ONE)
        return Called(cost.plus(sizes[1].by(_TEXT)) if text else cost)

    return estimated


def _number(node: CelNode, otherwise: int) -> int:
    if not isinstance(node, CelLiteral) or type(node.value) is not int:
        return otherwise
    return max(node.value, 0)


def _made(size: Bounds, factor: float) -> Called:
    return Called(size.by(factor).plus(ONE).plus(fixed(10)), size)


def _slice(node: CelCall, sizes: Sizes) -> Called:
    start, end = _number(node.args[0], 0), _number(node.args[1], sizes[0].most)
    return _made(fixed((end - start) % 2**64), 1)


def _flatten(node: CelCall, sizes: Sizes) -> Called:
    return _made(sizes[0], float(_number(node.args[0], ENDLESS) if node.args else 1))


def _sets(factor: int) -> Estimate:
    return lambda _, sizes: Called(ONE.plus(sizes[0].times(sizes[1]).by(factor)))


_AT_ONCE = frozenset(
    ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL")
)
_COMPARED = [
    f"{name}_{kind}"
    for kind in ("string", "bytes")
    for name in ("less", "greater", "less_equals", "greater_equals")
]
_BY_FUNCTION: dict[str, Estimate] = {
    **dict.fromkeys("cidr isIP isCIDR quantity isQuantity semver isSemver".split(), _once),
    **dict.fromkeys("url lowerAscii upperAscii substring trim".split(), _kept),
    "ip.isCanonical": _twice,
    "replace": _replace,
    "split": _split,
    "find": _find,
    "findAll": _find,
    "validate": _validate,
    "_==_": _equality,
}
_BY_OVERLOAD: dict[str, Estimate] = {
    **dict.fromkeys(["not_equals", *_COMPARED], _comparison),
    "string_to_ip": _once,
    "string_format": _once,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _from_bytes,
    "strings_quote": _quote,
    "starts_with_string": lambda _, sizes: Called(sizes[1].by(_TEXT)),
    "ends_with_string": lambda _, sizes: Called(sizes[1].by(_TEXT)),
    "in_list": lambda _, sizes: Called(sizes[1].by(1)),
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": _contains,
    "cidr_contains_ip_ip": _network(whole=False, text=False),
    "cidr_contains_ip_string": _network(whole=False, text=True),
    "cidr_contains_cidr": _network(whole=True, text=False),
    "cidr_contains_cidr_string": _network(whole=True, text=True),
    "list_slice": _slice,
    "lists_range": lambda node, _: _made(fixed(_number(node.args[0], ENDLESS)), 1),
    "list_reverse": lambda _, sizes: _made(sizes[0], 1),
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": lambda _, sizes: _made(sizes[0].times(sizes[0]), 2),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
