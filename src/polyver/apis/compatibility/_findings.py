"""Findings, and the pair of schemas that is compared at each path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from polyver.apis.compatibility._rules import RULES, FindingSeverity

__all__ = ["CompatibilityFinding", "FindingSeverity", "Schema", "SchemaPair", "found", "within"]

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CompatibilityFinding:
    """One change from the earlier schema or definition."""

    version: str
    """The API version; empty if the finding is about the whole definition."""
    path: str
    """A field of the objects (`spec.ports[].name`, `spec.env{}`), or of the definition
    (`spec.scope`, `spec.versions[v1].served`); empty for the whole object.
    """
    rule: str
    """The name of one of `RULES`."""
    severity: FindingSeverity
    fact: str
    advice: str

    def as_data(self) -> dict[str, str]:
        """Return the finding as plain strings, for JSON and tables."""
        names = ("version", "path", "rule", "severity", "fact", "advice")
        return {name: _text(getattr(self, name)) for name in names}


def _text(value: str | Enum) -> str:
    return str(value.value) if isinstance(value, Enum) else value


def found(
    rule: str, path: str, fact: str, *, version: str = "", other: str = ""
) -> CompatibilityFinding:
    """Return a finding of a rule; `other` is the field that its advice names."""
    known = RULES[rule]
    advice = known.advice.format(other=other)
    return CompatibilityFinding(version, path, rule, known.severity, fact, advice)


def within(
    findings: Iterable[CompatibilityFinding], least: FindingSeverity
) -> list[CompatibilityFinding]:
    """Return the findings that have at least a severity."""
    return [finding for finding in findings if finding.severity.rank <= least.rank]


@dataclass(frozen=True, slots=True)
class SchemaPair:
    """The old and the new schema of one path."""

    old: Schema
    new: Schema
    path: str = ""
    required: bool = False
    """True if the new schema of the object around it requires it."""
    limited: bool = False
    """True if constraints further outside cover this path, so that a default may violate them."""

    def found(
        self, rule: str, fact: str, *, at: str | None = None, other: str = ""
    ) -> CompatibilityFinding:
        return found(rule, self.path if at is None else at, fact, other=other)

    def changed(self, keyword: str) -> tuple[Any, Any]:
        """Return the old and the new value of a keyword; any empty value is None."""
        return self.old.get(keyword) or None, self.new.get(keyword) or None
