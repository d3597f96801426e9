"""The four kinds of definitions, all declared by `_definitions`, and the kind DefinitionRevision.

v1beta1 is the stored API version. A spec in v1beta1 describes one version of the definition. In
v2beta1, `spec.versions` is a list, and each item has the fields of a v1beta1 spec. The conversion
to v1beta1 keeps only the newest item as the spec, and preserves the complete list in an annotation.
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
    """The template, with `parameter`, `output`, `outputs` and `context`."""


@part
class GoTemplate:
    """A Go template."""

    parameters: Object | None
    """The schema of `.parameter`, as in a CustomResourceDefinition."""
    template: str
    """The template; it renders one or more objects as YAML."""


@part
class TerraformSecretReference:
    """A reference to a Secret."""

    name: str | None
    namespace: str | None


@part
class Terraform:
    """A Terraform configuration."""

    configuration: str
    """The configuration, or its location."""
    type: Literal["hcl", "json", "remote"] | None
    """The format of the configuration."""
    path: str | None
    """The folder in a remote repository."""
    writeConnectionSecretToRef: TerraformSecretReference | None
    """The Secret for the connection details."""
    providerRef: TerraformSecretReference | None
    """The provider of the resources."""
    deleteResource: bool | None
    """Whether the resources are deleted together with the object."""
    customRegion: str | None
    """The region to use."""
    gitCredentialsSecretReference: TerraformSecretReference | None
    """The credentials for a remote repository."""


@part
@Preserve()
class Schematic:
    """The template; external engines have their own fields."""

    cue: Cue | None
    """A template in CUE."""
    gotemplate: GoTemplate | None
    """A Go template."""
    terraform: Terraform | None
    """A Terraform configuration."""


@part
class WorkloadKind:
    """A kind, and the API version to use."""

    apiVersion: str
    kind: str


@part
class Workload:
    """The workload that is rendered."""

    type: str | None
    """The name of another definition."""
    definition: WorkloadKind | None
    """The kind of the workload, instead of `type`."""


@part
class ChildKind:
    """A kind of objects that a workload creates."""

    apiVersion: str
    kind: str
    selector: dict[str, str] | None
    """The labels that select these objects."""


@part
class DefinitionHealth:
    """Expressions for the status and the health."""

    customStatus: str | None
    """The status message for users."""
    healthPolicy: str | None
    """The health check."""
    details: str | None
    """Additional status fields by name."""


@part
class DefinitionReference:
    """A reference to a CustomResourceDefinition."""

    name: str
    version: str | None


@part
class Deprecated:
    """The deprecation of a version."""

    since: str | None
    """The version that introduced the deprecation."""
    use: str | None
    """The version to use instead."""


class _Release:
    """The fields that a version has in all kinds of definitions."""

    version: str | None
    """The semantic version, with one to three numbers. It is missing in serial revisions."""
    deprecated: Deprecated | None
    """The deprecation, if the version is deprecated."""
    schematic: Schematic | None
    """The template of the version."""


@part
class ComponentSpec(_Release):
    """A version of a component."""

    workload: Workload
    """The workload that is rendered."""
    childResourceKinds: list[ChildKind] | None
    """The kinds of objects that the workload creates."""
    revisionLabel: str | None
    """The label that is set to the name of the revision."""
    podSpecPath: str | None
    """The path of the pod spec in the workload."""
    status: DefinitionHealth | None
    """Expressions for the status and the health."""
    extension: Object | None
    """Additional settings for the engine."""


@part
class TraitSpec(_Release):
    """A version of a trait."""

    definitionRef: DefinitionReference | None
    """The kind of the trait's objects."""
    revisionEnabled: bool | None
    """Whether the trait supports revisions of components."""
    workloadRefPath: str | None
    """The path of the workload reference in its objects."""
    podDisruptive: bool | None
    """Whether a change of the trait restarts the pods."""
    appliesToWorkloads: list[str] | None
    """The workloads to which the trait applies. If it is empty, the trait applies to all workloads.
    """
    conflictsWith: list[str] | None
    """The traits that the trait conflicts with."""
    status: DefinitionHealth | None
    """Expressions for the status and the health."""
    extension: Object | None
    """Additional settings for the engine."""
    manageWorkload: bool | None
    """Whether the trait creates the workload."""
    controlPlaneOnly: bool | None
    """Whether the trait is applied only on the control plane."""
    stage: Literal["PreDispatch", "DefaultDispatch", "PostDispatch"] | None
    """The stage at which the trait is applied."""


