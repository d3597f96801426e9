"""Compare the keywords of a schema that limit the value itself.

Keywords that describe fields and items are compared in `_schemas`. For a numeric limit, the
comparison decides whether the new limit allows every value that the old limit allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from polyver.apis.compatibility._findings import (
    ALTERNATIVES,
    EMBEDDED,
    INT_OR_STRING,
    PRESERVE,
    CompatibilityFinding,
    Schema,
    SchemaPair,
    type_name,
    types_of,
)
from polyver.languages.values.strings import same, shown

__all__ = ["compare_type", "compare_value"]

_LIST, _KEYS, _MAP = (f"x-kubernetes-{each}" for each in ("list-type", "list-map-keys", "map-type"))
_RULES: Final = "x-kubernetes-validations"
_KNOWN = (
    "type format enum nullable default pattern multipleOf uniqueItems required properties items "
    "additionalProperties minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength "
    "minItems maxItems minProperties maxProperties description title example externalDocs"
).split()
_COMPARED = {*_KNOWN, *ALTERNATIVES, _LIST, _KEYS, _MAP, _RULES, EMBEDDED, INT_OR_STRING, PRESERVE}
_WIDER_FORMATS = {("int32", "int64"), ("float", "double")}
_FULL_FORMATS = {("integer", "int64"), ("number", "double")}


def compare_type(place: SchemaPair) -> CompatibilityFinding | None:
    """Build the finding for a changed type; return None if the type is the same."""
    old, new = types_of(place.old), types_of(place.new)
    if old == new:
        return None
    near = new | {"integer"} if "number" in new else new
    wider = not new or (bool(old) and old <= near)
    fact = f"{type_name(place.old)} changed to {type_name(place.new)}"
    return place.found("type-widened" if wider else "type-changed", fact)


def compare_value(place: SchemaPair) -> Iterator[CompatibilityFinding]:
    """Yield a finding for each changed keyword that limits the value itself, except its type."""
    yield from _compare_enum(place)
    for size in _SIZES:
        yield from _compare_size(place, f"min{size}", 1)
        yield from _compare_size(place, f"max{size}", -1)
    yield from _compare_bound(place, "minimum", 1)
    yield from _compare_bound(place, "maximum", -1)
    yield from _compare_multiple(place)
    yield from _compare_pattern(place)
    yield from _compare_format(place)
    yield from _compare_default(place)
    yield from _compare_null(place)
    for keyword, (added, removed) in _FLAGS.items():
        old, new = place.changed(keyword)
        if old != new:
            yield place.found(
                added if new else removed, f"{keyword} was {'added' if new else 'removed'}"
            )
    list_type, new_list_type = _list_type(place.old), _list_type(place.new)
    if list_type != new_list_type:
        rule = "list-merged" if new_list_type == "atomic" else "list-keyed"
        yield place.found(rule, f"list-type {list_type} changed to {new_list_type}")
    map_type, new_map_type = (each.get(_MAP) or "granular" for each in (place.old, place.new))
    if map_type != new_map_type:
        yield place.found("map-merged", f"map-type {map_type} changed to {new_map_type}")
    rules, others = _rules(place.old), _rules(place.new)
    for rule, _ in _without(others, rules):
        yield place.found("rule-added", f"rule was added: {rule}")
    for rule, _ in _without(rules, others):
        yield place.found("rule-removed", f"rule was removed: {rule}")
    for keyword in sorted({*place.old, *place.new} - _COMPARED):
        if not same(place.old.get(keyword), place.new.get(keyword)):
            yield place.found("keyword-changed", f"{keyword} changed")


def _compare_enum(place: SchemaPair) -> Iterator[CompatibilityFinding]:
    old, new = place.old.get("enum") or [], place.new.get("enum") or []
    gone, more = _without(old, new), _without(new, old)
    if new and not old:
        yield place.found("enum-added", f"enum was added: {_listed(new)}")
    elif old and not new:
        yield place.found("enum-widened", f"enum was removed: it was {_listed(old)}")
    elif gone:
        yield place.found("enum-narrowed", f"enum no longer has {_listed(gone)}")
    elif more:
        yield place.found("enum-widened", f"enum also has {_listed(more)}")


def _without(values: list[Any], others: list[Any]) -> list[Any]:
    return [value for value in values if not any(same(value, other) for other in others)]


def _listed(values: list[Any]) -> str:
    return ", ".join(map(shown, values))


def _compare_pattern(place: SchemaPair) -> Iterator[CompatibilityFinding]:
    old, new = place.changed("pattern")
    if new and not old:
        yield place.found("pattern-changed", f"pattern was added: {new}")
    elif old and not new:
        yield place.found("pattern-removed", f"pattern was removed: it was {old}")
    elif old != new:
        yield place.found("pattern-changed", f"pattern {old} changed to {new}")


def _compare_format(place: SchemaPair) -> Iterator[CompatibilityFinding]:
    old, new = place.changed("format")
    if old == new:
        if new and _means_more(place):
            yield place.found("format-changed", f"format {new} now applies to another type")
    elif not new:
        yield place.found("format-widened", f"format was removed: it was {old}")
    else:
        full = not old and (type_name(place.new), new) in _FULL_FORMATS
        rule = "format-widened" if full or (old, new) in _WIDER_FORMATS else "format-changed"
        fact = f"format {old} changed to {new}" if old else f"format was added: {new}"
        yield place.found(rule, fact)


def _means_more(place: SchemaPair) -> bool:
    """Report whether a format that was ignored for the old type may apply to the new type."""
    old, new = type_name(place.old), type_name(place.new)
    return old not in (new, "string") and (old, new) != ("integer", "number")


def _compare_default(place: SchemaPair) -> Iterator[CompatibilityFinding]:
    old, new = place.old.get("default"), place.new.get("default")
    if same(old, new):
        return
    if new is None:
        rule = "required-exposed" if place.required else "default-removed"
        yield place.found(rule, f"default was removed: it was {shown(old)}")
    elif old is None:
        yield place.found("default-added", f"default was added: {shown(new)}")
    else:
        yield place.found("default-changed", f"default {shown(old)} changed to {shown(new)}")


_FLAGS = {
    "uniqueItems": ("unique-added", "unique-removed"),
    EMBEDDED: ("embedded-added", "embedded-removed"),
}


def _compare_null(place: SchemaPair) -> Iterator[CompatibilityFinding]:
    old, new = place.changed("nullable")
    if new and not old:
        # Without `nullable`, an API server removed a null before validation, or replaced it by the
        # default.
        noticed = place.limited or place.new.get("enum") or place.new.get("default") is not None
        yield place.found("null-kept" if noticed else "nullable-added", "nullable was added")
    elif old and not new:
        yield place.found("nullable-removed", "nullable was removed")


def _list_type(schema: Schema) -> str:
    found: str = schema.get(_LIST) or "atomic"
    keys = sorted(schema.get(_KEYS) or ())
    return f"{found} by {', '.join(keys)}" if keys else found


def _rules(schema: Schema) -> list[tuple[str, bool]]:
    """Return the parts of each CEL rule that decide about values.

    These are its expression and its `optionalOldSelf`, and not its message.
    """
    found = schema.get(_RULES) or ()
    return [(each.get("rule") or "", bool(each.get("optionalOldSelf"))) for each in found]


# Numeric limits.


_SIZES: Final = ("Length", "Items", "Properties")
_LARGEST: Final = 2**53


def _compare_size(place: SchemaPair, keyword: str, sign: int) -> Iterator[CompatibilityFinding]:
    old, new = place.old.get(keyword), place.new.get(keyword)
    if sign > 0:
        # sizes are never negative, so a minimum of 0 is no limit
        old, new = old or None, new or None
    if old != new:
        tighter = old is not None and new is not None and sign * (new - old) > 0
        yield _told(place, keyword, old, new, "limit-tightened" if tighter else "limit-widened")


def _told(place: SchemaPair, keyword: str, old: Any, new: Any, rule: str) -> CompatibilityFinding:
    """Build the finding for a limit that was added, removed or changed."""
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
    """Report whether the new lower bound is tighter than the old one; None if this is unknown.

    A bound is a pair: the number, and True if the number itself is not allowed. kube-apiserver
    compares integers with the integer part of a bound, and refuses every value if a bound does not
    have the type of the field.
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
    """Report whether both values of `multipleOf` are integers, which can be compared exactly."""
    known = types_of(place.old) == types_of(place.new) == {"integer"}
    return known and min(old, new) > 0 and _is_plain(place.old, old) and _is_plain(place.new, new)
