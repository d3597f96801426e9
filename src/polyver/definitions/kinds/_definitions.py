"""The four kinds of definitions, all declared by `_definitions`, and the kind DefinitionRevision.

v1beta1 is the stored API version. A spec in v1beta1 describes one version of the definition. In
v2beta1, `spec.versions` is a list, and each item has the fields of a v1beta1 spec. When a v2beta1
object is converted to v1beta1, its newest item becomes the spec, and the complete list is preserved
in an annotation.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from polyver.apis.declaring import Description, Field, Format, Kind, MinLength, Preserve, part
from polyver.apis.definition import Column
from polyver.core.plain import Object
from polyver.definitions.versions import newest_entry

__all__ = [
    "COMPONENTS",
    "DEFINITIONS",
    "GROUP",
    "POLICIES",
    "REVISIONS",
    "STORED",
    "TRAITS",
    "VERSIONED",
    "WORKFLOW_STEPS",
    "DefinitionRevision",
    "Number",
    "OamCondition",
    "Revision",
    "Time",
]

GROUP: Final = "core.oam.dev"
STORED: Final = "v1beta1"
VERSIONED: Final = "v2beta1"
CARRY: Final = "carry"

Time = Annotated[str, Format("date-time")]
Number = Annotated[int, Format("int64")]


@part
class Cue:
    """A template in CUE."""

    template: str
    """The template, with the fields `parameter`, `output` and `outputs`; it can use `context`."""


@part
class GoTemplate:
    """A Go template."""

    parameters: Object | None
    """The schema of `.parameter`, in the format of a schema in a CustomResourceDefinition."""
    template: str
    """The template. It renders one or more YAML documents, each of which is an object."""


@part
class TerraformSecretReference:
    """A reference to an object by name and namespace, in most cases a Secret."""

    name: str | None
    namespace: str | None


@part
class Terraform:
    """A Terraform configuration."""

    configuration: str
    """The configuration as text, or the address of its repository if `type` is `remote`."""
    type: Literal["hcl", "json", "remote"] | None
    """The format of the configuration."""
    path: str | None
    """The path of the folder in the remote repository."""
    writeConnectionSecretToRef: TerraformSecretReference | None
    """The Secret into which the connection details of the resources are written."""
    providerRef: TerraformSecretReference | None
    """The Terraform provider that manages the resources."""
    deleteResource: bool | None
    """Whether the Terraform resources are deleted when the Kubernetes object is deleted."""
    customRegion: str | None
    """The region in which the resources are created."""
    gitCredentialsSecretReference: TerraformSecretReference | None
    """The Secret with the credentials for the remote repository."""


@part
@Preserve()
class Schematic:
    """The template, in the field of its language. External engines have their own fields."""

    cue: Cue | None
    """A template in CUE."""
    gotemplate: GoTemplate | None
    """A Go template."""
    terraform: Terraform | None
    """A Terraform configuration."""


@part
class WorkloadKind:
    """The kind and the API version of a workload."""

    apiVersion: str
    kind: str


@part
class Workload:
    """The main object that the template renders, such as a Deployment."""

    type: str | None
    """The name of another definition that describes the workload."""
    definition: WorkloadKind | None
    """The kind and API version of the workload. It is set instead of `type`."""


@part
class ChildKind:
    """A kind of objects that a workload creates."""

    apiVersion: str
    kind: str
    selector: dict[str, str] | None
    """The labels by which these objects are found."""


@part
class DefinitionHealth:
    """CUE expressions for the status and the health of the rendered objects."""

    customStatus: str | None
    """The expression for the status message that users see."""
    healthPolicy: str | None
    """The expression that decides whether the objects are healthy."""
    details: str | None
    """The expression for additional status fields, by name."""


@part
class DefinitionReference:
    """A reference to a CustomResourceDefinition by its name."""

    name: str
    version: str | None


@part
class Deprecated:
    """States that a version is deprecated, and which version replaces it."""

    since: str | None
    """The version of the definition with which the deprecation began."""
    use: str | None
    """The version to use instead."""


class _Release:
    """The fields that a version has in all kinds of definitions."""

    version: str | None
    """The semantic version, with one to three numbers: `1`, `1.2` or `1.2.3`. It is missing in a
    definition with numbered revisions.
    """
    deprecated: Deprecated | None
    """The deprecation of this version. It is missing if the version is not deprecated."""
    schematic: Schematic | None
    """The template of the version."""


@part
class ComponentSpec(_Release):
    """One version of a component definition."""

    workload: Workload
    """The main object that the template renders."""
    childResourceKinds: list[ChildKind] | None
    """The kinds of objects that the workload creates."""
    revisionLabel: str | None
    """The key of the label that gets the name of the component's revision as its value."""
    podSpecPath: str | None
    """The path of the pod spec in the workload."""
    status: DefinitionHealth | None
    """CUE expressions for the status and the health of the component."""
    extension: Object | None
    """Additional settings for the engine."""


