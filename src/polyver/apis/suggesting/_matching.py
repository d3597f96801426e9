"""Match fields that only one version has with fields that only the other version has.

Comparing all pairs would cost the product of the numbers of fields. So an index finds, for each
field, the few fields that share a word of the name, a rare word of the description, fields inside,
words of an enum, or the object around them. Only these pairs are scored, and the best pairs are
chosen first. The cost grows with the number of fields.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from polyver.apis.suggesting._fields import CONTAINERS, SchemaField
from polyver.apis.suggesting._scores import PairScore, score_pair
from polyver.apis.suggesting._words import Vocabulary

__all__ = ["Matches", "match_fields"]

_MOST_IN_ENTRY: Final = 64
"""Entries of the index with more fields say nothing, and are not used."""
_MOST_CANDIDATES: Final = 12
_MARGIN: Final = 0.1
"""A pair that is better than its rivals by less than this is less certain."""


@dataclass(slots=True)
class Matches:
    """The chosen pairs, and for each field without a partner the pair that was nearly chosen."""

    chosen: list[PairScore] = field(default_factory=list)
    likely: dict[SchemaField, PairScore] = field(default_factory=dict)


def match_fields(
    old: Sequence[SchemaField],
    new: Sequence[SchemaField],
    vocabulary: Vocabulary,
    *,
    minimum: float,
) -> Matches:
    """Match fields of two versions; `old` and `new` are the outermost fields without a partner.

    The result has no two pairs with the same field, or with a field and a field inside of it. Pairs
    of objects, lists and maps are chosen before pairs of scalars, so that a moved object stays
    whole.
    """
    scored = [_less_certain(each) for each in _rated(_scores(old, new, vocabulary))]
    made, claims = Matches(), (_Claims(), _Claims())
    ordered = sorted(scored, key=_order)
    for each in ordered:
        if each.value >= minimum and claims[0].free(each.one) and claims[1].free(each.other):
            made.chosen.append(each)
            claims[0].take(each.one)
            claims[1].take(each.other)
    for each in ordered:
        if claims[0].free(each.one) and claims[1].free(each.other):
            made.likely.setdefault(each.one, each)
            made.likely.setdefault(each.other, each)
    return made


def _order(pair: PairScore) -> tuple[bool, float, str, str]:
    whole = pair.one.shape in CONTAINERS and pair.other.shape in CONTAINERS
    return not whole, -pair.value, str(pair.one), str(pair.other)


@dataclass(slots=True)
class _Claims:
    """The fields of one version that have a partner, with those around and inside of them."""

    taken: set[SchemaField] = field(default_factory=set)
    around: set[SchemaField] = field(default_factory=set)

    def free(self, one: SchemaField) -> bool:
        return one not in self.around and not any(each in self.taken for each in _upwards(one))

    def take(self, one: SchemaField) -> None:
        self.taken.add(one)
        self.around.update(_upwards(one))


def _upwards(one: SchemaField | None) -> Iterator[SchemaField]:
    while one is not None:
        yield one
        one = one.parent


@dataclass(frozen=True, slots=True)
class _Rated:
    pair: PairScore
    rival: float
    """The score of the best other pair with one of the two fields."""


def _rated(pairs: Sequence[PairScore]) -> Iterator[_Rated]:
    best: dict[SchemaField, list[float]] = defaultdict(list)
    for each in pairs:
        best[each.one].append(each.value)
        best[each.other].append(each.value)
    top = {side: sorted(values, reverse=True)[:2] for side, values in best.items()}
    for each in pairs:
        rivals = [_rival(top[side], each.value) for side in (each.one, each.other)]
        yield _Rated(each, max(rivals))


def _rival(top: Sequence[float], own: float) -> float:
    if len(top) < 2:
        return 0.0
    return top[1] if top[0] == own else top[0]


def _less_certain(rated: _Rated) -> PairScore:
    pair, close = rated.pair, _MARGIN - (rated.pair.value - rated.rival)
    if close <= 0:
        return pair
    reasons = (*pair.reasons, "another field is as likely")
    return replace(pair, value=max(0.0, pair.value - min(close, _MARGIN)), reasons=reasons)


def _scores(
    old: Sequence[SchemaField], new: Sequence[SchemaField], vocabulary: Vocabulary
) -> list[PairScore]:
    olds = [field for each in old for field in each.within()]
    news = [field for each in new for field in each.within()]
    lone = _lone(old), _lone(new)
    index: dict[tuple[str, object], list[int]] = defaultdict(list)
    for number, each in enumerate(news):
        for key in _keys(each):
            index[key].append(number)
    made = []
    for one in olds:
        home = _home(one)
        for other in _candidates(one, index, news):
            alone = home == _home(other) and lone[0][home] == lone[1][home] == 1
            found = score_pair(one, other, vocabulary, lone=alone)
            if found is not None:
                made.append(found)
    return made


def _candidates(
    one: SchemaField, index: dict[tuple[str, object], list[int]], news: Sequence[SchemaField]
) -> list[SchemaField]:
    votes: Counter[int] = Counter()
    for key in _keys(one):
        entry = index.get(key, ())
        if len(entry) <= _MOST_IN_ENTRY:
            for number in entry:
                votes[number] += 1 + 3 * (key[0] == "name")
    chosen = sorted(votes, key=lambda number: (-votes[number], number))[:_MOST_CANDIDATES]
    return [news[number] for number in chosen]


def _keys(one: SchemaField) -> set[tuple[str, object]]:
    """Return the keys of the index under which a field is found."""
    keys: set[tuple[str, object]] = {("name", one.name), ("home", one.path[:-1])}
    keys |= {("word", word[:3]) for word in one.words if len(word) > 1}
    keys |= {("prose", word) for word in one.prose}
    keys |= {("inside", each) for each in sorted(one.features)[:24]}
    keys |= {("enum", str(word).lower()) for word in (one.schema.get("enum") or ())[:24]}
    return keys


def _home(one: SchemaField) -> tuple[tuple[str, ...], str, bool]:
    return one.path[:-1], one.shape, one.required


def _lone(outermost: Iterable[SchemaField]) -> Counter[tuple[tuple[str, ...], str, bool]]:
    """Count the outermost fields without a partner that are alike: in one object, of one shape."""
    return Counter(map(_home, outermost))
