"""Validation of HorizontalPodAutoscalers in the versions v1 and v2."""

from __future__ import annotations

from collections.abc import Iterator

from polyver.core.plain import Object
from polyver.kube.objects.rules import path_segment_problems
from polyver.kube.objects.status import Cause, forbidden_field, invalid_field, required, unsupported
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import amount, check_name, check_one_of, not_negative
from polyver.kube.server.kinds._scaling import to_v1, to_v2
from polyver.languages.values.names import dns_label_problems

__all__ = ["AutoscalerRules"]

_NEEDED = "must populate information for the given metric source"


class AutoscalerRules(BuiltinRules):
    """Rules for writes of HorizontalPodAutoscalers: defaults and checks.

    An object in v1 gets the same defaults and checks as the same object in v2.
    """

    def default(self, obj: Object) -> None:
        super().default(obj)
        if self.kind.version == "v1":
            # Set the defaults of v2, and show them in v1.
            obj |= to_v1(to_v2(obj))

    def check_create(self, obj: Object) -> list[Cause]:
        newest = to_v2(obj) if self.kind.version == "v1" else obj
        return [*_check_autoscaler("spec", newest["spec"])]

    def check_status(self, obj: Object, old: Object) -> list[Cause]:
        del old
        return [*not_negative(obj["status"], "status", "currentReplicas", "desiredReplicas")]


def _check_autoscaler(path: str, spec: Object) -> Iterator[Cause]:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and most < least:
        text = "must be greater than or equal to `minReplicas`"
        yield invalid_field(f"{path}.maxReplicas", most, text)
    yield from _check_reference(
        f"{path}.scaleTargetRef", spec.get("scaleTargetRef") or {}, grouped=True
    )
    metrics = spec.get("metrics") or []
    for number, metric in enumerate(metrics):
        yield from _check_metric(f"{path}.metrics[{number}]", metric)
    kinds = {metric.get("type") for metric in metrics}
    if least == 0 and not kinds & {"Object", "External"}:
        text = "must specify at least one Object or External metric to support scaling to zero "
        yield forbidden_field(f"{path}.metrics", f"{text}replicas")
    for name, rules in (spec.get("behavior") or {}).items():
        yield from _check_rules(f"{path}.behavior.{name}", rules or {})
    if least is not None and least < 0:
        yield invalid_field(f"{path}.minReplicas", least, "must be greater than or equal to 0")
    if most == 0:
        yield required(f"{path}.maxReplicas")
    elif most < 0:
        yield invalid_field(f"{path}.maxReplicas", most, "must be greater than or equal to 1")


def _check_reference(path: str, reference: Object, *, grouped: bool) -> Iterator[Cause]:
    for name in ("kind", "name"):
        value = reference.get(name) or ""
        if value:
            yield from check_name(f"{path}.{name}", value, path_segment_problems)
        else:
            yield required(f"{path}.{name}")
    version = reference.get("apiVersion") or ""
    if not grouped:
        return
    if version.count("/") > 1:
        text = f"unexpected GroupVersion string: {version}"
        yield invalid_field(f"{path}.apiVersion", version, text)
    elif "/" not in version:
        text = "apiVersion must specify API group"
        yield invalid_field(f"{path}.apiVersion", version, text)


# In the order in which kube-apiserver checks them.
_SOURCES = {
    "object": "Object",
    "external": "External",
    "pods": "Pods",
    "resource": "Resource",
    "containerResource": "ContainerResource",
}


def _check_metric(path: str, metric: Object) -> Iterator[Cause]:
    kind = metric.get("type") or ""
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    if kind not in _SOURCES.values():
        yield unsupported(f"{path}.type", kind, sorted(_SOURCES.values()))
    given = [name for name in _SOURCES if metric.get(name) is not None]
    wanted = next((name for name, known in _SOURCES.items() if known == kind), "")
    if given and (given[0] == wanted or len(given) == 1):
        yield from _check_source(f"{path}.{given[0]}", given[0], metric[given[0]])
    if wanted and wanted not in given:
        yield required(f"{path}.{wanted}", _NEEDED)
    if len(given) > 1 or (given and given != [wanted] and wanted):
        for name in given:
            if name != wanted:
                text = "must populate the given metric source only"
                yield forbidden_field(f"{path}.{name}", text)


