"""Findings, pairs of schemas to compare, and functions on schemas.

A `SchemaPair` has the old and the new schema at one path. The functions return the types that a
schema allows, write a path as text, and remove the documentation from a schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from polyver.apis.compatibility._rules import RULES, FindingSeverity
from polyver.core.plain import Schema

__all__ = [
    "ALTERNATIVES",
    "EMBEDDED",
    "INT_OR_STRING",
    "PRESERVE",
    "CompatibilityFinding",
    "FindingSeverity",
    "Schema",
    "SchemaPair",
    "bare",
    "found",
    "may_be",
    "path_to",
    "type_name",
    "types_of",
    "within",
]


@dataclass(frozen=True, slots=True)
class CompatibilityFinding:
    """One change of a schema or CustomResourceDefinition."""

    version: str
    """The API version; empty if the finding is about the whole CustomResourceDefinition."""
    path: str
    """The changed field; empty if the finding is about the whole object.

    It is a field of the objects (`spec.ports[].name`, `spec.env{}`), or of the
    CustomResourceDefinition (`spec.scope`, `spec.versions[v1].served`).
    """
    rule: str
    """The name of the comparison rule, which is a key of `RULES`."""
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
    """Build a finding, with the severity and the advice of the comparison rule named `rule`.

    `other` is the field that replaces `{other}` in the advice of the rule.
    """
    known = RULES[rule]
    advice = known.advice.format(other=other)
    return CompatibilityFinding(version, path, rule, known.severity, fact, advice)


def within(
    findings: Iterable[CompatibilityFinding], least: FindingSeverity
) -> list[CompatibilityFinding]:
    """Return the findings whose severity is `least` or worse."""
    return [finding for finding in findings if finding.severity.rank <= least.rank]


@dataclass(frozen=True, slots=True)
class SchemaPair:
    """The old and the new schema of one path."""

    old: Schema
    new: Schema
    path: str = ""
    required: bool = False
    """True if the new schema of the parent object requires this field."""
    limited: bool = False
    """True if a constraint of a parent, such as a CEL rule, also reads this path.

    Such a constraint may refuse a new default.
    """

    def found(
        self, rule: str, fact: str, *, at: str | None = None, other: str = ""
    ) -> CompatibilityFinding:
        return found(rule, self.path if at is None else at, fact, other=other)

    def changed(self, keyword: str) -> tuple[Any, Any]:
        """Return the old and the new value of a schema keyword.

        For an absent or empty value, return None.
        """
        return self.old.get(keyword) or None, self.new.get(keyword) or None


PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
ALTERNATIVES: Final = ("anyOf", "oneOf", "allOf", "not")
_SAID_TO_PEOPLE = frozenset(["description", "title", "example", "externalDocs"])
_PLAIN_NAME = re.compile(r"[\w-]+")


def types_of(schema: Schema) -> frozenset[str]:
    """Return the types that a schema allows; an empty set if it allows every type."""
    if schema.get(INT_OR_STRING):
        return frozenset(["integer", "string"])
    return frozenset([schema["type"]] if schema.get("type") else [])


def type_name(schema: Schema) -> str:
    """Return the name of a schema's type for messages."""
    return "int-or-string" if schema.get(INT_OR_STRING) else schema.get("type") or "any type"


def may_be(schema: Schema, kind: str) -> bool:
    """Report whether a schema allows values of a type, such as `object`."""
    types = types_of(schema)
    return not types or kind in types


def path_to(path: str, name: str) -> str:
    """Append a field name to a path; quote a name with characters such as a dot.

    >>> path_to("spec", "size"), path_to("spec", "a.b")
    ('spec.size', 'spec["a.b"]')
    """
    if not _PLAIN_NAME.fullmatch(name):
        return f'{path}["{name}"]'
    return f"{path}.{name}" if path else name


def bare(schema: Any) -> Any:
    """Return a schema without its documentation, such as descriptions."""
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: _bare_inside(keyword, value)
        for keyword, value in schema.items()
        if keyword not in _SAID_TO_PEOPLE and value is not None
    }


def _bare_inside(keyword: str, value: Any) -> Any:
    match keyword:
        case "properties":
            return {name: bare(each) for name, each in value.items()}
        case "anyOf" | "oneOf" | "allOf":
            return [bare(each) for each in value]
        case "items" | "additionalProperties" | "not":
            return bare(value)
        case _:
            return value
