"""Kinds of CompositeResourceDefinitions, Compositions and CompositionRevisions.

Their fields are those of Crossplane, except two fields of pipeline steps that are polyver's own:
they select a function revision.
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
    """A reference to an object by its name."""

    name: Name
    """The name of the object."""


@part
class LabelsSelector:
    """A selector for objects by their labels."""

    matchLabels: dict[str, str]
    """Labels that an object must have, all of them, to be selected."""


# Definitions of composite resources.


@part
class KindNames:
    """The names of the kind of composite resources: plural, singular, kind and so on."""

    kind: Name
    plural: Name
    singular: str | None
    listKind: str | None
    shortNames: list[str] | None
    categories: list[str] | None


@part
class WebhookService:
    """A reference to the Service that serves the webhook."""

    namespace: str
    name: str
    path: str | None
    port: Annotated[int, Format("int32")] | None


@part
class WebhookClient:
    """The address of a webhook, and the CA that signs its certificate."""

    url: str | None
    service: WebhookService | None
    caBundle: Annotated[str, Format("byte")] | None


@part
class ConversionWebhook:
    """The webhook that converts objects between the versions of the kind."""

    clientConfig: WebhookClient | None
    conversionReviewVersions: list[str]


@part
class KindConversion:
    """How objects are converted between the versions of the kind."""

    strategy: Literal["None", "Webhook"]
    """With `None`, a conversion changes only the apiVersion. If there is a Conversion object for
    the kind, polyver uses that object instead of this field.
    """
    webhook: ConversionWebhook | None


@part
class VersionSchema:
    """The schema of a version."""

    openAPIV3Schema: dict[str, Any] | None
    """The schema of `spec` and `status`. polyver adds the fields that all composite resources have.
    """


@part
class VersionColumn:
    """A column that `kubectl get` shows."""

    name: str
    type: str
    jsonPath: str
    format: str | None
    description: str | None
    priority: Annotated[int, Format("int32")] | None


@part
class DefinedKindVersion:
    """One version of the kind of composite resources."""

    name: Name
    referenceable: bool
    """True for exactly one version. The API server stores objects in this version, and Compositions
    reference it.
    """
    served: bool
    """True if the API server serves the version."""
    deprecated: bool | None
    """True if the API server warns clients that use this version."""
    deprecationWarning: Annotated[str, MaxLength(256)] | None
    """The text of the warning about a deprecated version."""
    schema: VersionSchema | None
    """The schema of the version."""
    additionalPrinterColumns: list[VersionColumn] | None
    """Columns that `kubectl get` shows before the columns that all composite resources have."""


@part
class KindMetadata:
    """Labels and annotations for the CustomResourceDefinition of the kind."""

    labels: dict[str, str] | None
    annotations: dict[str, str] | None


class _Defining:
    """Fields that all versions of CompositeResourceDefinition have."""

    group: Annotated[str, Same]
    """The API group of the kind of composite resources."""
    names: Annotated[KindNames, Same]
    """The names of the kind of composite resources."""
    claimNames: KindNames | None
    """polyver does not support claims. If this field is set, clients get a warning, and the
    condition Offered is False.
    """
    connectionSecretKeys: list[str] | None
    """Names of the connection details that polyver publishes. If it is not set, polyver publishes
    all of them.
    """
    defaultCompositeDeletePolicy: Literal["Background", "Foreground"] | None
    """polyver does not support this field, because it does not support claims."""
    defaultCompositionRef: NamedReference | None
    """The Composition for composite resources that do not select a Composition."""
    enforcedCompositionRef: NamedReference | None
    """The Composition for all composite resources, even if they select another Composition."""
    defaultCompositionUpdatePolicy: Literal["Automatic", "Manual"] = "Automatic"
    """How composite resources without their own policy move to new revisions of the Composition:
    automatically, or when a user changes their reference (Manual).
    """
    versions: list[DefinedKindVersion]
    """All versions of the kind of composite resources."""
    conversion: KindConversion | None
    """How objects are converted between the versions of the kind."""
    metadata: KindMetadata | None
    """Labels and annotations for the CustomResourceDefinition of the kind."""


Scope = Literal["LegacyCluster", "Namespaced", "Cluster"]


@part
class CompositeDefinitionSpec(_Defining):
    """The definition of a kind of composite resources."""

    scope: Annotated[Scope, Same] = "LegacyCluster"
    """Whether composite resources have a namespace. With LegacyCluster, they have none, and the
    fields that select the Composition are in `spec`. With Namespaced or Cluster, these fields are
    in `spec.crossplane`.
    """


@part
class CompositeDefinitionSpecV2(_Defining):
    """The definition of a kind of composite resources."""

    scope: Annotated[Scope, Same] = "Namespaced"
    """Whether composite resources have a namespace. With LegacyCluster, they have none, and the
    fields that select the Composition are in `spec`. With Namespaced or Cluster, these fields are
    in `spec.crossplane`.
    """


@part
class TypeReference:
    """A reference to one version of a kind."""

    apiVersion: Name
    kind: Name


@part
class CompositeDefinitionControllers:
    """The kind for which polyver runs a controller of composite resources."""

    compositeResourceType: TypeReference | None
    """The API version and kind in which polyver reads composite resources."""


@part
class CompositeDefinitionStatus:
    """The observed state of the CompositeResourceDefinition."""

    conditions: Conditions | None
    """The conditions Established and Applied. There is also Offered if claimNames is set, and
    Postponed while the deletion waits until it is allowed.
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
    """Credentials that polyver passes to the function of a step."""

    name: Name
    """The name by which the function finds these credentials in its requests."""
    source: Literal["None", "Secret"]
    secretRef: SecretReference | None


