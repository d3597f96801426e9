"""What can be wrong with the conversions of a kind: each as data, with a place and an advice."""

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
    """The smallest object that shows it, and what came out of it and should have."""

    given: Object
    expected: Any = None
    got: Any = None
    edited: Object | None = None
    """What was made of it at the stop, after somebody changed a field there."""

    def as_data(self) -> dict[str, Any]:
        made = {"given": self.given, "expected": self.expected, "got": self.got}
        return made if self.edited is None else {**made, "edited": self.edited}


@dataclass(frozen=True, slots=True)
class ConversionFinding:
    """One thing that is wrong, or may be."""

    kind: str
    """The name of the CustomResourceDefinition, or the kind and its group."""
    rule: str
    severity: FindingSeverity
    fact: str
    advice: str
    versions: tuple[str, ...] = ()
    """The version that it is about, or those on the way that shows it."""
    path: str = ""
    """A field of the objects; empty for the whole."""
    place: str = ""
    """Where the kind, or the rule, is written."""
    example: Counterexample | None = None

    def as_data(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        names = ("kind", "rule", "fact", "advice", "path", "place")
        return {
            **{name: getattr(self, name) for name in names},
            "severity": self.severity.value,
            "versions": list(self.versions),
            "example": self.example.as_data() if self.example else None,
        }


_BREAKING = {
    "tree": (
        "versions are not connected, are connected by several paths, or have invalid rules",
        "Connect each version of the definition with the others by exactly one conversion path",
    ),
    "kind-removed": (
        "a kind was removed, and its objects with it",
        "Keep the definition until no objects of the kind exist",
    ),
    "fails": (
        "the conversion of an object fails, and so does every list request that includes it",
        "Make the function accept every object that the schema allows, without optional fields too",
    ),
    "law": (
        "converting an object through another version changes the result",
        "Make each direction the inverse of the other; compare the fields shown",
    ),
    "edit-lost": (
        "an edit in one version is lost or changed, in that version or in another one",
        "Use the written value, not a value that was preserved from another version",
    ),
    "default-loses": (
        "a default that an API server sets in between discards a preserved value",
        "Give corresponding fields the same defaults in both versions",
    ),
    "compiled": (
        "compiled rules and interpreter give different results: a bug in polyver",
        "Please report it with the example",
    ),
    "view-changed": (
        "an existing object looks different in a version than before",
        "Restore the rule, or make the change in a new version",
    ),
    "identity": (
        "an API server refuses the converted object: only labels and annotations may change",
        "Do not change apiVersion, kind and the other metadata: polyver sets them",
    ),
    "pruned": (
        "a conversion writes a field that the version does not have, so an API server drops it",
        "Add the field to the schema, or write to another field",
    ),
    "unknown-field": (
        "a rule names a field that is not in the schema of the version",
        "Correct the path, or add the field to the schema",
    ),
    "type": (
        "a field has a different type in the other version than the value written to it",
        "Add a rule such as cast, scale, wrap or keyed, or correct the existing one",
    ),
    "value": (
        "a rule writes a value that the schema refuses",
        "Correct the value, or add it to the enum",
    ),
}
_RISKY = {
    "unstable": (
        "functions do not reproduce their own results, so edits may be reverted",
        "Make each direction the inverse of the other for its own results",
    ),
    "invalid": (
        "an object that is valid in one version is invalid in the other, so it cannot be updated",
        "Allow it in the other version, or give required fields there a default",
    ),
    "unmapped": (
        "the rule maps no value for a value of the enum: it is preserved, and the field is absent",
        "Map it to a value of the other version",
    ),
    "dropped-known": (
        "a rule drops a field that the other version also has",
        "Remove the rule to keep the field, or move the field to another name",
    ),
    "no-schema": (
        "a version has no schema, so missing fields cannot be detected",
        "Add the CustomResourceDefinition to the files of the Conversion",
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
    """A finding of a rule."""
    known = RULES[rule]
    return ConversionFinding(kind, rule, known.severity, fact, known.advice, versions, path)
