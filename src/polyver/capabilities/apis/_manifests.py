"""The lineages in CustomResourceDefinition manifests: one for each kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from polyver.capabilities import Found
from polyver.capabilities.apis._policy import APIS
from polyver.core import InvalidVersion, KubeVersion, Lineage, Notes, PolyverError, Release, Stage
from polyver.objects import Document, objects_of


class _Names(Struct):
    kind: str


class _Version(Struct, rename="camel"):
    name: str
    served: bool = True
    deprecated: bool = False
    deprecation_warning: str = ""


class _Spec(Struct):
    group: str
    names: _Names
    versions: list[_Version] = []
    version: str = ""  # of v1beta1, where a single version may stand here


class _Definition(Struct):
    spec: _Spec


def lineages(documents: Sequence[Document]) -> Iterator[Found]:
    """Every kind that the manifests define, with its versions."""
    for document in objects_of(documents, "apiextensions.k8s.io", "CustomResourceDefinition"):
        spec = document.read(_Definition).spec
        versions = spec.versions or ([_Version(spec.version)] if spec.version else [])
        releases = [_release(version, document, i) for i, version in enumerate(versions)]
        try:
            lineage = Lineage(spec.names.kind, releases)
        except PolyverError as error:
            raise document.error(error.fact, "spec", "versions", hint=error.hint) from None
        yield Found(lineage, (APIS,), f"CustomResourceDefinition/{spec.group}/{spec.names.kind}")


def _release(version: _Version, document: Document, number: int) -> Release:
    try:
        parsed = KubeVersion.parse(version.name)
    except InvalidVersion as error:
        raise document.error(error.fact, "spec", "versions", number, "name") from None
    stage = Stage.DEPRECATED if version.deprecated else Stage.SERVED
    notes = Notes(text=version.deprecation_warning)
    return Release(parsed, stage=stage if version.served else Stage.UNSERVED, notes=notes)
