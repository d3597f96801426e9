"""Reads the lineages of functions and compositions from manifests of their revisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from polyver.capability import FoundLineage, LineageReader
from polyver.compositions._revision_rules import (
    COMPOSITIONS,
    COMPOSITIONS_MANUAL,
    REVISIONS,
    selector,
)
from polyver.compositions.names import COMPOSITION, CONTENT, PACKAGE
from polyver.core import Lineage, PolyverError, Release, Serial, Stage, listed
from polyver.kube.objects import Document, Metadata, objects_of
from polyver.kube.objects.codec import prepare

__all__ = ["READER", "content_digest"]

_STAGES = {"Active": Stage.ACTIVE, "Inactive": Stage.INACTIVE}


class _Spec(Struct, rename="camel"):
    revision: Annotated[int, Meta(ge=1)]
    desired_state: str = "Inactive"
    image: str = ""
    digest: str = ""


class _CompositionSpec(Struct):
    revision: Annotated[int, Meta(ge=1)]


class _CompositionRevision(Struct):
    metadata: Metadata
    spec: _CompositionSpec


class _Revision(Struct):
    metadata: Metadata
    spec: _Spec


prepare(_CompositionRevision, _Revision)


def lineages(documents: Sequence[Document]) -> Iterator[FoundLineage]:
    """Yield the lineage of each function and composition that has revisions in the documents."""
    # Groups and kinds are strings here, because importing the declared kinds takes too long for a
    # command that resolves one revision.
    functions = _collected(documents, "pkg.crossplane.io", "FunctionRevision", _function_release)
    for name, lineage in functions.items():
        yield FoundLineage(lineage, (REVISIONS,), f"package/{name}")
    kind = "apiextensions.crossplane.io", "CompositionRevision"
    compositions = _collected(documents, *kind, _composition_release)
    for name, lineage in compositions.items():
        yield FoundLineage(lineage, (COMPOSITIONS, COMPOSITIONS_MANUAL), f"composition/{name}")


def _collected(
    documents: Sequence[Document],
    group: str,
    kind: str,
    read: Callable[[Document], tuple[str, Release]],
) -> dict[str, Lineage]:
    found: dict[str, Lineage] = {}
    for document in objects_of(documents, group, kind):
        owner, release = read(document)
        try:
            found[owner] = found.get(owner, Lineage(owner)).publish(release)
        except PolyverError as error:
            raise document.error(error.fact, "spec", "revision", hint=error.hint) from None
    return found


def _owner(document: Document, metadata: Metadata, what: str, label: str) -> str:
    owner = metadata.labels.get(label)
    if owner is None:
        raise document.error(
            f"{metadata.name} has no label that names its {what}",
            *("metadata", "labels"),
            hint=f"the label {label} is needed",
        )
    return owner


def _function_release(document: Document) -> tuple[str, Release]:
    revision = document.read(_Revision)
    function = _owner(document, revision.metadata, "function", PACKAGE)
    if revision.spec.desired_state not in _STAGES:
        fact = f'unknown state "{revision.spec.desired_state}"'
        hint = f"expected {listed(list(_STAGES))}"
        raise document.error(fact, "spec", "desiredState", hint=hint)
    return function, Release(
        Serial(revision.spec.revision),
        digest=revision.spec.digest or content_digest(revision.spec.image),
        stage=_STAGES[revision.spec.desired_state],
        labels=revision.metadata.labels,
        name=revision.metadata.name,
    )


def _composition_release(document: Document) -> tuple[str, Release]:
    revision = document.read(_CompositionRevision)
    metadata = revision.metadata
    composition = _owner(document, metadata, "composition", COMPOSITION)
    return composition, Release(
        Serial(revision.spec.revision),
        digest=metadata.labels.get(CONTENT, ""),
        labels=metadata.labels,
        name=metadata.name,
    )


def content_digest(image: str) -> str:
    """Return the digest in the reference of an image, or the reference if it has no digest."""
    _, found, hexadecimal = image.partition("@sha256:")
    return f"sha256:{hexadecimal}" if found else image


READER = LineageReader((REVISIONS, COMPOSITIONS, COMPOSITIONS_MANUAL), lineages, selector)
