"""Draft the rules between two schemas.

A field with the same path and type needs no rule. All other fields are matched by `match_fields`; a
pair gets the rule that its types need. A field without a partner is preserved, and listed by a rule
`drop` or `add`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from polyver.apis.conversion.paths import Path, show_path
from polyver.apis.suggesting._fields import SchemaField, fields_of
from polyver.apis.suggesting._matching import match_fields
from polyver.apis.suggesting._relations import (
    Relation,
    duration_unit,
    enum_pairs,
    item_key,
    relation,
    scale_factor,
)
from polyver.apis.suggesting._scores import PairScore
from polyver.apis.suggesting._splits import SplitPair, find_splits
from polyver.apis.suggesting._words import Vocabulary
from polyver.core.plain import Schema

__all__ = ["SuggestedRule", "draft_rules"]

_SAME_PATH: Final = 0.97
_SPLIT: Final = 0.65
_DEEPEST: Final = 40


@dataclass(frozen=True, slots=True)
class SuggestedRule:
    """A conversion rule with the probability that it is right, and the reason."""

    name: str
    arguments: Mapping[str, Any]
    confidence: float
    reason: str
    source: Path = ()
    """The path in the version `from`; () if only the other version has the field."""
    target: Path = ()
    inside: tuple[SuggestedRule, ...] = ()

    @property
    def preserves(self) -> bool:
        """True if the rule only lists a field that the other version does not have."""
        return self.name in ("drop", "add")

    def as_data(self) -> dict[str, Any]:
        """Return the rule as in a Conversion."""
        inner = {"rules": [each.as_data() for each in self.inside]} if self.inside else {}
        return {self.name: {**self.arguments, **inner}}

    def all(self) -> Iterator[SuggestedRule]:
        """Yield the rule and all rules inside of it."""
        yield self
        for each in self.inside:
            yield from each.all()


def draft_rules(
    old: Schema, new: Schema, versions: tuple[str, str], *, minimum: float
) -> tuple[SuggestedRule, ...]:
    """Draft the rules from the version with the schema `old` to the version with the schema `new`.

    `minimum` is the least confidence of a rule; less likely pairs are listed as preserved.
    """
    return _Draft(versions, minimum).block(old, new, root=True)


@dataclass(slots=True)
class _Draft:
    versions: tuple[str, str]
    minimum: float
    depth: int = 0

    def block(self, old: Schema, new: Schema, *, root: bool = False) -> tuple[SuggestedRule, ...]:
        """Draft the rules for objects with these schemas; () if none is needed."""
        if old == new or self.depth > _DEEPEST:
            return ()
        self.depth += 1
        lefts, rights = fields_of(old, root=root), fields_of(new, root=root)
        walk = _Walk()
        walk.compare(lefts, rights, is_open=(_is_open(old), _is_open(new)))
        rules = [rule for pair in walk.kept for rule in self._kept(*pair)]
        names = [each.name for side in (lefts, rights) for top in side for each in top.within()]
        splits = [*find_splits(walk.old, walk.new)] if self.minimum <= _SPLIT else []
        rules += map(_split_rule, splits)
        apart = {each for pair in splits for each in (pair.one, *pair.into)}
        olds, news = ([each for each in side if each not in apart] for side in (walk.old, walk.new))
        matches = match_fields(olds, news, Vocabulary(names), minimum=self.minimum)
        rules += map(self._rule, matches.chosen)
        rules.sort(key=lambda rule: rule.source)
        taken = {each.one for each in matches.chosen} | {each.other for each in matches.chosen}
        for fields, added in ((olds, False), (news, True)):
            rules += self._preserved(fields, taken, matches.likely, added=added)
        self.depth -= 1
        return tuple(rules)

    def _kept(self, one: SchemaField, other: SchemaField) -> Iterator[SuggestedRule]:
        """Draft the rule for a field with the same path in both versions, if it needs one."""
        related = relation(one, other)
        assert related is not None
        if related is not Relation.SAME:
            reason = f"same path; {related.value}"
            yield self._rule(PairScore(one, other, related, _SAME_PATH, (reason,)))
        elif inside := self._items(one, other):
            arguments, reason = {"at": str(one)}, "same path and type"
            yield SuggestedRule("each", arguments, 1.0, reason, one.path, other.path, inside)

    def _rule(self, pair: PairScore) -> SuggestedRule:
        name, arguments, inside = self._arguments(pair)
        reason = "; ".join(pair.reasons)
        one, other = pair.one.path, pair.other.path
        made = SuggestedRule(name, arguments, min(pair.value, 0.99), reason, one, other, inside)
        left = [word for word in pair.one.schema.get("enum") or () if name == "values"]
        if unmapped := [word for word in left if word not in arguments["map"]]:
            made = replace(made, reason=f"{reason}; without a partner: {', '.join(unmapped)}")
        return made

    def _arguments(self, pair: PairScore) -> tuple[str, dict[str, Any], tuple[SuggestedRule, ...]]:
        """Return the name, the arguments and the inner rules of the rule for a pair."""
        one, other = pair.one, pair.other
        both = {"from": str(one), "to": str(other)}
        at = {"at": str(one)} | ({"as": str(other)} if one.path != other.path else {})
        match pair.relation:
            case Relation.VALUES:
                return "values", {**at, "map": enum_pairs(one, other)}, ()
            case Relation.CAST:
                return "cast", {**at, "from": one.shape, "to": other.shape}, ()
            case Relation.SCALE | Relation.DURATION:
                return pair.relation.name.lower(), both | _units(one, other), ()
            case Relation.WRAP:
                return "wrap", both, self._inside(one.schema, other.inner)
            case Relation.KEYED:
                return "keyed", *self._keyed(one, other, both)
        return self._copied(one, other)

    def _copied(
        self, one: SchemaField, other: SchemaField
    ) -> tuple[str, dict[str, Any], tuple[SuggestedRule, ...]]:
        at = {"at": str(one), "as": str(other)}
        if inside := self._items(one, other):
            return "each", at, inside
        if inside := self._inside(one.schema, other.schema):
            return "within", at, inside
        return "move", {"from": str(one), "to": str(other)}, ()

    def _items(self, one: SchemaField, other: SchemaField) -> tuple[SuggestedRule, ...]:
        is_listed = one.shape in ("list", "map") and one.shape == other.shape
        return self.block(one.inner, other.inner) if is_listed else ()

    def _inside(self, one: Schema, other: Schema) -> tuple[SuggestedRule, ...]:
        return self.block(one, other) if "properties" in one and "properties" in other else ()

    def _keyed(
        self, one: SchemaField, other: SchemaField, both: dict[str, Any]
    ) -> tuple[dict[str, Any], tuple[SuggestedRule, ...]]:
        found = item_key(one, other)
        assert found is not None
        key, value = found
        if value:
            return {**both, "key": key, "value": value}, ()
        fields = {name: each for name, each in one.inner["properties"].items() if name != key}
        item = {**one.inner, "properties": fields}
        return {**both, "key": key}, self._inside(item, other.inner)

    def _preserved(
        self,
        fields: Iterable[SchemaField],
        taken: set[SchemaField],
        likely: Mapping[SchemaField, PairScore],
        *,
        added: bool,
    ) -> Iterator[SuggestedRule]:
        """Yield a rule for each outermost field without a partner inside of it."""
        here, there = self.versions[::-1] if added else self.versions
        for each in fields:
            if each in taken:
                continue
            if any(inner in taken for inner in each.within()):
                yield from self._preserved(each.children, taken, likely, added=added)
                continue
            reason = f"only {here} has it"
            if added and each.required and "default" not in each.schema:
                reason += f", and requires it: objects of {there} do not have it"
            if (close := likely.get(each)) and close.value > 0.4:
                other = close.one if added else close.other
                reason += f"; perhaps {other} of {there} ({close.value:.0%})"
            name, at = ("add" if added else "drop"), {"at": show_path(each.path)}
            paths = ((), each.path) if added else (each.path, ())
            yield SuggestedRule(name, at, 1.0, reason, *paths)


def _split_rule(pair: SplitPair) -> SuggestedRule:
    into = [str(each) for each in pair.into]
    arguments: dict[str, Any] = {"from": str(pair.one), "into": into, "separator": pair.separator}
    if any(each.shape != "string" for each in pair.into):
        arguments["types"] = [each.shape for each in pair.into]
    reason = f"the name consists of the names {' and '.join(each.name for each in pair.into)}"
    reason += f'; the separator "{pair.separator}" is assumed'
    return SuggestedRule("split", arguments, _SPLIT, reason, pair.one.path, pair.into[0].path)


def _units(one: SchemaField, other: SchemaField) -> dict[str, Any]:
    """Return the arguments of the rules scale and duration, except the paths."""
    factor = scale_factor(one, other)
    if factor is None:
        types = [one.shape, other.shape]
        usual = types == ["string", "integer"]
        return {"unit": duration_unit(one, other)} | ({} if usual else {"types": types})
    whole = factor.denominator == 1
    made: dict[str, Any] = {"factor": factor.numerator if whole else str(factor)}
    if (one.shape, other.shape) != ("integer", "integer"):
        made["types"] = [one.shape, other.shape]
    return made


def _is_open(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-preserve-unknown-fields"))


@dataclass(slots=True)
class _Walk:
    """The comparison of two trees of fields at equal paths."""

    kept: list[tuple[SchemaField, SchemaField]] = field(default_factory=list)
    """Pairs with the same path whose values can be converted, except objects."""
    old: list[SchemaField] = field(default_factory=list)
    """The outermost fields that have no partner at the same path."""
    new: list[SchemaField] = field(default_factory=list)

    def compare(
        self,
        olds: Iterable[SchemaField],
        news: Iterable[SchemaField],
        *,
        is_open: tuple[bool, bool],
    ) -> None:
        """Compare the fields of two objects.

        An object that keeps unknown fields (`is_open`) has every field of the other version.
        """
        others = {each.name: each for each in news}
        for one in olds:
            other = others.pop(one.name, None)
            if other is None:
                self.old += [] if is_open[1] else [one]
            else:
                self._pair(one, other)
        self.new += [] if is_open[0] else others.values()

    def _pair(self, one: SchemaField, other: SchemaField) -> None:
        if one.shape == other.shape == "object":
            opened = _is_open(one.schema), _is_open(other.schema)
            self.compare(one.children, other.children, is_open=opened)
        elif relation(one, other) is not None:
            self.kept.append((one, other))
        else:
            self.old.append(one)
            self.new.append(other)
