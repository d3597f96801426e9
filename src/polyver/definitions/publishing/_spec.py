"""Parses a definition in both API versions, and validates its versions.

The spec of a definition may be changed only in the API version in which the definition was created.
Otherwise a change in v1beta1, which has only one version, would lose the other versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

import msgspec

from polyver.capability import Refusal
from polyver.core import Notes, PolyverError, Release, SemVer, Stage, VersionTaken
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.kinds import STORED, VERSIONED
from polyver.definitions.names import API_VERSION, FORCED, REVISION_NAME, revision_name
from polyver.definitions.versions import content_of, published_version
from polyver.kube.objects import digest, encode_json
from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.schema import check_schema
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.objects.typed_bodies import Undecodable, decode_typed
from polyver.languages.gotemplate import TemplateError, compile_template
from polyver.languages.values.names import dns_subdomain_problems, label_value_problems

__all__ = [
    "DesiredDefinition",
    "Refusal",
    "VersionEntry",
    "check_writer",
    "created_with",
    "forced_of",
    "other_writer",
    "parameters_of",
    "read_definition",
    "read_parameters",
    "wrapped",
]

_NO_NOTES = Notes()
_KEPT: Final = 4096
"""Number of entries in the caches of parsed schemas and templates.

The caches are needed because each reconcile parses the definition again.
"""


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """One version in the spec of a definition."""

    at: str
    """Path of the version in the definition: `spec.versions[0]`, or `spec` in v1beta1."""
    version: SemVer | None
    """The semantic version; None for a legacy definition."""
    content: ReadOnlyObject
    digest: str
    stage: Stage = Stage.PUBLISHED
    notes: Notes = _NO_NOTES

    @property
    def release(self) -> Release:
        """The release that this entry publishes. Only an entry with a semantic version has one."""
        assert self.version is not None
        return Release(self.version, self.digest, self.stage, notes=self.notes)


@dataclass(frozen=True, slots=True)
class DesiredDefinition:
    """The desired state of a definition, parsed."""

    kind: str
    namespace: str
    name: str
    entries: tuple[VersionEntry, ...]
    whole: bool
    """True if the spec lists all versions of the definition.

    A published version that is missing in the list is then removed.
    """
    label: str | None = None
    """The part after `-v` in the name of the next revision of a legacy definition.

    An annotation sets it. If it is None, the next number is used.
    """
    forced: frozenset[str] = frozenset()
    """Versions, and names of revisions, that may be removed although they are in use."""

    @property
    def is_legacy(self) -> bool:
        return any(entry.version is None for entry in self.entries)


def read_definition(obj: ReadOnlyObject) -> tuple[DesiredDefinition, list[Refusal]]:
    """Parse a definition. Leave out its invalid versions, and return all problems."""
    metadata: ReadOnlyObject = obj.get("metadata") or {}
    annotations: ReadOnlyObject = metadata.get("annotations") or {}
    created_with = annotations.get(API_VERSION)
    listed = str(obj.get("apiVersion", "")).endswith(f"/{VERSIONED}")
    spec: ReadOnlyObject = obj.get("spec") or {}
    if listed and not spec and created_with == STORED:
        spec = {"versions": [{}]}  # a definition that was created in v1beta1 may have no spec
    written = [("spec", spec)]
    if listed:
        several = enumerate(spec.get("versions") or ())
        written = [(f"spec.versions[{number}]", entry) for number, entry in several]
    reader = _Reader(str(metadata.get("name", "")), annotations.get(REVISION_NAME))
    if problems := label_value_problems(reader.name):
        # The revisions of a definition have a label with the name of the definition.
        fact = f"its name cannot be a label: {problems[0]}"
        reader.refuse("InvalidName", fact, at="metadata.name")
    if listed and not written:
        reader.refuse("NoVersion", "the definition publishes no version", at="spec.versions")
    for at, entry in written:
        reader.read(at, entry, alone=len(written) == 1)
    definition = DesiredDefinition(
        str(obj.get("kind", "")),
        str(metadata.get("namespace", "")),
        reader.name,
        tuple(reader.entries),
        # A list of several versions is complete. A list with one version may come from a spec in
        # v1beta1, which has only one version.
        whole=listed and (created_with == VERSIONED or len(written) > 1),
        label=reader.label,
        forced=reader.forced(annotations.get(FORCED) or ""),
    )
    return definition, reader.refusals


def forced_of(definition: DesiredDefinition, obj: ReadOnlyObject) -> frozenset[str]:
    """Return the versions to remove although applications use them.

    A version that the definition still lists is left out, unless the definition is being deleted.
    """
    if "deletionTimestamp" in obj["metadata"]:
        return definition.forced
    kept = {str(each.version) for each in definition.entries}
    return definition.forced - kept - {revision_name(definition.name, each) for each in kept}


class _Reader:
    """Parses the versions of a definition one by one, and collects the problems."""

    def __init__(self, name: str, label: str | None) -> None:
        self.name = name
        self.label = label
        self.entries: list[VersionEntry] = []
        self.refusals: list[Refusal] = []
        self._versions: dict[SemVer, Release] = {}

    def refuse(self, reason: str, fact: str, *, at: str, hint: str = "") -> None:
        self.refusals.append(Refusal(reason, fact, at=at, hint=hint))

    def read(self, at: str, entry: ReadOnlyObject, *, alone: bool) -> None:
        text = entry.get("version")
        before = len(self.refusals)
        self.refusals += _gotemplate_problems(entry, at)
        version: SemVer | None = None
        if text is not None:
            version = self._version(str(text), at)
            if self.label is not None:
                fact = f"the definition has both a version and the annotation {REVISION_NAME}"
                self.refuse("TwoVersions", fact, at=f"{at}.version", hint="keep one of them")
        elif alone:
            self._check_name(self.label or "1", at)
        else:
            self.refuse("NoVersion", "a version is missing", at=at, hint="every entry needs one")
        notes = self._notes(entry.get("deprecated"), at)
        if len(self.refusals) > before:
            return
        content = content_of(entry)
        stage = Stage.PUBLISHED if notes is None else Stage.DEPRECATED
        made = VersionEntry(at, version, content, digest(content), stage, notes or _NO_NOTES)
        if version is None or self._is_new(made):
            self.entries.append(made)

    def forced(self, text: str) -> frozenset[str]:
        """Parse the annotation with the versions, or names of revisions, to remove by force."""
        found = set()
        for each in text.replace(",", " ").split():
            if each.startswith(revision_name(self.name, "")):
                found.add(each)
                continue
            try:
                found.add(str(published_version(each)))
            except PolyverError as error:
                at = f"metadata.annotations[{FORCED}]"
                self.refuse("InvalidVersion", error.fact, at=at, hint=error.hint)
        return frozenset(found)

    def _version(self, text: str, at: str) -> SemVer | None:
        try:
            version = published_version(text)
        except PolyverError as error:
            self.refuse("InvalidVersion", error.fact, at=f"{at}.version", hint=error.hint)
            return None
        self._check_name(str(version), f"{at}.version")
        return version

    def _check_name(self, version: str, at: str) -> None:
        name = revision_name(self.name, version)
        if problems := dns_subdomain_problems(name):
            fact = f"{name} cannot be the name of a revision: {problems[0]}"
            self.refuse("InvalidVersion", fact, at=at)

    def _notes(self, deprecated: ReadOnlyObject | None, at: str) -> Notes | None:
        if deprecated is None:
            return None
        since = deprecated.get("since") or ""
        try:
            found = SemVer.complete(since) if since else None
        except PolyverError as error:
            self.refuse("InvalidVersion", error.fact, at=f"{at}.deprecated.since")
            return None
        return Notes(since=found, use=deprecated.get("use") or "")

    def _is_new(self, entry: VersionEntry) -> bool:
        release = entry.release
        taken = self._versions.setdefault(release.version, release)  # type: ignore[arg-type]
        if taken is release:
            return True
        error = VersionTaken(self.name, taken, release)
        self.refuse("VersionTaken", error.fact, at=f"{entry.at}.version", hint=error.hint)
        return False


# The schema of parameters, and the template.


def parameters_of(content: ReadOnlyObject) -> ReadOnlyObject | None:
    """Return the schema of a version's parameters. Return None if it has no Go template."""
    schematic: ReadOnlyObject = content.get("schematic") or {}
    if "gotemplate" not in schematic:
        return None
    found = (schematic["gotemplate"] or {}).get("parameters")
    return found if found is not None else _ANYTHING


