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
    """A selector for objects by their labels."""

    matchLabels: dict[str, str]
    """The labels; an object must have all of them."""


@part
class PolicyTargetSpec:
    """The lineages to which a policy applies: one lineage by its name, or several by labels."""

    group: Annotated[str, MinLength(1)]
    """The API group of the object that publishes the releases, such as core.oam.dev."""
    kind: Annotated[str, MinLength(1)]
    """The kind of the object, such as ComponentDefinition, Composition or BlueprintFunction."""
    name: Name | None
    """The name of the object. Either `name` or `selector` must be set."""
    selector: TargetSelectorSpec | None
    """Selects all objects of this kind that have certain labels. Either `name` or `selector` must
    be set.
    """


@part
class RolloutTargetSpec:
    """The lineage of a rollout, identified by the object that publishes its releases."""

    group: Annotated[str, MinLength(1)]
    """The API group of the object that publishes the releases."""
    kind: Annotated[str, MinLength(1)]
    """The kind of the object that publishes the releases, such as ComponentDefinition."""
    name: Name
    """The name of the object that publishes the releases."""


@part
class StepPauseSpec:
    """A pause after a step. It ends after some time, or when a user promotes the rollout."""

    seconds: str | None = Field(name="for", default=None)
    """The duration, such as 90s, 10m or 2h."""
    until: Literal["Approved"] | None
    """With `Approved`, the pause ends when a user runs `polyver rollout promote`."""


@part
class RolloutStepSpec:
    """One step of a rollout, with exactly one of `share`, `count` and `labels`.

    A step adds followers to the cohort: the followers that may use the release.
    """

    share: str | None
    """The share of all followers, such as 5%, that may use the release from this step on. A hash of
    the uid selects them, so they stay the same.
    """
    count: Annotated[int, Ge(1), Le(1_000_000_000)] | None
    """The number of followers that may use the release from this step on, selected as for `share`.
    """
    labels: dict[str, str] | None
    """All followers with these labels may use the release from this step on."""
    pause: StepPauseSpec | None
    """The pause after the step."""


@part
class ReadyCheckSpec:
    """A check that passes when the followers in the cohort are healthy with the release."""

    within: str | None
    """The duration after which followers that are not healthy count as failing. Default: 10m."""
    failing: Count | None
    """The maximum number of failing followers with which the check passes. Default: 0."""
    minimum: Minimum | None
    """The check waits until at least this number of the followers that the step adds are healthy or
    have failed. Default: 1.
    """


@part
class ErrorsCheckSpec:
    """A check that passes while only a small share of the calls with the release fail."""

    max: str
    """The maximum share of failed calls, such as 1%, with which the check passes."""
    minimum: Minimum | None
    """The check waits until there are at least this number of calls with the release. Default: 1.
    """


@part
class LatencyCheckSpec:
    """A check that compares the latency of calls with this release and with other releases."""

    p99: str
    """The maximum factor, such as 2x, by which the 99th percentile of durations may be larger with
    the release than with other releases.
    """
    minimum: Minimum | None
    """The check waits until there are at least this number of calls with the release, and as many
    with other releases. Default: 1.
    """


@part
class PrometheusCheckSpec:
    """A check that passes if all values in the result of a Prometheus query are within limits."""

    address: str
    """The URL of Prometheus, such as http://prometheus.monitoring:9090."""
    query: str
    """The query, whose result is a scalar or a vector."""
    below: float | None
    """Each value of the result must be smaller than this number."""
    above: float | None
    """Each value of the result must be larger than this number."""


@part
class HttpCheckSpec:
    """A check that passes if the response of a URL has the expected HTTP status code."""

    url: str
    """The URL. polyver sends GET requests to it."""
    status: Annotated[int, Ge(100), Le(599)] | None
    """The expected HTTP status code. Default: 200."""


@part
class RolloutCheckSpec:
    """One check, which polyver evaluates during and after each step.

    Exactly one field must be set.
    """

    ready: ReadyCheckSpec | None
    errors: ErrorsCheckSpec | None
    latency: LatencyCheckSpec | None
    prometheus: PrometheusCheckSpec | None
    http: HttpCheckSpec | None


@part
class PreflightLimitsSpec:
    """The limits that the result of a preflight must not exceed before the first step."""

    failures: Count | None
    """The maximum number of followers for which the release fails. Default: 0."""
    deletions: Count | None
    """The maximum number of followers that would lose objects. Default: 0."""
    sample: int | str | None
    """The number of followers with which the preflight tries the release, or `all`. Default: 1000.
    """


@part
class RolloutWindowSpec:
    """A period, on some days of the week, in which steps may start."""

    days: list[Day] | None
    """The days of the week on which the window opens. Default: every day."""
    start: str = Field(name="from")
    """The time at which the window opens: "09:00"."""
    end: str = Field(name="to")
    """The time at which the window closes: "16:00"."""
    timezone: str | None
    """The time zone of `from` and `to`, such as Europe/Berlin. Default: UTC."""


@part
class RolloutNotificationSpec:
    """A URL to which polyver sends events of rollouts as JSON, with POST requests."""

    url: str
    """The URL. polyver sends POST requests to it."""
    on: list[Event] | None
    """The events to send, such as `RolledBack`. Default: all events."""


@part
class PreflightExampleStatus:
    """An example of a change: one object, and its difference with the release."""

    dependent: str
    """The name of the follower that has the object."""
    object: str
    """The kind, namespace, name and API version of the object."""
    diff: str
    """The changed lines of the object in YAML. The data of Secrets is hidden."""


