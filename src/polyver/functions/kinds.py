"""Kinds Blueprint and ActionSet, with Kanister's fields, and ours.

Ours are `funcVersion` on a phase, and in the status the resolved versions, reasons and warnings.
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
    """A reference to an object."""

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
    """Strings by name: templates in a blueprint, rendered values in a status."""
    kopiaSnapshot: str | None
    """A snapshot of kopia, in JSON."""


@part
class Maker:
    """A function that was called for an artifact."""

    name: str
    version: str


@part
class MadeArtifact:
    """An artifact of an action, and the functions that made it."""

    keyValue: dict[str, str] | None
    """Strings by name."""
    kopiaSnapshot: str | None
    """A snapshot of kopia, in JSON."""
    functions: list[Maker] | None
    """The functions that the phases of the action called, and their versions. An action that uses
    the artifact with another major version of one of them is warned about."""


@part
class BlueprintPhase:
    """One call of a function."""

    func: str
    """The function to call."""
    funcVersion: str | None
    """The version to call, exactly: `v0.1` is v0.1.0. Without it, the action's preferred version,
    else the stable one."""
    name: str | None
    """The name by which later templates read its output."""
    objects: dict[str, ActionObjectReference] | None
    """Objects that its templates may read."""
    args: dict[str, Any] | None
    """The arguments; strings may contain templates."""
    sensitiveOutputs: list[str] | None
    """Outputs that are kept in a Secret instead of the status; `*` for all of them."""


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
    """The phase that runs last, even if a phase failed."""


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
    """Artifacts of other actions."""
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
    """The version of functions for phases that request none, if the function has this version."""
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
    """The completed percentage; 100 only if everything is complete."""
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
    """The output of its function; sensitive values are masked."""
    outputSecret: str | None
    """The Secret with its sensitive outputs."""
    resolvedVersion: str | None
    """The version that was chosen when the action started."""
    resolvedReason: str | None
    """The reason for that version."""
    reason: str | None
    """The reason for that version; if the phase failed, the error."""
    progress: PhaseProgress | None


@part
class ActionSetError:
    """The error."""

    message: str | None


@part
class WaitingStatus:
    """The queue position of an action that waits for the concurrency limit."""

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
    """The state; a failed action ends after its deferred phase."""
    waiting: WaitingStatus | None
    """Set while it waits for a slot to call its next phase."""
    phases: list[PhaseStatus] | None
    deferPhase: PhaseStatus | None
    artifacts: dict[str, MadeArtifact] | None
    """The rendered artifacts; values from Secrets are masked."""
    artifactsSecret: str | None
    """The Secret with the artifacts, if values in them are masked."""
    error: ActionSetError | None
    """The error."""
    snapshot: dict[str, Any] | None
    """What it was when it started: time, spec, the blueprint's action, the pods of its object.
    It runs by this to its end, whatever is changed meanwhile."""


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
    """A set of actions of blueprints that run once."""

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
        """Deprecations, and their replacements."""

    spec: Spec | None
    status: Status | None
