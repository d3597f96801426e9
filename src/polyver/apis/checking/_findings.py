"""Findings about the conversions of a kind, as data with a location and advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyver.apis.compatibility import RULES as COMPATIBILITY
from polyver.apis.compatibility import FindingRule, FindingSeverity
from polyver.core.plain import Object

__all__ = ["RULES", "ConversionFinding", "Counterexample", "found"]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The smallest object that shows a finding, with the expected and the actual result."""

    given: Object
    expected: Any = None
    got: Any = None
    edited: Object | None = None
    """The converted object after a client changed a field in the other version."""

    def as_data(self) -> dict[str, Any]:
        made = {"given": self.given, "expected": self.expected, "got": self.got}
        return made if self.edited is None else {**made, "edited": self.edited}


@dataclass(frozen=True, slots=True)
class ConversionFinding:
    """One error in the conversions of a kind, or one risk."""

    kind: str
    """The name of the CustomResourceDefinition, or the kind and its group."""
    rule: str
    severity: FindingSeverity
    fact: str
    advice: str
    versions: tuple[str, ...] = ()
    """The version that it is about, or the versions of the conversion path that shows it."""
    path: str = ""
    """A field of the objects; empty if it is about whole objects."""
    place: str = ""
    """Location of the declaration of the kind or of the rule, such as a file and a line."""
    example: Counterexample | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the finding as plain data, for JSON."""
        names = ("kind", "rule", "fact", "advice", "path", "place")
        return {
            **{name: getattr(self, name) for name in names},
            "severity": self.severity.value,
            "versions": list(self.versions),
            "example": self.example.as_data() if self.example else None,
        }


_BREAKING = {
    "tree": (
        "versions are not connected, not in one way only, or by rules that cannot be",
        "Give each version that the definition has exactly one way to the others",
    ),
    "kind-removed": (
        "a kind that was defined is gone, and with it its objects",
        "Keep its definition until nobody has objects of it",
    ),
    "fails": (
        "the conversion of an object fails, and with it every list that the object is in",
        "Have the function take every object that the schema allows, with optional fields missing",
    ),
    "law": (
        "an object that made a stop in another version arrives as another object",
        "What one direction changes, the other must change back; compare the fields shown",
    ),
    "edit-lost": (
        "a field that was changed in one version is not as it was written, there or in another",
        "Have what is written decide, and not what another version had before",
    ),
    "default-loses": (
        "a default that an API server fills in on the way costs a value that was carried",
        "Give the fields that belong together the same defaults in both versions",
    ),
    "compiled": (
        "the compiled rules do otherwise than the interpreter: a bug in polyver",
        "Please report it together with the example",
    ),
    "view-changed": (
        "an object that exists is seen otherwise in a version than before",
        "Restore the rule, or leave this version as it is and make the change in a new one",
    ),
    "identity": (
        "an API server refuses the converted object: it may change labels and annotations alone",
        "Leave apiVersion, kind and the rest of the metadata to polyver",
    ),
    "pruned": (
        "a conversion writes a field that the version does not have, and an API server drops it",
        "Add the field to the schema, or write it to another one",
    ),
    "unknown-field": (
        "a rule names a field that the schema of the version does not have",
        "Correct the path, or add the field to the schema",
    ),
    "type": (
        "a field has another type in the other version than what is written there",
        "Write a rule for it, such as cast, scale, wrap or keyed, or correct the one there is",
    ),
    "value": (
        "a rule writes a word or a constant that the schema refuses",
        "Correct the word, or add it to the enum",
    ),
}
_RISKY = {
    "unstable": (
        "functions do not give back what they made themselves, so that edits may be undone",
        "Have each direction give back what the other makes of its own results",
    ),
    "invalid": (
        "an object that is right in one version is refused by the other, so it cannot be updated",
        "Allow it in the other version, or give what is required there a default",
    ),
    "unmapped": (
        "an enum has a value for which the rule has no word: it is carried, and the field absent",
        "Give it a word in the other version",
    ),
    "dropped-known": (
        "a rule drops a field that the other version has, too",
        "Leave the rule out to keep the field, or move it to another name",
    ),
    "no-schema": (
        "without the schema of a version nobody can tell what it lacks",
        "Put the CustomResourceDefinition beside the Conversion",
    ),
}
RULES: Mapping[str, FindingRule] = {
    name: FindingRule(name, severity, about, advice)
    for severity, rules in ((FindingSeverity.BREAKING, _BREAKING), (FindingSeverity.RISKY, _RISKY))
    for name, (about, advice) in rules.items()
}
assert not RULES.keys() & COMPATIBILITY.keys()


def found(
    rule: str, kind: str, fact: str, *, versions: tuple[str, ...] = (), path: str = ""
) -> ConversionFinding:
    """Return a finding of a rule."""
    known = RULES[rule]
    return ConversionFinding(kind, rule, known.severity, fact, known.advice, versions, path)
