"""CronTab, a kind in two versions."""

from typing import Annotated, Literal

from polyver import apis

crontab = apis.Kind("CronTab", group="stable.example.com", short_names=["ct"])


@crontab.version("v1", deprecated="stable.example.com/v1 CronTab is old; use v2")
class CronTabV1:
    """Runs a command on a schedule."""

    class Spec:
        cronSpec: str
        """When to run, in cron syntax."""
        image: str
        replicas: Annotated[int, apis.Ge(1), apis.Le(10)] = 1

    spec: Spec


@crontab.version(
    "v2",
    storage=True,
    columns=[apis.Column("Schedule", ".spec.schedule")],
    scale=apis.Scale(),
)
class CronTabV2:
    """Runs a command on a schedule."""

    @apis.Rule("self.replicas == 1 || self.policy == 'Allow'", message="only Allow runs several")
    class Spec:
        schedule: Annotated[str, apis.MinLength(1)]
        """When to run, in cron syntax."""
        image: str
        replicas: Annotated[int, apis.Ge(1), apis.Le(10)] = 1
        policy: Literal["Allow", "Forbid"] = "Allow"
        """What happens when the last run is not over yet."""

    class Status:
        replicas: int | None

    spec: Spec
    status: Status | None


@crontab.edge("v1", "v2")
def v1_v2(e: apis.Rules) -> None:
    """The schedule got its name, and where there was no policy, runs were allowed to overlap."""
    e.move("spec.cronSpec", "spec.schedule")
    e.const("spec.policy", "Allow")
