"""The kind Retirement. Each Retirement removes one version of a kind, step by step.

`polyver retire --confirm` creates Retirements. The controller of Retirements executes them, and
records each step in the status.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from polyver.apis.declaring import Format, Ge, Kind, ListMap, MaxLength, MinLength, Rule
from polyver.apis.definition import Column

__all__ = ["RETIREMENTS", "RetirementV1Alpha1"]

RETIREMENTS: Final = Kind(
    "Retirement", group="polyver.dev", scope="Cluster", categories=["polyver"]
)
Count = Annotated[int, Ge(0), Format("int64")]
Time = Annotated[str, Format("date-time")]
Name = Annotated[str, MinLength(1), MaxLength(253), Rule("self == oldSelf")]
Step = Literal[
    "StopServing",
    "RewriteObjects",
    "VerifyObjects",
    "TrimStoredVersions",
    "RewriteManagedFields",
    "PurgePreservedFields",
    "DropVersion",
    "NarrowConversion",
    "ServeAgain",
]


@RETIREMENTS.version(
    "v1alpha1",
    columns=[
        Column("Kind", ".spec.definition"),
        Column("Version", ".spec.version"),
        Column("State", ".status.state"),
        Column("Step", ".status.step"),
        Column("Progress", ".status.progress"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ],
)
class RetirementV1Alpha1:
    """The removal of one version of a kind."""

    class Spec:
        definition: Name
        """The name of the CustomResourceDefinition of the kind."""
        version: Name
        """The version to remove."""
        aborted: bool | None
        """If true, polyver serves the version again, unless it was already dropped."""
        attempt: Count | None
        """The number of times that a user has confirmed the retirement. If another client serves
        the version again, polyver stops serving it again only after a further confirmation.
        """
        ignoreClients: bool | None
        """If true, polyver stops serving the version although clients have recently used it."""
        ignoreDependents: bool | None
        """If true, polyver stops serving the version although objects of polyver use it."""
        takeOver: bool | None
        """If true, polyver changes the CustomResourceDefinition and the Conversion although another
        field manager applies their versions.
        """
        quietPeriod: Annotated[str, Format("duration")] | None
        """The time without a request for the version, after which polyver stops serving it.

        The default is `24h`.
        """

    class Status:
        class Pass:
            step: Step
            """The step that reads all objects."""
            objects: Count
            """The number of objects that were read in the current round."""
            changed: Count
            """The number of objects that were written in the current round."""
            written: Count
            """The number of objects that were written in all rounds."""
            rounds: Count
            """The number of completed rounds. Steps after the first are repeated until a round
            writes no object.
            """
            done: bool
            after: str | None
            """The namespace and name of the last object that was read in the current round."""

        class Blocker:
            reason: str
            """The reason in one word, such as `StorageVersion`."""
            message: str

        class Purged:
            path: str
            """The path of the field in the removed version."""
            objects: Count
            """The number of objects whose preserved value was removed."""

        class Entry:
            time: Time
            step: str
            message: str

        class Condition:
            type: str
            status: str
            reason: str
            message: str | None
            lastTransitionTime: str
            observedGeneration: int | None

        state: Literal["Running", "Blocked", "Completed", "Aborted"] | None
        step: Step | None
        """The current step."""
        progress: str | None
        """The number of objects that the current step has read, of all objects: `500/10000`."""
        total: Count | None
        """The number of objects of the kind when polyver last counted them."""
        checked: Count | None
        """The generation of the CustomResourceDefinition since the steps that read all objects
        began. If the definition changes, these steps start again.
        """
        stopped: Count | None
        """The value of `spec.attempt` with which polyver stopped serving the version."""
        passes: Annotated[list[Pass], ListMap("step")] | None
        """The steps that read all objects, with their progress."""
        blockers: list[Blocker] | None
        """The reasons why the current step cannot run."""
        purged: Annotated[list[Purged], ListMap("path")] | None
        """The fields whose preserved values were removed."""
        history: list[Entry] | None
        """The steps that were started, the oldest first."""
        conditions: Annotated[list[Condition], ListMap("type")] | None
        """The condition `Retired` states whether the version was removed."""

    spec: Spec
    status: Status | None
