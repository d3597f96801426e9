"""Pods and pod templates: fields that the server sets, validation, and allowed changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause, forbidden_field, invalid_field
from polyver.kube.server.kinds._amounts import amount
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import check_labels, check_name, check_one_of
from polyver.kube.server.kinds._containers import (
    check_containers,
    check_images,
    check_init_containers,
)
from polyver.kube.server.kinds._pod_placement import check_host_ports, check_placing, check_rest
from polyver.kube.server.kinds._volumes import check_volumes
from polyver.languages.values.names import dns_label_problems, dns_subdomain_problems

__all__ = ["PodRules", "check_pod_spec", "template_warnings"]

_CHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
_PRIORITIES = {
    "": 0,
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_AWAY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_MOST_SECONDS = 2**31 - 1


class PodRules(BuiltinRules):
    """The rules of pods, which stay pending: nothing runs them here."""

    status_keeps: tuple[str, ...] | None = ("ownerReferences",)

    def begin(self, obj: Object) -> None:
        spec = dict(obj["spec"])
        # The fields that kube-apiserver's own admission sets, except the token volume.
        spec["serviceAccountName"] = spec.get("serviceAccountName") or "default"
        spec["serviceAccount"] = spec["serviceAccountName"]
        priority = _PRIORITIES.get(spec.get("priorityClassName", ""))
        if priority is not None:
            spec.setdefault("priority", priority)
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
        obj["spec"] = _tolerating(spec)
        obj["status"] = {"phase": "Pending", "qosClass": quality(spec)}

    def keep(self, obj: Object, old: Object) -> None:
        names = ("priority", "preemptionPolicy")
        kept = {name: old["spec"][name] for name in names if name in old["spec"]}
        obj["spec"] = _tolerating(kept | obj["spec"])

    def ended(self, obj: Object, now: str) -> Object:
        # kube-apiserver first marks the pod for deletion, then finds that no node runs it.
        self.begin_deletion(obj, now)
        return obj

    def check_create(self, obj: Object) -> list[Cause]:
        causes = self._check(obj)
        if obj["spec"].get("ephemeralContainers"):
            causes.append(forbidden_field("spec.ephemeralContainers", "cannot be set on create"))
        return causes

    def _check(self, obj: Object) -> list[Cause]:
        spec = obj["spec"]
        causes = [*check_pod_spec("spec", spec)]
        for name in ("initContainers", "containers"):
            causes += check_images(f"spec.{name}", spec.get(name) or [])
        return causes

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        return [*self._check(obj), *_check_change(obj["spec"], old["spec"])]

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        return template_warnings("spec", obj["spec"]) if old is None else ()


def _tolerating(spec: Object) -> Object:
    """Add the tolerations that keep a pod for a while on a node that does not respond."""
    given = spec.get("tolerations") or []
    added = [_tolerated(key) for key in _AWAY if not _tolerates(given, key)]
    return spec | {"tolerations": [*given, *added]}


def _tolerates(tolerations: list[Object], key: str) -> bool:
    return any(
        each.get("key", "") in ("", key) and each.get("effect", "") in ("", "NoExecute")
        for each in tolerations
    )


def _tolerated(key: str) -> Object:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def quality(spec: Object) -> str:
    """Return the QoS class of a pod."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    resources = [each.get("resources") or {} for each in containers]
    sides = [
        (_computing(each.get("limits")), _computing(each.get("requests"))) for each in resources
    ]
    if not any(limits or requests for limits, requests in sides):
        return "BestEffort"
    granted = all(len(limits) == 2 and limits == requests for limits, requests in sides)
    return "Guaranteed" if granted else "Burstable"


def _computing(amounts: Object | None) -> Object:
    found = {name: amount((amounts or {}).get(name, "0")) for name in ("cpu", "memory")}
    return {name: value for name, value in found.items() if value > 0}


