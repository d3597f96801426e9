"""Kinds of composite resource definitions, Compositions and their revisions.

The fields are Crossplane's, and two more in pipeline steps, which choose a function revision.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from polyver.apis.declaring import (
    EmbeddedResource,
    Format,
    Ge,
    Kind,
    ListMap,
    MaxLength,
    MinLength,
    Rule,
    part,
)
from polyver.apis.definition import Column
from polyver.compositions.kinds._packages import Conditions, Number

__all__ = [
    "COMPOSITIONS",
    "COMPOSITION_GROUP",
    "COMPOSITION_REVISIONS",
    "COMPOSITION_STORED",
    "DEFINITIONS",
    "CompositeResourceDefinition",
    "Composition",
    "CompositionRevision",
]

COMPOSITION_GROUP: Final = "apiextensions.crossplane.io"
COMPOSITION_STORED: Final = "v1"
Name = Annotated[str, MinLength(1)]
Same = Rule("self == oldSelf", message="it cannot be changed")


@part
class NamedReference:
    """Names an object."""

    name: Name
    """Its name."""


@part
class LabelsSelector:
    """Chooses by labels."""

    matchLabels: dict[str, str]
    """The labels that it must have, all of them."""


# Definitions of composite resources.


@part
class KindNames:
    """What a kind is called."""

    kind: Name
    plural: Name
    singular: str | None
    listKind: str | None
    shortNames: list[str] | None
    categories: list[str] | None


@part
class WebhookService:
    """A service of the cluster."""

    namespace: str
    name: str
    path: str | None
    port: Annotated[int, Format("int32")] | None


@part
class WebhookClient:
    """Where a webhook is."""

    url: str | None
    service: WebhookService | None
    caBundle: Annotated[str, Format("byte")] | None


@part
class ConversionWebhook:
    """Who converts."""

    clientConfig: WebhookClient | None
    conversionReviewVersions: list[str]


@part
class KindConversion:
    """How objects get from one version to another."""

    strategy: Literal["None", "Webhook"]
    """`None` changes apiVersion alone. A Conversion for the kind is served whatever this says."""
    webhook: ConversionWebhook | None


@part
class VersionSchema:
    """The schema of a version."""

    openAPIV3Schema: dict[str, Any] | None
    """Of `spec` and `status`; what every composite resource has is put in."""


@part
class VersionColumn:
    """A column of what `kubectl get` prints."""

    name: str
    type: str
    jsonPath: str
    format: str | None
    description: str | None
    priority: Annotated[int, Format("int32")] | None


@part
class DefinedKindVersion:
    """One version of the kind."""

    name: Name
    referenceable: bool
    """Whether compositions compose this version; it is the one that is stored."""
    served: bool
    """Whether it can be used."""
    deprecated: bool | None
    """Whether whoever uses it is warned."""
    deprecationWarning: Annotated[str, MaxLength(256)] | None
    """What they are told."""
    schema: VersionSchema | None
    """Its fields."""
    additionalPrinterColumns: list[VersionColumn] | None
    """What `kubectl get` prints before the columns that all composite resources have."""


@part
class KindMetadata:
    """What the CustomResourceDefinition gets."""

    labels: dict[str, str] | None
    annotations: dict[str, str] | None


class _Defining:
    """Fields of all versions of definitions."""

    group: Annotated[str, Same]
    """Its API group."""
    names: Annotated[KindNames, Same]
    """What it is called."""
    claimNames: KindNames | None
    """No claims are offered; a warning and the condition Offered say so."""
    connectionSecretKeys: list[str] | None
    """Which connection details are published; all if there are none."""
    defaultCompositeDeletePolicy: Literal["Background", "Foreground"] | None
    """For claims, which are not there."""
    defaultCompositionRef: NamedReference | None
    """The Composition of those that ask for none."""
    enforcedCompositionRef: NamedReference | None
    """The Composition of all, whatever they ask for."""
    defaultCompositionUpdatePolicy: Literal["Automatic", "Manual"] = "Automatic"
    """Whether those that do not say get new revisions of their Composition by themselves."""
    versions: list[DefinedKindVersion]
    """All versions of the kind."""
    conversion: KindConversion | None
    """How objects get from one version to another."""
    metadata: KindMetadata | None
    """Labels and annotations of the CustomResourceDefinition."""


Scope = Literal["LegacyCluster", "Namespaced", "Cluster"]


@part
class CompositeDefinitionSpec(_Defining):
    """The kind of a composite resource."""

    scope: Annotated[Scope, Same] = "LegacyCluster"
    """LegacyCluster has the fields for compositions in `spec`, the others in `spec.crossplane`."""


@part
class CompositeDefinitionSpecV2(_Defining):
    """The kind of a composite resource."""

    scope: Annotated[Scope, Same] = "Namespaced"
    """LegacyCluster has the fields for compositions in `spec`, the others in `spec.crossplane`."""


@part
class TypeReference:
    """Names a version of a kind."""

    apiVersion: Name
    kind: Name


@part
class CompositeDefinitionControllers:
    """What is composed."""

    compositeResourceType: TypeReference | None
    """The version in which composite resources are looked at."""


@part
class CompositeDefinitionStatus:
    """What has become of the definition."""

    conditions: Conditions | None
    """Established, Applied, of those with claimNames Offered, and Postponed while it waits."""
    controllers: CompositeDefinitionControllers | None


# Compositions.


@part
class SecretReference:
    """Names a secret."""

    name: Name
    namespace: Name


@part
class StepCredentials:
    """Credentials that a function gets."""

    name: Name
    """What the function calls them."""
    source: Literal["None", "Secret"]
    secretRef: SecretReference | None


@part
class RequiredResource:
    """A resource that a function is to see: one by its name, or all with some labels."""

    requirementName: Name
    """What the function calls it."""
    apiVersion: Name
    kind: Name
    name: str | None
    matchLabels: dict[str, str] | None
    namespace: str | None


@part
class StepRequirements:
    """What a function is to see from the start."""

    requiredResources: Annotated[list[RequiredResource], ListMap("requirementName")] | None


@part
class PipelineStep:
    """One call of a function."""

    step: Name
    """Its name, which no other step has."""
    functionRef: NamedReference
    """The Function."""
    functionRevisionRef: NamedReference | None
    """The FunctionRevision; it must be one of the Function's, and active."""
    functionRevisionSelector: LabelsSelector | None
    """Or the highest-numbered active one of those with some labels."""
    input: EmbeddedResource | None
    """What the function is told."""
    credentials: Annotated[list[StepCredentials], ListMap("name")] | None
    requirements: StepRequirements | None


