"""Targets of a HorizontalPodAutoscaler: the current and the wanted value of each metric."""

from __future__ import annotations

from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects._printing.cells import at, counted

__all__ = ["targets"]

_PARTS = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def targets(autoscaler: Object) -> str:
    """Return the first two metrics, such as `cpu: 33%/80%`."""
    specs = _metrics(autoscaler)
    if not specs:
        return "<none>"
    statuses = at(autoscaler, "status.currentMetrics") or []
    statuses = [*statuses, *[{}] * len(specs)]
    shown = [_metric(spec, status) for spec, status in zip(specs, statuses, strict=False)]
    return counted(shown, most=2, between=", ")


def _metrics(autoscaler: Object) -> list[Any]:
    """Return the metrics of v2, or the only one of v1."""
    target = at(autoscaler, "spec.targetCPUUtilizationPercentage")
    if target is None:
        return at(autoscaler, "spec.metrics") or []
    cpu = {"name": "cpu", "target": {"averageUtilization": target}}
    return [{"type": "Resource", "resource": cpu}]


def _metric(spec: Object, status: Object) -> str:
    kind = spec.get("type", "")
    part = _PARTS.get(kind)
    if part is None:
        return "<unknown type>"
    target = at(spec, f"{part}.target") or {}
    current = at(status, f"{part}.current") or {}
    if kind.endswith("Resource"):
        return f"{at(spec, f'{part}.name')}: {_resource(current, target)}"
    averaged = target.get("averageValue")
    if averaged is None:
        return f"{current.get('value') or '<unknown>'}/{target.get('value') or 0}"
    average = " (avg)" if kind != "Pods" else ""
    return f"{current.get('averageValue') or '<unknown>'}/{averaged}{average}"


def _resource(current: Object, target: Object) -> str:
    if target.get("averageValue") is not None:
        return f"{current.get('averageValue') or '<unknown>'}/{target['averageValue']}"
    now, wanted = current.get("averageUtilization"), target.get("averageUtilization")
    shown = "<unknown>" if now is None else f"{now}%"
    return f"{shown}/{'<auto>' if wanted is None else f'{wanted}%'}"
