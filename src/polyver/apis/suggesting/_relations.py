"""Find the conversion rule that the types of two fields need, and how well their values fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from fractions import Fraction
from typing import Any, Final

from polyver.apis.suggesting._fields import SCALARS, SchemaField, shape_of_field
from polyver.apis.suggesting._words import unit_of, words_alike, words_of_name
from polyver.core.plain import Schema

__all__ = ["Relation", "duration_unit", "enum_pairs", "item_key", "relation", "scale_factor"]


class Relation(Enum):
    """The way in which the value of a field becomes the value of another field."""

    SAME = "same type"
    VALUES = "other words in the enum"
    SCALE = "other unit"
    CAST = "other type"
    DURATION = "a duration and a number of units"
    WRAP = "single value and list"
    KEYED = "list and map"


_DURATION_UNITS: Final = {
    Fraction(1, 10**9): "ns",
    Fraction(1, 10**6): "us",
    Fraction(1, 1000): "ms",
    Fraction(1): "s",
    Fraction(60): "m",
    Fraction(3600): "h",
}
_ANY_KEYS: Final = ("object", "open", "map")
_KEY_NAMES: Final = ("name", "key", "id")


def relation(one: SchemaField, other: SchemaField) -> Relation | None:
    """Return the relation of two fields; None if no rule converts one to the other."""
    shapes = one.shape, other.shape
    if all(shape in SCALARS for shape in shapes):
        return _of_scalars(one, other)
    if _alike(one.schema, other.schema):
        return Relation.SAME
    if shapes == ("list", "map"):
        return Relation.KEYED if item_key(one, other) else None
    if shapes[1] == "list" and shapes[0] != "list" and _wraps(one.schema, other.inner):
        return Relation.WRAP
    return None


def _of_scalars(one: SchemaField, other: SchemaField) -> Relation | None:
    if scale_factor(one, other) is not None:
        return Relation.SCALE
    if one.shape != other.shape:
        if duration_unit(one, other):
            return Relation.DURATION
        # A string and a number with a unit, such as "1Gi" and 1024, need more than a cast.
        units = unit_of(one.words), unit_of(other.words)
        is_text = "string" in (one.shape, other.shape)
        return None if units[0] != units[1] and is_text else Relation.CAST
    return Relation.VALUES if enum_pairs(one, other) else Relation.SAME


def _wraps(single: Schema, item: Schema) -> bool:
    return shape_of_field(single) == shape_of_field(item) and _alike(single, item)


def _alike(one: Schema, other: Schema) -> bool:
    """Report whether the value at one schema can be copied to the other, as far as types tell."""
    shapes = shape_of_field(one), shape_of_field(other)
    if "any" in shapes:
        return True
    if shapes[0] == shapes[1]:
        inner = {"list": "items", "map": "additionalProperties"}.get(shapes[0])
        return inner is None or _alike(one[inner], other[inner])
    if "int-or-string" in shapes:
        return {*shapes} <= {"int-or-string", "string", "integer"}
    return all(shape in _ANY_KEYS for shape in shapes) and "open" in shapes


def scale_factor(one: SchemaField, other: SchemaField) -> Fraction | None:
    """Return the factor between two numbers with different units in their names.

    Return None if a field is not a number or has no unit, or if the units are equal.
    """
    if not {one.shape, other.shape} <= {"integer", "number"}:
        return None
    units = unit_of(one.words), unit_of(other.words)
    if units[0] is None or units[1] is None or units[0][1] != units[1][1]:
        return None
    factor = units[0][2] / units[1][2]
    return None if factor == 1 else factor


def duration_unit(one: SchemaField, other: SchemaField) -> str:
    """Return the unit of the rule duration, for a string and a number with a unit in its name.

    Return "" if the two fields do not have such a form.
    """
    text, number = (one, other) if one.shape == "string" else (other, one)
    unit = unit_of(number.words)
    if text.shape != "string" or number.shape not in ("integer", "number") or unit is None:
        return ""
    is_plain = unit_of(text.words) is None and "enum" not in text.schema
    return _DURATION_UNITS.get(unit[2], "") if is_plain and unit[1] == "time" else ""


def enum_pairs(one: SchemaField, other: SchemaField) -> dict[str, str]:
    """Return the words of two enums that stand for the same, if the two enums use other words.

    Return {} if one of the enums has all words of the other.
    """
    words, others = (_strings(each.schema.get("enum")) for each in (one, other))
    pairs = {word: word for word in words if word in others}
    left = [word for word in words if word not in pairs]
    free = [word for word in others if word not in pairs]
    if not left or not free:
        return {}
    likely = sorted(
        ((_word_score(a, b), -i, -j) for i, a in enumerate(left) for j, b in enumerate(free)),
        reverse=True,
    )
    found: dict[str, str] = {}
    for score, i, j in likely:
        if score >= 0.6 and left[-i] not in found and free[-j] not in found.values():
            found[left[-i]] = free[-j]
    return (
        {word: {**pairs, **found}[word] for word in words if word in {**pairs, **found}}
        if (found)
        else {}
    )


def _strings(enum: Any) -> list[str]:
    return [word for word in enum or () if isinstance(word, str)][:64]


def _word_score(one: str, other: str) -> float:
    left, right = words_of_name(one), words_of_name(other)
    if not left or not right:
        return 0.0
    if left == right:
        return 1.0
    best = [max(words_alike(word, each) for each in right) for word in left]
    return 2 * sum(best) / (len(left) + len(right))


def item_key(one: SchemaField, other: SchemaField) -> tuple[str, str] | None:
    """Return the arguments key and value of the rule keyed, for a list and a map.

    `value` is "" if the value in the map is the item without its key. Return None if the list and
    the map do not have such a form.
    """
    fields: Mapping[str, Schema] = one.inner.get("properties") or {}
    for key in _keys(one.schema, fields):
        rest = [name for name in fields if name != key]
        kind = shape_of_field(other.inner)
        if kind == "object":
            return key, ""
        named = [name for name in rest if _alike(fields[name], other.inner)]
        if "value" in named or len(named) == 1:
            return key, "value" if "value" in named else named[0]
    return None


def _keys(schema: Schema, fields: Mapping[str, Schema]) -> Sequence[str]:
    stated = schema.get("x-kubernetes-list-map-keys") or ()
    found = stated if len(stated) == 1 else _KEY_NAMES if not stated else ()
    return [key for key in found if fields.get(key, {}).get("type") == "string"]
