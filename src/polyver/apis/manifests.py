"""Read CustomResourceDefinition manifests, as a `Definition` or as the lineage of each kind.

A lineage is a named thing with several versions; here, a kind with its API versions.

A manifest in apiextensions.k8s.io/v1beta1 may state a schema or columns once for all versions. In
v1, each version states its own schema and columns. Both manifests give the same `Definition`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from polyver.apis.definition import Column, DefinedVersion, Definition, Names, Scale, Schema, Scope
from polyver.apis.policy import APIS
from polyver.capability import FoundLineage
from polyver.core import (
    InvalidVersion,
    KubeVersion,
    Lineage,
    Notes,
    PolyverError,
    Release,
    Stage,
    listed,
)
from polyver.kube.objects import Document, objects_of
from polyver.kube.objects.codec import prepare
from polyver.kube.objects.webhooks import INJECT_CA_FROM, Webhook

__all__ = ["definitions_of", "lineage_of", "lineages"]

_PRESERVE = "x-kubernetes-preserve-unknown-fields"


class _Names(Struct, rename="camel"):
    kind: str
    plural: str = ""
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class _Column(Struct, rename="camel"):
    name: str
    type: Literal["string", "integer", "number", "boolean", "date"]
    json_path: str = ""
    format: str = ""
    description: str = ""
    priority: int = 0


class _BetaColumn(_Column, rename={"json_path": "JSONPath"}):
    json_path: str = ""


class _Scale(Struct, rename="camel"):
    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str = ""


class _Subresources(Struct):
    status: dict[str, Any] | None = None
    scale: _Scale | None = None


class _Validation(Struct):
    openAPIV3Schema: dict[str, Any] | None = None  # noqa: N815 - Kubernetes' name


class _Selectable(Struct, rename="camel"):
    json_path: str


class _Version(Struct, rename="camel"):
    name: str
    served: bool = True
    storage: bool | None = None
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: _Validation | None = None
    subresources: _Subresources | None = None
    additional_printer_columns: list[_Column] | None = None
    selectable_fields: list[_Selectable] = []


class _BetaVersion(_Version, rename="camel"):
    additional_printer_columns: list[_BetaColumn] | None = None  # type: ignore[assignment]


class _Service(Struct):
    namespace: str
    name: str
    path: str = ""
    port: int | None = None


class _Client(Struct, rename="camel"):
    url: str = ""
    service: _Service | None = None
    ca_bundle: str = ""


class _Webhook(Struct, rename="camel"):
    client_config: _Client
    conversion_review_versions: tuple[str, ...] = ("v1",)


class _Conversion(Struct, rename="camel"):
    strategy: Literal["None", "Webhook"] = "None"
    webhook: _Webhook | None = None
    webhook_client_config: _Client | None = None  # of v1beta1, with what follows
    conversion_review_versions: tuple[str, ...] = ("v1beta1",)


class _Spec(Struct, rename="camel"):
    group: str
    names: _Names
    versions: list[_Version] = []
    scope: Scope = "Namespaced"
    conversion: _Conversion | None = None


class _BetaSpec(_Spec, rename="camel"):
    """The spec of a CustomResourceDefinition in v1beta1.

    It may state a single version, and fields that apply to all versions.
    """

    versions: list[_BetaVersion] = []  # type: ignore[assignment]
    version: str = ""
    validation: _Validation | None = None
    subresources: _Subresources | None = None
    additional_printer_columns: list[_BetaColumn] | None = None
    preserve_unknown_fields: bool = True


class _Metadata(Struct, frozen=True):
    name: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Definition(Struct):
    spec: _Spec
    metadata: _Metadata = _Metadata()


class _BetaDefinition(Struct):
    spec: _BetaSpec
    metadata: _Metadata = _Metadata()


prepare(_Definition, _BetaDefinition)


def definitions_of(documents: Sequence[Document]) -> Iterator[Definition]:
    """Yield each kind that manifests define; raise an error unless it has one storage version."""
    for document in _crds(documents):
        definition = _read(document)
        stored = [version.name for version in definition.versions if version.storage]
        if len(stored) != 1:
            names = listed([version.name for version in definition.versions])
            fact = f"{definition.kind} has no storage version among {names}"
            if stored:
                fact = f"{definition.kind} has two storage versions, {listed(stored)}"
            raise document.error(fact, "spec", "versions")
        yield definition


def lineages(documents: Sequence[Document]) -> Iterator[FoundLineage]:
    """Yield the lineage of each kind that the manifests define."""
    for document in _crds(documents):
        definition = _read(document)
        try:
            lineage = Lineage(definition.kind, map(_release, definition.versions))
        except PolyverError as error:
            raise document.error(error.fact, "spec", "versions", hint=error.hint) from None
        path = f"CustomResourceDefinition/{definition.group}/{definition.kind}"
        yield FoundLineage(lineage, (APIS,), path)


def lineage_of(crd: Mapping[str, Any]) -> Lineage:
    """Build the lineage of a kind from a CustomResourceDefinition that was read from a server."""
    spec = crd["spec"]
    versions = (
        DefinedVersion(
            each["name"],
            served=each.get("served", True),
            deprecated=each.get("deprecated", False),
            warning=each.get("deprecationWarning"),
        )
        for each in spec["versions"]
    )
    return Lineage(spec["names"]["kind"], map(_release, versions))


def _crds(documents: Sequence[Document]) -> Iterator[Document]:
    return objects_of(documents, "apiextensions.k8s.io", "CustomResourceDefinition")


def _release(version: DefinedVersion) -> Release:
    stage = Stage.DEPRECATED if version.deprecated else Stage.SERVED
    notes = Notes(text=version.warning or "")
    parsed = KubeVersion.parse(version.name)
    return Release(parsed, stage=stage if version.served else Stage.UNSERVED, notes=notes)


def _read(document: Document) -> Definition:
    value = document.value
    beta = isinstance(value, Mapping) and value["apiVersion"] == "apiextensions.k8s.io/v1beta1"
    read: _Definition | _BetaDefinition
    read = document.read(_BetaDefinition) if beta else document.read(_Definition)
    spec, metadata = read.spec, read.metadata
    versions = [*spec.versions]
    if isinstance(spec, _BetaSpec):
        _share(spec, document)
        versions = [*spec.versions]
    for number, version in enumerate(versions):
        try:
            KubeVersion.parse(version.name)
        except InvalidVersion as error:
            raise document.error(error.fact, "spec", "versions", number, "name") from None
    names = spec.names
    plural = names.plural or metadata.name.partition(".")[0] or names.kind.lower()
    return Definition(
        spec.group,
        Names(
            names.kind,
            plural,
            names.singular,
            names.list_kind,
            names.short_names,
            names.categories,
        ),
        tuple(_version(each, only=len(versions) == 1) for each in versions),
        spec.scope,
        **_conversion(spec.conversion, metadata.annotations, document),
        labels=metadata.labels,
        annotations=metadata.annotations,
        place=document.place(),
    )


def _share(spec: _BetaSpec, document: Document) -> None:
    """Copy to each version the fields that a v1beta1 spec states once for all versions."""
    if not spec.versions:
        spec.versions = [_BetaVersion(spec.version)] if spec.version else []
    if spec.version and spec.version != spec.versions[0].name:
        fact = f"{spec.version} is not the first of the versions"
        raise document.error(fact, "spec", "version", hint=f"that is {spec.versions[0].name}")
    for version in spec.versions:
        version.schema = version.schema or spec.validation
        version.subresources = version.subresources or spec.subresources
        if version.additional_printer_columns is None:
            version.additional_printer_columns = spec.additional_printer_columns
        found = version.schema.openAPIV3Schema if version.schema else None
        if found is not None and spec.preserve_unknown_fields:
            version.schema = _Validation(_preserving(found))


def _preserving(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that keeps unknown fields, as is the default in v1beta1."""
    made = dict(schema)
    fields = schema.get("properties") or {}
    if fields:
        made["properties"] = {name: _preserving(each) for name, each in fields.items()}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            made[name] = _preserving(schema[name])
    is_open = made.get("type") == "object" and "additionalProperties" not in made
    return made | ({_PRESERVE: True} if is_open else {})


