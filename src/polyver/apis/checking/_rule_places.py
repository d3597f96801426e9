"""Find the rule or the function that a finding is about: its file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from polyver.apis.conversion import Converter, InvalidFieldPath, RuleBlock
from polyver.apis.conversion.hops import ByFunctions, ByRules, ConversionStep
from polyver.apis.conversion.paths import Path, parse_path
from polyver.apis.conversion.reversal import unreversed
from polyver.apis.conversion.rules import ConversionRule
from polyver.core import Hop

__all__ = ["rule_place"]

_UNNAMED = re.compile(r"\[\d*\]|\{\}")
"""The parts of a path that stand for an item of a list or for a value of a map."""


def rule_place(converter: Converter, versions: Sequence[str], path: str, at: str) -> str:
    """Return the file and line of the rule that converts a field, on a conversion path.

    `path` is the field, in the version `at`, which is one of `versions`. If no rule names the
    field, return the file and line of the edge; for a function, those of the function.
    """
    field = _parsed(path)
    near = ""
    for hop in _hops_from(converter, versions, at):
        step = hop.convert
        near = near or step.place
        if isinstance(step, ByFunctions):
            return step.place
        rule = _rule(step, field, reads=hop.source == at) if isinstance(step, ByRules) else None
        if rule is not None:
            return rule.place or near
        at = hop.target if hop.source == at else hop.source
    return near


def _parsed(path: str) -> Path:
    try:
        return parse_path(_UNNAMED.sub("", path)) if path else ()
    except InvalidFieldPath:
        return ()


def _hops_from(
    converter: Converter, versions: Sequence[str], at: str
) -> Iterator[Hop[ConversionStep]]:
    """Yield the steps of a conversion path in the order of their distance from the version `at`.

    First come the steps that lead to the version, from the last to the first.
    """
    steps = [
        hop
        for one, other in pairwise(versions)
        if one != other and {one, other} <= {*converter.versions}
        for hop in converter.tree.way(one, other)
    ]
    ends = [number for number, hop in enumerate(steps) if hop.target == at]
    before = ends[0] + 1 if ends else 0
    yield from steps[:before][::-1]
    if not before:
        yield from steps


def _rule(step: ByRules, field: Path, *, reads: bool) -> ConversionRule | None:
    return _named(step.block, field, back=step.back is not reads) if field else None


def _named(block: RuleBlock, field: Path, *, back: bool) -> ConversionRule | None:
    """Return the innermost rule that names a field; with `back`, on the side `from` of a rule."""
    for rule in block.rules:
        for path in rule.ports(back=back)[1]:
            size = min(len(path), len(field))
            if path[:size] == field[:size] and rule.place:
                inner, inner_back = unreversed(rule, back=back)
                return _inner(inner, field[len(path) :], back=inner_back) or rule
    return None


def _inner(rule: ConversionRule, rest: Path, *, back: bool) -> ConversionRule | None:
    """Return the rule inside of a rule that names a part of the value; None if none does."""
    rule, back = unreversed(rule, back=back)
    inside: RuleBlock | None = getattr(rule, "inside", None)
    if inside is None:
        return None
    # The keys of a map, and the field that `keyed` names, are not part of the inner paths.
    tails = (rest[skipped:] for skipped in range(len(rest)))
    return next(filter(None, (_named(inside, tail, back=back) for tail in tails)), None)
