"""Checks that refuse a Conversion whose rules do not fit the types in the schemas.

`polyver check` reports the same errors, but the author of a Conversion may not have run it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from polyver.apis.checking._findings import ConversionFinding, found
from polyver.apis.checking._rule_types import Fit, Side, fits, is_type_of
from polyver.apis.checking.schema_paths import show
from polyver.apis.conversion import DeclaredConversion, DeclaredEdge
from polyver.apis.conversion.nested import EachRule, KeyedRule, MoveRule, WrapRule
from polyver.apis.conversion.rules import ConstRule, ConversionRule
from polyver.apis.conversion.rules import ValuesRule as Words
from polyver.apis.definition import Definition
from polyver.languages.values.strings import shown

__all__ = ["check_types"]

Schema = Mapping[str, Any]


def check_types(declared: DeclaredConversion, definition: Definition) -> None:
    """Refuse a Conversion with a rule that does not fit the types of its fields."""
    schemas = {each.name: each.schema for each in definition.versions if each.schema is not None}
    for number, edge in enumerate(declared.edges):
        for place, rule in enumerate(edge.block.rules):
            for each in _problems(_fit(edge, schemas, definition.kind), rule):
                part: Any = declared.document.part("spec", "edges", number, "rules", place)
                [name] = part.value
                fact = f"{each.path} of {each.versions[0]}: {each.fact}"
                hint = "use a rule for that type, or correct the schema"
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
        case ConstRule():
            yield from _values(fit, rule, fit.target, rule.at, [rule.value])
        case Words():
            yield from _values(fit, rule, fit.source, rule.source, [*rule.words])
            yield from _values(fit, rule, fit.target, rule.target, [*rule.words.values()])
        case MoveRule() | EachRule() | WrapRule() | KeyedRule():
            yield from _passed_on(fit, rule)


def _values(
    fit: Fit, rule: ConversionRule, side: Side, path: Any, values: list[Any]
) -> Iterator[ConversionFinding]:
    """Yield a finding for each value of a rule that does not have the type of its field."""
    here = side.inside(*path)
    for value in values:
        if not is_type_of(value, here.schema or {}):
            said = (here.schema or {}).get("type")
            fact = f"{rule.name} writes {shown(value)}, but the schema has type {said}"
            yield _found(fit, here, fact)


def _passed_on(
    fit: Fit, rule: MoveRule | EachRule | WrapRule | KeyedRule
) -> Iterator[ConversionFinding]:
    """Yield a finding if a rule copies a value unchanged to a field of another type."""
    inside = fit.inside(rule)
    for each in rule.inside.rules:
        yield from _problems(inside, each)
    one, other = inside.source, inside.target
    if fits(one.schema or {}, other.schema or {}) or fits(other.schema or {}, one.schema or {}):
        return
    types = [(side.schema or {}).get("type") for side in (one, other)]
    fact = f"{rule.name} copies {types[0]} to {show(other.at)} of {other.version}, "
    yield _found(fit, one, f"{fact}which is {types[1]}")


def _found(fit: Fit, side: Side, fact: str) -> ConversionFinding:
    return found("type", fit.kind, fact, versions=(side.version,), path=show(side.at))
