"""Findings (errors and risks in the conversions of a kind), and the check rules.

A check rule gives a finding its severity and its advice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from polyver.apis.compatibility import RULES as COMPATIBILITY
from polyver.apis.compatibility import FindingRule, FindingSeverity
from polyver.core.plain import Object

__all__ = ["RULES", "ConversionFinding", "Counterexample", "found", "ranked"]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The smallest object that shows a failure, and its expected and actual conversion."""

    given: Object
    expected: Any = None
    got: Any = None
    edited: Object | None = None
    """The object after a client changed one field of it in the target version.

    None if the failure does not depend on such a change.
    """

    def as_data(self) -> dict[str, Any]:
        made = {"given": self.given, "expected": self.expected, "got": self.got}
        return made if self.edited is None else {**made, "edited": self.edited}


@dataclass(frozen=True, slots=True)
class ConversionFinding:
    """An error or a risk in the conversions of a kind."""

    kind: str
    """The name of the CustomResourceDefinition; for a converter without a kind, `CronTab of ex.io`.
    """
    rule: str
    severity: FindingSeverity
    fact: str
    advice: str
    versions: tuple[str, ...] = ()
    """The version with the error, or the versions of the conversion path on which the error occurs.
    """
    path: str = ""
    """The field that has the error; empty if the finding is about whole objects."""
    place: str = ""
    """The file and line that declare the conversion rule, the edge, the function or the kind."""
    example: Counterexample | None = None
    objects: int = 0
    """The number of objects of a cluster that show the finding; 0 if no cluster was read."""
    object: str = ""
    """The namespace and name of one of these objects: `default/nightly`."""

    def as_data(self) -> dict[str, Any]:
        """Return the finding as plain data, for JSON."""
        names = ("kind", "rule", "fact", "advice", "path", "place", "objects", "object")
        file, line = _file_and_line(self.place)
        return {
            **{name: getattr(self, name) for name in names},
            "severity": self.severity.value,
            "versions": list(self.versions),
            "file": file,
            "line": line,
            "example": self.example.as_data() if self.example else None,
        }


def _file_and_line(place: str) -> tuple[str, int | None]:
    """Return the file and the line of a place.

    >>> _file_and_line("kinds.yaml:7, spec.edges[0]")
    ('kinds.yaml', 7)
    """
    found = re.match(r"(.+?):(\d+)(?:, |$)", place)
    return (found[1], int(found[2])) if found else ("", None)


# The order is that of ranked findings: the worst comes first.
_BREAKING = {
    "kind-removed": (
        "a kind was removed: without its CustomResourceDefinition, its objects are deleted",
        "Keep its CustomResourceDefinition while there are objects",
    ),
    "tree": (
        "versions are not connected, are connected by two paths, or have invalid rules",
        "Connect each version of the CustomResourceDefinition to the others by exactly one path",
    ),
    "fails": (
        "the conversion of an object fails, so every list that contains the object fails as well",
        "Make the function accept every object that the schema allows, also without optional "
        "fields",
    ),
    "identity": (
        "an API server refuses the converted object: conversion may change only labels and "
        "annotations of metadata",
        "Do not change apiVersion, kind and the rest of the metadata",
    ),
    "view-changed": (
        "the conversion of an existing object returns another value for a field than before",
        "Restore the rule, or make the change in a new version",
    ),
    "unconverted": (
        "the conversions no longer reach a version, which existing objects or clients use",
        "Restore the edge; remove a version only when no object is stored in it and no client "
        "uses it",
    ),
    "refused": (
        "an existing object that was valid is invalid now, so it cannot be updated",
        "Allow the value, or make the change in a new version",
    ),
    "edit-lost": (
        "a field that was changed in one version does not have the written value, in this or in "
        "another version",
        "Convert the value that the client wrote, not the value of another version",
    ),
    "default-loses": (
        "a default that an API server sets between two conversions makes polyver discard a "
        "preserved value",
        "Give related fields the same defaults in both versions",
    ),
    "law": (
        "converting an object through another version gives a different result than converting "
        "it directly",
        "Each direction must revert the changes of the opposite direction; compare the fields "
        "shown",
    ),
    "not-deterministic": (
        "a function returns different results for the same object, so each read may return "
        "another object, and caches and server-side apply break",
        "Compute the result from the object alone, without random numbers, the time, the order of "
        "a set, or state of the process",
    ),
    "pruned": (
        "a conversion writes a field that the version does not have, and an API server drops it",
        "Add the field to the schema, or write the value to another field",
    ),
    "unacknowledged": (
        "with completeness: acknowledged, a version cannot express a field, and nobody has decided "
        "that polyver preserves the field",
        "Convert the field by a rule, or name it in a rule drop or add, or in spec.preserved; in "
        "Python, name it with kind.preserves",
    ),
    "unknown-field": (
        "a rule names a field that the schema of the version does not have",
        "Correct the path, or add the field to the schema",
    ),
    "type": (
        "a value is written to a field that has another type in the other version",
        "Add a rule such as cast, scale, wrap or keyed, or correct the existing rule",
    ),
    "value": (
        "a rule writes a value that the schema refuses",
        "Correct the value in the rule, or add it to the enum in the schema",
    ),
    "compiled": (
        "the compiled rules give another result than the interpreter: a bug in polyver",
        "Please report it together with the example",
    ),
}
_RISKY = {
    "unstable": (
        "the result of a function changes when it is converted to the other version and back, so "
        "edits may be undone",
        "Make sure that a result of one function stays the same when the other function converts "
        "it back, and the first function converts it again",
    ),
    "invalid": (
        "an object that is valid in one version is invalid in the other version, so it cannot be "
        "updated",
        "Allow the object in the other version, or give required fields of that version a default",
    ),
    "edits-lose": (
        "if a client edits an item of a list in another version, the fields of this item that the "
        "other version cannot express are lost",
        "Name the fields that identify an item as key of a rule each, or as "
        "x-kubernetes-list-map-keys in the schema; if nothing identifies an item, convert these "
        "fields, or accept the loss",
    ),
    "unmapped": (
        "the rule has no mapping for a value of an enum: the value is preserved, and the field is"
        " absent",
        "Map the value to a value of the other version",
    ),
    "dropped-known": (
        "a rule drops a field that the other version also has",
        "To keep the field, remove the rule. If the two fields have different meanings, give one of"
        " them another name in the schema of its version",
    ),
    "outdated-name": (
        "spec.preserved names a field that is not preserved",
        "Remove the name, or correct it",
    ),
    "no-schema": (
        "without the schema of a version, polyver cannot determine which fields the version lacks",
        "Put the CustomResourceDefinition in a file beside the Conversion",
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
    """Build a finding; the check rule with the name `rule` gives its severity and its advice.

    `fact` is the sentence that describes the error.
    """
    known = RULES[rule]
    return ConversionFinding(kind, rule, known.severity, fact, known.advice, versions, path)


def ranked(findings: Iterable[ConversionFinding]) -> list[ConversionFinding]:
    """Sort findings, worst first.

    The severity decides first, then the number of objects of a cluster, then the position of the
    check rule in `RULES`. Findings about schemas come after those about conversions.
    """
    return sorted(findings, key=_rank)


_ORDER = {name: number for number, name in enumerate((*RULES, *COMPATIBILITY))}


def _rank(finding: ConversionFinding) -> tuple[Any, ...]:
    about = (finding.kind, finding.versions, finding.path, finding.fact)
    return (finding.severity.rank, -finding.objects, _ORDER[finding.rule], *about)
