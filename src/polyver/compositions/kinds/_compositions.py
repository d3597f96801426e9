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
    """A reference to an object."""

    name: Name
    """Its name."""


@part
class LabelsSelector:
    """A label selector."""

    matchLabels: dict[str, str]
    """The labels that must all match."""


# Definitions of composite resources.


@part
class KindNames:
    """The names of a kind."""

    kind: Name
    plural: Name
    singular: str | None
    listKind: str | None
    shortNames: list[str] | None
    categories: list[str] | None


@part
class WebhookService:
    """A reference to a Service."""

    namespace: str
    name: str
    path: str | None
    port: Annotated[int, Format("int32")] | None


@part
class WebhookClient:
    """The address of a webhook."""

    url: str | None
    service: WebhookService | None
    caBundle: Annotated[str, Format("byte")] | None


@part
class ConversionWebhook:
    """The conversion webhook."""

    clientConfig: WebhookClient | None
    conversionReviewVersions: list[str]


@part
class KindConversion:
    """The conversion between versions."""

    strategy: Literal["None", "Webhook"]
    """`None` changes only apiVersion. A Conversion object for the kind has precedence."""
    webhook: ConversionWebhook | None


@part
class VersionSchema:
    """The schema of a version."""

    openAPIV3Schema: dict[str, Any] | None
    """The schema of `spec` and `status`; the fields of every composite resource are added."""


@part
class VersionColumn:
    """A column of `kubectl get`."""

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
    """Compositions use this version; it is the storage version."""
    served: bool
    """The version is served."""
    deprecated: bool | None
    """Clients that use the version are warned."""
    deprecationWarning: Annotated[str, MaxLength(256)] | None
    """The text of the warning."""
    schema: VersionSchema | None
    """Its fields."""
    additionalPrinterColumns: list[VersionColumn] | None
    """Columns of `kubectl get`, before the columns of all composite resources."""


@part
class KindMetadata:
    """Metadata for the CustomResourceDefinition."""

    labels: dict[str, str] | None
    annotations: dict[str, str] | None


class _Defining:
    """Fields of all versions of definitions."""

    group: Annotated[str, Same]
    """Its API group."""
    names: Annotated[KindNames, Same]
    """The names of the kind."""
    claimNames: KindNames | None
    """Not supported; a warning and the condition Offered report it."""
    connectionSecretKeys: list[str] | None
    """The connection details to publish; all if empty."""
    defaultCompositeDeletePolicy: Literal["Background", "Foreground"] | None
    """Not supported, because there are no claims."""
    defaultCompositionRef: NamedReference | None
    """The Composition for composite resources that request none."""
    enforcedCompositionRef: NamedReference | None
    """The Composition for all composite resources, whatever they request."""
    defaultCompositionUpdatePolicy: Literal["Automatic", "Manual"] = "Automatic"
    """The default update policy: use new revisions of the Composition automatically or manually."""
    versions: list[DefinedKindVersion]
    """All versions of the kind."""
    conversion: KindConversion | None
    """The conversion between versions."""
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
    """A reference to a version of a kind."""

    apiVersion: Name
    kind: Name


@part
class CompositeDefinitionControllers:
    """The kind that is composed."""

    compositeResourceType: TypeReference | None
    """The version in which composite resources are read."""


@part
class CompositeDefinitionStatus:
    """The observed state."""

    conditions: Conditions | None
    """Established, Applied, of those with claimNames Offered, and Postponed while it waits."""
    controllers: CompositeDefinitionControllers | None


# Compositions.


@part
class SecretReference:
    """A reference to a Secret."""

    name: Name
    namespace: Name


@part
class StepCredentials:
    """Credentials that a function gets."""

    name: Name
    """Their name in the function."""
    source: Literal["None", "Secret"]
    secretRef: SecretReference | None


@part
class RequiredResource:
    """A resource for the function: one by name, or all with some labels."""

    requirementName: Name
    """Its name in the function."""
    apiVersion: Name
    kind: Name
    name: str | None
    matchLabels: dict[str, str] | None
    namespace: str | None


@part
class StepRequirements:
    """The resources that a function receives with the first call."""

    requiredResources: Annotated[list[RequiredResource], ListMap("requirementName")] | None


@part
class PipelineStep:
    """One call of a function."""

    step: Name
    """The name of the step, which must be unique."""
    functionRef: NamedReference
    """The Function."""
    functionRevisionRef: NamedReference | None
    """The FunctionRevision; it must belong to the Function, and be active."""
    functionRevisionSelector: LabelsSelector | None
    """Or the labels of the FunctionRevision; the highest-numbered active one is used."""
    input: EmbeddedResource | None
    """The input of the function."""
    credentials: Annotated[list[StepCredentials], ListMap("name")] | None
    requirements: StepRequirements | None


class _Composed:
    """Fields that Compositions and their revisions share."""

    compositeTypeRef: Annotated[TypeReference, Same]
    """The kind that it composes, in its referenceable version."""
    mode: Literal["Pipeline"] = "Pipeline"
    """The mode; only Pipeline is supported."""
    pipeline: Annotated[list[PipelineStep], ListMap("step"), MaxLength(99)]
    """The functions, in the order in which they are called."""
    writeConnectionSecretsToNamespace: str | None
    """The default namespace for connection details of composite resources."""


@part
class CompositionSpec(_Composed):
    """The pipeline for a kind of composite resource."""


@part
class CompositionRevisionSpec(_Composed):
    """The content of a Composition at one point in time, and its number; immutable."""

    revision: Annotated[Number, Ge(1)]
    """The serial number; the highest so far, also if the content is the same as before."""


@part
class CompositionStatus:
    """The observed state."""

    conditions: Conditions | None
    """Adopted."""


@part
class CompositionRevisionStatus:
    """The observed state."""

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
    """A pipeline of functions that composes resources for a composite resource."""

    spec: CompositionSpec
    status: CompositionStatus | None


@COMPOSITION_REVISIONS.version(
    COMPOSITION_STORED, columns=(Column("REVISION", ".spec.revision"), *_COMPOSED)
)
class CompositionRevision:
    """One revision of a Composition."""

    spec: CompositionRevisionSpec
    status: CompositionRevisionStatus | None
