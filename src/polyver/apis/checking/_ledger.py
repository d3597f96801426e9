"""The loss ledger: for each field of one version, the result of converting it to another version.

If the conversion path has only rules, the ledger is derived from the rules. The effect of a
conversion function cannot be derived from its code. So for a path with functions, `Observed`
compares objects before and after the conversion, field by field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal

from polyver.apis.checking.schema_paths import (
    ITEM,
    VALUE,
    Inside,
    Place,
    has,
    places,
    schema_at,
    show,
)
from polyver.apis.conversion import Converter, RuleBlock, positions
from polyver.apis.conversion.case_rules import DefaultRule, WhenRule
from polyver.apis.conversion.hops import ByRules
from polyver.apis.conversion.nested import EachRule, KeyedRule, MoveRule, WrapRule
from polyver.apis.conversion.paths import parse_path, pick
from polyver.apis.conversion.recursion import RecurseRule
from polyver.apis.conversion.reversal import ReversedRule, unreversed
from polyver.apis.conversion.rules import (
    CastRule,
    ConstRule,
    ConversionRule,
    DropRule,
    ScaleRule,
    SplitRule,
    ValuesRule,
)
from polyver.apis.conversion.structure_rules import RenameKeysRule
from polyver.apis.conversion.text_rules import TypedRule
from polyver.apis.conversion.values import MISSING, fits_64_bits
from polyver.core.plain import Object, Schema
from polyver.languages.values.strings import same, shown

__all__ = ["FieldConversion", "How", "Ledger", "Observed", "TracedValue", "ledger", "trace"]

How = Literal["kept", "moved", "transformed", "carried"]


@dataclass(frozen=True, slots=True)
class FieldConversion:
    """The result of a conversion for one field of the source version."""

    path: str
    how: How
    to: tuple[str, ...] = ()
    """The fields of the target version that get the value.

    Empty if no field gets it: the value is then only kept in the preserved fields, or is lost.
    """
    rules: tuple[str, ...] = ()
    """The names of the conversion rules that change the value."""
    exact: bool = True
    """True if the target version can express every value of the field, without preserved fields."""
    why: str = ""

    def as_data(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "how": self.how,
            "to": list(self.to),
            "rules": list(self.rules),
            "exact": self.exact,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Ledger:
    """The results of converting one version to another version: one result for each field."""

    source: str
    target: str
    fates: tuple[FieldConversion, ...]
    observed: bool = False
    """True if the ledger was observed on converted objects, False if it was derived from rules."""
    complete: bool = True
    """True if the ledger has all fields of the source version.

    If this version has no schema, the ledger has only the fields that rules name.
    """

    def as_data(self) -> dict[str, Any]:
        return {
            "from": self.source,
            "to": self.target,
            "observed": self.observed,
            "complete": self.complete,
            "fields": [each.as_data() for each in self.fates],
        }


@dataclass(frozen=True, slots=True)
class TracedValue:
    """The field to which conversion steps wrote a value, and the rules that changed the value."""

    place: Place
    rules: tuple[str, ...] = ()
    exact: bool = True
    carried: str = ""
    """The reason why no field of the target version gets the value; empty if a field gets it."""

    def behind(self, *steps: str | Inside) -> TracedValue:
        return replace(self, place=(*steps, *self.place))

    def by(self, rule: str, *, exact: bool = True) -> TracedValue:
        return replace(self, rules=(rule, *self.rules), exact=self.exact and exact)


def ledger(
    converter: Converter, schemas: Mapping[str, Schema], source: str, target: str
) -> Ledger | None:
    """Build the ledger of a conversion path; return None if the path has a conversion function."""
    way = converter.tree.way(source, target)
    hops = [hop.convert for hop in way]
    rules = [each for each in hops if isinstance(each, ByRules)]
    if len(rules) < len(hops):
        return None
    schema = schemas.get(source)
    known: Iterable[Place]
    if schema is None:
        known = dict.fromkeys(_named(rules[0]) if rules else ())
    else:
        known = places(schema, leaves=True)
    targets = [hop.target for hop in way]
    fates = [_fate(each, rules, targets, schemas, source) for each in known]
    return Ledger(source, target, tuple(fates), complete=schema is not None)


def _named(hop: ByRules) -> Iterator[Place]:
    """Yield the fields that the rules of a conversion step read."""
    for rule in hop.block.rules:
        yield from rule.ports(back=hop.back)[0]


def _fate(
    place: Place,
    hops: Sequence[ByRules],
    targets: Sequence[str],
    schemas: Mapping[str, Schema],
    source: str,
) -> FieldConversion:
    stops, lost, version = [TracedValue(place)], [], source
    for hop, target in zip(hops, targets, strict=True):
        arrived = []
        for stop in stops:
            said = schema_at(schemas.get(version), stop.place)
            arrived += [_joined(stop, each) for each in trace(hop, stop.place, target, said)]
        lost += [each.carried for each in arrived if each.carried]
        stops, version = [each for each in arrived if not each.carried], target
    if not stops:
        return FieldConversion(show(place), "carried", exact=False, why=lost[0])
    to = tuple(dict.fromkeys(show(each.place) for each in stops))
    rules = tuple(dict.fromkeys(name for each in stops for name in each.rules))
    how: How = "transformed" if rules else "kept" if to == (show(place),) else "moved"
    exact = not lost and all(each.exact for each in stops)
    return FieldConversion(show(place), how, to, rules, exact, lost[0] if lost else "")


def _joined(before: TracedValue, after: TracedValue) -> TracedValue:
    rules, exact = (*before.rules, *after.rules), before.exact and after.exact
    return replace(after, rules=rules, exact=exact)


def trace(hop: ByRules, place: Place, target: str, schema: Schema | None) -> list[TracedValue]:
    """Return the fields to which one conversion step writes the value of a field."""
    return _trace(hop.block, place, target, schema, back=hop.back)


def _trace(
    block: RuleBlock, place: Place, target: str, schema: Schema | None, *, back: bool
) -> list[TracedValue]:
    readers = _readers(block, back=back)
    for size in range(1, len(place) + 1):
        if (rule := readers.get(place[:size])) is not None:
            one, one_back = unreversed(rule, back=back)
            if isinstance(one, WhenRule):
                return _cases(one, place, target, schema, back=one_back)
            return _through(rule, place[size:], target, schema, back=back)
    if not has(block.written(back=back), place):
        return [TracedValue((), carried=f"{target} has no such field")]
    return [TracedValue(place)]


@lru_cache(maxsize=1024)
def _readers(block: RuleBlock, *, back: bool) -> Mapping[Place, ConversionRule]:
    """Return the rule that reads each path; no two rules read the same path."""
    return {port: rule for rule in block.rules for port in rule.ports(back=back)[0]}


def _through(
    rule: ConversionRule, rest: Place, target: str, schema: Schema | None, *, back: bool
) -> list[TracedValue]:
    """Return the fields to which a rule writes one part of the value that it converts.

    `rest` is the path of this part inside the value.
    """
    to = rule.ports(back=back)[1]
    match rule:
        case ReversedRule():
            return _through(rule.rule, rest, target, schema, back=not back)
        case DropRule():
            why = f"{target} has no such field" if rule.implied else "dropped by a rule"
            return [TracedValue((), carried=why)]
        case ConstRule():
            value = f"metadata.{rule.reference}" if rule.reference else shown(rule.value)
            return [TracedValue((), carried=f"unless it is {value}, which {target} implies")]
        case MoveRule() | DefaultRule():
            inside = _trace(rule.inside, rest, target, schema, back=back)
            found = [each if each.carried else each.behind(*to[0]) for each in inside]
            exact = back or bool(rest)
            is_move = isinstance(rule, MoveRule)
            return found if is_move else [each.by(rule.name, exact=exact) for each in found]
        case EachRule() | WrapRule() | KeyedRule() | RenameKeysRule() | RecurseRule():
            return _items(rule, rest, to[0], target, schema, back=back)
        case _:
            exact = _is_exact(rule, schema, back=back)
            return [TracedValue(path).by(rule.name, exact=exact) for path in to]


def _repeated(
    rule: RecurseRule, rest: Place, to: Place, target: str, schema: Schema | None, *, back: bool
) -> list[TracedValue]:
    """Return the fields to which `recurse` writes one part of its value."""
    if rule.ended:
        return [TracedValue((), carried=f"{target} has no such field")]
    if not rest or rule.repeated is None:
        return [TracedValue(to)]
    block = rule.repeated.block if rule.inside is None else rule.inside
    items = rest[0] is ITEM
    found = _trace(block, rest[1:] if items else rest, target, schema, back=back)
    around = (*to, ITEM) if items else to
    return [each if each.carried else each.behind(*around) for each in found]


def _cases(
    rule: WhenRule, place: Place, target: str, schema: Schema | None, *, back: bool
) -> list[TracedValue]:
    """Return the fields to which the cases of a rule write the value of a field."""
    reads, writes = rule.deciding.ports(back=back)
    if place[: len(reads[0])] == reads[0]:
        return [TracedValue(writes[0]).by(rule.name, exact=not rule.maps)]
    found: list[TracedValue] = []
    for block in rule.blocks:
        ports = [path for each in block.rules for path in each.ports(back=back)[0]]
        if any(place[: len(port)] == port for port in ports):
            found += _trace(block, place, target, schema, back=back)
        else:
            found.append(TracedValue((), carried=f"not in all cases of {rule.name}"))
    lost = any(each.carried for each in found)
    made = [each if each.carried else each.by(rule.name, exact=not lost) for each in found]
    return [*dict.fromkeys(made)]


def _items(
    rule: EachRule | WrapRule | KeyedRule | RenameKeysRule | RecurseRule,
    rest: Place,
    to: Place,
    target: str,
    schema: Schema | None,
    *,
    back: bool,
) -> list[TracedValue]:
    """Return the fields to which a rule for lists or maps writes one part of the list or map.

    `rest` is the path of this part inside the list or map.
    """
    if isinstance(rule, RecurseRule):
        return _repeated(rule, rest, to, target, schema, back=back)
    if isinstance(rule, WrapRule):
        return _wrapped(rule, rest, to, target, schema, back=back)
    if isinstance(rule, KeyedRule):
        return _keyed(rule, rest, to, target, schema, back=back)
    if isinstance(rule, RenameKeysRule):
        return _renamed(rule, rest, to, target, schema, back=back)
    found = [TracedValue(())]
    if rest:
        found = _trace(rule.inside, rest[1:], target, schema, back=back)
    return [each if each.carried else each.behind(*to, *rest[:1]) for each in found]


def _wrapped(
    rule: WrapRule, rest: Place, to: Place, target: str, schema: Schema | None, *, back: bool
) -> list[TracedValue]:
    inner, around = (rest[1:], to) if back else (rest, (*to, ITEM))
    if back and not rest:
        return [TracedValue(to).by("wrap", exact=False)]
    found = _trace(rule.inside, inner, target, schema, back=back)
    return [e if e.carried else e.behind(*around).by("wrap", exact=not back) for e in found]


def _renamed(
    rule: RenameKeysRule,
    rest: Place,
    to: Place,
    target: str,
    schema: Schema | None,
    *,
    back: bool,
) -> list[TracedValue]:
    if not rest:
        return [TracedValue(to).by(rule.name, exact=False)]
    key = rule.renamed(rest[0], back=back) if isinstance(rest[0], str) else rest[0]
    if key is None:
        return [TracedValue((), carried=f"{target} has no such key")]
    found = _trace(rule.inside, rest[1:], target, schema, back=back)
    return [e if e.carried else e.behind(*to, key).by(rule.name, exact=False) for e in found]


def _keyed(
    rule: KeyedRule, rest: Place, to: Place, target: str, schema: Schema | None, *, back: bool
) -> list[TracedValue]:
    exact = back and bool(rule.value)
    if len(rest) < 2 and not (back and rest):
        return [TracedValue(to).by("keyed", exact=exact)]
    if back:
        around: Place = (*to, ITEM, rule.value) if rule.value else (*to, ITEM)
        inner = rest[1:]
    elif rest[1] == rule.key:
        return [TracedValue((*to, VALUE)).by("keyed", exact=False)]
    elif rule.value and rest[1] != rule.value:
        return [TracedValue((), carried=f"keyed has no field for it in {target}")]
    else:
        around, inner = (*to, VALUE), rest[2:] if rule.value else rest[1:]
    found = _trace(rule.inside, inner, target, schema, back=back)
    return [e if e.carried else e.behind(*around).by("keyed", exact=exact) for e in found]


# Rules that convert, without loss, every value that the schema allows. Such a rule needs no
# preserved fields.


_EXACT_CASTS: Final = {
    ("integer", "string"),
    ("integer", "number"),
    ("boolean", "string"),
    ("boolean", "integer"),
    ("boolean", "number"),
}


def _is_exact(rule: ConversionRule, schema: Schema | None, *, back: bool) -> bool:
    """Report whether a rule converts, without loss, every value that the schema allows."""
    match rule:
        case CastRule():
            kinds = (rule.source_type, rule.target_type)
            pair = kinds[::-1] if back else kinds
            return pair[0] == pair[1] or pair in _EXACT_CASTS
        case ScaleRule():
            kind = rule.source_type if back else rule.target_type
            factor = 1 / rule.factor if back else rule.factor
            exact = kind == "integer" and factor.denominator == 1
            return exact and fits_64_bits(schema or {}, factor)
        case SplitRule():
            texts = all(kind == "string" for kind in rule.types)
            return not back and texts and rule.absent is None
        case ValuesRule():
            words = rule.words.values() if back else rule.words.keys()
            enum = (schema or {}).get("enum") or ()
            return bool(enum) and all(each in words for each in enum)
        case TypedRule():
            return rule.is_exact(schema or {}, back=back)
        case _:
            return False


# The ledger of conversion paths with functions.


class Observed:
    """Counts in how many objects a conversion kept, changed or preserved each field.

    It is used for conversion functions, whose effect is not visible in their code.
    """

    def __init__(
        self, converter: Converter, source: str, target: str, schema: Mapping[str, Any]
    ) -> None:
        self._converter = converter
        self.source = source
        self.target = target
        known = (_up_to_list(place) for place in places(schema, leaves=True))
        self._seen: dict[Place, dict[str, int]] = {place: {} for place in dict.fromkeys(known)}
        self.edited_lists: dict[str, dict[str, None]] = {}
        """The lists whose items nothing identifies, and the preserved fields of their items."""

    def see(self, obj: Object, made: Object) -> None:
        """Add one object of the source version to the counts; `made` is the converted object."""
        visible = self._converter.visible(made)
        carried = self._converter.carried(made)
        lost = [parse_path(text) for text in carried.get(self.source, [])]
        for at, part in positions(self._converter.keeping.split(made)[1].lost.get(self.source, {})):
            self.edited_lists.setdefault(at, {})[part] = None
        for place, seen in self._seen.items():
            path = tuple(step for step in place if isinstance(step, str))
            value = pick(obj, path)
            if value is MISSING:
                continue
            if any(path[: len(each)] == each or each[: len(path)] == path for each in lost):
                word = "carried"
            else:
                word = "kept" if same(pick(visible, path), value) else "changed"
            seen[word] = seen.get(word, 0) + 1

    def ledger(self) -> Ledger:
        fates = tuple(_observed_fate(show(place), seen) for place, seen in self._seen.items())
        return Ledger(self.source, self.target, fates, observed=True)


def _up_to_list(place: Place) -> Place:
    """Cut a path at its first list or map.

    After a conversion function, it is unknown which old and new items belong together.
    """
    unnamed = [number for number, step in enumerate(place) if isinstance(step, Inside)]
    return place[: unnamed[0]] if unnamed else place


def _observed_fate(path: str, seen: Mapping[str, int]) -> FieldConversion:
    total = sum(seen.values())
    if not total:
        return FieldConversion(
            path, "transformed", rules=("function",), exact=False, why="not observed"
        )
    carried = seen.get("carried", 0)
    if carried == total:
        return FieldConversion(path, "carried", exact=False, why="the function does not restore it")
    why = f"preserved in {carried} of {total} objects" if carried else ""
    if seen.get("changed"):
        return FieldConversion(path, "transformed", rules=("function",), exact=not carried, why=why)
    return FieldConversion(path, "kept", (path,), exact=not carried, why=why)
