"""The kind of the comparison, converted by functions between the classes of its versions."""

from __future__ import annotations

from typing import Any

from polyver import apis

plan = apis.Kind("Plan", group="bench.example.com")


@apis.part
class Toleration(apis.Fields):
    key: str
    operator: str | None = None
    effect: str | None = None


@apis.part
class Mount(apis.Fields):
    path: str
    readOnly: bool | None = None


@apis.part
class Volume(apis.Fields):
    name: str
    mounts: list[Mount] | None = None
    options: dict[str, str] | None = None


@apis.part
class Window(apis.Fields):
    from_: str
    to: str
    days: list[str] | None = None


@apis.part
class Condition(apis.Fields):
    type: str
    status: str
    message: str | None = None


@apis.part
class Status(apis.Fields):
    conditions: list[Condition] | None = None


@apis.part
class NameValue(apis.Fields):
    name: str
    value: str


@apis.part
class OldContainer(apis.Fields):
    name: str
    cmd: str | None = None
    args: list[str] | None = None
    limits: dict[str, str] | None = None


@apis.part
class Container(apis.Fields):
    name: str
    command: str | None = None
    args: list[str] | None = None
    limits: dict[str, str] | None = None


@apis.part
class When(apis.Fields):
    cron: str


@apis.part
class Template(apis.Fields):
    images: list[str]


class Common(apis.Fields):
    """What all versions have in common."""

    suspend: bool | None = None
    owner: str | None = None
    team: str | None = None
    region: str | None = None
    tier: str | None = None
    description: str | None = None
    priority: int | None = None
    historyLimit: int | None = None
    backoffLimit: int | None = None
    startingDeadline: int | None = None
    nodeSelector: dict[str, str] | None = None
    parameters: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None
    volumes: list[Volume] | None = None
    windows: list[Window] | None = None
    notify: dict[str, list[str]] | None = None
    delays: list[int] | None = None


@apis.part
class SpecV1(Common):
    cronSpec: str
    hostPort: str
    image: str
    policy: str
    replicas: str
    timeoutSeconds: int
    envList: list[NameValue]
    containers: list[OldContainer]


@apis.part
class SpecV2(Common):
    schedule: str
    host: str
    port: int
    images: list[str]
    policy: str
    replicas: int
    timeoutMillis: int
    env: dict[str, str]
    containers: list[Container]


@apis.part
class SpecV3(Common):
    when: When
    host: str
    port: int
    template: Template
    policy: str
    replicas: int
    timeoutMillis: int
    env: dict[str, str]
    containers: list[Container]


@plan.version("v1")
class PlanV1(apis.Fields):
    """A plan."""

    metadata: dict[str, Any]
    spec: SpecV1
    status: Status | None = None


@plan.version("v2", storage=True, hub=True)
class PlanV2(apis.Fields):
    """A plan."""

    metadata: dict[str, Any]
    spec: SpecV2
    status: Status | None = None


@plan.version("v3")
class PlanV3(apis.Fields):
    """A plan."""

    metadata: dict[str, Any]
    spec: SpecV3
    status: Status | None = None


_COMMON = tuple(Common.__annotations__)


def _common(spec: SpecV1 | SpecV2 | SpecV3) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in _COMMON}


@plan.converts("v1", "v2")
def v1_v2(old: PlanV1) -> PlanV2:
    """The first version, as the hub has it."""
    spec = old.spec
    host, _, port = spec.hostPort.partition(":")
    made = SpecV2(
        **_common(spec),
        schedule=spec.cronSpec,
        host=host,
        port=int(port),
        images=[spec.image],
        policy=spec.policy.lower(),
        replicas=int(spec.replicas),
        timeoutMillis=spec.timeoutSeconds * 1000,
        env={each.name: each.value for each in spec.envList},
        containers=[
            Container(name=each.name, command=each.cmd, args=each.args, limits=each.limits)
            for each in spec.containers
        ],
    )
    return PlanV2(metadata=old.metadata, spec=made, status=old.status)


@plan.converts("v2", "v1")
def v2_v1(new: PlanV2) -> PlanV1:
    """The hub, as the first version has it."""
    spec = new.spec
    made = SpecV1(
        **_common(spec),
        cronSpec=spec.schedule,
        hostPort=f"{spec.host}:{spec.port}",
        image=spec.images[0],
        policy=spec.policy.capitalize(),
        replicas=str(spec.replicas),
        timeoutSeconds=spec.timeoutMillis // 1000,
        envList=[NameValue(name=name, value=value) for name, value in spec.env.items()],
        containers=[
            OldContainer(name=each.name, cmd=each.command, args=each.args, limits=each.limits)
            for each in spec.containers
        ],
    )
    return PlanV1(metadata=new.metadata, spec=made, status=new.status)


@plan.converts("v2", "v3")
def v2_v3(old: PlanV2) -> PlanV3:
    """The hub, as the last version has it."""
    spec = old.spec
    made = SpecV3(
        **_common(spec),
        when=When(cron=spec.schedule),
        template=Template(images=spec.images),
        **_kept(spec),
    )
    return PlanV3(metadata=old.metadata, spec=made, status=old.status)


@plan.converts("v3", "v2")
def v3_v2(new: PlanV3) -> PlanV2:
    """The last version, as the hub has it."""
    spec = new.spec
    made = SpecV2(
        **_common(spec), schedule=spec.when.cron, images=spec.template.images, **_kept(spec)
    )
    return PlanV2(metadata=new.metadata, spec=made, status=new.status)


def _kept(spec: SpecV2 | SpecV3) -> dict[str, Any]:
    """What is the same in the last two versions."""
    names = ("host", "port", "policy", "replicas", "timeoutMillis", "env", "containers")
    return {name: getattr(spec, name) for name in names}
