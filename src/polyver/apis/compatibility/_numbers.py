"""Compare numeric limits: report whether the new one allows all that the old one did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from polyver.apis.compatibility._findings import CompatibilityFinding, Schema, SchemaPair
from polyver.apis.compatibility._normalized import types_of
from polyver.languages.values.strings import shown

__all__ = ["compare_bounds"]

_SIZES: Final = ("Length", "Items", "Properties")
_LARGEST: Final = 2**53


def compare_bounds(place: SchemaPair) -> Iterator[CompatibilityFinding]:
    """Yield the changes of minima, maxima and multiples."""
    for size in _SIZES:
        yield from _compare_size(place, f"min{size}", 1)
        yield from _compare_size(place, f"max{size}", -1)
    yield from _compare_bound(place, "minimum", 1)
    yield from _compare_bound(place, "maximum", -1)
    yield from _compare_multiple(place)


def _compare_size(place: SchemaPair, keyword: str, sign: int) -> Iterator[CompatibilityFinding]:
    old, new = place.old.get(keyword), place.new.get(keyword)
    if sign > 0:
        old, new = old or None, new or None  # a minimum of 0 is no limit
    if old != new:
        tighter = old is not None and new is not None and sign * (new - old) > 0
        yield _told(place, keyword, old, new, "limit-tightened" if tighter else "limit-widened")


def _told(place: SchemaPair, keyword: str, old: Any, new: Any, rule: str) -> CompatibilityFinding:
    """Return the finding for a limit that was added, removed or changed."""
    if old is None:
        return place.found("limit-added", f"{keyword} was added: {shown(new)}")
    if new is None:
        return place.found("limit-widened", f"{keyword} was removed: it was {shown(old)}")
    return place.found(rule, f"{keyword} {shown(old)} changed to {shown(new)}")


def _compare_bound(place: SchemaPair, keyword: str, sign: int) -> Iterator[CompatibilityFinding]:
    old, new = place.old.get(keyword), place.new.get(keyword)
    exclusive = f"exclusive{keyword.capitalize()}"
    before, after = bool(place.old.get(exclusive)), bool(place.new.get(exclusive))
    if old is None or new is None:
        if old is not new:
            yield _told(place, keyword, old, new, "")
    elif old != new:
        tighter = _tighter(place, (sign * old, before), (sign * new, after))
        rule = {True: "limit-tightened", False: "limit-widened", None: "limit-changed"}[tighter]
        yield _told(place, keyword, old, new, rule)
    elif before is not after:
        rule = "limit-tightened" if after else "limit-widened"
        yield place.found(rule, f"{keyword} {shown(new)} itself is now {'not ' * after}allowed")


def _tighter(place: SchemaPair, old: tuple[float, bool], new: tuple[float, bool]) -> bool | None:
    """Report whether the new lower bound is tighter than the old one; None if unknown.

    kube-apiserver compares integers with the integer part of a bound, and refuses every value if
    a bound does not have the type of the field.
    """
    if not (_is_plain(place.old, old[0]) and _is_plain(place.new, new[0])):
        return None
    before, after = (int(old[0]), old[1]), (int(new[0]), new[1])
    if new > old:
        return True if after >= before else None
    return False if after <= before else None


def _is_plain(schema: Schema, bound: float) -> bool:
    if types_of(schema) != {"integer"}:
        return abs(bound) < _LARGEST
    largest = 2**31 if schema.get("format") == "int32" else _LARGEST
    return abs(bound) < largest and float(bound).is_integer()


def _compare_multiple(place: SchemaPair) -> Iterator[CompatibilityFinding]:
    old, new = place.old.get("multipleOf"), place.new.get("multipleOf")
    if old == new:
        return
    rule = "limit-changed"
    if old is not None and new is not None and _are_whole(place, old, new):
        tighter = new % old == 0
        rule = "limit-tightened" if tighter else "limit-changed" if old % new else "limit-widened"
    yield _told(place, "multipleOf", old, new, rule)


def _are_whole(place: SchemaPair, old: float, new: float) -> bool:
    """Report whether both multiples can be compared exactly, which only integers can."""
    known = types_of(place.old) == types_of(place.new) == {"integer"}
    return known and min(old, new) > 0 and _is_plain(place.old, old) and _is_plain(place.new, new)
