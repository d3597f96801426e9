"""The four kinds of definitions, made by one function, and the revisions that they publish.

v1beta1 is stored and has one version; v2beta1 has a list of them. Both have the same fields for a
version, so conversion takes one out of the list, and preserves the rest in an annotation.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from polyver.apis.declaring import Description, Field, Format, Kind, MinLength, Preserve, part
from polyver.apis.definition import Column
from polyver.core.plain import Object
from polyver.definitions.entries import newest_entry

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
    """With `parameter`, `output`, `outputs` and `context`."""


@part
class GoTemplate:
    """A template in Go's language."""

    parameters: Object | None
    """The schema of what `.parameter` has, as in a CustomResourceDefinition."""
    template: str
    """Objects as YAML, one or several."""


@part
class TerraformSecretReference:
    """Names a secret."""

    name: str | None
    namespace: str | None


@part
class Terraform:
    """A configuration of Terraform's."""

    configuration: str
    """The configuration, or where it is."""
    type: Literal["hcl", "json", "remote"] | None
    """How it is written."""
    path: str | None
    """The folder in a remote repository."""
    writeConnectionSecretToRef: TerraformSecretReference | None
    """Where to write how to connect."""
    providerRef: TerraformSecretReference | None
    """Who provides the resources."""
    deleteResource: bool | None
    """Whether what was made is deleted with it."""
    customRegion: str | None
    """The region to use."""
    gitCredentialsSecretReference: TerraformSecretReference | None
    """How to read a remote repository."""


@part
@Preserve()
class Schematic:
    """How it is rendered; engines of others have fields of their own."""

    cue: Cue | None
    """A template in CUE."""
    gotemplate: GoTemplate | None
    """A template in Go's language."""
    terraform: Terraform | None
    """A configuration of Terraform's."""


@part
class WorkloadKind:
    """A kind, and the API version to use."""

    apiVersion: str
    kind: str


@part
class Workload:
    """What is rendered in the end."""

    type: str | None
    """The name of another definition."""
    definition: WorkloadKind | None
    """Or the kind itself."""


@part
class ChildKind:
    """A kind that a workload makes objects of."""

    apiVersion: str
    kind: str
    selector: dict[str, str] | None
    """Labels by which they are found."""


@part
class DefinitionHealth:
    """Programs that tell how things are."""

    customStatus: str | None
    """What to tell users."""
    healthPolicy: str | None
    """Whether it is healthy."""
    details: str | None
    """Further facts by name."""


@part
class DefinitionReference:
    """Names a CustomResourceDefinition."""

    name: str
    version: str | None


@part
class Deprecated:
    """Says that a version should be used no longer."""

    since: str | None
    """The version with which this was decided."""
    use: str | None
    """What to use instead."""


class _Release:
    """Fields of a version of every kind of definition."""

    version: str | None
    """The semantic version: one to three numbers, and none for the old way of numbering."""
    deprecated: Deprecated | None
    """That it should be used no longer."""
    schematic: Schematic | None
    """How it is rendered."""


@part
class ComponentSpec(_Release):
    """A version of a component."""

    workload: Workload
    """What is rendered in the end."""
    childResourceKinds: list[ChildKind] | None
    """What the workload makes objects of."""
    revisionLabel: str | None
    """A label that gets the name of the revision."""
    podSpecPath: str | None
    """Where the workload has the spec of its pods."""
    status: DefinitionHealth | None
    """How to tell how it is."""
    extension: Object | None
    """Whatever an engine wants to know."""


@part
class TraitSpec(_Release):
    """A version of a trait."""

    definitionRef: DefinitionReference | None
    """The kind of the trait's objects."""
    revisionEnabled: bool | None
    """Whether it knows of revisions of components."""
    workloadRefPath: str | None
    """Where its objects name the workload."""
    podDisruptive: bool | None
    """Whether pods are started anew when it changes."""
    appliesToWorkloads: list[str] | None
    """What it can be given to; all if nothing is said."""
    conflictsWith: list[str] | None
    """The traits that it cannot be together with."""
    status: DefinitionHealth | None
    """How to tell how it is."""
    extension: Object | None
    """Whatever an engine wants to know."""
    manageWorkload: bool | None
    """Whether it makes the workload itself."""
    controlPlaneOnly: bool | None
    """Whether it stays where the application is."""
    stage: Literal["PreDispatch", "DefaultDispatch", "PostDispatch"] | None
    """When it is applied."""