@part
class TraitSpec(_Release):
    """One version of a trait definition."""

    definitionRef: DefinitionReference | None
    """The CustomResourceDefinition for the kind of the trait's objects."""
    revisionEnabled: bool | None
    """Whether the trait supports revisions of components."""
    workloadRefPath: str | None
    """The path of the field, in the trait's objects, that refers to the workload."""
    podDisruptive: bool | None
    """Whether a change of the trait restarts the pods."""
    appliesToWorkloads: list[str] | None
    """The workloads to which the trait can be added. If the list is empty, it fits all workloads.
    """
    conflictsWith: list[str] | None
    """The traits that the same component must not have."""
    status: DefinitionHealth | None
    """CUE expressions for the status and the health of the trait."""
    extension: Object | None
    """Additional settings for the engine."""
    manageWorkload: bool | None
    """Whether the trait creates the workload."""
    controlPlaneOnly: bool | None
    """Whether the trait is applied only on the control plane."""
    stage: Literal["PreDispatch", "DefaultDispatch", "PostDispatch"] | None
    """Whether the trait is applied before, together with, or after the component's objects."""


@part
class PolicySpec(_Release):
    """One version of a policy definition."""

    definitionRef: DefinitionReference | None
    """The CustomResourceDefinition for the kind of the policy's objects."""
    manageHealthCheck: bool | None
    """Whether the policy manages the health check."""
    scope: str | None
    """The scope in which the policy applies."""
    global_: bool | None = Field(name="global")
    """Whether the policy applies to all applications."""
    priority: Annotated[int, Format("int32")] | None
    """The order of this policy among several global policies."""


@part
class WorkflowStepSpec(_Release):
    """One version of a workflow step definition."""

    definitionRef: DefinitionReference | None
    """The CustomResourceDefinition for the kind of the step's objects."""


@part
class OamCondition:
    """A condition."""

    type: str
    status: str
    lastTransitionTime: Time
    reason: str
    message: str | None
    observedGeneration: Number | None


@part
class Revision:
    """The name, number and hash of a revision."""

    name: str
    revision: Number
    revisionHash: str | None


@part
class VersionAdoption:
    """Numbers of followers of a version: the references that move to it automatically."""

    followers: Number
    """References that select this version because they request a series or the newest version."""
    updated: Number
    """Followers that use this version."""
    held: Number
    """Followers that keep another version, because a move to this version would delete objects."""
    failing: Number
    """Followers that cannot use this version, because rendering or applying it fails."""


@part
class ReleaseGate:
    """The restriction of a version to some of its followers, during a rollout."""

    rollout: str
    """The name of the Rollout that has set the gate. If a RolloutPolicy has closed the version and
    no Rollout of it has started yet, the name of that RolloutPolicy.
    """
    step: Number
    """The number of the current step of the rollout; 0 before the first step."""
    share: float
    """The share of all followers that may use the version, from 0.0 to 1.0."""
    cohorts: list[dict[str, str]] | None
    """Sets of labels. A follower that has all labels of one set may also use the version."""
    returns: bool | None
    """True if the rollout rolls the version back. Followers that use the version then return to the
    version that they used before.
    """


@part
class PublishedVersion:
    """A version that applications can use, or that was removed and could be used before."""

    version: str
    """The semantic version, completed to three numbers, such as `1.2.0`, or a revision number."""
    revision: str
    """The name of the DefinitionRevision."""
    digest: str
    """The digest of the version's content."""
    stage: Literal["published", "deprecated", "removed"]
    since: str | None
    """The version with which the deprecation of this version began."""
    use: str | None
    """The version to use instead."""
    removedFrom: list[str] | None
    """The applications that used this version when it was removed by force."""
    gate: ReleaseGate | None
    """The restriction of this version to some followers. If it is not set, all may use it."""
    allowDeletion: bool | None
    """Whether a move to this version may delete objects of applications."""
    adoption: VersionAdoption | None
    """The numbers of followers of this version, by their state."""


