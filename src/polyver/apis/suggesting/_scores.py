"""Score how likely two fields of different versions are the same field, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from polyver.apis.suggesting._fields import CONTAINERS, SchemaField
from polyver.apis.suggesting._relations import Relation, relation
from polyver.apis.suggesting._words import Vocabulary, unit_of
from polyver.languages.values.strings import same

__all__ = ["PairScore", "score_pair"]

_WEIGHTS: Final = {
    "name": 0.5,
    "description": 0.25,
    "limits": 0.35,
    # Two objects with the same fields inside are the same object, whatever their names are.
    "fields": 1.0,
    "place": 0.15,
    "lone": 0.3,
    # A required field seldom disappears while another required field of its type is added.
    "required": 0.6,
}
_FACTORS: Final[Mapping[Relation, float]] = {
    Relation.SAME: 1.0,
    Relation.VALUES: 1.0,
    Relation.SCALE: 1.0,
    Relation.DURATION: 0.95,
    Relation.CAST: 0.85,
    Relation.WRAP: 0.95,
    Relation.KEYED: 0.95,
}
_LIMITS: Final = (
    "format", "pattern", "enum", "minimum", "maximum", "minLength", "maxLength", "default",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PairScore:
    """How likely two fields are the same field, from 0 to 1, and the reasons."""

    one: SchemaField
    other: SchemaField
    relation: Relation
    value: float
    reasons: tuple[str, ...]


def score_pair(
    one: SchemaField, other: SchemaField, vocabulary: Vocabulary, *, lone: bool
) -> PairScore | None:
    """Score two fields; return None if no rule converts one to the other.

    `lone` states that each version has one such field without a partner in the same object.
    """
    related = relation(one, other)
    if related is None:
        return None
    found = {
        "name": _name(one, other, vocabulary, related),
        "description": _description(one, other),
        _fields_or_limits(one): _structure(one, other, related),
        "place": _place(one, other, vocabulary),
        "required" if one.required else "lone": 1.0 if lone else None,
    }
    known = {name: value for name, value in found.items() if value is not None}
    total = sum(_WEIGHTS[name] for name in known)
    value = sum(_WEIGHTS[name] * each for name, each in known.items()) / total
    return PairScore(
        one, other, related, value * _FACTORS[related], tuple(_reasons(one, other, related, known))
    )


def _name(one: SchemaField, other: SchemaField, vocabulary: Vocabulary, related: Relation) -> float:
    """Compare the names; the name of the object around a field may be part of a name."""
    words, others = one.words, other.words
    if related in (Relation.SCALE, Relation.DURATION):
        words, others = (tuple((unit_of(each) or (each,))[0]) for each in (words, others))
    best = vocabulary.alike(words, others)
    if best == 1 and _is_frequent(one, other, vocabulary):
        best = 0.6
    for around, inner, whole in ((one, words, others), (other, others, words)):
        if around.parent and around.parent.parent and len(whole) > len(inner):
            best = max(best, 0.95 * vocabulary.alike((*around.parent.words, *inner), whole))
    return best


def _is_frequent(one: SchemaField, other: SchemaField, vocabulary: Vocabulary) -> bool:
    """Report whether a shared name says little: many fields have it, at different places."""
    return one.path[:-1] != other.path[:-1] and vocabulary.names[one.name] > 2


def _description(one: SchemaField, other: SchemaField) -> float | None:
    if not one.prose or not other.prose:
        return None
    if one.schema["description"] == other.schema["description"]:
        return 1.0
    shared = len(one.prose & other.prose)
    return 2 * shared / (len(one.prose) + len(other.prose))


def _fields_or_limits(one: SchemaField) -> str:
    return "fields" if len(one.features) > 1 else "limits"


def _structure(one: SchemaField, other: SchemaField, related: Relation) -> float | None:
    left, right = one.features, other.features
    if related is Relation.WRAP:
        right = frozenset(each[2:] for each in right if each.startswith("[]") and each[2] != ":")
    if one.shape in CONTAINERS and (left or right) and related is not Relation.KEYED:
        return 2 * len(left & right) / (len(left) + len(right))
    if related is Relation.KEYED:
        return 0.9
    stated = [each for each in _LIMITS if each in one.schema or each in other.schema]
    if not stated or related is not Relation.SAME:
        return None
    equal = [same(one.schema.get(each), other.schema.get(each)) for each in stated]
    return sum(equal) / len(equal)


def _place(one: SchemaField, other: SchemaField, vocabulary: Vocabulary) -> float:
    around, others = one.path[:-1], other.path[:-1]
    if around == others:
        return 1.0
    words = [word for each in (one.parent,) if each is not None for word in each.words]
    there = [word for each in (other.parent,) if each is not None for word in each.words]
    return 0.6 * vocabulary.alike(words, there)


def _reasons(
    one: SchemaField, other: SchemaField, related: Relation, known: Mapping[str, float]
) -> list[str]:
    made = (
        [related.value]
        if one.shape in CONTAINERS or related is not Relation.SAME
        else [f"both {one.shape}"]
    )
    degrees = ((0.999, "same"), (0.5, "similar"))
    for name in ("name", "description"):
        if name in known:
            if name == "name" and one.name == other.name:
                made.append("same name")
                continue
            word = next((word for least, word in degrees if known[name] >= least), "different")
            made.append(f"{'similar' if name == 'name' and word == 'same' else word} {name}")
    for name, what in (("fields", "fields inside"), ("limits", "limits of the value")):
        if name in known and related is not Relation.KEYED:
            percent = round(100 * known[name])
            made.append(f"{percent} % of the {what} are equal" if percent < 100 else f"same {what}")
    if "lone" in known:
        made.append(f"the only additional {one.shape} in this object")
    if "required" in known:
        made.append(f"the only required {one.shape} without a partner in this object")
    return made
