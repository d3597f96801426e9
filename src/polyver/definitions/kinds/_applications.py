"""The kinds Application and ApplicationRevision."""

from __future__ import annotations

from typing import Final, Literal

from polyver.apis.declaring import Field, Kind, Preserve, part
from polyver.apis.definition import Column
from polyver.core.plain import Object
from polyver.definitions.kinds._definitions import (
    GROUP,
    Number,
    OamCondition,
    Revision,
    Time,
    WorkloadKind,
)

__all__ = ["APPLICATIONS", "APPLICATION_REVISIONS", "Application", "ApplicationRevision"]

APPLICATIONS: Final = Kind(
    "Application", group=GROUP, short_names=["app", "velaapp"], categories=["oam"]
)
APPLICATION_REVISIONS: Final = Kind(
    "ApplicationRevision", group=GROUP, short_names=["apprev"], categories=["oam"]
)


@part
class StepInput:
    """An input of a workflow step, whose value is an output of an earlier step."""

    from_: str = Field(name="from")
    parameterKey: str | None


@part
class StepOutput:
    """An output of a workflow step, which later steps can use as input."""

    name: str
    valueFrom: str


@part
class Trait:
    """A trait of a component."""

    type: str
    """The definition, with an optional version selector: `scaler`, `scaler@1.2`."""
    properties: Object | None
    """Its parameters."""


@part
class Component:
    """A component of an application."""

    name: str
    type: str
    """The definition, with an optional version selector: `web`, `web@1.2`, `web@1.2.3`."""
    externalRevision: str | None
    """The name of a revision that is managed elsewhere."""
    properties: Object | None
    """Its parameters."""
    dependsOn: list[str] | None
    """Components that must be applied before this component."""
    inputs: list[StepInput] | None
    outputs: list[StepOutput] | None
    traits: list[Trait] | None
    """Its traits, in this order."""
    scopes: dict[str, str] | None
    """The scopes that the component belongs to."""


@part
class AppPolicy:
    """A policy of an application."""

    name: str | None
    type: str
    """The definition, with an optional version selector."""
    properties: Object | None
    """Its parameters."""


@part
@Preserve()
class WorkflowStep:
    """A step of a workflow; it may also have conditions, inputs and nested steps."""

    name: str | None
    type: str
    """The definition, with an optional version selector."""
    properties: Object | None
    """Its parameters."""


@part
class Mode:
    """The execution mode of a workflow: its steps run one by one, or in parallel."""

    steps: str | None
    subSteps: str | None


@part
class Workflow:
    """The workflow: the order of the steps."""

    ref: str | None
    """The name of an external workflow."""
    mode: Mode | None
    steps: list[WorkflowStep] | None


@part
class ApplicationSpec:
    """The desired state."""

    components: list[Component]
    """The components."""
    policies: list[AppPolicy] | None
    """The policies of the application."""
    workflow: Workflow | None
    """The workflow: the order of the steps."""


@part
class FailedApplicationMove:
    """A release to which a reference could not move, and the reason."""

    version: str
    revision: str
    """The name of the release's DefinitionRevision."""
    digest: str
    """The digest of the release's content."""
    reason: str
    """One word for programs: `RenderFailed`, `WouldDelete`, and so on."""
    message: str
    since: Time
    """The time of the first failure."""
    inputs: str
    """A digest of the inputs of the attempt. If the inputs change, the move is tried again."""


@part
class PreviousVersion:
    """A version that a reference used before."""

    version: str
    """The version."""
    revision: str
    """The name of the version's DefinitionRevision."""
    digest: str
    """The digest of the version's content."""


@part
class DefinitionResolution:
    """The version that one reference of an application uses, and the reason for it."""

    kind: Literal["Component", "Trait", "Policy", "WorkflowStep"]
    """The kind of definition, without the suffix Definition."""
    component: str
    """The name of the component, policy or workflow step that has the reference."""
    at: str
    """The path of the reference: `spec.components[0].type`."""
    definition: str
    """The namespace and name of the definition."""
    requested: str
    """The requested version or series; empty if none was requested."""
    version: str
    """The version in use."""
    revision: str
    """The name of the version's DefinitionRevision."""
    digest: str
    """The digest of the version's content."""
    reason: str
    """Why this version was chosen."""
    warnings: list[str] | None
    """Deprecations, and their replacements."""
    since: Time
    """The time since which this version is used."""
    previous: PreviousVersion | None
    """The version that the reference used before. If a rollout rolls the current version back, the
    reference returns to this version.
    """
    failedMove: FailedApplicationMove | None
    """The release that the reference would use if the move to this release had succeeded."""


@part
@Preserve()
class Service:
    """The health of a component."""

    name: str
    namespace: str | None
    workloadDefinition: WorkloadKind | None
    healthy: bool
    message: str | None


@part
@Preserve()
class Reference:
    """A reference to an object."""

    apiVersion: str | None
    kind: str | None
    name: str | None
    namespace: str | None


@part
@Preserve()
class AppliedResource:
    """An object that was applied."""

    apiVersion: str
    kind: str
    name: str
    namespace: str | None
    component: str | None
    """The component that it belongs to."""
    fields: str | None
    """A digest of the fields that the application owns. It changes if another client changes such a
    field.
    """


@APPLICATIONS.version(
    "v1beta1",
    columns=[
        Column("Component", ".spec.components[*].name"),
        Column("Type", ".spec.components[*].type"),
        Column("Phase", ".status.status"),
        Column("Healthy", ".status.services[*].healthy", "boolean"),
        Column("Status", ".status.services[*].message"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ],
)
class Application:
    """An application: components with their traits, policies and a workflow."""

    class Status:
        """The observed state."""

        conditions: list[OamCondition] | None
        observedGeneration: Number | None
        status: str | None
        """The phase: `rendering`, `running`, `failed`."""
        resolutions: list[DefinitionResolution] | None
        """The versions that the references use, and the reasons."""
        publishVersion: str | None
        """The value of the annotation publishVersion at the time when these versions were chosen.
        """
        latestRevision: Revision | None
        """The ApplicationRevision that records these versions."""
        components: list[Reference] | None
        services: list[Service] | None
        """The health of each component."""
        workflow: Object | None
        """The progress of the workflow."""
        appliedResources: list[AppliedResource] | None
        """The objects that were applied."""
        appliedDigest: str | None
        """A digest of the inputs from which the applied objects were rendered."""
        policy: list[Object] | None
        """The state of the policies."""

    spec: ApplicationSpec | None
    status: Status | None


@APPLICATION_REVISIONS.version(
    "v1beta1",
    columns=[
        Column("Age", ".metadata.creationTimestamp", "date"),
        Column("Publish_Version", r".metadata.annotations['app\.oam\.dev\/publishVersion']"),
        Column("Succeeded", ".status.succeeded"),
    ],
)
class ApplicationRevision:
    """An application at one point in time, with the versions that it used."""

    @Preserve()
    class Spec:
        """The application and the versions that it used."""

        application: Object
        """The application at that time."""
        resolutions: list[DefinitionResolution] | None
        """The versions that the application used, and the reasons."""
        componentDefinitions: dict[str, Object] | None
        """The definitions of components, by the requested type."""
        traitDefinitions: dict[str, Object] | None
        policyDefinitions: dict[str, Object] | None
        workflowStepDefinitions: dict[str, Object] | None

    class Status:
        """The observed state."""

        succeeded: bool | None
        workflow: Object | None
        workflowContext: dict[str, str] | None

    spec: Spec | None
    status: Status | None
