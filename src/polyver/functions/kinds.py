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
    """Names an object."""

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
    """What an action leaves for others."""

    keyValue: dict[str, str] | None
    """Texts by name; templates in a blueprint, rendered in a status."""
    kopiaSnapshot: str | None
    """A snapshot as kopia tells of it, in JSON."""


@part
class Maker:
    """A function that was called for an artifact."""

    name: str
    version: str


@part
class MadeArtifact:
    """What an action has left for others, and what made it."""

    keyValue: dict[str, str] | None
    """Texts by name."""
    kopiaSnapshot: str | None
    """A snapshot as kopia tells of it, in JSON."""
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
    """What later templates call its output by."""
    objects: dict[str, ActionObjectReference] | None
    """Objects that its templates may read."""
    args: dict[str, Any] | None
    """The arguments, with templates in their texts."""
    sensitiveOutputs: list[str] | None
    """Outputs that are kept in a Secret instead of the status; `*` for all of them."""


@part
class BlueprintAction:
    """Phases that are run in order."""

    name: str | None
    """The name again, as some write it."""
    kind: str | None
    """What sort of object it is run on."""
    configMapNames: list[str] | None
    """Config maps that whoever runs it has to name."""
    secretNames: list[str] | None
    """Secrets that whoever runs it has to name."""
    inputArtifactNames: list[str] | None
    """Artifacts that whoever runs it has to give."""
    outputArtifacts: dict[str, Artifact] | None
    """What it leaves for others, with templates."""
    phases: list[BlueprintPhase] | None
    """What to call, in this order."""
    deferPhase: BlueprintPhase | None
    """What to call last, whatever became of the phases."""


@BLUEPRINTS.version("v1alpha1")
class BlueprintV1Alpha1:
    """Actions by name, each made of phases that call functions."""

    actions: dict[str, BlueprintAction] | None
    """What can be run."""


@part
class ActionSpec:
    """One action to run."""

    name: str
    """Which action of the blueprint."""
    object: ActionObjectReference | None
    """What it is run on."""
    blueprint: str | None
    """The blueprint, in the namespace of this object."""
    artifacts: dict[str, MadeArtifact] | None
    """What other actions have left for it."""
    configMaps: dict[str, ActionObjectReference] | None
    """Config maps that its templates may read."""
    secrets: dict[str, ActionObjectReference] | None
    """Secrets that its templates may read."""
    profile: ActionObjectReference | None
    """Where artifacts are stored."""
    podOverride: dict[str, Any] | None
    """What to change in the pods that functions run."""
    options: dict[str, str] | None
    """Further texts for its templates."""
    preferredVersion: str | None
    """The version of functions to use where a phase says none and the function has it."""
    podLabels: dict[str, str] | None
    """Labels for the pods that functions run."""
    podAnnotations: dict[str, str] | None
    """Annotations for the pods that functions run."""


@part
class ActionSetProgress:
    """How far everything has got."""

    runningPhase: str | None
    """The phase that runs."""
    percentCompleted: str | None
    """How much has completed; 100 only if everything has."""
    sizeDownloadedB: Size | None
    sizeUploadedB: Size | None
    estimatedDownloadSizeB: Size | None
    estimatedUploadSizeB: Size | None
    lastTransitionTime: Time | None
    """When this was told."""


@part
class PhaseProgress:
    """How far a phase has got."""

    progressPercent: str | None
    sizeDownloadedB: Size | None
    sizeUploadedB: Size | None
    estimatedTimeSeconds: Size | None
    estimatedDownloadSizeB: Size | None
    estimatedUploadSizeB: Size | None
    lastTransitionTime: Time | None


@part
class PhaseStatus:
    """What became of a phase."""

    name: str
    state: State
    output: dict[str, Any] | None
    """What its function returned; sensitive outputs are masked."""
    outputSecret: str | None
    """The Secret that holds its sensitive outputs."""
    resolvedVersion: str | None
    """The version that was chosen when the action started."""
    resolvedReason: str | None
    """Why it was that version."""
    reason: str | None
    """Why it was that version; of a phase that failed, why it did."""
    progress: PhaseProgress | None


@part
class ActionSetError:
    """Why it failed."""

    message: str | None


@part
class WaitingStatus:
    """An action that waits because as many calls run as may."""

    place: int
    """Its place in the queue, from 1."""
    message: str | None
    """The same in words, with what it waits for."""


@part
class ActionStatus:
    """What became of an action."""

    name: str
    object: ActionObjectReference | None
    blueprint: str | None
    state: State | None
    """How far it is: it fails when its deferred phase is over, too."""
    waiting: WaitingStatus | None
    """Set while it waits for a slot to call its next phase."""
    phases: list[PhaseStatus] | None
    deferPhase: PhaseStatus | None
    artifacts: dict[str, MadeArtifact] | None
    """What it left for others, rendered; values that came from Secrets are masked."""
    artifactsSecret: str | None
    """The Secret that holds the artifacts if values in them are masked."""
    error: ActionSetError | None
    """Why it failed."""
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
    """Runs actions of blueprints, once."""

    class Spec:
        """What is wanted."""

        actions: list[ActionSpec] | None
        """What to run."""

    class Status:
        """What became of it."""

        state: State | None
        """Of all actions together."""
        actions: list[ActionStatus] | None
        """What became of each."""
        error: ActionSetError | None
        """Why it failed."""
        progress: ActionSetProgress | None
        """How far it has got."""
        warnings: list[str] | None
        """What will stop working, and what to use instead."""

    spec: Spec | None
    status: Status | None
