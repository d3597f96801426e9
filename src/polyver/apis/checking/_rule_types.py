"""Find conversion rules that name fields which do not exist, or that expect another field type.

`polyver check` calls `fitting`, which reports all findings. When a user applies a Conversion,
`check_types` refuses wrong types, as the user may not have run `polyver check`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from polyver.apis.checking._expression_types import expression_problems
from polyver.apis.checking._findings import ConversionFinding, found
from polyver.apis.checking._ledger import trace
from polyver.apis.checking.schema_paths import (
    ITEM,
    VALUE,
    Place,
    has,
    named_in,
    places,
    schema_at,
    show,
)
from polyver.apis.conversion import Converter, DeclaredConversion, DeclaredEdge
from polyver.apis.conversion.case_rules import DefaultRule, WhenRule
from polyver.apis.conversion.hops import ByRules
from polyver.apis.conversion.nested import EachRule, KeyedRule, MoveRule, NestedRule, WrapRule
from polyver.apis.conversion.recursion import RecurseRule
from polyver.apis.conversion.reversal import ReversedRule
from polyver.apis.conversion.rules import (
    CastRule,
    ConstRule,
    ConversionRule,
    DropRule,
    ScaleRule,
    SingleFieldRule,
    SplitRule,
)
from polyver.apis.conversion.rules import ValuesRule as Words
from polyver.apis.conversion.structure_rules import RenameKeysRule
from polyver.apis.conversion.text_rules import TypedRule
from polyver.apis.conversion.value_rules import CelRule
from polyver.apis.definition import Definition
from polyver.core.plain import Schema
from polyver.kube.objects.schema import is_valid
from polyver.kube.objects.schema.structure import META_FIELDS, StructuralSchema, read_structure
from polyver.languages.values.strings import shown

__all__ = ["check_types", "fitting"]


def fitting(
    converter: Converter, schemas: Mapping[str, Schema], kind: str
) -> Iterator[ConversionFinding]:
    """Yield a finding for each error in a rule.

    A rule has an error if it names a field that the schema does not have, or if the type of the
    field does not fit the rule.
    """
    for version in (each for each in converter.versions if each not in schemas):
        yield found("no-schema", kind, f"{version} has no schema", versions=(version,))
    for edge in converter.tree.edges:
        if isinstance(edge.forward, ByRules):
            sides = (
                Side(edge.source, schemas.get(edge.source)),
                Side(edge.target, schemas.get(edge.target)),
            )
            for rule in edge.forward.block.rules:
                yield from Fit(kind, *sides).rule(rule)
            assert isinstance(edge.back, ByRules)
            types = (*_types(edge.forward, *sides, kind), *_types(edge.back, *sides[::-1], kind))
            yield from (replace(each, place=edge.forward.place) for each in types)


@dataclass(frozen=True)
class Side:
    """One version, and a path in its objects; the checks use the schema at this path."""

    version: str
    schema: Schema | None
    """The schema at this path; None if the path has no schema."""
    at: Place = ()

    def inside(self, *steps: Any) -> Side:
        return Side(self.version, schema_at(self.schema, steps), (*self.at, *steps))

    def has(self, path: Place) -> bool:
        if self.schema is None or (not self.at and path[0] in META_FIELDS):
            return True
        return has(self._structure, path)

    @cached_property
    def _structure(self) -> StructuralSchema:
        return read_structure(self.schema or {})


@dataclass(frozen=True, slots=True)
class Fit:
    """Checks whether rules fit the schemas of the two versions between which they convert."""

    kind: str
    source: Side
    target: Side
    is_repeated: bool = False
    """True for rules that `recurse` applies again, where the schema may end."""

    def rule(self, rule: ConversionRule) -> Iterator[ConversionFinding]:
        """Yield a finding for each error in a rule, with the file and line of the rule."""
        for each in self._errors(rule):
            yield each if each.place else replace(each, place=rule.place)

    def _errors(self, rule: ConversionRule) -> Iterator[ConversionFinding]:
        if isinstance(rule, DropRule) and rule.implied:
            return
        unknown = [*self._unknown(rule)]
        if isinstance(rule, RecurseRule) and self.is_repeated and unknown:
            return
        yield from unknown or self._misfits(rule)

    def _misfits(self, rule: ConversionRule) -> Iterator[ConversionFinding]:
        match rule:
            case ReversedRule():
                yield from self.reversed().rule(rule.rule)
            case DropRule():
                yield from self._dropped(rule)
            case ConstRule(reference=""):
                yield from self._constant(rule, rule.at, rule.value)
            case Words():
                yield from self._mapped(rule, self.source, rule.source, [*rule.words])
                yield from self._mapped(rule, self.target, rule.target, [*rule.words.values()])
            case TypedRule():
                yield from self._expected(rule)
            case CastRule() | ScaleRule() | SplitRule():
                yield from self._scalars(rule)
            case CelRule():
                yield from self._expressions(rule)
            case WhenRule() | DefaultRule() | RecurseRule():
                yield from self._dependent(rule)
            case MoveRule() | EachRule() | WrapRule() | KeyedRule() | RenameKeysRule():
                yield from self._nested(rule)

    def _unknown(self, rule: ConversionRule) -> Iterator[ConversionFinding]:
        for side, path in self._named(rule):
            if not side.has(path):
                at = show((*side.at, *path))
                fact = f"the rule {rule.name} names {at}, but {side.version} has no such field"
                yield self._found("unknown-field", fact, side, path)

    def _named(self, rule: ConversionRule) -> Iterator[tuple[Side, Place]]:
        """Yield the fields that a rule names, also those inside of its lists and objects."""
        for side, back in ((self.source, False), (self.target, True)):
            for path, schema in zip(rule.ports(back=back)[0], rule.schemas(back=back), strict=True):
                yield side, path
                yield from ((side, (*path, *inner)) for inner in named_in(schema))

    def _found(self, rule: str, fact: str, side: Side, path: Place) -> ConversionFinding:
        at = show((*side.at, *path))
        return found(rule, self.kind, fact, versions=(side.version,), path=at)

    def _dropped(self, rule: DropRule) -> Iterator[ConversionFinding]:
        other = self.source if rule.added else self.target
        if schema_at(other.schema, rule.at) is not None:
            fact = f"a rule drops it, but {other.version} has this field"
            yield self._found("dropped-known", fact, other, rule.at)

    def _constant(
        self, rule: ConversionRule, path: Place, value: Any
    ) -> Iterator[ConversionFinding]:
        schema = schema_at(self.target.schema, path)
        if schema is not None and not is_valid(schema)(value):
            fact = f"{rule.name} writes {shown(value)}, which the schema refuses"
            yield self._found("value", fact, self.target, path)

    def _mapped(
        self, rule: ConversionRule, side: Side, path: Place, words: Sequence[Any]
    ) -> Iterator[ConversionFinding]:
        schema = schema_at(side.schema, path)
        if schema is None:
            return
        for word in words:
            if not is_valid(schema)(word):
                fact = f"{rule.name} writes {shown(word)}, which the schema refuses"
                yield self._found("value", fact, side, path)
        for each in schema.get("enum") or ():
            if each not in words:
                fact = f"{rule.name} does not map {shown(each)}"
                yield self._found("unmapped", fact, side, path)

    def _dependent(self, rule: WhenRule | DefaultRule | RecurseRule) -> Iterator[ConversionFinding]:
        if isinstance(rule, RecurseRule):
            yield from self._repeated(rule)
            return
        if isinstance(rule, DefaultRule):
            yield from self._constant(rule, rule.target, rule.value)
            yield from self._nested(rule)
            return
        if rule.maps:
            for side, path, back in (
                (self.source, rule.source, False),
                (self.target, rule.target, True),
            ):
                yield from self._mapped(rule, side, path, rule.known(back=back))
        for each in (each for block in rule.blocks for each in block.rules):
            yield from self.rule(each)

    def _scalars(self, rule: CastRule | ScaleRule | SplitRule) -> Iterator[ConversionFinding]:
        if isinstance(rule, SplitRule):
            yield from self._typed(rule, self.source, rule.source, "string")
            for path, kind in zip(rule.into, rule.types, strict=True):
                yield from self._typed(rule, self.target, path, kind)
            return
        yield from self._typed(rule, self.source, rule.source, rule.source_type)
        yield from self._typed(rule, self.target, rule.target, rule.target_type)

    def ends(self, rule: SingleFieldRule) -> tuple[Side, Side]:
        """Return the two sides at the field of a rule."""
        return self.source.inside(*rule.source), self.target.inside(*rule.target)

    def repeated(self, rule: RecurseRule) -> Fit | None:
        """Return a `Fit` for the rules that a rule applies again; None where the schemas end."""
        if not (self.source.has(rule.source) and self.target.has(rule.target)):
            return None
        one, other = (
            side.inside(ITEM) if _type(side) == "array" else side for side in self.ends(rule)
        )
        if one.schema is None and other.schema is None:
            return None
        return replace(self, source=one, target=other, is_repeated=True)

    def _repeated(self, rule: RecurseRule) -> Iterator[ConversionFinding]:
        if (inside := self.repeated(rule)) is not None:
            yield from _shapes(rule, *self.ends(rule), self.kind)
            for each in rule.repeated_rules:
                yield from inside.rule(each)

    def reversed(self) -> Fit:
        """Return a `Fit` for the rules of a reversed rule."""
        return replace(self, source=self.target, target=self.source)

    def _expected(self, rule: TypedRule) -> Iterator[ConversionFinding]:
        for side, back in ((self.source, False), (self.target, True)):
            schemas = rule.schemas(back=back)
            for path, expected in zip(rule.ports(back=back)[0], schemas, strict=True):
                for place, kind in _types_in(path, expected):
                    yield from self._typed(rule, side, place, kind)
        for one, other in rule.copies():
            source, target = self.source.inside(*_place(one)), self.target.inside(*_place(other))
            yield from _uncopied(rule.name, source, target, self.kind)

    def _expressions(self, rule: CelRule) -> Iterator[ConversionFinding]:
        sources = [schema_at(self.source.schema, path) for path in rule.sources]
        targets = [schema_at(self.target.schema, path) for path in rule.targets]
        for is_target, path, fact in expression_problems(rule, sources, targets):
            yield self._found("type", fact, self.target if is_target else self.source, path)

    def _typed(
        self, rule: ConversionRule, side: Side, path: Place, expected: str
    ) -> Iterator[ConversionFinding]:
        """Yield a finding if the schema gives a field another type than its rule expects."""
        schema = schema_at(side.schema, path) or {}
        said = schema.get("type") or expected
        if said != expected and (expected, said) != ("integer", "number"):
            needed = "a list" if expected == "array" else _a(expected)
            fact = f"{rule.name} expects {needed}, but the schema has type {said}"
            yield self._found("type", fact, side, path)

    def _nested(self, rule: NestedRule) -> Iterator[ConversionFinding]:
        one, other = self.source.inside(*rule.source), self.target.inside(*rule.target)
        wrong = [*_shapes(rule, one, other, self.kind)]
        yield from wrong
        if wrong:
            return
        inside = self.inside(rule)
        for key in rule.source_keys if isinstance(rule, EachRule) else ():
            if not inside.source.has((key,)):
                at = show((*inside.source.at, key))
                fact = f"each identifies items by {at}, but {one.version} has no such field"
                yield self._found("unknown-field", fact, inside.source, (key,))
        for each in rule.inside.rules:
            yield from inside.rule(each)

    def inside(self, rule: NestedRule) -> Fit:
        """Return a `Fit` that compares the rules inside of a rule.

        The paths of the inner rules begin at the two paths of the outer rule.
        """
        one, other = self.source.inside(*rule.source), self.target.inside(*rule.target)
        if isinstance(rule, WrapRule):
            other = other.inside(ITEM)
        elif isinstance(rule, KeyedRule):
            one = one.inside(ITEM, rule.value) if rule.value else one.inside(ITEM)
            other = other.inside(VALUE)
        elif isinstance(rule, RenameKeysRule):
            one, other = one.inside(VALUE), other.inside(VALUE)
        elif isinstance(rule, EachRule):
            one, other = (_unnamed(each) for each in (one, other))
        return replace(self, source=one, target=other)


def _place(path: Sequence[str | None]) -> Place:
    return tuple(ITEM if step is None else step for step in path)


def _types_in(path: Place, expected: Schema) -> Iterator[tuple[Place, str]]:
    """Yield the types that a schema states, with their paths."""
    if "type" in expected:
        yield path, expected["type"]
    for name, inside in expected.get("properties", {}).items():
        yield from _types_in((*path, name), inside)
    if "items" in expected:
        yield from _types_in((*path, ITEM), expected["items"])


def _unnamed(side: Side) -> Side:
    return side.inside(ITEM if (side.schema or {}).get("type") == "array" else VALUE)


def _shapes(rule: ConversionRule, one: Side, other: Side, kind: str) -> Iterator[ConversionFinding]:
    """Yield a finding if a rule expects a list or a map, and the schema has another type there."""
    expected: tuple[tuple[Side, Sequence[str]], ...] = ()
    if isinstance(rule, WrapRule):
        expected = ((other, ["array"]),)
    elif isinstance(rule, KeyedRule):
        expected = ((one, ["array"]), (other, ["object"]))
    elif isinstance(rule, RenameKeysRule):
        expected = ((one, ["object"]), (other, ["object"]))
    elif isinstance(rule, EachRule | RecurseRule):
        expected = ((one, ["array", "object"]), (other, ["array", "object"]))
    mixed = {_type(one), _type(other)} == {"array", "object"}
    if mixed and isinstance(rule, EachRule | RecurseRule):
        fact = (
            f"{rule.name} needs a list in both versions, or a map in both; {other.version} differs"
        )
        yield found("type", kind, fact, versions=(one.version,), path=show(one.at))
    for side, kinds in expected:
        said = (side.schema or {}).get("type") or kinds[0]
        if said not in kinds:
            needed = " or ".join(_a(_WORDS[each]) for each in kinds)
            fact = f"{rule.name} needs {needed}, but the schema has type {said}"
            yield found("type", kind, fact, versions=(side.version,), path=show(side.at))


def _type(side: Side) -> Any:
    return (side.schema or {}).get("type")


_WORDS = {"array": "list", "object": "map"}


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def _types(hop: ByRules, source: Side, target: Side, kind: str) -> Iterator[ConversionFinding]:
    """Yield a finding for each field that is copied unchanged to a field of another type."""
    if source.schema is None or target.schema is None:
        return
    seen: set[Place] = set()
    ports = [path for rule in hop.block.rules for path in rule.ports(back=hop.back)[0]]
    around = {path[:size] for path in ports for size in range(1, len(path))}
    for place in places(source.schema):
        if seen and any(place[:size] in seen for size in range(1, len(place) + 1)):
            continue
        if place in around:
            # rules name fields inside of this object; these fields are compared separately
            continue
        before = schema_at(source.schema, place) or {}
        for stop in trace(hop, place, target.version, before):
            after = schema_at(target.schema, stop.place)
            if stop.carried or stop.rules or after is None or fits(before, after):
                continue
            seen.add(place)
            one, other = before.get("type"), after.get("type")
            fact = f"{_a(str(one))} in {source.version}, {_a(str(other))} in {target.version}"
            if stop.place != place:
                fact += f", where it is {show(stop.place)}"
            versions = (source.version, target.version)
            yield found(
                "type", kind, f"{fact}, without a rule", versions=versions, path=show(place)
            )


def fits(before: Schema, after: Schema) -> bool:
    """Report whether every value of the type in schema `before` also has the type in `after`."""
    one, other = before.get("type"), after.get("type")
    either = after.get("x-kubernetes-int-or-string") and one in ("string", "integer")
    return not one or not other or one == other or bool(either) or (one, other) == _WIDENED


def is_type_of(value: Any, schema: Schema) -> bool:
    """Report whether a value has the `type` of a schema; other constraints are not checked."""
    known = _TYPES.get(schema.get("type", ""))
    if known is None or (value is None and schema.get("nullable")):
        return True
    return isinstance(value, known) and (schema["type"] == "boolean") == isinstance(value, bool)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_WIDENED = ("integer", "number")


# Refusal of a Conversion.


def check_types(declared: DeclaredConversion, definition: Definition) -> None:
    """Raise an error if a rule of a Conversion does not fit the types of its fields."""
    schemas = {each.name: each.schema for each in definition.versions if each.schema is not None}
    for number, edge in enumerate(declared.edges):
        for place, rule in enumerate(edge.block.rules):
            for each in _problems(_fit(edge, schemas, definition.kind), rule):
                part: Any = declared.document.part("spec", "edges", number, "rules", place)
                [name] = part.value
                fact = f"{each.path} of {each.versions[0]}: {each.fact}"
                hint = "use a rule for that type, or correct the schema"
                if name == "cel":
                    hint = "correct the expression or the schema"
                raise part.error(fact, name, hint=hint)


def _fit(edge: DeclaredEdge, schemas: Mapping[str, Schema], kind: str) -> Fit:
    source, target = (Side(name, schemas.get(name)) for name in (edge.source, edge.target))
    return Fit(kind, source, target)


def _problems(fit: Fit, rule: ConversionRule) -> Iterator[ConversionFinding]:
    wrong = [each for each in fit.rule(rule) if each.rule == "type"]
    yield from wrong
    if wrong:
        return
    match rule:
        case ReversedRule():
            yield from _problems(fit.reversed(), rule.rule)
        case ConstRule():
            values = ["name"] if rule.reference else [rule.value]
            yield from _misfit_values(fit, rule, fit.target, rule.at, values)
        case Words():
            yield from _misfit_values(fit, rule, fit.source, rule.source, [*rule.words])
            yield from _misfit_values(fit, rule, fit.target, rule.target, [*rule.words.values()])
        case RecurseRule() if (inside := fit.repeated(rule)) is not None:
            for each in rule.repeated_rules:
                yield from _problems(inside, each)
        case WhenRule():
            yield from _misfit_cases(fit, rule)
        case DefaultRule():
            yield from _misfit_values(fit, rule, fit.target, rule.target, [rule.value])
            yield from _passed_on(fit, rule)
        case MoveRule() | EachRule() | WrapRule() | KeyedRule() | RenameKeysRule():
            yield from _passed_on(fit, rule)


def _misfit_values(
    fit: Fit, rule: ConversionRule, side: Side, path: Any, values: list[Any]
) -> Iterator[ConversionFinding]:
    """Check the types of `values`, the constants in a rule; yield a finding for each wrong type."""
    here = side.inside(*path)
    for value in values:
        if not is_type_of(value, here.schema or {}):
            said = (here.schema or {}).get("type")
            fact = f"{rule.name} writes {shown(value)}, but the schema has type {said}"
            yield _found(fit, here, fact)


def _misfit_cases(fit: Fit, rule: WhenRule) -> Iterator[ConversionFinding]:
    """Check the types of the values that decide the cases, and the rules of the cases."""
    yield from _misfit_values(fit, rule, fit.source, rule.source, rule.known(back=False))
    yield from _misfit_values(fit, rule, fit.target, rule.target, rule.known(back=True))
    if not rule.maps:
        yield from _passed_on(fit, rule.deciding)
    for each in (each for block in rule.blocks for each in block.rules):
        yield from _problems(fit, each)


def _passed_on(fit: Fit, rule: NestedRule) -> Iterator[ConversionFinding]:
    """Yield findings for the rules inside of a rule, and for the value that it copies.

    A copied value has a finding if the field in the one version and the field in the other version
    have types that do not fit.
    """
    inside = fit.inside(rule)
    for each in rule.inside.rules:
        yield from _problems(inside, each)
    yield from _uncopied(rule.name, inside.source, inside.target, fit.kind)


def _uncopied(name: str, one: Side, other: Side, kind: str) -> Iterator[ConversionFinding]:
    """Yield a finding if a rule copies a value to a field with another type."""
    if fits(one.schema or {}, other.schema or {}) or fits(other.schema or {}, one.schema or {}):
        return
    types = [(side.schema or {}).get("type") for side in (one, other)]
    fact = f"{name} copies {types[0]} to {show(other.at)} of {other.version}, which is {types[1]}"
    yield found("type", kind, fact, versions=(one.version,), path=show(one.at))


def _found(fit: Fit, side: Side, fact: str) -> ConversionFinding:
    return found("type", fit.kind, fact, versions=(side.version,), path=show(side.at))
