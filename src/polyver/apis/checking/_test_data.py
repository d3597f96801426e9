"""Schemas and values for generated test objects, from the rules and functions of a conversion.

For a version without a schema, a schema is inferred from the fields and types that rules name. Test
objects also contain constants from rules and functions, because conversions often treat these
values in a special way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from polyver.apis.conversion import Converter, RuleBlock
from polyver.apis.conversion.case_rules import DefaultRule, WhenRule
from polyver.apis.conversion.hops import ByFunctions, ByRules
from polyver.apis.conversion.nested import EachRule, KeyedRule, MoveRule, WrapRule
from polyver.apis.conversion.paths import Path
from polyver.apis.conversion.recursion import RecurseRule
from polyver.apis.conversion.reversal import ReversedRule
from polyver.apis.conversion.rules import (
    CastRule,
    ConstRule,
    ConversionRule,
    ScaleRule,
    SplitRule,
    ValuesRule,
)
from polyver.apis.conversion.structure_rules import RenameKeysRule
from polyver.apis.conversion.text_rules import TypedRule
from polyver.apis.conversion.value_rules import CelRule, FunctionRule
from polyver.kube.objects.schema.structure import META_FIELDS

__all__ = ["guessed", "words_of"]

Schema = dict[str, Any]
_ANYTHING: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_OPEN: Schema = {"type": "object", **_ANYTHING}


def guessed(converter: Converter, version: str) -> Schema:
    """Infer a schema for a version from the conversion rules that read or write its fields.

    Test objects are generated from this schema.
    """
    made: Schema = {"type": "object", "properties": {"spec": {**_OPEN}}}
    for edge in converter.tree.edges:
        if version in (edge.source, edge.target) and isinstance(edge.forward, ByRules):
            _add(made, edge.forward.block, back=edge.target == version)
    return made


def _add(schema: Schema, block: RuleBlock, *, back: bool) -> None:
    for rule in block.rules:
        for path, kind in _fields(rule, back=back):
            if not block.root or path[0] not in META_FIELDS:
                _put(schema, path, kind)


def _put(schema: Schema, path: Path, kind: Schema) -> None:
    for name in path[:-1]:
        inside = schema.setdefault("properties", {}).setdefault(name, {"type": "object"})
        schema = inside if inside.get("type") == "object" else {}
    schema.setdefault("properties", {})[path[-1]] = kind


def _fields(rule: ConversionRule, *, back: bool) -> Iterator[tuple[Path, Schema]]:
    paths = rule.ports(back=back)[0]
    if isinstance(rule, ReversedRule):
        yield from _fields(rule.rule, back=not back)
    elif isinstance(rule, TypedRule):
        yield from zip(paths, rule.schemas(back=back), strict=True)
    elif isinstance(rule, WhenRule):
        yield rule.deciding.ports(back=back)[0][0], {**_ANYTHING}
        for each in (each for block in rule.blocks for each in block.rules):
            yield from _fields(each, back=back)
    elif isinstance(rule, SplitRule) and back:
        yield from ((path, {"type": kind}) for path, kind in zip(paths, rule.types, strict=True))
    else:
        yield from ((path, _kind(rule, back=back)) for path in paths)


def _kind(rule: ConversionRule, *, back: bool) -> Schema:
    kind: Schema = {**_ANYTHING}
    match rule:
        case CastRule() | ScaleRule():
            kind = {"type": rule.target_type if back else rule.source_type}
        case SplitRule():
            kind = {"type": "string"}
        case MoveRule() | DefaultRule() if rule.inside.rules:
            kind = _inside(rule.inside, back=back)
        case EachRule():
            kind = {"type": "array", "items": _inside(rule.inside, back=back)}
        case RecurseRule():
            once = [each for each in rule.repeated_rules if not isinstance(each, RecurseRule)]
            kind = {"type": "array", "items": _inside(RuleBlock(tuple(once)), back=back)}
        case WrapRule():
            one = _inside(rule.inside, back=back)
            kind = {"type": "array", "items": one} if back else one
        case KeyedRule():
            kind = _keyed(rule, back=back)
        case RenameKeysRule():
            one = _inside(rule.inside, back=back)
            kind = {**_OPEN, "properties": dict.fromkeys([*rule.words, *rule.words.values()], one)}
    return kind


def _inside(block: RuleBlock, *, back: bool) -> Schema:
    made: Schema = {**_ANYTHING}
    if block.rules:
        made["type"] = "object"
        _add(made, block, back=back)
    return made


def _keyed(rule: KeyedRule, *, back: bool) -> Schema:
    one = _inside(rule.inside, back=back)
    if back:
        return {"type": "object", "additionalProperties": one}
    item: Schema = {"type": "object", "properties": {rule.key: {"type": "string"}}}
    if rule.value:
        item["properties"][rule.value] = one
    else:
        item = {**one, "type": "object"}
        item["properties"] = {**item.get("properties", {}), rule.key: {"type": "string"}}
    return {"type": "array", "items": item}


# Special values.


_DEPTH = 4


def words_of(converter: Converter) -> list[Any]:
    """Return the constants in conversion rules and functions: strings, numbers and booleans."""
    found: list[Any] = []
    for edge in converter.tree.edges:
        if isinstance(edge.forward, ByRules):
            found += _block(edge.forward.block)
        elif isinstance(edge.forward, ByFunctions):
            found += [*_function(edge.forward.there), *_function(edge.forward.back)]
    plain = [each for each in found if type(each) in (str, int, float, bool)]
    return [*{(type(each), each): each for each in plain}.values()]


def _block(block: RuleBlock) -> Iterator[Any]:
    for rule in block.rules:
        yield from _rule(rule)
        for inside in rule.blocks:
            yield from _block(inside)


def _rule(rule: ConversionRule) -> Iterator[Any]:
    match rule:
        case ReversedRule():
            yield from _rule(rule.rule)
        case TypedRule() | CelRule() | WhenRule():
            yield from rule.samples()
        case ValuesRule():
            yield from (*rule.words, *rule.words.values())
        case ConstRule() | DefaultRule():
            yield rule.value
        case FunctionRule():
            yield from (*_function(rule.forward), *_function(rule.back))
        case CastRule():
            yield from ("7", "08", "abc", "true", "1.5", 0, 1, 7)
        case ScaleRule():
            times = max(rule.factor.numerator, rule.factor.denominator)
            yield from (0, 1, times, times + 1, times * 3, -1)
        case SplitRule():
            mark, none = rule.separator, rule.absent or ""
            parts = ["a", "7", "b"][: len(rule.into)]
            yield from (mark.join(parts), mark.join([*parts, "c"]), parts[0], mark, none)
            yield from (mark.join([none] * len(rule.into)), f"a{mark}08", f"{mark}7")


def _function(found: object, depth: int = 0) -> Iterator[Any]:
    """Yield the constants in a function's code, in its closure, and in the globals it names."""
    if depth > _DEPTH:
        return
    function = getattr(found, "function", found)
    if isinstance(found, type):
        for name in ("convert_to", "convert_from"):
            yield from _function(vars(found).get(name), depth + 1)
    elif isinstance(function, FunctionType):
        ours = function.__module__.startswith("polyver.")
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        for code in () if ours else _codes(function.__code__):
            yield from _plain(code.co_consts)
            cells += [
                value for name, value in function.__globals__.items() if name in code.co_names
            ]
        for each in cells:
            yield from _function(each, depth + 1)
            yield from _plain([each])


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _plain(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the values; for a collection, yield its keys and items instead."""
    for value in values:
        if isinstance(value, Mapping):
            yield from (*value, *value.values())
        elif isinstance(value, tuple | list | set | frozenset):
            yield from value
        else:
            yield value