_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def wrapped(schema: ReadOnlyObject) -> ReadOnlyObject:
    """Return the schema of an object with one field `parameter`, which has the given schema.

    API servers treat the names `metadata` and `kind` specially at the top level of a schema.
    Parameters may have these names, so they must not be at the top level.
    """
    return {"type": "object", "properties": {"parameter": schema}}


def read_parameters(schema: object) -> tuple[ReadOnlyObject, Sequence[tuple[str, str]]]:
    """Decode the schema of a version's parameters as API servers decode schemas.

    Return the schema, and its problems as pairs of path and message.
    """
    return _parameters(encode_json(schema))


@lru_cache(maxsize=_KEPT)
def _parameters(schema: bytes) -> tuple[ReadOnlyObject, Sequence[tuple[str, str]]]:
    try:
        # The CustomResourceDefinition does not limit this field, so it may contain any value.
        found = decode_typed({"parameter": msgspec.json.decode(schema)}, _schema_shape()).value
    except Undecodable as error:
        return {}, [("", f"it is not a schema: {error}")]
    read: ReadOnlyObject = found.get("parameter") or {}
    causes = check_schema(wrapped(read), "", status=False)
    return read, [(each.field.removeprefix(_INSIDE), each.message) for each in causes]


_INSIDE = ".properties[parameter]"