def _version(version: _Version, *, only: bool) -> DefinedVersion:
    parts = version.subresources or _Subresources()
    schema: Schema | None = version.schema.openAPIV3Schema if version.schema else None
    return DefinedVersion(
        version.name,
        served=version.served,
        storage=only if version.storage is None else version.storage,
        deprecated=version.deprecated,
        warning=version.deprecation_warning,
        schema=schema,
        columns=tuple(map(_column, version.additional_printer_columns or ())),
        status=parts.status is not None,
        scale=_scale(parts.scale) if parts.scale else None,
        selectable=tuple(each.json_path for each in version.selectable_fields),
    )


def _column(column: _Column) -> Column:
    return Column(
        column.name,
        column.json_path,
        column.type,
        column.format,
        column.description,
        column.priority,
    )


def _scale(scale: _Scale) -> Scale:
    paths = scale.spec_replicas_path, scale.status_replicas_path, scale.label_selector_path
    return Scale(*paths)


def _conversion(
    conversion: _Conversion | None, annotations: Mapping[str, str], document: Document
) -> dict[str, Any]:
    if conversion is None:
        return {}
    if conversion.strategy == "None":
        return {"strategy": "None"}
    webhook = conversion.webhook
    client = webhook.client_config if webhook else conversion.webhook_client_config
    if client is None or not (client.url or client.service):
        fact = "the webhook has neither a service nor a url"
        raise document.error(fact, "spec", "conversion", "webhook")
    reviews = (webhook or conversion).conversion_review_versions
    service = client.service or _Service("", "")
    return {
        "webhook": Webhook(
            namespace=service.namespace,
            service=service.name,
            port=service.port,
            path=service.path,
            url=client.url,
            ca_bundle=client.ca_bundle,
            inject_ca_from=annotations.get(INJECT_CA_FROM, ""),
            reviews=reviews,
        )
    }
