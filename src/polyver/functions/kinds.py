"""The kinds Blueprint and ActionSet, with the fields of Kanister and fields of polyver.

polyver's own fields include `funcVersion` of a phase, `preferredVersion` of an action in an
ActionSet, and the resolved versions, reasons and warnings in the status.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from polyver.apis.declaring import Format, Kind, part
from polyver.apis.definition import Column

__all__ = ["ACTION_SETS", "BLUEPRINTS", "GROUP", "ActionSet", "BlueprintV1Alpha1"]

GROUP: Final = "cr.kanister.io"
BLUEPRINTS: Final = Kind("Blueprint", group=GROUP)
ACTION_SETS: Final = Kind("ActionSet", group=GROUP)

State = Literal["pending", "running", "complete", "failed"]
Time = Annotated[str, Format("date-time")]
Size = Annotated[int, Format("int64")]


@part
class ActionObjectReference:
    """A reference to an object, by its kind or by its resource."""

    apiVersion: str | None
    """The API version of the object, without the group: `v1`."""
    group: str | None
    """The API group of the object; empty for the core group."""
    resource: str | None
    """The plural name of the object's kind, as in the paths of the API: `deployments`."""
    kind: str | None
    """The kind of the object."""
    name: str | None
    """The name of the object."""
    namespace: str | None
    """The namespace of the object."""


@part
class Artifact:
    """An output artifact that an action of a blueprint declares."""

    keyValue: dict[str, str] | None
    """Strings by name. In a blueprint, they may contain templates; in a status, the templates are
    rendered.
    """
    kopiaSnapshot: str | None
    """The data of a snapshot by the backup tool Kopia, as JSON."""


@part
class Maker:
    """A function, with its version, that an action called to make an artifact."""

    name: str
    version: str


@part
class MadeArtifact:
    """An artifact of an action, and the functions that made it."""

    keyValue: dict[str, str] | None
    """The strings of the artifact, by name."""
    kopiaSnapshot: str | None
    """The data of a snapshot by the backup tool Kopia, as JSON."""
    functions: list[Maker] | None
    """The functions that the action called to make the artifact, and their versions. If another
    action uses the artifact and calls another major version of one of these functions, its
    ActionSet gets a warning.
    """


@part
class BlueprintPhase:
    """One step of an action: a call of a function."""

    func: str
    """The name of the function to call."""
    funcVersion: str | None
    """The exact version to call; `v0.1` means v0.1.0. If it is not set, polyver calls the preferred
    version of the action in the ActionSet or, if there is none, the stable version of the function.
    """
    name: str | None
    """The name of the phase. Templates of later phases read its output by this name."""
    objects: dict[str, ActionObjectReference] | None
    """References to Secrets and ConfigMaps that the templates of the action may read, by name."""
    args: dict[str, Any] | None
    """The arguments for the function, by name. Strings may contain templates."""
    sensitiveOutputs: list[str] | None
    """Names of outputs that polyver stores in a Secret and masks in the status; `*` means all
    outputs.
    """


@part
class BlueprintAction:
    """An action of a blueprint: phases that run in order."""

    name: str | None
    """The name of the action."""
    kind: str | None
    """The kind of the object on which the action runs."""
    configMapNames: list[str] | None
    """The names that the action in the ActionSet must have in its field `configMaps`."""
    secretNames: list[str] | None
    """The names that the action in the ActionSet must have in its field `secrets`."""
    inputArtifactNames: list[str] | None
    """The names that the action in the ActionSet must have in its field `artifacts`."""
    outputArtifacts: dict[str, Artifact] | None
    """The artifacts that the action makes, by name. Their strings may contain templates."""
    phases: list[BlueprintPhase] | None
    """The phases, in the order in which they run."""
    deferPhase: BlueprintPhase | None
    """The phase that runs after all other phases, even if another phase has failed."""


@BLUEPRINTS.version("v1alpha1")
class BlueprintV1Alpha1:
    """A blueprint: actions by name. An action consists of phases that call functions."""

    actions: dict[str, BlueprintAction] | None
    """The actions by name."""


