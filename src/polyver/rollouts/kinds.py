"""The kinds RolloutPolicy and Rollout."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from polyver.apis.declaring import Field, Format, Ge, Kind, Le, ListMap, MaxLength, MinLength, part
from polyver.apis.definition import Column

__all__ = [
    "GROUP",
    "POLICIES",
    "REPORTS",
    "ROLLOUTS",
    "RolloutPolicyV1Alpha1",
    "RolloutReportV1Alpha1",
    "RolloutV1Alpha1",
]

GROUP: Final = "polyver.dev"
POLICIES: Final = Kind(
    "RolloutPolicy", group=GROUP, plural="rolloutpolicies", categories=["polyver"]
)
ROLLOUTS: Final = Kind("Rollout", group=GROUP, categories=["polyver"])
REPORTS: Final = Kind("RolloutReport", group=GROUP)

Time = Annotated[str, Format("date-time")]
Name = Annotated[str, MinLength(1), MaxLength(253)]
Count = Annotated[int, Ge(0), Format("int64")]
Minimum = Annotated[int, Ge(1), Format("int64")]
Day = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
Event = Literal["Started", "Paused", "RolledBack", "Held", "Completed", "Aborted", "Superseded"]


@part
class TargetSelectorSpec:
    """Labels that an object must have, all of them."""

    matchLabels: dict[str, str]
    """The labels; an object must have all of them."""


@part
class PolicyTargetSpec:
    """The lineages of a policy: one lineage by its name, or several by labels."""

    group: Annotated[str, MinLength(1)]
    """The API group of the object that publishes the releases, such as core.oam.dev."""
    kind: Annotated[str, MinLength(1)]
    """The kind of the object, such as ComponentDefinition, Composition or BlueprintFunction."""
    name: Name | None
    """The name of the object."""
    selector: TargetSelectorSpec | None
    """Labels instead of a name: the target is each object that has these labels."""


@part
class RolloutTargetSpec:
    """The lineage of a rollout."""

    group: Annotated[str, MinLength(1)]
    """The API group of the object that publishes the releases."""
    kind: Annotated[str, MinLength(1)]
    """The kind of the object."""
    name: Name
    """The name of the object."""


@part
class StepPauseSpec:
    """A pause after a step: for some time, or until a user promotes the rollout."""

    seconds: str | None = Field(name="for", default=None)
    """The duration, such as 90s, 10m or 2h."""
    until: Literal["Approved"] | None
    """`Approved`: until a user runs `polyver rollout promote`."""


@part
class RolloutStepSpec:
    """One step, with exactly one of share, count and labels.

    It adds followers to the cohort: the followers that may use the release.
    """

    share: str | None
    """A share of all followers, such as 5%, chosen by a stable hash of their uid."""
    count: Annotated[int, Ge(1), Le(1_000_000_000)] | None
    """A number of followers, chosen in the same way."""
    labels: dict[str, str] | None
    """The followers with these labels."""
    pause: StepPauseSpec | None
    """The pause after the step."""


@part
class ReadyCheckSpec:
    """The check that the followers of the cohort become healthy in time."""

    within: str | None
    """The duration after which followers that are not healthy count as failing. Default: 10m."""
    failing: Count | None
    """The number of followers that may fail. Default: 0."""
    minimum: Minimum | None
    """A step waits until so many of the followers that it adds are healthy or fail. Default: 1."""


@part
class ErrorsCheckSpec:
    """The check that few calls with the release fail."""

    max: str
    """The largest share of failed calls, such as 1%."""
    minimum: Minimum | None
    """The number of calls for which the check waits. Default: 1."""


@part
class LatencyCheckSpec:
    """The check that calls with the release are not much slower than calls with other releases."""

    p99: str
    """The largest ratio of the 99th percentiles of the durations, such as 2x."""
    minimum: Minimum | None
    """The check waits for so many calls with the release, and with other releases. Default: 1."""


@part
class PrometheusCheckSpec:
    """The check that all values in the result of a Prometheus query are within limits."""

    address: str
    """The URL of Prometheus, such as http://prometheus.monitoring:9090."""
    query: str
    """The query, whose result is a scalar or a vector."""
    below: float | None
    """All values of the result must be smaller than this."""
    above: float | None
    """All values of the result must be larger than this."""