@part
class PolicySpec(_Release):
    """A version of a policy."""

    definitionRef: DefinitionReference | None
    """The kind of the policy's objects."""
    manageHealthCheck: bool | None
    """Whether it decides what is healthy."""
    scope: str | None
    """What it is a policy of."""
    global_: bool | None = Field(name="global")
    """Whether it holds for all applications."""
    priority: Annotated[int, Format("int32")] | None
    """Which of several comes first."""


@part
class WorkflowStepSpec(_Release):
    """A version of a workflow step."""

    definitionRef: DefinitionReference | None
    """The kind of the step's objects."""


@part
class OamCondition:
    """One fact, and since when."""

    type: str
    status: str
    lastTransitionTime: Time
    reason: str
    message: str | None
    observedGeneration: Number | None


@part
class Revision:
    """Names a revision."""

    name: str
    revision: Number
    revisionHash: str | None


@part
class VersionAdoption:
    """How many places in applications follow a version, and how many of them have it."""

    followers: Number
    """Places that ask for a series, or follow the newest version, and would use this one."""
    updated: Number
    """Those that use it."""
    held: Number
    """Those that do not, because it would delete objects of theirs."""
    failing: Number
    """Those for which it cannot be rendered or applied."""


@part
class PublishedVersion:
    """A version that applications can use, or could once."""

    version: str
    """Completed, or the number of a revision."""
    revision: str
    """The DefinitionRevision."""
    digest: str
    """Of its content."""
    stage: Literal["published", "deprecated", "removed"]
    since: str | None
    """The version with which it was deprecated."""
    use: str | None
    """What to use instead."""
    removedFrom: list[str] | None
    """Who used it when it was removed by force."""
    allowDeletion: bool | None
    """Whether it may delete objects of applications that move to it."""
    adoption: VersionAdoption | None
    """Who follows it."""


@part
class DefinitionStatus:
    """What was published."""

    conditions: list[OamCondition] | None
    """Whether everything was."""
    configMapRef: str | None
    """Where the schema of its parameters is."""
    latestRevision: Revision | None
    """The revision of the newest version."""
    versions: list[PublishedVersion] | None
    """All versions, the newest first."""


_DESCRIPTION = Column("Description", r".metadata.annotations.definition\.oam\.dev/description")
_STATUS = Annotated[DefinitionStatus | None, Description("What was published.")]


def _definitions(name: str, spec: Any, short: str, about: str, *columns: Column) -> Kind:
    """Return a kind of definition in both API versions, with its conversion."""
    kind = Kind(name, group=GROUP, short_names=[short], categories=["oam"], carry=CARRY)
    listed = Annotated[list[spec], MinLength(1), Description("All versions, in any order.")]
    versions = part(_made("Versions", "What is published.", versions=listed))
    for version, inside in ((STORED, spec), (VERSIONED, versions)):
        described: Any = Annotated
        whole = described[inside | None, Description("What is published.")]
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
    """Convert to the newest version only; the list is preserved in an annotation."""
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
    "A component that applications are made of.",
    Column("Workload-Kind", ".spec.workload.definition.kind"),
)
TRAITS: Final = _definitions(
    "TraitDefinition",
    TraitSpec,
    "trait",
    "A trait that components can be given.",
    Column("Applies-To", ".spec.appliesToWorkloads"),
)
POLICIES: Final = _definitions(
    "PolicyDefinition", PolicySpec, "def-policy", "A policy that applications can have."
)
WORKFLOW_STEPS: Final = _definitions(
    "WorkflowStepDefinition",
    WorkflowStepSpec,
    "workflowstep",
    "A step that workflows of applications are made of.",
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
    """One version of a definition, which never changes."""

    class Spec:
        """The version."""

        revision: Number
        """The number that it was given; 0 for a semantic version, which has none."""
        revisionHash: str
        """The digest again, under the name that it always had."""
        definitionType: Literal["Component", "Trait", "Policy", "WorkflowStep"]
        """What sort of definition it is of."""
        version: str | None
        """The semantic version, completed."""
        digest: str | None
        """Of the content: what the version has, without its number and its deprecation."""
        componentDefinition: Object | None
        """The definition as it was, in v1beta1, with this version alone."""
        traitDefinition: Object | None
        """The same of a trait."""
        policyDefinition: Object | None
        """The same of a policy."""
        workflowStepDefinition: Object | None
        """The same of a workflow step."""

    spec: Spec | None
