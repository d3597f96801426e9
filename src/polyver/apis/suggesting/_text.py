"""Write a drafted Conversion as YAML, with the confidence and the reason of each rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from polyver.apis.suggesting._drafting import SuggestedRule
from polyver.apis.suggesting._edges import SuggestedConversion, SuggestedEdge
from polyver.languages.values.manifests import dump_flow_yaml, dump_yaml

__all__ = ["suggestion_data", "suggestion_text"]

_HEAD = "# Drafted by polyver suggest. Review each rule: the names of fields can mislead.\n"


def suggestion_text(conversion: SuggestedConversion) -> str:
    """Format a drafted Conversion as YAML; a comment above each rule has its reason."""
    data = conversion.as_data()
    edges = data["spec"].pop("edges")
    lines = [_HEAD + dump_yaml(data).rstrip("\n"), "  edges:" + ("" if edges else " []")]
    for edge in conversion.edges:
        lines += _edge_lines(edge)
    return "\n".join(lines) + "\n"


def _edge_lines(edge: SuggestedEdge) -> Iterator[str]:
    yield f"  - from: {dump_flow_yaml(edge.source)}"
    yield f"    to: {dump_flow_yaml(edge.target)}"
    if edge.rules:
        yield "    rules:"
        yield from _rule_lines(edge.rules, "    ")


def _rule_lines(rules: Sequence[SuggestedRule], indent: str) -> Iterator[str]:
    for rule in rules:
        sure = "preserved" if rule.preserves else f"{rule.confidence:.0%}"
        yield f"{indent}# {sure}: {_one_line(rule.reason)}"
        if not rule.inside:
            yield f"{indent}- {rule.name}: {dump_flow_yaml(rule.arguments)}"
            continue
        yield f"{indent}- {rule.name}:"
        for name, value in rule.arguments.items():
            yield f"{indent}    {name}: {dump_flow_yaml(value)}"
        yield f"{indent}    rules:"
        yield from _rule_lines(rule.inside, f"{indent}    ")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def suggestion_data(conversion: SuggestedConversion) -> dict[str, Any]:
    """Return a drafted Conversion, and the confidence and reason of its rules, for JSON."""
    return {
        "conversion": conversion.as_data(),
        "edges": [
            {
                "from": edge.source,
                "to": edge.target,
                "rules": [_rule_data(each) for each in edge.rules],
            }
            for edge in conversion.edges
        ],
    }


def _rule_data(rule: SuggestedRule) -> dict[str, Any]:
    made = {"rule": rule.name, **rule.arguments, "reason": rule.reason}
    if not rule.preserves:
        made["confidence"] = round(rule.confidence, 2)
    return made | ({"rules": [_rule_data(each) for each in rule.inside]} if rule.inside else {})