@part
class PreflightGroupStatus:
    """A group of followers whose objects would change in the same way."""

    change: str
    """The kind of the objects, and the fields that change."""
    dependents: int
    """The number of followers in the group."""
    names: list[str] | None
    """The names of followers in the group. The status of a Rollout has at most 10 of them."""
    example: PreflightExampleStatus | None
    """One of the changed objects of the group."""


@part
class PreflightFailureStatus:
    """A group of followers for which the release fails with the same message."""

    message: str
    """The error message."""
    dependents: int
    """The number of followers in the group."""
    names: list[str] | None
    """The names of followers in the group. The status of a Rollout has at most 10 of them."""


@part
class PreflightStatus:
    """The result of a preflight: how the release would affect the followers."""

    unchanged: int
    """The number of followers whose objects would stay the same."""
    changed: int
    """The number of followers whose objects would change."""
    loses: int
    """The number of followers that would lose objects."""
    fails: int
    """The number of followers for which the release would fail."""
    groups: list[PreflightGroupStatus] | None
    """The changed followers, grouped by the kind of the objects and the fields that change."""
    failures: list[PreflightFailureStatus] | None
    """The failed followers, grouped by the error message."""
    report: str | None
    """The name of the RolloutReport that has all groups and all names of followers."""
    note: str | None
    """The reason why groups or names are missing in this result, if some are missing."""


@POLICIES.version(
    "v1alpha1",
    columns=[
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Targets", ".status.targets", "integer"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ],
)
class RolloutPolicyV1Alpha1:
    """The steps and checks with which polyver rolls out each new release of some lineages."""

    class Spec:
        targets: list[PolicyTargetSpec]
        """The lineages to which the policy applies."""
        preflight: PreflightLimitsSpec | None
        """The limits that the result of the preflight must not exceed before the first step."""
        steps: list[RolloutStepSpec]
        """The steps, in order. The last step must be {share: 100%}."""
        checks: list[RolloutCheckSpec] | None
        """The checks. Default: {ready: {within: 10m, failing: 0}}."""
        onFailure: Literal["Rollback", "Pause"] | None
        """What polyver does if a check fails: roll the release back, or pause the rollout. Default:
        Rollback.
        """
        windows: list[RolloutWindowSpec] | None
        """The periods in which steps may start. Default: at any time."""
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
    """The rollout of one release: polyver lets more followers use the release in each step."""

    class Spec:
        class PolicyReference:
            name: Name

        target: RolloutTargetSpec
        """The lineage of the release."""
        to: Annotated[str, MinLength(1)]
        """The release to roll out: a version, or the name of a revision."""
        policyRef: PolicyReference | None
        """The RolloutPolicy, in the namespace of the Rollout, whose steps, checks and other rules
        the rollout uses. polyver copies them to the status when the rollout starts.
        """
        preflight: PreflightLimitsSpec | None
        steps: list[RolloutStepSpec] | None
        """The steps, for a rollout without `policyRef`."""
        checks: list[RolloutCheckSpec] | None
        onFailure: Literal["Rollback", "Pause"] | None
        windows: list[RolloutWindowSpec] | None
        notify: list[RolloutNotificationSpec] | None
        paused: bool | None
        """If true, no further step starts. polyver continues to evaluate the checks and to react to
        failed ones.
        """
        approvedStep: Count | None
        """The number of the last approved step: polyver ends the pauses of this step and of all
        earlier ones. 0 approves only the result of the preflight.
        """
        aborted: bool | None
        """If true, polyver ends the rollout, and its followers return to the releases that they
        used before.
        """

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
            """The number of followers that would use the release if all of them might use it."""
            cohort: int
            """The number of followers that may use the release. All other fields except `total`
            count only these followers.
            """
            moved: int
            healthy: int
            failing: int
            held: int
            waiting: int
            """The number of followers that have not tried the release yet."""
            idle: int | None
            """The number of followers that nobody has run with the release yet. Only blueprints can
            be idle.
            """
            running: int | None
            """The number of followers whose first run with the release has not ended yet."""

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
            """The index of the entry in the rule `notify`; the first entry is 0."""
            step: int
            time: Time
            message: str | None

        class Exposure:
            share: float
            labels: list[dict[str, str]] | None

        state: str | None
        """The state: Preflight, Progressing, Paused, Completed, Held, RolledBack, Aborted or
        Superseded.
        """
        step: str | None
        """The number of the current step and the number of all steps, such as 2/4."""
        progress: str | None
        """The number of healthy followers and the number of followers in the cohort, such as 12/40.
        """
        reason: str | None
        """The reason why the rollout is in this state, as a sentence."""
        dependents: Dependents | None
        policy: dict[str, Any] | None
        """The steps, checks and other rules, as they were when the rollout started."""
        preflight: PreflightStatus | None
        """The result of the preflight, with at most 20 groups and 20 failures, and 10 names in
        each.
        """
        checks: list[Check] | None
        """The latest result of each check, in the order of the checks in `policy`."""
        exposure: Exposure | None
        """The share and the labels that select the followers that may use the release."""
        memory: dict[str, Any] | None
        """Internal data of the controller, such as times, with which it continues after a restart.
        """
        notifications: list[Notification] | None
        """The notifications that have not been sent yet."""
        history: list[Entry] | None
        """The states and steps that the rollout has gone through, the oldest first."""
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
    """The complete result of the preflight of a Rollout. It has the same name as the Rollout."""

    preflight: PreflightStatus
    """The complete result: all groups and failures, with the names of all their followers."""
