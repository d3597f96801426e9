"""Conversion of HorizontalPodAutoscalers between v2 and v1.

The version v1 has only fields for CPU metrics. In v1, other metrics, the behavior and the
conditions are therefore stored in annotations of the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from polyver.core.plain import Object
from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.codec import encode_json
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.objects.typed_bodies import Undecodable, decode_typed
from polyver.kube.server.kinds._builtin import defaults_of

__all__ = ["AutoscalerConversion", "to_v1", "to_v2"]

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _CURRENT = f"{_PREFIX}metrics", f"{_PREFIX}current-metrics"
_BEHAVIOUR, _CONDITIONS = f"{_PREFIX}behavior", f"{_PREFIX}conditions"
_ANNOTATIONS = (_METRICS, _CURRENT, _BEHAVIOUR, _CONDITIONS)
_SAME = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")

Names = Mapping[str, tuple[str, ...]]
_SELECTED = ("metric", "selector")
_RESOURCE: Names = {
    "name": ("name",),
    "targetAverageUtilization": ("target", "averageUtilization"),
    "targetAverageValue": ("target", "averageValue"),
}
# For each source of a metric: the field names in v1, in the order of v1, each with the path of the
# field in v2 that has the same value.
_SPECS: Mapping[str, Names] = {
    "object": {
        "target": ("describedObject",),
        "metricName": ("metric", "name"),
        "targetValue": ("target", "value"),
        "selector": _SELECTED,
        "averageValue": ("target", "averageValue"),
    },
    "pods": {
        "metricName": ("metric", "name"),
        "targetAverageValue": ("target", "averageValue"),
        "selector": _SELECTED,
    },
    "resource": _RESOURCE,
    "containerResource": {**_RESOURCE, "container": ("container",)},
    "external": {
        "metricName": ("metric", "name"),
        "metricSelector": _SELECTED,
        "targetValue": ("target", "value"),
        "targetAverageValue": ("target", "averageValue"),
    },
}
_STATUSES: Mapping[str, Names] = {
    source: {
        name.replace("targetA", "currentA").replace("targetV", "currentV"): tuple(
            "current" if step == "target" else step for step in path
        )
        for name, path in names.items()
    }
    for source, names in _SPECS.items()
}
# The fields that are always present in v1, with the sources of metrics that have these fields.
_ALWAYS = {"targetValue": ("object",), "currentValue": ("object", "external")}
_ALWAYS |= {"currentAverageValue": ("pods", "resource", "containerResource")}


AUTOSCALERS = ("autoscaling/v2", "autoscaling/v1")


@dataclass(frozen=True, slots=True)
class AutoscalerConversion:
    """Conversion between autoscaling/v2, the storage version, and autoscaling/v1."""

    api_version: str

    async def convert(self, obj: Object, api_version: str) -> Object:
        if obj["apiVersion"] == api_version:
            return obj
        return to_v2(obj) if api_version == AUTOSCALERS[0] else to_v1(obj)

    async def shown(self, obj: Object, *, kept: bool = False) -> Object:
        del kept
        return await self.convert(obj, self.api_version)

    async def stored(self, obj: Object) -> Object:
        return await self.convert(obj, AUTOSCALERS[0])


def to_v1(obj: Object) -> Object:
    """Convert an autoscaler in v2 to v1."""
    spec, status = obj["spec"], obj.get("status") or {}
    metrics, current = spec.get("metrics") or [], status.get("currentMetrics") or []
    annotations = _own(obj)
    if others := [each for each in metrics if _cpu(each, "target") is None]:
        annotations[_METRICS] = _text([_older(each, _SPECS) for each in others])
    if current:
        annotations[_CURRENT] = _text([_older(each, _STATUSES) for each in current])
    if spec.get("behavior") is not None:
        annotations[_BEHAVIOUR] = _text(_internal(spec["behavior"]))
    if status.get("conditions"):
        names = ("type", "status", "lastTransitionTime", "reason", "message")
        conditions = [_in_order(each, names) for each in status["conditions"]]
        annotations[_CONDITIONS] = _text(conditions)
    shown = _with_annotations(obj, annotations) | {"apiVersion": "autoscaling/v1"}
    shown["spec"] = _v1_spec(spec, metrics)
    return shown | {"status": _v1_status(status, current)}


def to_v2(obj: Object) -> Object:
    """Convert an autoscaler in v1 to v2."""
    annotation = (obj["metadata"].get("annotations") or {}).get
    given, before = obj["spec"], obj.get("status") or {}
    spec = {key: value for key, value in given.items() if not key.startswith("targetCPU")}
    metrics = [_newer(each, _SPECS) for each in _read(annotation(_METRICS))]
    if (share := given.get("targetCPUUtilizationPercentage")) is not None:
        target = {"type": "Utilization", "averageUtilization": share}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if metrics:
        spec["metrics"] = metrics
    if behaviour := _external(_read_one(annotation(_BEHAVIOUR))):
        spec["behavior"] = behaviour
    stored = _with_annotations(obj, _own(obj)) | {"apiVersion": "autoscaling/v2", "spec": spec}
    stored["status"] = _v2_status(
        before, _read(annotation(_CURRENT)), _read(annotation(_CONDITIONS))
    )
    return _v2(stored)


def _v2(obj: Object) -> Object:
    """Remove fields that v2 does not have.

    Users may have written them into the annotations in v1.
    """
    identity = {key: obj[key] for key in ("apiVersion", "kind", "metadata") if key in obj}
    rest = {key: value for key, value in obj.items() if key not in identity}
    try:
        read = decode_typed(rest, _shape()).value
    except Undecodable:
        spec = {key: obj["spec"][key] for key in obj["spec"] if key not in ("metrics", "behavior")}
        read = decode_typed({"spec": spec}, _shape()).value
    return defaults_of(_shape())(read | identity)


@cache
def _shape() -> Shape:
    return shape_of("autoscaling", "v2", "HorizontalPodAutoscaler")


def _own(obj: Object) -> dict[str, str]:
    """Return the annotations of an autoscaler, except those that contain fields of v2."""
    annotations = obj["metadata"].get("annotations") or {}
    return {key: value for key, value in annotations.items() if key not in _ANNOTATIONS}


def _with_annotations(obj: Object, annotations: Mapping[str, str]) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    return obj | {"metadata": metadata | ({"annotations": annotations} if annotations else {})}


def _v1_spec(spec: Object, metrics: list[Object]) -> Object:
    older = {key: value for key, value in spec.items() if key not in ("metrics", "behavior")}
    shares = [_cpu(each, "target") for each in metrics]
    share = next((each for each in shares if each is not None), None)
    return older if share is None else older | {"targetCPUUtilizationPercentage": share}


def _v1_status(status: Object, current: list[Object]) -> Object:
    older: Object = {"currentReplicas": 0, "desiredReplicas": 0}
    older |= {key: status[key] for key in _SAME if key in status}
    shares = [_cpu(each, "current") for each in current]
    share = next((each for each in shares if each is not None), None)
    return older if share is None else older | {"currentCPUUtilizationPercentage": share}


def _v2_status(status: Object, current: list[Object], conditions: list[Object]) -> Object:
    newer = {key: status[key] for key in _SAME if key in status}
    share = status.get("currentCPUUtilizationPercentage")
    metrics = [_newer(each, _STATUSES) for each in current]
    if not metrics and share is not None:
        cpu = {"name": "cpu", "current": {"averageUtilization": share}}
        metrics = [{"type": "Resource", "resource": cpu}]
    newer["currentMetrics"] = metrics or None
    return newer | ({"conditions": conditions} if conditions else {})


def _cpu(metric: Object, side: str) -> int | None:
    """Return the CPU utilization in a metric, in percent; None for any other metric.

    `side` selects the value that the metric must reach (`target`) or the one that was measured
    (`current`).
    """
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    share: int | None = (resource.get(side) or {}).get("averageUtilization")
    return share


def _older(metric: Object, known: Mapping[str, Names]) -> Object:
    """Convert a metric from v2 to the field names, and the order of fields, of v1."""
    older: Object = {"type": metric.get("type", "")}
    for source, names in known.items():
        if metric.get(source) is None:
            continue
        found = {name: _dig(metric[source], path) for name, path in names.items()}
        if "target" in found:
            found["target"] = _in_order(found["target"] or {}, ("kind", "name", "apiVersion"))
        older[source] = {
            name: "0" if value is None else value
            for name, value in found.items()
            if value is not None or source in _ALWAYS.get(name, ())
        }
    return older


def _newer(metric: Object, known: Mapping[str, Names]) -> Object:
    """Convert a metric of v1 to the field names of v2."""
    newer: Object = {"type": metric.get("type", "")}
    for source, names in known.items():
        given = metric.get(source)
        if not isinstance(given, dict):
            continue
        inner: Object = {}
        for name, path in names.items():
            absent = name not in given or (given[name] == "0" and source in _ALWAYS.get(name, ()))
            if not absent:
                _put(inner, path, given[name])
        if known is _SPECS:
            inner["target"] = {"type": _kind(inner)} | inner.get("target", {})
        newer[source] = inner
    return newer


def _kind(source: Object) -> str:
    """Determine the type of a target in v2 from the values that the target has."""
    target = source.get("target", {})
    if "averageUtilization" in target:
        return "Utilization"
    return "Value" if "value" in target and "averageValue" not in target else "AverageValue"


def _dig(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _put(holder: Object, path: tuple[str, ...], value: object) -> None:
    for step in path[:-1]:
        holder = holder.setdefault(step, {})
    holder[path[-1]] = value


def _in_order(value: Object, names: tuple[str, ...]) -> Object:
    return {name: value[name] for name in names if name in value}


_SIDES = ("scaleUp", "scaleDown")
_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY = ("type", "value", "periodSeconds")


def _internal(behaviour: Object) -> Object:
    """Convert the behavior of an autoscaler to the form of kube-apiserver's Go structure."""
    return {_upper(side): _internal_rules(behaviour.get(side)) for side in _SIDES}


def _internal_rules(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    found = {_upper(name): rules.get(name) for name in _RULES}
    policies = rules.get("policies")
    found["Policies"] = policies and [
        {_upper(name): each.get(name) for name in _POLICY} for each in policies
    ]
    return found


def _external(value: Any) -> Any:
    """Convert the Go structure to JSON fields: lower-case the first letters and drop nulls."""
    match value:
        case dict():
            return {
                name[:1].lower() + name[1:]: _external(inner)
                for name, inner in value.items()
                if inner is not None
            }
        case list():
            return [_external(each) for each in value]
        case _:
            return value


def _upper(name: str) -> str:
    return name[:1].upper() + name[1:]


def _text(value: object) -> str:
    return encode_json(value).decode()


def _read(text: str | None) -> list[Object]:
    """Return the list that an annotation contains as JSON; an empty list if it is malformed."""
    try:
        found = msgspec.json.decode(text or "[]")
    except msgspec.DecodeError:
        return []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _read_one(text: str | None) -> Object:
    try:
        found = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
