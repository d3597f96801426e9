"""Rules for Pods and pod templates: fields that the server sets, checks, allowed changes.

The first half of the module checks the fields for scheduling and DNS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause, forbidden_field, invalid_field, required, unsupported
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import (
    amount,
    check_address,
    check_labels,
    check_name,
    check_one_of,
    check_selector,
)
from polyver.kube.server.kinds._containers import (
    check_containers,
    check_images,
    check_init_containers,
)
from polyver.kube.server.kinds._volumes import check_volumes
from polyver.languages.values.names import (
    dns_label_problems,
    dns_subdomain_problems,
    label_key_problems,
    label_value_problems,
)

__all__ = ["PodRules", "check_pod_spec", "template_warnings"]

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _check_placing(path: str, spec: Object) -> Iterator[Cause]:
    """Yield the problems of scheduling and DNS fields, in the order of kube-apiserver."""
    yield from _check_sharing(path, spec)
    yield from _check_affinity(f"{path}.affinity", spec.get("affinity"))
    yield from _check_resolving(path, spec)
    yield from _check_gates(f"{path}.readinessGates", spec.get("readinessGates") or [])
    constraints = spec.get("topologySpreadConstraints") or []
    yield from _check_spreading(f"{path}.topologySpreadConstraints", constraints)
    yield from _check_users(path, spec)


def _check_tolerations(path: str, tolerations: list[Object]) -> Iterator[Cause]:
    for number, toleration in enumerate(tolerations):
        yield from _check_toleration(f"{path}[{number}]", toleration)


def _check_toleration(path: str, toleration: Object) -> Iterator[Cause]:
    key, operator, value, effect = (
        toleration.get(name) or "" for name in ("key", "operator", "value", "effect")
    )
    if key:
        yield from check_name(f"{path}.key", key, label_key_problems)
    if not key and operator != "Exists":
        text = "operator must be Exists when `key` is empty, which means "
        text += '"match all values and all keys"'
        yield invalid_field(f"{path}.operator", operator, text)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid_field(f"{path}.effect", effect, text)
    if operator in ("Equal", ""):
        for problem in label_value_problems(value):
            yield invalid_field(f"{path}.operator", value, problem)
    elif operator == "Exists" and value:
        text = "value must be empty when `operator` is 'Exists'"
        yield invalid_field(f"{path}.operator", value, text)
    elif operator not in ("Exists", "Lt", "Gt"):
        yield unsupported(f"{path}.operator", operator, ["Equal", "Exists"])
    if effect:
        yield from check_one_of(f"{path}.effect", effect, EFFECTS)


def _check_affinity(path: str, affinity: Object | None) -> Iterator[Cause]:
    """Yield the problems of each term of an affinity.

    Terms that contradict each other are no error.
    """
    node = (affinity or {}).get("nodeAffinity") or {}
    wanted = node.get(_REQUIRED)
    if wanted is not None and not wanted.get("nodeSelectorTerms"):
        text = "must have at least one node selector term"
        yield required(f"{path}.nodeAffinity.{_REQUIRED}.nodeSelectorTerms", text)
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = (affinity or {}).get(kind) or {}
        for number, term in enumerate(terms.get(_REQUIRED) or ()):
            yield from _check_term(f"{path}.{kind}.{_REQUIRED}[{number}]", term)
        for number, weighted in enumerate(terms.get(_PREFERRED) or ()):
            item_path = f"{path}.{kind}.{_PREFERRED}[{number}]"
            yield from _check_weight(f"{item_path}.weight", weighted.get("weight", 0))
            yield from _check_term(
                f"{item_path}.podAffinityTerm", weighted.get("podAffinityTerm", {})
            )


def _check_weight(field: str, weight: int) -> Iterator[Cause]:
    if not 1 <= weight <= 100:
        yield invalid_field(field, weight, "must be in the range 1-100")


def _check_term(path: str, term: Object) -> Iterator[Cause]:
    for name in ("labelSelector", "namespaceSelector"):
        yield from check_selector(f"{path}.{name}", term.get(name))
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from check_name(f"{path}.topologyKey", key, label_key_problems)


def _check_spreading(path: str, constraints: list[Object]) -> Iterator[Cause]:
    for number, constraint in enumerate(constraints):
        item_path = f"{path}[{number}]"
        skew, when = constraint.get("maxSkew", 0), constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            yield invalid_field(f"{item_path}.maxSkew", skew, "must be greater than zero")
        if not constraint.get("topologyKey"):
            yield required(f"{item_path}.topologyKey", "can not be empty")
        choices = ("DoNotSchedule", "ScheduleAnyway")
        yield from check_one_of(f"{item_path}.whenUnsatisfiable", when, choices)
        yield from check_selector(f"{item_path}.labelSelector", constraint.get("labelSelector"))


def _check_resolving(path: str, spec: Object) -> Iterator[Cause]:
    """Yield the problems of `dnsPolicy` and `dnsConfig`."""
    config = spec.get("dnsConfig")
    servers = (config or {}).get("nameservers") or []
    if spec.get("dnsPolicy") == "None":
        if config is None:
            text = "must provide `dnsConfig` when `dnsPolicy` is None"
            yield required(f"{path}.dnsConfig", text)
        elif not servers:
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.dnsConfig.nameservers", text)
    if len(servers) > 3:
        text = "must not have more than 3 nameservers"
        yield invalid_field(f"{path}.dnsConfig.nameservers", servers, text)
    for number, server in enumerate(servers):
        yield from check_address(f"{path}.dnsConfig.nameservers[{number}]", server)


def _check_sharing(path: str, spec: Object) -> Iterator[Cause]:
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid_field(f"{path}.shareProcessNamespace", True, text)


def _check_rest(path: str, spec: Object) -> Iterator[Cause]:
    """Yield the problems of tolerations, host aliases, priority class and preemption policy."""
    yield from _check_tolerations(f"{path}.tolerations", spec.get("tolerations") or [])
    for number, alias in enumerate(spec.get("hostAliases") or ()):
        yield from check_address(f"{path}.hostAliases[{number}].ip", alias.get("ip") or "")
    if name := spec.get("priorityClassName"):
        yield from check_name(f"{path}.priorityClassName", name, dns_subdomain_problems)
    if spec.get("preemptionPolicy"):
        choices = ("PreemptLowerPriority", "Never")
        policy = spec["preemptionPolicy"]
        yield from check_one_of(f"{path}.preemptionPolicy", policy, choices)


def _check_gates(path: str, gates: list[Object]) -> Iterator[Cause]:
    for number, gate in enumerate(gates):
        kind = gate.get("conditionType") or ""
        yield from check_name(f"{path}[{number}].conditionType", kind, label_key_problems)


def _check_host_ports(path: str, spec: Object) -> Iterator[Cause]:
    """With `hostNetwork`, yield an error for each host port that is not its container port.

    A missing host port is no error, because it gets its default later.
    """
    for number, container in enumerate(spec.get("containers") or ()):
        for index, port in enumerate(container.get("ports") or ()):
            host, own = port.get("hostPort"), port.get("containerPort")
            if spec.get("hostNetwork") and host and host != own:
                text = "must match `containerPort` when `hostNetwork` is true"
                field = f"{path}.containers[{number}].ports[{index}].hostPort"
                yield invalid_field(field, host, text)


def _check_users(path: str, spec: Object) -> Iterator[Cause]:
    if spec.get("hostUsers") is False:
        for name in ("hostPID", "hostIPC"):
            if spec.get(name):
                shown = name[:1].upper() + name[1:]
                yield forbidden_field(f"{path}.{shown}", "when `hostUsers` is false")


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
    """Rules for writes of Pods.

    All Pods stay pending, because the embedded server has no kubelet.
    """

    status_keeps: tuple[str, ...] | None = ("ownerReferences",)

    def begin(self, obj: Object) -> None:
        spec = dict(obj["spec"])
        # Set the fields that admission plugins of kube-apiserver set, except the token volume.
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
        # kube-apiserver marks the pod for deletion first, and then deletes it immediately because
        # no node runs the pod.
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
    """Add the two default tolerations to a pod, if it has no other tolerations for these taints.

    With them, the pod stays for 300 seconds on a node that is not ready or unreachable.
    """
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
    """Compute the QoS class of a pod: Guaranteed, Burstable or BestEffort."""
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
    """Yield the problems of a pod spec.

    Containers may mount the volumes of the pod spec, and further volumes named in `mounted`.
    """
    volumes, causes = check_volumes(f"{path}.volumes", spec.get("volumes") or [])
    yield from causes
    known = volumes.union(mounted)
    containers, first = spec.get("containers") or [], spec.get("initContainers") or []
    yield from check_containers(f"{path}.containers", containers, known)
    yield from check_init_containers(f"{path}.initContainers", first, containers, known)
    yield from _check_host_ports(path, spec)
    restart = ("Always", "OnFailure", "Never")
    yield from check_one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), restart)
    resolving = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
    yield from check_one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), resolving)
    yield from check_labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    yield from _check_placing(path, spec)
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            yield from check_name(f"{path}.{name}", spec[name], dns_subdomain_problems)
    yield from _check_deadline(f"{path}.activeDeadlineSeconds", spec.get("activeDeadlineSeconds"))
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from check_name(f"{path}.{name}", spec[name], dns_label_problems)
    yield from _check_rest(path, spec)


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
    yield from _check_kept_tolerations(new.get("tolerations") or [], old.get("tolerations") or [])
    if _fixed_part(new) != _fixed_part(old):
        yield forbidden_field("spec", _CHANGEABLE)


def _check_kept_tolerations(new: list[Object], old: list[Object]) -> Iterator[Cause]:
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
        container_path = f"{path}.containers[{number}]"
        yield from _hidden(f"{container_path}.env", container.get("env") or [])
        yield from _doubled(f"{container_path}.ports", container.get("ports") or [])


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
