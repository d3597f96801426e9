"""Kinds of applications, which use definitions, and of their revisions."""

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
    """What is taken from a step before."""

    from_: str = Field(name="from")
    parameterKey: str | None


@part
class StepOutput:
    """What is left for later steps."""

    name: str
    valueFrom: str


@part
class Trait:
    """A trait of a component."""

    type: str
    """The definition, with what is wanted of it: `scaler`, `scaler@1.2`."""
    properties: Object | None
    """Its parameters."""


@part
class Component:
    """A component of an application."""

    name: str
    type: str
    """The definition, with what is wanted of it: `web`, `web@1`, `web@1.2`, `web@1.2.3`."""
    externalRevision: str | None
    """A revision that somebody else keeps."""
    properties: Object | None
    """Its parameters."""
    dependsOn: list[str] | None
    """What has to be there before."""
    inputs: list[StepInput] | None
    outputs: list[StepOutput] | None
    traits: list[Trait] | None
    """Its traits, in this order."""
    scopes: dict[str, str] | None
    """What it is part of."""


@part
class AppPolicy:
    """A policy of an application."""

    name: str | None
    type: str
    """The definition, with what is wanted of it."""
    properties: Object | None
    """Its parameters."""


@part
@Preserve()
class WorkflowStep:
    """A step of a workflow; it may have conditions, inputs and steps inside as well."""

    name: str | None
    type: str
    """The definition, with what is wanted of it."""
    properties: Object | None
    """Its parameters."""


@part
class Mode:
    """Whether steps are run one by one or at once."""

    steps: str | None
    subSteps: str | None


@part
class Workflow:
    """The order in which things are done."""

    ref: str | None
    """A workflow that is kept elsewhere."""
    mode: Mode | None
    steps: list[WorkflowStep] | None


@part
class ApplicationSpec:
    """What is wanted."""

    components: list[Component]
    """What it is made of."""
    policies: list[AppPolicy] | None
    """What holds for all of it."""
    workflow: Workflow | None
    """The order in which things are done."""


@part
class FailedApplicationMove:
    """The release that an application could not take, and why; it stays with the one before."""

    version: str
    revision: str
    """Its DefinitionRevision."""
    digest: str
    """Of its content."""
    reason: str
    """One word for programs: `RenderFailed`, `WouldDelete`, and so on."""
    message: str
    since: Time
    """Since when."""
    inputs: str
    """Of what was tried: it is tried again when this changes."""


@part
class DefinitionResolution:
    """Which version is used in one place of an application, and why."""

    kind: Literal["Component", "Trait", "Policy", "WorkflowStep"]
    """What sort of definition."""
    component: str
    """The component, or what else names the place."""
    at: str
    """Where it is asked for: `spec.components[0].type`."""
    definition: str
    """The definition, with its namespace."""
    requested: str
    """What was asked for; empty if it was nothing."""
    version: str
    """What is used."""
    revision: str
    """Its DefinitionRevision."""
    digest: str
    """Of its content."""
    reason: str
    """Why it is that one."""
    warnings: list[str] | None
    """What will stop working, and what to use instead."""
    since: Time
    """Since when it is used."""
    failedMove: FailedApplicationMove | None
    """The release that it would use, if that worked for it."""


@part
@Preserve()
class Service:
    """How a component does."""

    name: str
    namespace: str | None
    workloadDefinition: WorkloadKind | None
    healthy: bool
    message: str | None


@part
@Preserve()
class Reference:
    """Names an object."""

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
    """What it is part of."""
    fields: str | None
    """A digest of which fields are its application's: others who change one take it over."""


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
    """Components with their traits, and how they are put together."""

    class Status:
        """What became of it."""

        conditions: list[OamCondition] | None
        observedGeneration: Number | None
        status: str | None
        """How far it is: `rendering`, `running`, `failed`."""
        resolutions: list[DefinitionResolution] | None
        """Which versions it uses, and why."""
        publishVersion: str | None
        """The value of the annotation with which these were chosen."""
        latestRevision: Revision | None
        """The ApplicationRevision that records this."""
        components: list[Reference] | None
        services: list[Service] | None
        """How each component does."""
        workflow: Object | None
        """How far the workflow is."""
        appliedResources: list[AppliedResource] | None
        """What was applied for it."""
        appliedDigest: str | None
        """Of what that was rendered from."""
        policy: list[Object] | None
        """What became of policies."""

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
    """An application as it was once, with the versions that it used."""

    @Preserve()
    class Spec:
        """What was wanted, and what was used for it."""

        application: Object
        """The application as it was."""
        resolutions: list[DefinitionResolution] | None
        """Which versions it used, and why."""
        componentDefinitions: dict[str, Object] | None
        """The definitions of components, by what was asked for."""
        traitDefinitions: dict[str, Object] | None
        policyDefinitions: dict[str, Object] | None
        workflowStepDefinitions: dict[str, Object] | None

    class Status:
        """What became of it."""

        succeeded: bool | None
        workflow: Object | None
        workflowContext: dict[str, str] | None

    spec: Spec | None
    status: Status | None