@part
class RequiredResource:
    """Resources that polyver passes to the function of a step: one resource with a certain name, or
    all resources with certain labels.
    """

    requirementName: Name
    """The name by which the function finds these resources in its requests."""
    apiVersion: Name
    kind: Name
    name: str | None
    matchLabels: dict[str, str] | None
    namespace: str | None


@part
class StepRequirements:
    """The resources that polyver passes to the function of a step in every call."""

    requiredResources: Annotated[list[RequiredResource], ListMap("requirementName")] | None


@part
class PipelineStep:
    """One step of a pipeline: a call of a function."""

    step: Name
    """The name of the step. It must be unique in the pipeline."""
    functionRef: NamedReference
    """The Function that the step calls."""
    functionRevisionRef: NamedReference | None
    """The FunctionRevision that the step calls. It must be an active revision of the Function."""
    functionRevisionSelector: LabelsSelector | None
    """Labels of the FunctionRevision that the step calls. If several active revisions have these
    labels, the step calls the one with the highest number.
    """
    input: EmbeddedResource | None
    """The input that polyver passes to the function. The function defines its format."""
    credentials: Annotated[list[StepCredentials], ListMap("name")] | None
    requirements: StepRequirements | None


class _Composed:
    """Fields that Compositions and CompositionRevisions have in common."""

    compositeTypeRef: Annotated[TypeReference, Same]
    """The kind of composite resources for which the Composition can be used, in its referenceable
    version.
    """
    mode: Literal["Pipeline"] = "Pipeline"
    """The mode of the Composition. polyver supports only Pipeline."""
    pipeline: Annotated[list[PipelineStep], ListMap("step"), MaxLength(99)]
    """The steps of the pipeline. Their functions are called in this order."""
    writeConnectionSecretsToNamespace: str | None
    """The namespace for the connection details of composite resources that do not name a Secret for
    them.
    """


@part
class CompositionSpec(_Composed):
    """The pipeline that composes resources for a kind of composite resources."""


@part
class CompositionRevisionSpec(_Composed):
    """The content of a Composition at one point in time, and its number. Only the number may
    change.
    """

    revision: Annotated[Number, Ge(1)]
    """The number of the revision. The revision with the current content of the Composition has the
    highest number.
    """


@part
class CompositionStatus:
    """The observed state of the Composition."""

    conditions: Conditions | None
    """The condition Adopted: whether the followers use the newest revision."""


@part
class CompositionRevisionStatus:
    """The observed state of the revision."""

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
    """One revision of a Composition, which polyver creates when its content changes."""

    spec: CompositionRevisionSpec
    status: CompositionRevisionStatus | None