@part
class DefinitionStatus:
    """The published versions of the definition, and conditions."""

    conditions: list[OamCondition] | None
    """Conditions. They state whether all versions were published, whether these are compatible, and
    whether the followers use them.
    """
    configMapRef: str | None
    """The name of the ConfigMap with the schema of the definition's parameters."""
    latestRevision: Revision | None
    """The name, number and hash of the DefinitionRevision of the newest version."""
    versions: list[PublishedVersion] | None
    """All versions that are or were published, the newest first."""


_DESCRIPTION = Column("Description", r".metadata.annotations.definition\.oam\.dev/description")
_STATUS = Annotated[DefinitionStatus | None, Description("The published versions.")]


def _definitions(name: str, spec: Any, short: str, about: str, *columns: Column) -> Kind:
    """Declare a kind of definition in both API versions, with the conversion between them."""
    kind = Kind(name, group=GROUP, short_names=[short], categories=["oam"], carry=CARRY)
    listed = Annotated[list[spec], MinLength(1), Description("All versions, in any order.")]
    versions = part(_made("Versions", "The versions to publish.", versions=listed))
    for version, inside in ((STORED, spec), (VERSIONED, versions)):
        described: Any = Annotated
        whole = described[inside | None, Description("The versions to publish.")]
        shown = [column for column in columns if version == STORED]
        kind.version(version, storage=version == STORED, columns=[*shown, _DESCRIPTION])(
            _made(name, about, spec=whole, status=_STATUS)
        )
    kind.converts(VERSIONED, STORED)(_to_stored)
    kind.converts(STORED, VERSIONED)(_to_versioned)
    return kind


def _made(name: str, about: str, **fields: Any) -> type[Any]:
    return type(name, (), {"__doc__": about, "__annotations__": fields, "__module__": __name__})


def _to_stored(obj: Object) -> Object:
    """Convert a definition from v2beta1 to v1beta1. The newest item of the list becomes the spec.

    The conversion engine preserves the complete list in an annotation.
    """
    spec = obj.get("spec")
    entries = spec.get("versions") if isinstance(spec, dict) else None
    if not isinstance(entries, list):
        return obj
    newest = newest_entry(entries)
    return {**obj, "spec": newest if newest is not None else {}}


def _to_versioned(obj: Object) -> Object:
    spec = obj.get("spec")
    return {**obj, "spec": {"versions": [spec]}} if isinstance(spec, dict) else obj


COMPONENTS: Final = _definitions(
    "ComponentDefinition",
    ComponentSpec,
    "comp",
    "A type of component for applications.",
    Column("Workload-Kind", ".spec.workload.definition.kind"),
)
TRAITS: Final = _definitions(
    "TraitDefinition",
    TraitSpec,
    "trait",
    "A type of trait for components.",
    Column("Applies-To", ".spec.appliesToWorkloads"),
)
POLICIES: Final = _definitions(
    "PolicyDefinition", PolicySpec, "def-policy", "A type of policy for applications."
)
WORKFLOW_STEPS: Final = _definitions(
    "WorkflowStepDefinition",
    WorkflowStepSpec,
    "workflowstep",
    "A type of step for workflows of applications.",
)
DEFINITIONS: Final = (COMPONENTS, TRAITS, POLICIES, WORKFLOW_STEPS)

REVISIONS: Final = Kind(
    "DefinitionRevision", group=GROUP, short_names=["defrev"], categories=["oam"]
)


@REVISIONS.version(
    STORED,
    columns=[
        Column("Revision", ".spec.revision", "integer"),
        Column("Hash", ".spec.revisionHash"),
        Column("Type", ".spec.definitionType"),
        Column("Version", ".spec.version"),
    ],
)
class DefinitionRevision:
    """One version of a definition; its spec is immutable."""

    class Spec:
        """The content and the number of the version."""

        revision: Number
        """The number of the revision; 0 if the revision has a semantic version."""
        revisionHash: str
        """The same value as `digest`, under the name that KubeVela uses."""
        definitionType: Literal["Component", "Trait", "Policy", "WorkflowStep"]
        """The kind of definition, without the suffix Definition."""
        version: str | None
        """The semantic version, completed to three numbers. It is missing in a numbered revision.
        """
        digest: str | None
        """The digest of the version's content, without its version number and its deprecation."""
        componentDefinition: Object | None
        """The component definition in v1beta1, with only this version."""
        traitDefinition: Object | None
        """The trait definition in v1beta1, with only this version."""
        policyDefinition: Object | None
        """The policy definition in v1beta1, with only this version."""
        workflowStepDefinition: Object | None
        """The workflow step definition in v1beta1, with only this version."""

    spec: Spec | None