@part
class HttpCheckSpec:
    """The check that a URL answers with a status."""

    url: str
    """The URL, which is requested with GET."""
    status: Annotated[int, Ge(100), Le(599)] | None
    """The expected status. Default: 200."""


@part
class RolloutCheckSpec:
    """One check, which is evaluated during and after each step."""

    ready: ReadyCheckSpec | None
    errors: ErrorsCheckSpec | None
    latency: LatencyCheckSpec | None
    prometheus: PrometheusCheckSpec | None
    http: HttpCheckSpec | None


@part
class PreflightLimitsSpec:
    """The limits with which a rollout may take its first step."""

    failures: Count | None
    """The number of followers that may fail with the release. Default: 0."""
    deletions: Count | None
    """The number of followers that may lose objects. Default: 0."""
    sample: int | str | None
    """The number of followers that the preflight tries, or `all`. Default: 1000."""


@part
class RolloutWindowSpec:
    """A time of the week in which steps may start."""

    days: list[Day] | None
    """The days. Default: every day."""
    start: str = Field(name="from")
    """The time at which the window opens: "09:00"."""
    end: str = Field(name="to")
    """The time at which the window closes: "16:00"."""
    timezone: str | None
    """The time zone: Europe/Berlin. Default: UTC."""


@part
class RolloutNotificationSpec:
    """A URL to which polyver posts events of rollouts as JSON."""

    url: str
    """The URL."""
    on: list[Event] | None
    """The events that are posted. Default: all of them."""


@part
class PreflightExampleStatus:
    """One object of a group, before and after the change."""

    dependent: str
    """The follower that has the object."""
    object: str
    """The kind, namespace, name and API version of the object."""
    diff: str
    """The changed lines; the data of Secrets is hidden."""


@part
class PreflightGroupStatus:
    """Followers whose objects change in the same way."""

    change: str
    """The kind of the objects, and the fields that change."""
    dependents: int
    """The number of followers."""
    names: list[str] | None
    """The names of followers."""
    example: PreflightExampleStatus | None
    """One of the changes."""


@part
class PreflightFailureStatus:
    """Followers for which the release fails for the same reason."""

    message: str
    """The reason."""
    dependents: int
    """The number of followers."""
    names: list[str] | None
    """The names of followers."""


@part
class PreflightStatus:
    """The effect of a release on its followers."""

    unchanged: int
    """The number of followers whose objects stay the same."""
    changed: int
    """The number of followers whose objects change."""
    loses: int
    """The number of followers that would lose objects."""
    fails: int
    """The number of followers for which the release fails."""
    groups: list[PreflightGroupStatus] | None
    """The changes, grouped by their shape."""
    failures: list[PreflightFailureStatus] | None
    """The failures, grouped by their message."""
    report: str | None
    """The name of the RolloutReport with all groups and all names."""
    note: str | None
    """The reason why something is missing."""


