"""The kind of the comparison, converted by functions on plain data."""

from __future__ import annotations

from typing import Any

from polyver import apis

plan = apis.Kind("Plan", group="bench.example.com")


@plan.version("v1")
class PlanV1(apis.Fields):
    """A plan."""

    spec: dict[str, Any]
    status: dict[str, Any] | None = None


@plan.version("v2", storage=True, hub=True)
class PlanV2(apis.Fields):
    """A plan."""

    spec: dict[str, Any]
    status: dict[str, Any] | None = None


@plan.version("v3")
class PlanV3(apis.Fields):
    """A plan."""

    spec: dict[str, Any]
    status: dict[str, Any] | None = None


@plan.converts("v1", "v2")
def v1_v2(old: dict[str, Any]) -> dict[str, Any]:
    """The first version, as the hub has it."""
    spec = dict(old["spec"])
    host, _, port = spec.pop("hostPort").partition(":")
    spec["schedule"] = spec.pop("cronSpec")
    spec |= {"host": host, "port": int(port), "images": [spec.pop("image")]}
    spec["policy"] = spec["policy"].lower()
    spec["replicas"] = int(spec["replicas"])
    spec["timeoutMillis"] = spec.pop("timeoutSeconds") * 1000
    spec["env"] = {each["name"]: each["value"] for each in spec.pop("envList")}
    spec["containers"] = [_renamed(each, "cmd", "command") for each in spec["containers"]]
    return {**old, "spec": spec}


@plan.converts("v2", "v1")
def v2_v1(new: dict[str, Any]) -> dict[str, Any]:
    """The hub, as the first version has it."""
    spec = dict(new["spec"])
    spec["cronSpec"] = spec.pop("schedule")
    spec["hostPort"] = f"{spec.pop('host')}:{spec.pop('port')}"
    spec["image"] = spec.pop("images")[0]
    spec["policy"] = spec["policy"].capitalize()
    spec["replicas"] = str(spec["replicas"])
    spec["timeoutSeconds"] = spec.pop("timeoutMillis") // 1000
    spec["envList"] = [{"name": name, "value": value} for name, value in spec.pop("env").items()]
    spec["containers"] = [_renamed(each, "command", "cmd") for each in spec["containers"]]
    return {**new, "spec": spec}


@plan.converts("v2", "v3")
def v2_v3(old: dict[str, Any]) -> dict[str, Any]:
    """The hub, as the last version has it."""
    spec = dict(old["spec"])
    spec["when"] = {"cron": spec.pop("schedule")}
    spec["template"] = {"images": spec.pop("images")}
    return {**old, "spec": spec}


@plan.converts("v3", "v2")
def v3_v2(new: dict[str, Any]) -> dict[str, Any]:
    """The last version, as the hub has it."""
    spec = dict(new["spec"])
    spec["schedule"] = spec.pop("when")["cron"]
    spec["images"] = spec.pop("template")["images"]
    return {**new, "spec": spec}


def _renamed(item: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: value for name, value in item.items()}
