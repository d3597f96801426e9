"""A finding, and the places of a schema in which findings are made."""

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
    """One thing that is no longer as it was."""

    version: str
    """The API version; empty for what concerns the whole definition."""
    path: str
    """A field of the objects (`spec.ports[].name`, `spec.env{}`), or a place in the definition
    (`spec.scope`, `spec.versions[v1].served`); empty for the whole object."""
    rule: str
    """What was found, as one of `RULES`."""
    severity: FindingSeverity
    fact: str
    advice: str

    def as_data(self) -> dict[str, str]:
        """The same as plain texts, for JSON and tables."""
        names = ("version", "path", "rule", "severity", "fact", "advice")
        return {name: _text(getattr(self, name)) for name in names}


def _text(value: str | Enum) -> str:
    return str(value.value) if isinstance(value, Enum) else value


def found(
    rule: str, path: str, fact: str, *, version: str = "", other: str = ""
) -> CompatibilityFinding:
    """A finding of a rule; `other` is the field that its advice speaks of."""
    known = RULES[rule]
    advice = known.advice.format(other=other)
    return CompatibilityFinding(version, path, rule, known.severity, fact, advice)


def within(
    findings: Iterable[CompatibilityFinding], least: FindingSeverity
) -> list[CompatibilityFinding]:
    """The findings that are at least so bad."""
    return [finding for finding in findings if finding.severity.rank <= least.rank]


@dataclass(frozen=True, slots=True)
class SchemaPair:
    """A place that has a schema before and after."""

    old: Schema
    new: Schema
    path: str = ""
    required: bool = False
    """Whether the object around it must have it now."""
    limited: bool = False
    """Whether rules further outside look at what is in here, so that a default may break them."""

    def found(
        self, rule: str, fact: str, *, at: str | None = None, other: str = ""
    ) -> CompatibilityFinding:
        return found(rule, self.path if at is None else at, fact, other=other)

    def changed(self, keyword: str) -> tuple[Any, Any]:
        """What a keyword says before and after, where saying nothing has several spellings."""
        return self.old.get(keyword) or None, self.new.get(keyword) or None