def check_pod_spec(path: str, spec: Object, *, mounted: Iterable[str] = ()) -> Iterator[Cause]:
    """Yield the problems of a pod spec; containers may mount the volumes in `mounted` too."""
    volumes, causes = check_volumes(f"{path}.volumes", spec.get("volumes") or [])
    yield from causes
    known = volumes.union(mounted)
    containers, first = spec.get("containers") or [], spec.get("initContainers") or []
    yield from check_containers(f"{path}.containers", containers, known)
    yield from check_init_containers(f"{path}.initContainers", first, containers, known)
    yield from check_host_ports(path, spec)
    restart = ("Always", "OnFailure", "Never")
    yield from check_one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), restart)
    resolving = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
    yield from check_one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), resolving)
    yield from check_labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    yield from check_placing(path, spec)
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            yield from check_name(f"{path}.{name}", spec[name], dns_subdomain_problems)
    yield from _check_deadline(f"{path}.activeDeadlineSeconds", spec.get("activeDeadlineSeconds"))
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from check_name(f"{path}.{name}", spec[name], dns_label_problems)
    yield from check_rest(path, spec)


def _check_deadline(field: str, seconds: int | None) -> Iterator[Cause]:
    if seconds is not None and not 1 <= seconds <= _MOST_SECONDS:
        yield invalid_field(field, seconds, f"must be between 1 and {_MOST_SECONDS}, inclusive")


def _check_change(new: Object, old: Object) -> Iterator[Cause]:
    for name in ("containers", "initContainers"):
        if len(new.get(name) or ()) != len(old.get(name) or ()):
            yield forbidden_field(f"spec.{name}", "pod updates may not add or remove containers")
            return
    before, after = old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    field = "spec.activeDeadlineSeconds"
    if before is not None and after is None:
        yield invalid_field(field, None, "must not update from a positive integer to nil value")
    elif before is not None and after is not None and after > before:
        yield invalid_field(field, after, "must be less than or equal to previous value")
        return
    yield from _check_tolerations(new.get("tolerations") or [], old.get("tolerations") or [])
    if _fixed_part(new) != _fixed_part(old):
        yield forbidden_field("spec", _CHANGEABLE)


def _check_tolerations(new: list[Object], old: list[Object]) -> Iterator[Cause]:
    named = [_without_seconds(each) for each in new]
    if any(_without_seconds(each) not in named for each in old):
        text = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_field("spec.tolerations", text)


def _without_seconds(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _fixed_part(spec: Object) -> Object:
    free = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
    fixed = {key: value for key, value in spec.items() if key not in free and value}
    for name in ("containers", "initContainers"):
        fixed[name] = [
            {key: value for key, value in each.items() if key != "image"}
            for each in spec.get(name) or ()
        ]
    if (seconds := spec.get("terminationGracePeriodSeconds")) is not None:
        fixed["terminationGracePeriodSeconds"] = 1 if seconds < 0 else seconds
    return fixed


def template_warnings(path: str, spec: Object) -> Iterator[str]:
    """Yield warnings about valid fields that are probably mistakes."""
    for number, container in enumerate(spec.get("containers") or ()):
        place = f"{path}.containers[{number}]"
        yield from _hidden(f"{place}.env", container.get("env") or [])
        yield from _doubled(f"{place}.ports", container.get("ports") or [])


def _hidden(path: str, variables: list[Object]) -> Iterator[str]:
    seen: set[str] = set()
    for number, variable in enumerate(variables):
        name = variable.get("name", "")
        if name in seen:
            text = f'hides previous definition of "{name}", which may be dropped when using apply'
            yield f"{path}[{number}]: {text}"
        seen.add(name)


def _doubled(path: str, ports: list[Object]) -> Iterator[str]:
    seen: dict[tuple[object, ...], int] = {}
    for number, port in enumerate(ports):
        key = tuple(port.get(name) for name in ("containerPort", "hostPort", "hostIP", "protocol"))
        if key in seen:
            yield f"{path}[{number}]: duplicate port definition with {path}[{seen[key]}]"
        seen.setdefault(key, number)
