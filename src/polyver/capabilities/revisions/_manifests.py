"""The lineages in FunctionRevision manifests: one for each function that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from polyver.capabilities import Found
from polyver.capabilities.revisions._policy import REVISIONS
from polyver.capabilities.revisions.names import PACKAGE
from polyver.core import Lineage, PolyverError, Release, Serial, Stage, listed
from polyver.objects import Document, Metadata, objects_of

__all__ = ["content_digest", "lineages"]

_STAGES = {"Active": Stage.ACTIVE, "Inactive": Stage.INACTIVE}


class _Spec(Struct, rename="camel"):
    revision: Annotated[int, Meta(ge=1)]
    desired_state: str = "Inactive"
    image: str = ""
    digest: str = ""


class _Revision(Struct):
    metadata: Metadata
    spec: _Spec


def lineages(documents: Sequence[Document]) -> Iterator[Found]:
    """Every function of which the manifests hold revisions."""
    found: dict[str, Lineage] = {}
    for document in objects_of(documents, "pkg.crossplane.io", "FunctionRevision"):
        revision = document.read(_Revision)
        function = revision.metadata.labels.get(PACKAGE)
        if function is None:
            raise document.error(
                f"{revision.metadata.name} does not say to which function it belongs",
                *("metadata", "labels"),
                hint=f"the label {PACKAGE} is needed",
            )
        if revision.spec.desired_state not in _STAGES:
            fact = f'there is no state "{revision.spec.desired_state}"'
            hint = f"expected {listed(list(_STAGES))}"
            raise document.error(fact, "spec", "desiredState", hint=hint)
        try:
            found[function] = found.get(function, Lineage(function)).publish(_release(revision))
        except PolyverError as error:
            raise document.error(error.fact, "spec", "revision", hint=error.hint) from None
    for function, lineage in found.items():
        yield Found(lineage, (REVISIONS,), f"package/{function}")


def _release(revision: _Revision) -> Release:
    return Release(
        Serial(revision.spec.revision),
        digest=revision.spec.digest or content_digest(revision.spec.image),
        stage=_STAGES[revision.spec.desired_state],
        labels=revision.metadata.labels,
        name=revision.metadata.name,
    )


def content_digest(image: str) -> str:
    """An image's digest if its reference has one, else the reference."""
    _, found, hexadecimal = image.partition("@sha256:")
    return f"sha256:{hexadecimal}" if found else image