@part
class ActionSpec:
    """One action for polyver to run."""

    name: str
    """The name of the action in the blueprint."""
    object: ActionObjectReference | None
    """The object on which the action runs."""
    blueprint: str | None
    """The name of the blueprint. It must be in the namespace of the ActionSet."""
    artifacts: dict[str, MadeArtifact] | None
    """Input artifacts by name, copied from the status of other ActionSets."""
    configMaps: dict[str, ActionObjectReference] | None
    """ConfigMaps that the templates of the action may read, by name."""
    secrets: dict[str, ActionObjectReference] | None
    """Secrets that the templates of the action may read, by name."""
    profile: ActionObjectReference | None
    """polyver ignores this field, because it does not support Profiles."""
    podOverride: dict[str, Any] | None
    """Fields that replace or extend the spec of the pods that functions run."""
    options: dict[str, str] | None
    """Options that the templates of the action may read, by name."""
    preferredVersion: str | None
    """The version to call for phases without `funcVersion`. If a function never had this version,
    polyver calls its stable version, or v0.0.0 if there is no stable version.
    """
    podLabels: dict[str, str] | None
    """Labels for the pods that functions run."""
    podAnnotations: dict[str, str] | None
    """Annotations for the pods that functions run."""


@part
class ActionSetProgress:
    """The progress of all actions of an ActionSet."""

    runningPhase: str | None
    """The name of the running phase, or the names if several actions run."""
    percentCompleted: str | None
    """The percentage of phases that are complete: a number without `%`. It is 100 only if all
    actions are complete.
    """
    sizeDownloadedB: Size | None
    sizeUploadedB: Size | None
    estimatedDownloadSizeB: Size | None
    estimatedUploadSizeB: Size | None
    lastTransitionTime: Time | None
    """The time of the last update."""


@part
class PhaseProgress:
    """The progress of a phase."""

    progressPercent: str | None
    sizeDownloadedB: Size | None
    sizeUploadedB: Size | None
    estimatedTimeSeconds: Size | None
    estimatedDownloadSizeB: Size | None
    estimatedUploadSizeB: Size | None
    lastTransitionTime: Time | None


@part
class PhaseStatus:
    """The state of the call of one phase."""

    name: str
    state: State
    output: dict[str, Any] | None
    """The values that the function returned, with a mask instead of each sensitive value."""
    outputSecret: str | None
    """The name of the Secret with the phase's sensitive outputs."""
    resolvedVersion: str | None
    """The version of the function that was chosen when the action started."""
    resolvedReason: str | None
    """The reason why this version was chosen."""
    rollout: str | None
    """The name of the rollout whose gate admitted the blueprint to this version, if there is one.
    """
    reason: str | None
    """The reason why this version was chosen. If the phase has failed, the error instead."""
    startTime: Time | None
    """The time at which the function was called."""
    endTime: Time | None
    """The time at which the function returned or failed. Missing if its call was interrupted."""
    progress: PhaseProgress | None


@part
class ActionSetError:
    """The error of an action or of an ActionSet."""

    message: str | None


@part
class WaitingStatus:
    """The position of an action in the queue of actions that wait for a slot to call a phase."""

    place: int
    """The position in the queue; the first is 1."""
    message: str | None
    """The position in the queue and the limit of concurrent calls, as a sentence."""


@part
class ActionStatus:
    """The state of an action."""

    name: str
    object: ActionObjectReference | None
    blueprint: str | None
    state: State | None
    """The state of the action. If a phase fails, the state becomes `failed` when the deferred phase
    has ended.
    """
    waiting: WaitingStatus | None
    """This field is set while the action waits for a slot to call its next phase."""
    phases: list[PhaseStatus] | None
    deferPhase: PhaseStatus | None
    artifacts: dict[str, MadeArtifact] | None
    """The output artifacts of the action, with a mask instead of each sensitive value."""
    artifactsSecret: str | None
    """The name of the Secret with the unmasked artifacts, if `artifacts` has masked values."""
    error: ActionSetError | None
    """The reason why the action failed."""
    snapshot: dict[str, Any] | None
    """The inputs of the action when it started: the time, its spec, the action of the blueprint and
    the pods of its object. If a user changes these inputs later, the running action is not
    affected.
    """


@ACTION_SETS.version(
    "v1alpha1",
    columns=[
        Column("Progress", ".status.progress.percentCompleted"),
        Column("Running Phase", ".status.progress.runningPhase"),
        Column("Last Transition Time", ".status.progress.lastTransitionTime", "date"),
        Column("State", ".status.state"),
    ],
)
class ActionSet:
    """A set of actions of blueprints. polyver runs each action once."""

    class Spec:
        """The desired state of the ActionSet."""

        actions: list[ActionSpec] | None
        """The actions to run."""

    class Status:
        """The observed state of the ActionSet."""

        state: State | None
        """The state of all actions together."""
        actions: list[ActionStatus] | None
        """The state of each action."""
        error: ActionSetError | None
        """The reason why the ActionSet failed."""
        progress: ActionSetProgress | None
        """The progress of all actions together."""
        warnings: list[str] | None
        """Warnings, for example that a phase calls a deprecated version, and its replacement."""

    spec: Spec | None
    status: Status | None
