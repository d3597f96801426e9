"""Schemas for versions without one, inferred from the fields and types that rules name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polyver.apis.conversion import Converter, RuleBlock
from polyver.apis.conversion.hops import ByRules
from polyver.apis.conversion.nested import EachRule, KeyedRule, MoveRule, WrapRule
from polyver.apis.conversion.paths import Path
from polyver.apis.conversion.rules import CastRule, ConversionRule, ScaleRule, SplitRule
from polyver.kube.objects.schema.structure import META_FIELDS

__all__ = ["guessed"]

Schema = dict[str, Any]
_ANYTHING: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_OPEN: Schema = {"type": "object", **_ANYTHING}


def guessed(converter: Converter, version: str) -> Schema:
    """Return a schema for objects of a version, from which test objects are generated."""
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
    if isinstance(rule, SplitRule) and back:
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
        case MoveRule() if rule.inside.rules:
            kind = _inside(rule.inside, back=back)
        case EachRule():
            kind = {"type": "array", "items": _inside(rule.inside, back=back)}
        case WrapRule():
            one = _inside(rule.inside, back=back)
            kind = {"type": "array", "items": one} if back else one
        case KeyedRule():
            kind = _keyed(rule, back=back)
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
