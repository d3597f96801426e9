"""CronJob, as Kubebuilder's book has it: what was a text in cron syntax becomes five fields."""

from typing import Annotated, Any, Literal

from polyver import apis

cronjob = apis.Kind("CronJob", group="batch.tutorial.kubebuilder.io")


class Common(apis.Fields):
    """What has not changed."""

    startingDeadlineSeconds: Annotated[int, apis.Ge(0)] | None = None
    """How late a run may begin."""
    concurrencyPolicy: Literal["Allow", "Forbid", "Replace"] = "Allow"
    """What happens when the last run is not over yet."""
    suspend: bool | None = None
    jobTemplate: dict[str, Any]
    """The Job that is made for each run."""
    successfulJobsHistoryLimit: Annotated[int, apis.Ge(0)] | None = None
    failedJobsHistoryLimit: Annotated[int, apis.Ge(0)] | None = None


@apis.part
class Status(apis.Fields):
    """What was last seen."""

    active: list[dict[str, Any]] | None = None
    """The Jobs that are running."""
    lastScheduleTime: Annotated[str, apis.Format("date-time")] | None = None


@cronjob.version("v1", storage=True)
class CronJobV1(apis.Fields):
    """Runs Jobs on a schedule."""

    class Spec(Common):
        schedule: str
        """When to run, in cron syntax."""

    metadata: dict[str, Any]
    spec: Spec
    status: Status | None = None


@cronjob.version("v2")
class CronJobV2(apis.Fields):
    """Runs Jobs on a schedule."""

    class Spec(Common):
        class Schedule(apis.Fields):
            """When to run; what is not said may be anything."""

            minute: str | None = None
            hour: str | None = None
            dayOfMonth: str | None = None
            month: str | None = None
            dayOfWeek: str | None = None

        schedule: Schedule

    metadata: dict[str, Any]
    spec: Spec
    status: Status | None = None


@cronjob.edge("v1", "v2")
def v1_v2(e: apis.Rules) -> None:
    """A star is what is not said; `@daily`, which has no fields, is carried as it is."""
    fields = ("minute", "hour", "dayOfMonth", "month", "dayOfWeek")
    into = [f"spec.schedule.{field}" for field in fields]
    e.split("spec.schedule", into=into, separator=" ", absent="*")