class _Composed:
    """Fields that Compositions and their revisions share."""

    compositeTypeRef: Annotated[TypeReference, Same]
    """The kind that it is for, in its referenceable version."""
    mode: Literal["Pipeline"] = "Pipeline"
    """Functions compose; the older mode Resources is not there."""
    pipeline: Annotated[list[PipelineStep], ListMap("step"), MaxLength(99)]
    """The functions, in the order in which they are called."""
    writeConnectionSecretsToNamespace: str | None
    """Where composite resources that do not say have their connection details published."""


@part
class CompositionSpec(_Composed):
    """How resources of a kind are composed."""


@part
class CompositionRevisionSpec(_Composed):
    """A Composition as it was, which never changes, and its number."""

    revision: Annotated[Number, Ge(1)]
    """The number that it was given: the highest yet, also when its content comes back."""


@part
class CompositionStatus:
    """What has become of the newest revisions."""

    conditions: Conditions | None
    """Adopted."""


@part
class CompositionRevisionStatus:
    """What is true of the revision."""

    conditions: Conditions | None


_AGE = Column("AGE", ".metadata.creationTimestamp", "date")
_COMPOSED = (
    Column("XR-KIND", ".spec.compositeTypeRef.kind"),
    Column("XR-APIVERSION", ".spec.compositeTypeRef.apiVersion"),
    _AGE,
)


def _kind(name: str, *short_names: str, several: bool = False) -> Kind:
    # All versions have the same fields, so conversion only changes the apiVersion.
    strategy: Literal["None"] | None = "None" if several else None
    return Kind(
        name,
        group=COMPOSITION_GROUP,
        scope="Cluster",
        categories=["crossplane"],
        short_names=short_names,
        strategy=strategy,
    )


DEFINITIONS: Final = _kind("CompositeResourceDefinition", "xrd", "xrds", several=True)
COMPOSITIONS: Final = _kind("Composition", "comp")
COMPOSITION_REVISIONS: Final = _kind("CompositionRevision", "comprev")


_DEFINED = (
    Column("ESTABLISHED", ".status.conditions[?(@.type=='Established')].status"),
    # Never True here; kept because readers of Crossplane's output expect it as the second column.
    Column("OFFERED", ".status.conditions[?(@.type=='Offered')].status"),
    _AGE,
)


@DEFINITIONS.version(COMPOSITION_STORED, storage=True, columns=_DEFINED)
class CompositeResourceDefinition:
    """Defines a kind of composite resource."""

    spec: CompositeDefinitionSpec
    status: CompositeDefinitionStatus | None


@DEFINITIONS.version("v2", columns=_DEFINED)
class CompositeResourceDefinitionV2:
    """Defines a kind of composite resource."""

    spec: CompositeDefinitionSpecV2
    status: CompositeDefinitionStatus | None


@COMPOSITIONS.version(COMPOSITION_STORED, columns=_COMPOSED)
class Composition:
    """How a composite resource is made of others: a pipeline of functions."""

    spec: CompositionSpec
    status: CompositionStatus | None


@COMPOSITION_REVISIONS.version(
    COMPOSITION_STORED, columns=(Column("REVISION", ".spec.revision"), *_COMPOSED)
)
class CompositionRevision:
    """One content of a Composition."""

    spec: CompositionRevisionSpec
    status: CompositionRevisionStatus | None