@cache
def _schema_shape() -> Shape:
    """Return the type of an object whose field `parameter` is an openAPIV3Schema."""
    definition = shape_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    version = definition.fields["spec"].fields["versions"].items
    assert version is not None
    schema = version.fields["schema"].fields["openAPIV3Schema"]
    return Shape(type="object", fields={"parameter": schema})


def _gotemplate_problems(entry: ReadOnlyObject, at: str) -> Iterator[Refusal]:
    """Yield the problems in the schema of a version's parameters, and in its Go template.

    They are checked before the version is published, because a published version is immutable.
    """
    inside = f"{at}.schematic.gotemplate"
    schema = parameters_of(entry)
    for path, fact in read_parameters(schema)[1] if schema is not None else ():
        yield Refusal("InvalidParameters", fact, at=f"{inside}.parameters{path}")
    schematic: ReadOnlyObject = entry.get("schematic") or {}
    text = (schematic.get("gotemplate") or {}).get("template")
    error = _template_problem(text) if isinstance(text, str) else None
    if error is not None:
        fact = f"line {error.line}: {error.fact}, near {error.near}"
        yield Refusal("InvalidTemplate", fact, at=f"{inside}.template", hint=error.hint)


@lru_cache(maxsize=_KEPT)
def _template_problem(text: str) -> TemplateError | None:
    try:
        compile_template(text)
    except TemplateError as error:
        return error
    return None


# The API version of a write.


def check_writer(new: ReadOnlyObject, old: ReadOnlyObject, version: str) -> list[Refusal]:
    """Refuse to change the spec in an API version in which the definition was not created.

    `version` is the API version of the write.
    """
    first = _created_with(old)
    if first in (None, version) or new.get("spec") == old.get("spec"):
        return []
    return [_refusal(str(first), version)]


def other_writer(obj: ReadOnlyObject) -> list[Refusal]:
    """Refuse a definition whose spec was written in an API version other than that of its creation.

    `managedFields` has the API version of each write.
    """
    first = _created_with(obj)
    for entry in obj["metadata"].get("managedFields") or ():
        version = str(entry.get("apiVersion", "")).rpartition("/")[2]
        wrote = "f:spec" in (entry.get("fieldsV1") or {})
        if wrote and first is not None and version != first:
            return [_refusal(first, version)]
    return []


def created_with(obj: ReadOnlyObject) -> str:
    """Return the API version in which the spec was written, as `managedFields` records it.

    Return v1beta1 if no entry records it.
    """
    for entry in obj["metadata"].get("managedFields") or ():
        if "f:spec" in (entry.get("fieldsV1") or {}):
            return str(entry.get("apiVersion", "")).rpartition("/")[2]
    return STORED


def _created_with(obj: ReadOnlyObject) -> str | None:
    found: str | None = (obj["metadata"].get("annotations") or {}).get(API_VERSION)
    return found


def _refusal(first: str, version: str) -> Refusal:
    fact = f"the definition was created in {first}, but its spec is changed in {version}"
    hint = f"change it in {first}; labels and annotations can be changed in both"
    return Refusal("OtherAPIVersion", fact, at="spec", hint=hint)
