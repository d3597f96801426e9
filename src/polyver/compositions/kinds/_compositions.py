"""Kinds of CompositeResourceDefinitions, Compositions and CompositionRevisions.

The fields are those of Crossplane. Two fields of pipeline steps, which select a function revision,
are polyver's own.
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
    """The name of the object."""


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
    """The conversion of objects between the versions of the kind."""

    strategy: Literal["None", "Webhook"]
    """`None` changes only the apiVersion. A Conversion object for the kind takes precedence."""
    webhook: ConversionWebhook | None


@part
class VersionSchema:
    """The schema of a version."""

    openAPIV3Schema: dict[str, Any] | None
    """The schema of `spec` and `status`; polyver adds the fields that all composite resources have.
    """


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
    """True for the one version that is stored, and that Compositions reference."""
    served: bool
    """True if the API server serves the version."""
    deprecated: bool | None
    """True if clients that use the version get a warning."""
    deprecationWarning: Annotated[str, MaxLength(256)] | None
    """The text of the warning."""
    schema: VersionSchema | None
    """The schema of the version."""
    additionalPrinterColumns: list[VersionColumn] | None
    """Columns of `kubectl get`. They are shown before the columns that all composite resources
    have.
    """


@part
class KindMetadata:
    """Metadata for the CustomResourceDefinition of the kind."""

    labels: dict[str, str] | None
    annotations: dict[str, str] | None


class _Defining:
    """Fields that all versions of CompositeResourceDefinition have."""

    group: Annotated[str, Same]
    """The API group of the kind."""
    names: Annotated[KindNames, Same]
    """The names of the kind."""
    claimNames: KindNames | None
    """Not supported. If it is set, clients get a warning, and the condition Offered is False."""
    connectionSecretKeys: list[str] | None
    """Names of the connection details to publish. If it is not set, all details are published."""
    defaultCompositeDeletePolicy: Literal["Background", "Foreground"] | None
    """Not supported, because there are no claims."""
    defaultCompositionRef: NamedReference | None
    """The Composition for composite resources that select none."""
    enforcedCompositionRef: NamedReference | None
    """The Composition for all composite resources, regardless of their own selection."""
    defaultCompositionUpdatePolicy: Literal["Automatic", "Manual"] = "Automatic"
    """The default update policy: use new revisions of the Composition automatically or manually."""
    versions: list[DefinedKindVersion]
    """All versions of the kind."""
    conversion: KindConversion | None
    """The conversion between versions."""
    metadata: KindMetadata | None
    """Labels and annotations for the CustomResourceDefinition of the kind."""


Scope = Literal["LegacyCluster", "Namespaced", "Cluster"]


@part
class CompositeDefinitionSpec(_Defining):
    """The definition of a kind of composite resources."""

    scope: Annotated[Scope, Same] = "LegacyCluster"
    """The scope. With LegacyCluster, the fields that select the Composition are in `spec`;
    otherwise, they are in `spec.crossplane`.
    """


@part
class CompositeDefinitionSpecV2(_Defining):
    """The definition of a kind of composite resources."""

    scope: Annotated[Scope, Same] = "Namespaced"
    """The scope. With LegacyCluster, the fields that select the Composition are in `spec`;
    otherwise, they are in `spec.crossplane`.
    """


@part
class TypeReference:
    """A reference to a version of a kind."""

    apiVersion: Name
    kind: Name


@part
class CompositeDefinitionControllers:
    """The kind that polyver composes."""

    compositeResourceType: TypeReference | None
    """The API version and kind in which polyver reads composite resources."""


@part
class CompositeDefinitionStatus:
    """The observed state."""

    conditions: Conditions | None
    """The conditions Established and Applied. Also Offered if claimNames is set, and Postponed
    while the deletion waits.
    """
    controllers: CompositeDefinitionControllers | None


# Compositions.


@part
class SecretReference:
    """A reference to a Secret."""

    name: Name
    namespace: Name


@part
class StepCredentials:
    """Credentials that polyver passes to the function."""

    name: Name
    """The name of the credentials in requests to the function."""
    source: Literal["None", "Secret"]
    secretRef: SecretReference | None


@part
class RequiredResource:
    """Resources that polyver passes to the function.

    The field selects one resource by its name, or all resources with some labels.
    """

    requirementName: Name
    """The name of the requirement in requests to the function."""
    apiVersion: Name
    kind: Name
    name: str | None
    matchLabels: dict[str, str] | None
    namespace: str | None


@part
class StepRequirements:
    """The resources that polyver passes to the function from the first call on."""

    requiredResources: Annotated[list[RequiredResource], ListMap("requirementName")] | None


@part
class PipelineStep:
    """One call of a function."""

    step: Name
    """The name of the step, which must be unique."""
    functionRef: NamedReference
    """The Function that the step calls."""
    functionRevisionRef: NamedReference | None
    """The FunctionRevision that the step calls. It must belong to the Function, and must be active.
    """
    functionRevisionSelector: LabelsSelector | None
    """Labels of the FunctionRevision. If several active revisions have these labels, the revision
    with the highest number is called.
    """
    input: EmbeddedResource | None
    """The input of the function."""
    credentials: Annotated[list[StepCredentials], ListMap("name")] | None
    requirements: StepRequirements | None


class _Composed:
    """Fields that Compositions and CompositionRevisions have in common."""

    compositeTypeRef: Annotated[TypeReference, Same]
    """The kind of composite resources for which the Composition is used, in the referenceable
    version.
    """
    mode: Literal["Pipeline"] = "Pipeline"
    """The mode; only Pipeline is supported."""
    pipeline: Annotated[list[PipelineStep], ListMap("step"), MaxLength(99)]
    """The steps, in the order in which their functions are called."""
    writeConnectionSecretsToNamespace: str | None
    """The namespace for connection details of composite resources that name no Secret."""


@part
class CompositionSpec(_Composed):
    """The pipeline for a kind of composite resources."""


@part
class CompositionRevisionSpec(_Composed):
    """The content of a Composition at one point in time, and its number.

    The content never changes.
    """

    revision: Annotated[Number, Ge(1)]
    """The number of the revision. The revision with the current content of the Composition has the
    highest number.
    """


@part
class CompositionStatus:
    """The observed state."""

    conditions: Conditions | None
    """The condition Adopted."""


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
    # polyver never sets Offered to True. The column exists because programs that read Crossplane's
    # output expect it as the second column.
    Column("OFFERED", ".status.conditions[?(@.type=='Offered')].status"),
    _AGE,
)


@DEFINITIONS.version(COMPOSITION_STORED, storage=True, columns=_DEFINED)
class CompositeResourceDefinition:
    """The definition of a kind of composite resources."""

    spec: CompositeDefinitionSpec
    status: CompositeDefinitionStatus | None


@DEFINITIONS.version("v2", columns=_DEFINED)
class CompositeResourceDefinitionV2:
    """The definition of a kind of composite resources."""

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