def _check_source(path: str, kind: str, source: Object) -> Iterator[Cause]:
    if kind == "object":
        described = source.get("describedObject") or {}
        yield from _check_reference(f"{path}.describedObject", described, grouped=False)
    if kind in ("object", "external", "pods"):
        name = (source.get("metric") or {}).get("name") or ""
        if name:
            yield from check_name(f"{path}.metric.name", name, path_segment_problems)
        else:
            yield required(f"{path}.metric.name", "must specify a metric name")
    elif not source.get("name"):
        yield required(f"{path}.name", "must specify a resource name")
    if kind == "containerResource":
        yield from _check_container(f"{path}.container", source.get("container") or "")
    target = source.get("target") or {}
    yield from _check_target(f"{path}.target", target)
    yield from _check_one_target(f"{path}.target", kind, target)


def _check_container(field: str, name: str) -> Iterator[Cause]:
    if name:
        yield from check_name(field, name, dns_label_problems)
    else:
        yield required(field, "must specify a container")


def _check_target(path: str, target: Object) -> Iterator[Cause]:
    kind = target.get("type") or ""
    if not kind:
        yield required(f"{path}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        text = "must be either Utilization, Value, or AverageValue"
        yield invalid_field(f"{path}.type", kind, text)
    for name in ("value", "averageValue"):
        if target.get(name) is not None and amount(target[name]) <= 0:
            yield invalid_field(f"{path}.{name}", target[name], "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        yield invalid_field(f"{path}.averageUtilization", share, "must be greater than 0")


# For each source of a metric: the name of the first target value, the message if no target value is
# set, and the message if two target values are set.
_TARGETS = {
    "object": ("value", "must set either a target value or averageValue", ""),
    "external": (
        "value",
        "must set either a target value for metric or a per-pod target",
        "may not set both a target value for metric and a per-pod target",
    ),
    "pods": ("averageValue", "must specify a positive target averageValue", ""),
    "resource": (
        "averageUtilization",
        "must set either a target raw value or a target utilization",
        "may not set both a target raw value and a target utilization",
    ),
}
_TARGETS["containerResource"] = _TARGETS["resource"]


def _check_one_target(path: str, kind: str, target: Object) -> Iterator[Cause]:
    name, none, both = _TARGETS[kind]
    one, average = target.get(name) is not None, target.get("averageValue") is not None
    if not one and not average:
        shown = name if name == "averageUtilization" else "averageValue"
        yield required(f"{path}.{shown}", none)
    if one and average and both:
        shown = "value" if name == "value" else "averageValue"
        yield forbidden_field(f"{path}.{shown}", both)


def _check_rules(path: str, rules: Object) -> Iterator[Cause]:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and not 0 <= window <= 3600:
        text = "must be greater than or equal to zero"
        text = text if window < 0 else "must be less than or equal to 3600"
        yield invalid_field(f"{path}.stabilizationWindowSeconds", window, text)
    choices = ("Disabled", "Max", "Min")
    yield from check_one_of(f"{path}.selectPolicy", rules.get("selectPolicy"), choices)
    policies = rules.get("policies") or []
    if not policies:
        yield required(f"{path}.policies", "must specify at least one Policy")
    for number, policy in enumerate(policies):
        yield from _check_policy(f"{path}.policies[{number}]", policy)


def _check_policy(path: str, policy: Object) -> Iterator[Cause]:
    yield from check_one_of(f"{path}.type", policy.get("type") or "", ("Percent", "Pods"))
    for name in ("value", "periodSeconds"):
        number = policy.get(name) or 0
        if number <= 0:
            yield invalid_field(f"{path}.{name}", number, "must be greater than zero")
    if (policy.get("periodSeconds") or 0) > 1800:
        text = "must be less than or equal to 1800"
        yield invalid_field(f"{path}.periodSeconds", policy["periodSeconds"], text)
