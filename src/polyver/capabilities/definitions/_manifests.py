"""The lineages in definition manifests: v1beta1 publishes one version, v2beta1 a list of them.

A v1beta1 definition without a version is a legacy one: the documents of one name are its
revisions, numbered in the order in which they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from msgspec import Struct

from polyver.capabilities import Found
from polyver.capabilities.definitions._policy import DEFINITIONS, DEFINITIONS_LEGACY, is_legacy
from polyver.core import (
    InvalidVersion,
    Lineage,
    Notes,
    PolyverError,
    Release,
    SemVer,
    Serial,
    Stage,
)
from polyver.objects import Document, Metadata, digest, objects_of

GROUP = "core.oam.dev"
KINDS = ("ComponentDefinition", "TraitDefinition", "PolicyDefinition", "WorkflowStepDefinition")
REVISION_NAME = "definitionrevision.oam.dev/name"


class _Deprecated(Struct):
    since: str = ""
    use: str = ""


class _Version(Struct):
    version: str | None = None
    deprecated: _Deprecated | None = None


class _Spec(_Version):
    versions: list[_Version] | None = None


class _Definition(Struct, rename="camel"):
    api_version: str
    kind: str
    metadata: Metadata
    spec: _Spec


def lineages(documents: Sequence[Document]) -> Iterator[Found]:
    """Every definition that the manifests publish, with all versions from all documents."""
    found: dict[tuple[str, str, str], Lineage] = {}
    for document in objects_of(documents, GROUP, *KINDS):
        definition = document.read(_Definition)
        metadata = definition.metadata
        identity = (definition.kind, metadata.namespace, metadata.name)
        lineage = found.get(identity, Lineage(metadata.name))
        for release, path in _releases(definition, document, lineage):
            try:
                lineage = lineage.publish(release)
            except PolyverError as error:
                raise document.error(error.fact, *path, hint=error.hint) from None
        found[identity] = lineage
    for (kind, namespace, name), lineage in found.items():
        legacy = is_legacy(lineage)
        full_name = "/".join(filter(None, (kind, namespace, name)))
        yield Found(lineage, DEFINITIONS_LEGACY if legacy else DEFINITIONS, full_name)


_Path = tuple[str | int, ...]


def _releases(
    definition: _Definition, document: Document, lineage: Lineage
) -> Iterator[tuple[Release, _Path]]:
    spec = definition.spec
    if definition.api_version == f"{GROUP}/v2beta1":
        if not spec.versions:
            raise document.error("the definition publishes no version", "spec", "versions")
        for number, version in enumerate(spec.versions):
            path: _Path = ("spec", "versions", number)
            yield _release(version, document, path), path
    elif spec.version is not None:
        if REVISION_NAME in definition.metadata.annotations:
            raise document.error(
                f"the definition has both a version and the annotation {REVISION_NAME}",
                *("spec", "version"),
                hint="keep one of them",
            )
        yield _release(spec, document, ("spec",)), ("spec",)
    else:
        release = _legacy(definition, document, lineage)
        if release is not None:
            yield release, ("spec",)


def _release(version: _Version, document: Document, path: _Path) -> Release:
    if version.version is None:
        raise document.error("a version is missing", *path, hint="every entry needs one")
    try:
        published = _published(version.version)
    except PolyverError as error:
        raise document.error(error.fact, *path, "version", hint=error.hint) from None
    content = _content(document, path)
    release = Release(published, digest(content))
    if version.deprecated is None:
        return release
    try:
        since = SemVer.complete(version.deprecated.since) if version.deprecated.since else None
    except InvalidVersion as error:
        raise document.error(error.fact, *path, "deprecated", "since") from None
    notes = Notes(since=since, use=version.deprecated.use)
    return replace(release, stage=Stage.DEPRECATED, notes=notes)


def _published(text: str) -> SemVer:
    version = SemVer.complete(text)
    for wrong, what in (
        (text.startswith("v"), 'a leading "v"'),
        (bool(version.build), "build metadata"),
        (text != text.lower(), "uppercase letters"),
    ):
        if wrong:
            hint = "it becomes part of an object's name" if "upper" in what else "leave it out"
            raise PolyverError(f'"{text}" is published with {what}', hint=hint)
    return version


def _content(document: Document, path: _Path) -> object:
    """What a version consists of: the entry without its number and its deprecation."""
    content = document.part(*path).value
    assert isinstance(content, dict)
    return {key: value for key, value in content.items() if key not in ("version", "deprecated")}


def _legacy(definition: _Definition, document: Document, lineage: Lineage) -> Release | None:
    """The next revision; the same content again makes none."""
    content = digest(_content(document, ("spec",)))
    if lineage.releases and lineage.newest.digest == content:
        return None
    serial = Serial(len(lineage) + 1)
    name = definition.metadata.annotations.get(REVISION_NAME, str(serial))
    return Release(serial, content, name=f"{definition.metadata.name}-v{name}")
