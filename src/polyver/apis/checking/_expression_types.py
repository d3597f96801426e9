"""Check the types of the CEL expressions in conversion rules against the schemas of the fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from polyver.apis.conversion.paths import Path
from polyver.apis.conversion.value_rules import CelRule, ValueSide
from polyver.core.plain import Schema
from polyver.languages import cel

__all__ = ["expression_problems"]


def expression_problems(
    rule: CelRule, sources: Sequence[Schema | None], targets: Sequence[Schema | None]
) -> Iterator[tuple[bool, Path, str]]:
    """Yield the errors in the expressions of a rule for fields with these schemas.

    An error is a tuple of three: True if the field is one of the version `to`, the field, and a
    description of the error.
    """
    sides = (rule.source, sources, False), (rule.target, targets, True)
    for name, expression, (reads, known, is_target), (writes, wanted, to_target) in (
        ("forward", rule.forward, *sides),
        ("back", rule.back, *sides[::-1]),
    ):
        try:
            made = cel.ValueExpression.compile(expression.text, _schema_of(reads, known))
        except cel.Uncompilable as error:
            yield is_target, reads.paths[0], f"{name} of cel does not fit the schema: {error.fact}"
            continue
        for path, schema, kind in zip(writes.paths, wanted, _kinds(made, writes), strict=True):
            if not cel.fits_schema(kind, schema or {}):
                said = (schema or {}).get("type") or "int-or-string"
                fact = f"{name} of cel returns {kind}, but the schema has type {said}"
                yield to_target, path, fact


def _schema_of(side: ValueSide, known: Sequence[Schema | None]) -> Schema:
    if not side.names:
        return known[0] or {}
    pairs = zip(side.names, known, strict=True)
    return {"type": "object", "properties": {name: each or {} for name, each in pairs}}


def _kinds(made: cel.ValueExpression, side: ValueSide) -> list[cel.CelType]:
    """Return the type that an expression returns for each field of a side."""
    kind = made.type
    if side.names and kind.kind == "map":
        kind = kind.params[1]
    return [kind] * len(side.paths)
