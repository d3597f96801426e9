"""The kinds Blueprint and ActionSet, with the fields of Kanister and fields of polyver.

Among the fields of polyver are `funcVersion` of a phase, `preferredVersion` of an action in an
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
    """A reference to an object, by kind or by resource."""

    apiVersion: str | None
    """Its API version, without the group."""
    group: str | None
    """Its API group."""
    resource: str | None
    """Its plural, as in paths."""
    kind: str | None
    """Its kind."""
    name: str | None
    """Its name."""
    namespace: str | None
    """Its namespace."""


@part
class Artifact:
    """An output artifact of an action."""

    keyValue: dict[str, str] | None
    """Names and strings. In a blueprint, the strings are templates; in a status, they are rendered.
    """
    kopiaSnapshot: str | None
    """A snapshot of Kopia, as JSON."""


@part
class Maker:
    """A function that was called to make an artifact."""

    name: str
    version: str


@part
class MadeArtifact:
    """An artifact of an action, and the functions that made it."""

    keyValue: dict[str, str] | None
    """Strings by name."""
    kopiaSnapshot: str | None
    """A snapshot of Kopia, as JSON."""
    functions: list[Maker] | None
    """The functions that the action called to make the artifact, and their versions. An action
    that uses the artifact and calls another major version of such a function gets a warning."""


@part
class BlueprintPhase:
    """One call of a function."""

    func: str
    """The function to call."""
    funcVersion: str | None
    """The exact version to call; `v0.1` means v0.1.0. By default, the preferred version of the
    action in the ActionSet is called. If there is none, the stable version of the function is
    called.
    """
    name: str | None
    """The name by which later templates read its output."""
    objects: dict[str, ActionObjectReference] | None
    """Secrets and ConfigMaps that templates of the action may read."""
    args: dict[str, Any] | None
    """The arguments; strings may contain templates."""
    sensitiveOutputs: list[str] | None
    """Outputs that are stored in a Secret and masked in the status; `*` for all outputs."""


@part
class BlueprintAction:
    """Phases that run in order."""

    name: str | None
    """The name of the action."""
    kind: str | None
    """The kind of object that it runs on."""
    configMapNames: list[str] | None
    """ConfigMaps that the ActionSet must name."""
    secretNames: list[str] | None
    """Secrets that the ActionSet must name."""
    inputArtifactNames: list[str] | None
    """Artifacts that the ActionSet must provide."""
    outputArtifacts: dict[str, Artifact] | None
    """The output artifacts, with templates."""
    phases: list[BlueprintPhase] | None
    """The phases, in order."""
    deferPhase: BlueprintPhase | None
    """The phase that runs after all other phases, even if another phase has failed."""


@BLUEPRINTS.version("v1alpha1")
class BlueprintV1Alpha1:
    """Actions by name, each made of phases that call functions."""

    actions: dict[str, BlueprintAction] | None
    """The actions by name."""


@part
class ActionSpec:
    """One action to run."""

    name: str
    """The action of the blueprint."""
    object: ActionObjectReference | None
    """The object that it runs on."""
    blueprint: str | None
    """The blueprint, in the namespace of this object."""
    artifacts: dict[str, MadeArtifact] | None
    """Input artifacts, copied from the status of other ActionSets."""
    configMaps: dict[str, ActionObjectReference] | None
    """ConfigMaps that its templates may read."""
    secrets: dict[str, ActionObjectReference] | None
    """Secrets that its templates may read."""
    profile: ActionObjectReference | None
    """Ignored: Profiles are not supported."""
    podOverride: dict[str, Any] | None
    """Overrides for the pods that functions run."""
    options: dict[str, str] | None
    """Options for its templates."""
    preferredVersion: str | None
    """The version to call for phases without `funcVersion`, if the function has this version."""
    podLabels: dict[str, str] | None
    """Labels for the pods that functions run."""
    podAnnotations: dict[str, str] | None
    """Annotations for the pods that functions run."""


@part
class ActionSetProgress:
    """The progress of all actions."""

    runningPhase: str | None
    """The running phase."""
    percentCompleted: str | None
    """The percentage of completed phases; 100 only if all actions are complete."""
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
    """The state of a phase."""

    name: str
    state: State
    output: dict[str, Any] | None
    """The values that the function returned; sensitive values are masked."""
    outputSecret: str | None
    """The name of the Secret with the sensitive outputs of the phase."""
    resolvedVersion: str | None
    """The version that was chosen when the action started."""
    resolvedReason: str | None
    """Why this version was chosen."""
    rollout: str | None
    """The rollout that lets the blueprint use this version, if it is not open for all."""
    reason: str | None
    """The reason why this version was chosen. If the phase failed, the error."""
    startTime: Time | None
    """The time at which the function was called."""
    endTime: Time | None
    """The time at which the function returned or failed. Missing if its call was interrupted."""
    progress: PhaseProgress | None


@part
class ActionSetError:
    """The error."""

    message: str | None


@part
class WaitingStatus:
    """The position of an action in the queue for a slot to call its next phase."""

    place: int
    """The position in the queue, from 1."""
    message: str | None
    """A description of the position and the limit."""


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
    """Set while the action waits for a slot to call its next phase."""
    phases: list[PhaseStatus] | None
    deferPhase: PhaseStatus | None
    artifacts: dict[str, MadeArtifact] | None
    """The rendered artifacts; values from Secrets are masked."""
    artifactsSecret: str | None
    """The name of the Secret with the unmasked artifacts, if `artifacts` has masked values."""
    error: ActionSetError | None
    """The error."""
    snapshot: dict[str, Any] | None
    """The inputs of the action when it started: the time, its spec, the action of the blueprint and
    the pods of its object. Later changes of these inputs have no effect on the running action.
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
    """A set of actions of blueprints; each action runs once."""

    class Spec:
        """The desired state."""

        actions: list[ActionSpec] | None
        """The actions to run."""

    class Status:
        """The observed state."""

        state: State | None
        """The state of all actions together."""
        actions: list[ActionStatus] | None
        """The state of each action."""
        error: ActionSetError | None
        """The error."""
        progress: ActionSetProgress | None
        """The progress."""
        warnings: list[str] | None
        """Warnings, such as deprecated function versions and their replacements."""

    spec: Spec | None
    status: Status | None
