"""Decide whether a rule expresses every value that a schema allows, or must preserve some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from polyver.apis.conversion.rules import CastRule, ConversionRule, ScaleRule, SplitRule, ValuesRule

__all__ = ["is_exact"]

Schema = Mapping[str, Any]

_EXACT_CASTS: Final = {
    ("integer", "string"),
    ("integer", "number"),
    ("boolean", "string"),
    ("boolean", "integer"),
    ("boolean", "number"),
}


def is_exact(rule: ConversionRule, schema: Schema | None, *, back: bool) -> bool:
    """Report whether a rule expresses every value that it may read in a direction."""
    match rule:
        case CastRule():
            kinds = (rule.source_type, rule.target_type)
            pair = kinds[::-1] if back else kinds
            return pair[0] == pair[1] or pair in _EXACT_CASTS
        case ScaleRule():
            kind = rule.source_type if back else rule.target_type
            factor = 1 / rule.factor if back else rule.factor
            return kind == "integer" and factor.denominator == 1 and _is_small(schema, int(factor))
        case SplitRule():
            texts = all(kind == "string" for kind in rule.types)
            return not back and texts and rule.absent is None
        case ValuesRule():
            words = rule.words.values() if back else rule.words.keys()
            enum = (schema or {}).get("enum") or ()
            return bool(enum) and all(each in words for each in enum)
        case _:
            return False


def _is_small(schema: Schema | None, factor: int) -> bool:
    """Report whether every number that a schema allows stays a 64-bit integer when multiplied."""
    said = schema or {}
    if said.get("type") == "number":
        return False
    bits = 31 if said.get("format") == "int32" else 63
    least, most = said.get("minimum", -(2**bits)), said.get("maximum", 2**bits - 1)
    return bool(least * factor >= -(2**63) and most * factor < 2**63)
