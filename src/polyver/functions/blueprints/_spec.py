"""Parsed Blueprints and ActionSets.

They keep the positions of their fields in the files, for error messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from msgspec import Struct

from polyver.apis.declaring import Kind
from polyver.core import Dependent, PolyverError, listed
from polyver.functions.kinds import ACTION_SETS, BLUEPRINTS, GROUP
from polyver.kube.objects import Document, encode_json, load_manifests, objects_of
from polyver.kube.objects.codec import prepare
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema import Schema, compile_schema
from polyver.kube.objects.validation import field_path, plain_cause
from polyver.languages.values.manifests import dotted

__all__ = [
    "ActionVersionRequest",
    "Blueprint",
    "BlueprintFinding",
    "ParsedAction",
    "Phase",
    "blueprint_of",
    "blueprints_in",
    "read_blueprint",
    "requests_in",
]

_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class BlueprintFinding:
    """A finding in a blueprint: an error, a deprecation, or a value that is not known yet."""

    fact: str
    path: _Path
    place: str
    """The position of the finding, as text with the file, the line and the path."""
    hint: str = ""
    is_error: bool = True
    is_unknown: bool = False
    """True if the finding is a value that is known only when the action runs."""

    def __str__(self) -> str:
        return str(PolyverError(self.fact, at=self.place, hint=self.hint))

    @property
    def field(self) -> str:
        return dotted(self.path)


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase as it is declared in a blueprint: one call of a function."""

    name: str
    """Name of the phase; empty if the phase has no name. Only a deferred phase may have no name."""
    function: str
    version: str
    """The field `funcVersion` of the phase; empty if it is not set."""
    arguments: Mapping[str, object]
    path: _Path

    @classmethod
    def of(cls, value: Mapping[str, Any], path: _Path) -> Phase:
        """Parse a phase from its declaration in a blueprint."""
        version = value.get("funcVersion") or ""
        return cls(value.get("name") or "", value["func"], version, value.get("args") or {}, path)

    @property
    def at(self) -> str:
        return dotted(self.path)

    @property
    def label(self) -> str:
        """The name of the phase or, without a name, its path in the action: `phases[0]`."""
        return self.name or dotted(self.path[2:])


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """An action of a blueprint: its phases in order, and its deferred phase."""

    name: str
    phases: tuple[Phase, ...]
    deferred: Phase | None = None
    written: Mapping[str, Any] = field(default_factory=dict)
    """The action as it is written in the blueprint."""

    @property
    def has_templates(self) -> bool:
        return b"{{" in encode_json(self.written)

    @property
    def calls(self) -> tuple[Phase, ...]:
        """All phases in order. The deferred phase is last."""
        return (*self.phases, self.deferred) if self.deferred else self.phases


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A blueprint: its actions by name, and the document from which it was parsed."""

    name: str
    namespace: str
    actions: Mapping[str, ParsedAction]
    document: Document
    uid: str = ""
    """The uid of the object; empty if it was read from a file."""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def user(self, phase: Phase) -> Dependent:
        """Return the blueprint as a dependent of the function that a phase calls.

        The field `at` of the dependent is the path of the phase.
        """
        return Dependent(
            f"Blueprint {self.label}", dotted(phase.path), uid=self.uid, labels=self.labels
        )

    def finding(
        self, fact: str, *path: str | int, hint: str = "", is_error: bool = True
    ) -> BlueprintFinding:
        return BlueprintFinding(fact, path, self.document.place(*path), hint, is_error)

    def action(self, name: str) -> ParsedAction:
        """Return the action with this name. If there is none, raise an error with all names."""
        if name not in self.actions:
            known = listed(sorted(self.actions)) or "none"
            fact = f"blueprint {self.label} has no action {name}"
            raise PolyverError(fact, hint=f"known: {known}")
        return self.actions[name]


@dataclass(frozen=True, slots=True)
class ActionVersionRequest:
    """The preferred version of one action in an ActionSet."""

    action_set: str
    namespace: str
    blueprint: str
    action: str
    preferred: str
    path: _Path


class _Names(Struct, rename="camel", frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None


class _Head(Struct):
    metadata: _Names = _Names()

    @property
    def name(self) -> str:
        """The `name` of the object, or its `generateName` if it has no name."""
        return self.metadata.name or self.metadata.generate_name


prepare(_Head)


def blueprints_in(
    documents: Iterable[Document],
) -> Iterator[tuple[Document, Blueprint | None, list[BlueprintFinding]]]:
    """Yield each Blueprint among the documents, with the violations of its schema.

    The Blueprint is None if there are violations.
    """
    for document in objects_of(documents, GROUP, BLUEPRINTS.kind):
        yield document, *read_blueprint(document)


def blueprint_of(obj: Mapping[str, Any]) -> tuple[Blueprint | None, list[BlueprintFinding]]:
    """Parse a Blueprint that was read from an API server."""
    name = (obj.get("metadata") or {}).get("name") or ""
    [document] = load_manifests(encode_json(obj).decode(), f"{BLUEPRINTS.kind}/{name}")
    return read_blueprint(document)


def read_blueprint(document: Document) -> tuple[Blueprint | None, list[BlueprintFinding]]:
    """Parse a Blueprint; return it with all violations of its schema.

    If there are violations, return None instead of the Blueprint.
    """
    # Fields that an API server would remove, because the schema does not have them.
    paths = [field_path(name) for name in _schema(BLUEPRINTS).prune(_copied(document))]
    findings = [_finding(document, f'unknown field "{path[-1]}"', path) for path in paths]
    broken = list(_violations(document, BLUEPRINTS))
    if broken:
        return None, [*findings, *broken]
    head = document.read(_Head)
    value: Any = document.value
    actions = {}
    for name, action in (value.get("actions") or {}).items():
        written, path = action or {}, ("actions", name)
        phases = tuple(
            Phase.of(each, (*path, "phases", number))
            for number, each in enumerate(written.get("phases") or ())
        )
        deferred = written.get("deferPhase")
        last = Phase.of(deferred, (*path, "deferPhase")) if deferred else None
        actions[name] = ParsedAction(name, phases, last, written)
    names = head.metadata
    made = Blueprint(head.name, names.namespace, actions, document, names.uid, names.labels or {})
    return made, findings


def requests_in(documents: Iterable[Document]) -> Iterator[tuple[Document, ActionVersionRequest]]:
    """Yield the preferred version of each action in the ActionSets among the documents."""
    for document in objects_of(documents, GROUP, ACTION_SETS.kind):
        for finding in _violations(document, ACTION_SETS):
            raise document.error(finding.fact, *finding.path, hint=finding.hint)
        head = document.read(_Head)
        value: Any = document.value
        for number, each in enumerate((value.get("spec") or {}).get("actions") or ()):
            yield (
                document,
                ActionVersionRequest(
                    head.name,
                    head.metadata.namespace,
                    each.get("blueprint") or "",
                    each["name"],
                    each.get("preferredVersion") or "",
                    ("spec", "actions", number),
                ),
            )


# Validation by the schema that API servers use, too.


@cache
def _schema(kind: Kind) -> Schema:
    [version] = kind.definition().versions
    assert version.schema is not None
    return compile_schema(version.schema)


def _violations(document: Document, kind: Kind) -> Iterator[BlueprintFinding]:
    """Yield the violations of the kind's schema. An API server would refuse the object."""
    value, version = _copied(document), f"{GROUP}/v1alpha1"
    if value["apiVersion"] != version:
        fact = f"{value['apiVersion']} is not known"
        yield _finding(document, fact, ("apiVersion",), f"expected {version}")
    for cause in _schema(kind).validate(value):
        yield _finding(document, plain_cause(cause), field_path(cause.field))


def _copied(document: Document) -> dict[str, Any]:
    value = fresh(document.value)
    assert isinstance(value, dict)
    return value


def _finding(document: Document, fact: str, path: _Path, hint: str = "") -> BlueprintFinding:
    return BlueprintFinding(fact, path, document.place(*path), hint)
