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
    """An input of a workflow step. Its value is an output of an earlier step."""

    from_: str = Field(name="from")
    parameterKey: str | None


@part
class StepOutput:
    """An output of a workflow step. Later steps can use it as an input."""

    name: str
    valueFrom: str


@part
class Trait:
    """A trait of a component."""

    type: str
    """The TraitDefinition, with an optional version selector: `scaler`, `scaler@1.2`."""
    properties: Object | None
    """The parameters of the trait."""


@part
class Component:
    """A component of an application."""

    name: str
    type: str
    """The ComponentDefinition, with an optional version selector: `web`, `web@1.2`, `web@1.2.3`."""
    externalRevision: str | None
    """A revision name that the user chooses for the component. polyver does not support this field.
    """
    properties: Object | None
    """The parameters of the component."""
    dependsOn: list[str] | None
    """The names of the components that must be applied before this component."""
    inputs: list[StepInput] | None
    outputs: list[StepOutput] | None
    traits: list[Trait] | None
    """The traits of the component. polyver renders them in this order."""
    scopes: dict[str, str] | None
    """The scopes that the component belongs to."""


@part
class AppPolicy:
    """A policy of an application."""

    name: str | None
    type: str
    """The PolicyDefinition, with an optional version selector: `topology`, `topology@1.2`."""
    properties: Object | None
    """The parameters of the policy."""


@part
@Preserve()
class WorkflowStep:
    """A step of a workflow; it may also have conditions, inputs and nested steps."""

    name: str | None
    type: str
    """The WorkflowStepDefinition, with an optional version selector: `deploy`, `deploy@1.2`."""
    properties: Object | None
    """The parameters of the step."""


@part
class Mode:
    """The execution mode of a workflow: its steps run one after the other, or in parallel."""

    steps: str | None
    subSteps: str | None


@part
class Workflow:
    """The workflow of an application: its steps, in the order in which they run."""

    ref: str | None
    """The name of a Workflow object that has the steps."""
    mode: Mode | None
    steps: list[WorkflowStep] | None


@part
class ApplicationSpec:
    """The desired state of the application."""

    components: list[Component]
    """The components of the application."""
    policies: list[AppPolicy] | None
    """The policies of the application."""
    workflow: Workflow | None
    """The workflow of the application."""


@part
class FailedApplicationMove:
    """A release to which a reference could not move, and the reason for the failure."""

    version: str
    revision: str
    """The name of the release's DefinitionRevision."""
    digest: str
    """The digest of the release's content."""
    reason: str
    """One word for programs: `RenderFailed`, `WouldDelete`, and so on."""
    message: str
    since: Time
    """The time of the first failure with this message."""
    inputs: str
    """A digest of the inputs of the failed attempt. If an input changes, polyver tries again."""


@part
class PreviousVersion:
    """A version that a reference used before."""

    version: str
    """The version, such as `1.2.3`."""
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
    """The path of the reference in the application: `spec.components[0].type`."""
    definition: str
    """The definition, as `NAMESPACE/NAME`."""
    requested: str
    """The version or series that the reference requests; empty if it requests none."""
    version: str
    """The version that the reference uses."""
    revision: str
    """The name of the version's DefinitionRevision."""
    digest: str
    """The digest of the version's content."""
    reason: str
    """The reason why polyver chose this version, as a sentence."""
    warnings: list[str] | None
    """Warnings, such as the deprecation of this version and the version to use instead."""
    since: Time
    """The time at which the reference began to use this version."""
    previous: PreviousVersion | None
    """The version that the reference used before. If a rollout rolls the current version back, the
    reference returns to this version.
    """
    failedMove: FailedApplicationMove | None
    """The release to which the reference tried to move without success. The reference keeps its
    version.
    """


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
    """An object that polyver applied for the application."""

    apiVersion: str
    kind: str
    name: str
    namespace: str | None
    component: str | None
    """The name of the component whose template or trait made the object."""
    fields: str | None
    """A digest of the names of the fields that polyver owns in the object. It changes if another
    client changes such a field.
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
        """The observed state of the application."""

        conditions: list[OamCondition] | None
        observedGeneration: Number | None
        status: str | None
        """The phase: `rendering`, `running` or `failed`."""
        resolutions: list[DefinitionResolution] | None
        """The version that each reference uses, and the reason for it."""
        publishVersion: str | None
        """The value of the annotation `app.oam.dev/publishVersion` when the versions in
        `resolutions` were chosen.
        """
        latestRevision: Revision | None
        """The name, number and hash of the ApplicationRevision that records the versions in
        `resolutions`.
        """
        components: list[Reference] | None
        services: list[Service] | None
        """The health of each component."""
        workflow: Object | None
        """The progress of the workflow. polyver does not set this field, because it executes no
        workflows.
        """
        appliedResources: list[AppliedResource] | None
        """The objects that polyver applied for the application."""
        appliedDigest: str | None
        """A digest of the inputs from which the applied objects were rendered."""
        policy: list[Object] | None
        """The state of the policies. polyver does not set this field."""

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
        """The application, and the versions that it used."""

        application: Object
        """The application at the time when the revision was created."""
        resolutions: list[DefinitionResolution] | None
        """The version that each reference used, and the reason for it."""
        componentDefinitions: dict[str, Object] | None
        """The definitions of components, by the requested type."""
        traitDefinitions: dict[str, Object] | None
        policyDefinitions: dict[str, Object] | None
        workflowStepDefinitions: dict[str, Object] | None

    class Status:
        """The observed state of the revision."""

        succeeded: bool | None
        workflow: Object | None
        workflowContext: dict[str, str] | None

    spec: Spec | None
    status: Status | None
