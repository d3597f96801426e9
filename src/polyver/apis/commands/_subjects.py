"""Load the kinds and conversions that `polyver check` checks; report invalid ones as findings."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from polyver.apis.checking import ConversionFinding, found
from polyver.apis.commands.kinds import find_kinds
from polyver.apis.conversion import Converter, build_converter, read_conversion
from polyver.apis.conversion.reading import GROUP, KIND, read_connected_part
from polyver.apis.declaring import Kind
from polyver.apis.definition import Definition, InvalidKind
from polyver.apis.manifests import definitions_of
from polyver.apis.trials import CheckedKind
from polyver.cli.exit_codes import UnreadableInput
from polyver.cli.files import read_manifests
from polyver.core import PolyverError
from polyver.kube.objects import Document, objects_of

__all__ = ["LoadedKinds", "load_subjects"]


@dataclass(slots=True)
class LoadedKinds:
    """The kinds to check, all CRDs by name, and a finding for each invalid kind."""

    subjects: list[CheckedKind] = field(default_factory=list)
    parts: list[CheckedKind] = field(default_factory=list)
    """For each kind whose edges do not connect all versions: the versions that are connected.

    They are compared with an earlier state, to show what the missing edge breaks.
    """
    definitions: dict[str, Definition] = field(default_factory=dict)
    findings: list[ConversionFinding] = field(default_factory=list)

    def add_part(self, converter: Converter, name: str, place: str) -> None:
        self.parts.append(CheckedKind(converter, {}, name, place))

    def refuse(self, name: str, error: PolyverError, place: str) -> None:
        fact = f"{error.fact}; {error.hint}" if error.hint else error.fact
        self.findings.append(replace(found("tree", name, fact), place=place))


def load_subjects(
    kinds: Sequence[str], conversions: Sequence[str], *, show_traceback: bool
) -> LoadedKinds:
    """Load the kinds and conversions to check; raise an error if a file cannot be read."""
    loaded = LoadedKinds()
    documents = read_manifests(conversions)
    described = [*objects_of(documents, GROUP, KIND)]
    converted = {_key(each): each for each in described}
    known: dict[tuple[str, str], Definition] = {}
    for definition in definitions_of(documents):
        known[definition.group, definition.kind] = definition
    if kinds or not conversions:
        for kind in find_kinds(kinds, show_traceback=show_traceback):
            _add_kind(loaded, kind, known, converted.keys())
    for key, document in converted.items():
        _add_conversion(loaded, document, known.get(key))
    loaded.definitions |= {each.name: each for each in known.values()}
    loaded.subjects.sort(key=lambda each: each.name)
    if not loaded.subjects and not loaded.findings and not loaded.definitions:
        raise UnreadableInput("no kind was found", at=", ".join([*kinds, *conversions]))
    return loaded


def _key(document: Document) -> tuple[str, str]:
    value = document.value
    spec = value.get("spec") if isinstance(value, dict) else None
    said = spec if isinstance(spec, dict) else {}
    return str(said.get("group", "")), str(said.get("kind", ""))


def _add_kind(
    loaded: LoadedKinds,
    kind: Kind,
    known: dict[tuple[str, str], Definition],
    converted: Container[tuple[str, str]],
) -> None:
    try:
        definition = kind.definition()
    except InvalidKind as error:
        at = f"{kind.place}, {error.at}" if error.at and error.at != kind.place else kind.place
        name = f"{kind.names.plural}.{kind.group}"
        loaded.refuse(name, error, at)
        with suppress(PolyverError):  # another problem, which the finding names
            loaded.add_part(kind.connected_part(), name, kind.place)
        return
    known.setdefault((definition.group, definition.kind), definition)
    if (definition.group, definition.kind) not in converted:
        loaded.subjects.append(CheckedKind.of(kind))


def _add_conversion(loaded: LoadedKinds, document: Document, definition: Definition | None) -> None:
    group, kind = _key(document)
    name = definition.name if definition else f"{kind} of {group}"
    try:
        declared = read_conversion(document)
        converter = build_converter(declared, definition)
    except PolyverError as error:
        loaded.refuse(name, error, error.at)
        with suppress(PolyverError):  # another problem, which the finding names
            loaded.add_part(_connected_part(document, definition), name, document.place())
        return
    versions = definition.versions if definition else ()
    schemas = {each.name: each.schema for each in versions if each.schema is not None}
    place, completeness = document.place(), declared.completeness
    loaded.subjects.append(CheckedKind(converter, schemas, name, place, completeness))


def _connected_part(document: Document, definition: Definition | None) -> Converter:
    """Build a converter of the versions of a Conversion that its edges connect."""
    declared = read_connected_part(document)
    versions = definition.versions if definition else ()
    schemas = {v.name: v.schema for v in versions if v.schema and v.name in declared.versions}
    return Converter(
        declared.group, declared.kind, declared.versions, declared.edges, schemas=schemas
    )
