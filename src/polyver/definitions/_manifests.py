"""Reads definitions as lineages, and reads applications, from manifests.

A definition in v1beta1 publishes one version; a definition in v2beta1 publishes a list of versions.
A definition without any version number is a legacy definition, which has numbered revisions. If
several documents declare the same legacy definition, each document is the next revision. But a
document with the same content as the document before it is not a new revision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct

from polyver.capability import FoundLineage
from polyver.core import (
    InvalidVersion,
    Lineage,
    MixedOrders,
    Notes,
    PolyverError,
    Release,
    SemVer,
    Serial,
    Stage,
    Version,
    VersionTaken,
    is_same,
)
from polyver.definitions.names import REVISION_NAME, revision_name
from polyver.definitions.versions import (
    DEFINITIONS_LEGACY,
    SEMANTIC_POLICIES,
    content_of,
    is_legacy,
    published_version,
)
from polyver.kube.objects import Document, Metadata, digest, objects_of
from polyver.kube.objects.codec import prepare

GROUP = "core.oam.dev"
KINDS = ("ComponentDefinition", "TraitDefinition", "PolicyDefinition", "WorkflowStepDefinition")


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


def lineages(documents: Sequence[Document]) -> Iterator[FoundLineage]:
    """Yield the lineage of each definition.

    The lineage has the versions from all documents of the definition.
    """
    for identity, lineage in lineages_in(documents).items():
        policies = (DEFINITIONS_LEGACY,) if is_legacy(lineage) else SEMANTIC_POLICIES
        yield FoundLineage(lineage, policies, "/".join(filter(None, identity)))


class _GoTemplate(Struct):
    template: str
    parameters: dict[str, Any] | None = None


class _Schematic(Struct):
    gotemplate: _GoTemplate | None = None


class _WholeVersion(_Version):
    schematic: _Schematic | None = None


class _WholeSpec(_WholeVersion):
    versions: list[_WholeVersion] | None = None


class _WholeDefinition(Struct):
    metadata: Metadata
    spec: _WholeSpec | None = None


prepare(_Definition, _WholeDefinition)


def definitions_in(
    documents: Sequence[Document], namespace: str
) -> list[tuple[Document, dict[str, Any]]]:
    """Return the documents that are definitions, and the definition in each of them.

    A definition without a namespace gets `namespace`.
    """
    return [
        (document, _placed(document, document.read(_WholeDefinition).metadata, namespace))
        for document in objects_of(documents, GROUP, *KINDS)
    ]


class _Trait(Struct):
    type: str


class _Component(Struct):
    name: str
    type: str
    traits: list[_Trait] | None = None


class _Named(Struct, rename="camel"):
    type: str
    name: str | None = None
    sub_steps: list[_Named] | None = None


class _Workflow(Struct):
    steps: list[_Named] | None = None


class _Wanted(Struct):
    components: list[_Component]
    policies: list[_Named] | None = None
    workflow: _Workflow | None = None


class _Failed(Struct):
    version: str
    revision: str
    digest: str
    reason: str = ""
    message: str = ""


class _Resolved(Struct, rename="camel"):
    kind: str
    component: str
    definition: str
    version: str
    revision: str
    digest: str
    since: str
    failed_move: _Failed | None = None


class _Resolutions(Struct, rename="camel"):
    resolutions: list[_Resolved] | None = None
    publish_version: str | None = None


class _Application(Struct):
    metadata: Metadata
    spec: _Wanted
    status: _Resolutions | None = None


prepare(_Application)


def applications_in(
    documents: Sequence[Document], namespace: str
) -> list[tuple[Document, dict[str, Any]]]:
    """Return the documents that are applications, and the application in each of them.

    An application without a namespace gets `namespace`.
    """
    return [
        (document, _placed(document, document.read(_Application).metadata, namespace))
        for document in objects_of(documents, GROUP, "Application")
    ]


def _placed(document: Document, read: Metadata, namespace: str) -> dict[str, Any]:
    assert isinstance(document.value, dict)
    metadata = {**document.value["metadata"], "namespace": read.namespace or namespace}
    return {**document.value, "metadata": metadata}


def lineages_in(documents: Sequence[Document]) -> dict[tuple[str, str, str], Lineage]:
    """Return the lineages of the definitions in documents, by kind, namespace and name."""
    found: dict[tuple[str, str, str], _Published] = {}
    for document in objects_of(documents, GROUP, *KINDS):
        definition = document.read(_Definition)
        metadata = definition.metadata
        identity = (definition.kind, metadata.namespace, metadata.name)
        found.setdefault(identity, _Published(metadata.name)).add(definition, document)
    return {
        identity: Lineage(published.name, published.releases.values())
        for identity, published in found.items()
    }


_Path = tuple[str | int, ...]


class _Published:
    """Collects the releases of one definition from all documents that declare it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.releases: dict[Version, Release] = {}

    def add(self, definition: _Definition, document: Document) -> None:
        here: set[Version] = set()
        for release, path in self._releases(definition, document):
            try:
                if release.version in here:
                    raise VersionTaken(self.name, release, release)
                first = next(iter(self.releases.values()), release)
                if type(first.version) is not type(release.version):
                    raise MixedOrders(self.name, first, release)
                taken = self.releases.setdefault(release.version, release)
                if not is_same(taken, release):
                    raise VersionTaken(self.name, taken, release)
            except PolyverError as error:
                raise document.error(error.fact, *path, hint=error.hint) from None
            here.add(release.version)

    def _releases(
        self, definition: _Definition, document: Document
    ) -> Iterator[tuple[Release, _Path]]:
        spec, api_version = definition.spec, definition.api_version
        if api_version == f"{GROUP}/v2beta1":
            yield from self._list(definition, document)
        elif api_version != f"{GROUP}/v1beta1":
            hint = f"expected {GROUP}/v1beta1 or {GROUP}/v2beta1"
            raise document.error(f"{api_version} is not known", "apiVersion", hint=hint)
        elif spec.versions is not None:
            hint = f"it needs {GROUP}/v2beta1"
            raise document.error("v1beta1 has no list of versions", "spec", "versions", hint=hint)
        elif spec.version is None:
            yield from self._legacy(definition, document, ("spec",))
        elif REVISION_NAME in definition.metadata.annotations:
            fact = f"the definition has both a version and the annotation {REVISION_NAME}"
            raise document.error(fact, "spec", "version", hint="keep one of them")
        else:
            yield _release(spec, document, ("spec",)), ("spec",)

    def _list(self, definition: _Definition, document: Document) -> Iterator[tuple[Release, _Path]]:
        spec = definition.spec
        if spec.version is not None:
            hint = "add it to the list of versions"
            raise document.error("v2beta1 has no field version", "spec", "version", hint=hint)
        if not spec.versions:
            raise document.error("the definition publishes no version", "spec", "versions")
        if len(spec.versions) == 1 and spec.versions[0].version is None:
            # A legacy definition that was converted to v2beta1 has one entry without a version.
            yield from self._legacy(definition, document, ("spec", "versions", 0))
            return
        for number, version in enumerate(spec.versions):
            path: _Path = ("spec", "versions", number)
            yield _release(version, document, path), path

    def _legacy(
        self, definition: _Definition, document: Document, path: _Path
    ) -> Iterator[tuple[Release, _Path]]:
        """Yield the next numbered revision of a legacy definition, unless its content is unchanged.

        If an annotation of the document gives the revision a new name, the document is a new
        revision even if its content is unchanged.
        """
        content = digest(_content(document, path))
        serial = Serial(len(self.releases) + 1)
        annotation = definition.metadata.annotations.get(REVISION_NAME)
        if annotation == "":
            raise document.error("the revision's name is empty", "metadata", "annotations")
        name = revision_name(self.name, annotation or serial)
        known = {release.name: release for release in self.releases.values()}
        if name in known:
            if known[name].digest == content:
                return
            hint = "choose another one: a revision is immutable"
            fact = f"{name} exists with other content"
            raise document.error(fact, "metadata", "annotations", REVISION_NAME, hint=hint)
        newest = self.releases.get(Serial(len(known))) if known else None
        if annotation is None and newest is not None and newest.digest == content:
            return
        yield Release(serial, content, name=name), path


def _release(version: _Version, document: Document, path: _Path) -> Release:
    if version.version is None:
        raise document.error("a version is missing", *path, hint="every entry needs one")
    try:
        published = published_version(version.version)
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


def _content(document: Document, path: _Path) -> object:
    entry = document.part(*path).value
    assert isinstance(entry, dict)
    return content_of(entry)