@POLICIES.version(
    "v1alpha1",
    columns=[
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Targets", ".status.targets", "integer"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ],
)
class RolloutPolicyV1Alpha1:
    """The steps and checks with which every new release of some lineages reaches its users."""

    class Spec:
        targets: list[PolicyTargetSpec]
        """The lineages to which the policy applies."""
        preflight: PreflightLimitsSpec | None
        """The limits with which a rollout may take its first step."""
        steps: list[RolloutStepSpec]
        """The steps; the last one is {share: 100%}."""
        checks: list[RolloutCheckSpec] | None
        """The checks. Default: {ready: {within: 10m, failing: 0}}."""
        onFailure: Literal["Rollback", "Pause"] | None
        """The reaction to a failed check. Default: Rollback."""
        windows: list[RolloutWindowSpec] | None
        """The times in which steps may start. Default: always."""
        notify: list[RolloutNotificationSpec] | None
        """The URLs to which polyver posts events of the rollouts."""

    class Status:
        class Condition:
            type: str
            status: str
            reason: str
            message: str
            since: str = Field(name="lastTransitionTime")
            generation: int | None = Field(name="observedGeneration", default=None)

        targets: int | None
        """The number of lineages to which the policy applies."""
        conditions: Annotated[list[Condition], ListMap("type")] | None

    spec: Spec
    status: Status | None


@ROLLOUTS.version(
    "v1alpha1",
    columns=[
        Column("Target", ".spec.target.name", priority=1),
        Column("To", ".spec.to"),
        Column("State", ".status.state"),
        Column("Step", ".status.step"),
        Column("Healthy", ".status.progress"),
        Column("Reason", ".status.reason", priority=1),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ],
)
class RolloutV1Alpha1:
    """One release on its way to its users."""

    class Spec:
        class PolicyReference:
            name: Name

        target: RolloutTargetSpec
        """The lineage: the object that publishes the releases."""
        to: Annotated[str, MinLength(1)]
        """The release: a version, or the name of a revision."""
        policyRef: PolicyReference | None
        """The policy, in the namespace of the rollout, whose rules are copied at the start."""
        preflight: PreflightLimitsSpec | None
        steps: list[RolloutStepSpec] | None
        """The steps, if the rollout has no `policyRef`."""
        checks: list[RolloutCheckSpec] | None
        onFailure: Literal["Rollback", "Pause"] | None
        windows: list[RolloutWindowSpec] | None
        notify: list[RolloutNotificationSpec] | None
        paused: bool | None
        """True: no step starts. Checks and the rollback go on."""
        approvedStep: Count | None
        """The pauses of all steps up to this one are approved; 0 approves only the preflight."""
        aborted: bool | None
        """True: the release is taken back."""

    class Status:
        class Condition:
            type: str
            status: str
            reason: str
            message: str
            since: str = Field(name="lastTransitionTime")
            generation: int | None = Field(name="observedGeneration", default=None)

        class Dependents:
            total: int
            """All followers that would move to the release."""
            cohort: int
            """The followers that may use the release."""
            moved: int
            healthy: int
            failing: int
            held: int
            waiting: int
            """The followers of the cohort that have not tried the release yet."""
            idle: int | None
            """The followers of the cohort that have not run with the release yet."""
            running: int | None
            """The followers of the cohort whose first run with the release has not ended yet."""

        class Check:
            name: str
            result: Literal["Passed", "Waiting", "Failed"]
            message: str | None

        class Entry:
            time: Time
            state: str
            step: int
            message: str | None

        class Notification:
            event: Event
            notify: int
            """The number of the entry in `notify`, from 0."""
            step: int
            time: Time
            message: str | None

        class Exposure:
            share: float
            labels: list[dict[str, str]] | None

        state: str | None
        """Preflight, Progressing, Paused, Completed, Held, RolledBack, Aborted or Superseded."""
        step: str | None
        """The step in progress, of all steps, such as 2/4."""
        progress: str | None
        """The number of healthy followers, of all in the cohort, such as 12/40."""
        reason: str | None
        """The reason why the rollout is in this state, as a sentence."""
        dependents: Dependents | None
        policy: dict[str, Any] | None
        """The steps, checks and other rules as they were at the start."""
        preflight: PreflightStatus | None
        """The result of the preflight: at most 20 groups, with 10 names each."""
        checks: list[Check] | None
        """The latest result of each check."""
        exposure: Exposure | None
        """The followers that may use the release."""
        memory: dict[str, Any] | None
        """What the controller needs to continue after a restart."""
        notifications: list[Notification] | None
        """The notifications that have not been sent yet."""
        history: list[Entry] | None
        """The changes of the state, oldest first."""
        conditions: Annotated[list[Condition], ListMap("type")] | None

    spec: Spec
    status: Status | None


@REPORTS.version(
    "v1alpha1",
    columns=[
        Column("Unchanged", ".preflight.unchanged", "integer"),
        Column("Changed", ".preflight.changed", "integer"),
        Column("Loses", ".preflight.loses", "integer"),
        Column("Fails", ".preflight.fails", "integer"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ],
)
class RolloutReportV1Alpha1:
    """The whole result of the preflight of the Rollout with the same name."""

    preflight: PreflightStatus
    """All groups of changes and of failures, with all names."""
