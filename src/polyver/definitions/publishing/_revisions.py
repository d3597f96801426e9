"""Parses DefinitionRevisions, builds new ones, and combines them to the lineage of a definition."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from polyver.capability.gates import STATE, gate_annotations, gate_in
from polyver.core import (
    Gate,
    InvalidVersion,
    Lineage,
    Notes,
    Release,
    SemVer,
    Serial,
    Stage,
    Version,
)
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.kinds import GROUP, STORED
from polyver.definitions.names import ALLOW_DELETION, TYPES, name_label, revision_name
from polyver.definitions.publishing._spec import DesiredDefinition, VersionEntry

__all__ = [
    "KnownDefinitionRevision",
    "NewDefinitionRevision",
    "holders_of",
    "known_revision",
    "known_revisions",
    "lineage_of",
    "removed_of",
    "revision_object",
]


@dataclass(frozen=True, slots=True)
class KnownDefinitionRevision:
    """An existing DefinitionRevision, parsed."""

    name: str
    version: Version
    digest: str
    content: ReadOnlyObject
    gate: Gate | None = None
    """The gate that a Rollout or a RolloutPolicy has set. None if there is no gate."""
    is_marked: bool = False
    """True if a Rollout or a RolloutPolicy has opened or closed the revision before."""
    allows_deletion: bool = False
    """True if a move to this revision may delete objects of applications."""

    @property
    def release(self) -> Release:
        named = self.name if isinstance(self.version, Serial) else ""
        labels = {ALLOW_DELETION: "true"} if self.allows_deletion else {}
        return Release(self.version, self.digest, labels=labels, gate=self.gate, name=named)


@dataclass(frozen=True, slots=True)
class NewDefinitionRevision:
    """A DefinitionRevision to create."""

    name: str
    entry: VersionEntry
    version: Version
    gate: Gate | None = None
    """The gate with which the revision is created. None if all followers may use it immediately."""

    @property
    def release(self) -> Release:
        if self.entry.version is not None:
            return replace(self.entry.release, gate=self.gate)
        return Release(self.version, self.entry.digest, gate=self.gate, name=self.name)


def known_revision(obj: ReadOnlyObject) -> KnownDefinitionRevision | None:
    """Parse a DefinitionRevision. Return None if the version of the revision is invalid."""
    spec: ReadOnlyObject = obj.get("spec") or {}
    fields = [
        f"{name[0].lower()}{name[1:]}"
        for name, each in TYPES.items()
        if each == spec.get("definitionType")
    ]
    inside: ReadOnlyObject = next((spec[name] for name in fields if name in spec), {})
    text = spec.get("version")
    try:
        version = SemVer.complete(text) if text else Serial(int(spec.get("revision") or 0))
    except InvalidVersion:
        return None
    found = str(spec.get("digest") or spec.get("revisionHash") or "")
    annotations: ReadOnlyObject = obj["metadata"].get("annotations") or {}
    return KnownDefinitionRevision(
        obj["metadata"]["name"],
        version,
        found,
        inside.get("spec") or {},
        gate_in(annotations),
        STATE in annotations,
        annotations.get(ALLOW_DELETION) == "true",
    )


def revision_object(
    definition: DesiredDefinition, new: NewDefinitionRevision, owner: ReadOnlyObject
) -> dict[str, Any]:
    """Build the DefinitionRevision for a version.

    Its spec contains the definition in v1beta1, with only this version. `owner` is the definition.
    """
    kind, entry = definition.kind, new.entry
    said: dict[str, Any] = {"version": str(entry.version)} if entry.version is not None else {}
    labels = {name_label(kind): definition.name}
    annotations: ReadOnlyObject = owner["metadata"].get("annotations") or {}
    allowed = {name: annotations[name] for name in (ALLOW_DELETION,) if name in annotations}
    if new.gate is not None:
        # Create the revision with its gate, so that the release is closed from the beginning.
        # Otherwise, a controller could use the release before it is closed.
        allowed |= gate_annotations(new.gate)
    inside = {
        "apiVersion": f"{GROUP}/{STORED}",
        "kind": kind,
        "metadata": {"name": definition.name, "namespace": definition.namespace},
        "spec": {**said, **entry.content},
    }
    named = {"apiVersion": f"{GROUP}/{STORED}", "kind": kind}
    named |= {name: owner["metadata"][name] for name in ("name", "uid")}
    serial = new.version.number if isinstance(new.version, Serial) else 0
    return {
        "apiVersion": f"{GROUP}/{STORED}",
        "kind": "DefinitionRevision",
        "metadata": {
            "name": new.name,
            "namespace": definition.namespace,
            "labels": labels,
            **({"annotations": allowed} if allowed else {}),
            "ownerReferences": [{**named, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            **said,
            "revision": serial,
            "revisionHash": entry.digest,
            "digest": entry.digest,
            "definitionType": TYPES[kind],
            f"{kind[0].lower()}{kind[1:]}": inside,
        },
    }


def known_revisions(
    objs: Iterable[ReadOnlyObject], *, policy: str = ""
) -> list[KnownDefinitionRevision]:
    """Parse the DefinitionRevisions of a definition, and leave out those with an invalid version.

    `policy` is the name of the Ready RolloutPolicy of the definition. It closes each revision that
    no Rollout or RolloutPolicy has opened or closed yet. But it does not close revisions that are
    older than the first opened or closed revision, because these are older than the policy.
    """
    known = [each for obj in objs if (each := known_revision(obj)) is not None]
    closed = set()
    for order in {type(each.version) for each in known} if policy else ():
        mine = {each.release.name: each for each in known if type(each.version) is order}
        after = False
        for release in Lineage("", [each.release for each in mine.values()]):
            after = after or mine[release.name].is_marked
            if after and not mine[release.name].is_marked:
                closed.add(mine[release.name].name)
    held = gate_in({}, policy=policy)
    return [replace(each, gate=held) if each.name in closed else each for each in known]


def lineage_of(
    definition: DesiredDefinition,
    known: Iterable[KnownDefinitionRevision],
    removed: Iterable[Release] = (),
) -> Lineage:
    """Build the lineage of a definition from its existing revisions and its removed releases.

    The stages of the releases, such as deprecated, come from the versions in the definition's spec.
    """
    order = Serial if definition.is_legacy else SemVer
    there = [*known]
    # A definition has numbered revisions and semantic versions only if another program has created
    # revisions.
    mine = [each for each in there if isinstance(each.version, order)] or there
    releases = {each.version: each.release for each in mine}
    for gone in removed:
        if all(isinstance(each, SemVer) for each in releases):
            releases.setdefault(gone.version, gone)
    for entry in definition.entries:
        if entry.version is not None and entry.version in releases:
            is_same = releases[entry.version].digest == entry.digest
            if is_same and not releases[entry.version].stage.is_gone:
                releases[entry.version] = replace(
                    releases[entry.version], stage=entry.stage, notes=entry.notes
                )
    return Lineage(definition.name, releases.values())


def removed_of(
    obj: ReadOnlyObject, definition: DesiredDefinition, known: Iterable[KnownDefinitionRevision]
) -> list[Release]:
    """Return the removed releases of a definition, which its status records.

    A release is removed if the status says so, or if its revision was deleted and the definition
    does not list the release any more.
    """
    status: ReadOnlyObject = obj.get("status") or {}
    there = {each.version for each in known} | {each.version for each in definition.entries}
    found = []
    for each in status.get("versions") or ():
        with suppress(InvalidVersion):  # removed numbered revisions are not recorded
            version = SemVer.parse(each["version"])
            if each["stage"] == Stage.REMOVED.value or version not in there:
                notes = Notes(use=each.get("use") or "")
                found.append(Release(version, each["digest"], Stage.REMOVED, notes=notes))
    return found


def holders_of(objs: Iterable[ReadOnlyObject]) -> dict[str, tuple[str, str]]:
    """Return the kind and name of the definition for each revision, by the name of the revision.

    Both are empty if the labels of the revision name no definition.
    """
    found = {}
    for obj in objs:
        labels: ReadOnlyObject = obj["metadata"].get("labels") or {}
        kind = next((kind for kind in TYPES if name_label(kind) in labels), "")
        found[obj["metadata"]["name"]] = kind, labels[name_label(kind)] if kind else ""
    return found


def new_revision(
    definition: DesiredDefinition, entry: VersionEntry, version: Version, policy: str = ""
) -> NewDefinitionRevision:
    """Build the revision to create for one version in the spec of a definition."""
    named = definition.label if entry.version is None else None
    name = revision_name(definition.name, named or version)
    return NewDefinitionRevision(name, entry, version, gate_in({}, policy=policy))