@part
class PolicySpec(_Release):
    """A version of a policy."""

    definitionRef: DefinitionReference | None
    """The kind of the policy's objects."""
    manageHealthCheck: bool | None
    """Whether the policy manages the health check."""
    scope: str | None
    """The scope of the policy."""
    global_: bool | None = Field(name="global")
    """Whether the policy applies to all applications."""
    priority: Annotated[int, Format("int32")] | None
    """The priority among several policies."""


@part
class WorkflowStepSpec(_Release):
    """A version of a workflow step."""

    definitionRef: DefinitionReference | None
    """The kind of the step's objects."""


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
    """A reference to a revision."""

    name: str
    revision: Number
    revisionHash: str | None


@part
class VersionAdoption:
    """The numbers of followers of a version: the references that move to it by themselves."""

    followers: Number
    """References that request a series or the newest version, and therefore select this version."""
    updated: Number
    """Followers that use this version."""
    held: Number
    """Followers that keep another version because this version would delete objects."""
    failing: Number
    """Followers for which this version cannot be rendered or applied."""


@part
class ReleaseGate:
    """The followers that may use a version during a rollout."""

    rollout: str
    """The name of the Rollout. If a RolloutPolicy has closed the version and its rollout has not
    started, the name of the RolloutPolicy.
    """
    step: Number
    """The step of the rollout; 0 before the first step."""
    share: float
    """The share of all followers that may use the version."""
    cohorts: list[dict[str, str]] | None
    """Sets of labels. Followers that have all labels of one set may use the version too."""
    returns: bool | None
    """True if followers that use the version must return to the version that they used before."""


@part
class PublishedVersion:
    """A version that applications can use, or could use before its removal."""

    version: str
    """The version, completed to three numbers, or a revision number."""
    revision: str
    """The name of the DefinitionRevision."""
    digest: str
    """The digest of the version's content."""
    stage: Literal["published", "deprecated", "removed"]
    since: str | None
    """The version that introduced the deprecation."""
    use: str | None
    """The version to use instead."""
    removedFrom: list[str] | None
    """The applications that used the version when it was removed by force."""
    gate: ReleaseGate | None
    """The followers that may use the version. If it is not set, all followers may use the version.
    """
    allowDeletion: bool | None
    """Whether a move to this version may delete objects of applications."""
    adoption: VersionAdoption | None
    """Numbers of references that follow the version."""


@part
class DefinitionStatus:
    """The published versions."""

    conditions: list[OamCondition] | None
    """Whether all versions were published, and which versions the followers use."""
    configMapRef: str | None
    """The ConfigMap with the schema of its parameters."""
    latestRevision: Revision | None
    """The revision of the newest version."""
    versions: list[PublishedVersion] | None
    """All versions, the newest first."""


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
        """The version."""

        revision: Number
        """The serial number; 0 for a semantic version."""
        revisionHash: str
        """The same as `digest`, under its name in KubeVela."""
        definitionType: Literal["Component", "Trait", "Policy", "WorkflowStep"]
        """The kind of definition, without the suffix Definition."""
        version: str | None
        """The semantic version, completed to three numbers. It is missing in numbered revisions."""
        digest: str | None
        """The digest of the content, without the version number and the deprecation."""
        componentDefinition: Object | None
        """The component definition in v1beta1, with only this version."""
        traitDefinition: Object | None
        """The trait definition in v1beta1, with only this version."""
        policyDefinition: Object | None
        """The policy definition in v1beta1, with only this version."""
        workflowStepDefinition: Object | None
        """The workflow step definition in v1beta1, with only this version."""

    spec: Spec | None
