"""Checks that the defaults in a CustomResourceDefinition are valid and have no unknown fields."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from polyver.kube.objects.schema._checks import Checks
from polyver.kube.objects.schema._conforming import prune
from polyver.kube.objects.schema._embedded_resources import (
    MalformedMetadata,
    check_embedded,
    coerce_embedded,
)
from polyver.kube.objects.schema._errors import ValidationReport
from polyver.kube.objects.schema._rules import Findings, compile_rules
from polyver.kube.objects.schema._structural import invalid
from polyver.kube.objects.schema.structure import META_FIELDS, NEW, read_structure
from polyver.kube.objects.status import Cause
from polyver.languages.values.strings import same

__all__ = ["check_defaults", "coerce_defaults"]

_EMBEDDED = "x-kubernetes-embedded-resource"


@dataclass(frozen=True, slots=True)
class _DefaultPosition:
    """The position of a default in a schema.

    `root` is the schema of the nearest object around the default that has its own metadata. `steps`
    is the path from this object to the default.
    """

    root: Mapping[str, Any]
    steps: tuple[str | None, ...] = ()
    """The names of fields on the path; None stands for the items of a list."""
    in_metadata: bool = False

    def around(self, value: Any) -> dict[str, Any]:
        """Build an object in which the default `value` is at this position.

        The object has an apiVersion and a kind, so that it can be validated.
        """
        first, *rest = self.steps
        for step in reversed(rest):
            value = [value] if step is None else {step: value}
        return {"apiVersion": "validation/v1", "kind": "Validation", str(first): value}


def check_defaults(schema: Mapping[str, Any], path: str) -> list[Cause]:
    """Return the errors in the defaults of a schema."""
    root = copy.deepcopy({**schema, _EMBEDDED: True})
    return _check(root, path, _DefaultPosition(root))


def coerce_defaults(schema: Mapping[str, Any]) -> None:
    """Drop unknown metadata fields from the defaults of embedded resources; `schema` is changed.

    kube-apiserver drops these fields while it validates a schema, and stores the result.
    """
    if schema.get("default") is not None:
        coerce_embedded(schema["default"], read_structure(schema), "", [])
    for inner in (*(schema.get("properties") or {}).values(), schema.get("items")):
        if isinstance(inner, Mapping):
            coerce_defaults(inner)


def _check(schema: Mapping[str, Any], path: str, position: _DefaultPosition) -> list[Cause]:
    if schema.get(_EMBEDDED):
        position = _DefaultPosition(schema)
    causes: list[Cause] = []
    if schema.get("default") is not None:
        check = _check_in_metadata if position.in_metadata else _check_default
        causes += check(schema, f"{path}.default", position)
    items = schema.get("items")
    if isinstance(items, Mapping):
        causes += _check(items, f"{path}.items", replace(position, steps=(*position.steps, None)))
    fields = schema.get("properties") or {}
    for name in sorted(fields):
        meta = position.in_metadata or bool(schema.get(_EMBEDDED) and name in META_FIELDS)
        inner = replace(position, steps=(*position.steps, name), in_metadata=meta)
        causes += _check(fields[name], f"{path}.properties[{name}]", inner)
    return causes


def _check_default(schema: Mapping[str, Any], path: str, position: _DefaultPosition) -> list[Cause]:
    default, structure = schema["default"], read_structure(schema)
    causes: list[Cause] = []
    pruned = copy.deepcopy(default)
    prune(pruned, structure, "", [])
    is_pruned = not same(pruned, default)
    malformed: list[Cause] = []
    try:
        coerce_embedded(default, structure, path, [])
    except MalformedMetadata as problem:
        malformed = [problem.cause]
    if is_pruned:
        causes.append(invalid(path, default, "must not have unknown fields"))
    if malformed:
        return causes + malformed
    found = check_embedded(default, structure, path)
    return causes + (found or _check_value(schema, path, root=schema is position.root))


def _check_in_metadata(
    schema: Mapping[str, Any], path: str, position: _DefaultPosition
) -> list[Cause]:
    whole, structure = (
        position.around(copy.deepcopy(schema["default"])),
        read_structure(position.root),
    )
    text = "must result in valid metadata"
    try:
        coerce_embedded(whole, structure, "", [])
    except MalformedMetadata as problem:
        return [invalid(path, schema["default"], f"{text}: {problem}")]
    found = [f"{cause.field}: {cause.message}" for cause in check_embedded(whole, structure, "")]
    if found:
        problems = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
        return [invalid(path, schema["default"], f"{text}: {problems}")]
    return _check_value(schema, path, root=schema is position.root)


def _without_int_or_string(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a schema without int-or-string, a keyword that kube-apiserver ignores for defaults."""
    made = {key: value for key, value in schema.items() if key != "x-kubernetes-int-or-string"}
    fields = schema.get("properties") or {}
    made["properties"] = {name: _without_int_or_string(each) for name, each in fields.items()}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            made[name] = _without_int_or_string(schema[name])
    return made


def _check_value(schema: Mapping[str, Any], path: str, *, root: bool) -> list[Cause]:
    report = ValidationReport(path)
    Checks(_without_int_or_string(schema), None).run(schema["default"], "", NEW, report)
    causes = list(dict.fromkeys(report.causes))
    rules = None if causes else compile_rules(schema, read_structure(schema), root=root)
    if rules is None:
        return causes
    findings = Findings()
    rules.check_default(schema["default"], path, findings)
    return findings.causes
