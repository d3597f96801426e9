"""Validation of pod scheduling and DNS: tolerations, affinities, spreading, name servers."""

from __future__ import annotations

from collections.abc import Iterator

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause, forbidden_field, invalid_field, required, unsupported
from polyver.kube.server.kinds._checks import (
    check_address,
    check_name,
    check_one_of,
    check_selector,
)
from polyver.languages.values.names import (
    dns_subdomain_problems,
    label_key_problems,
    label_value_problems,
)

__all__ = ["check_host_ports", "check_placing", "check_rest"]

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def check_placing(path: str, spec: Object) -> Iterator[Cause]:
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
    """Yield the problems of single affinity terms; their combination is not checked."""
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


def check_rest(path: str, spec: Object) -> Iterator[Cause]:
    """Yield the problems of the other scheduling fields."""
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


def check_host_ports(path: str, spec: Object) -> Iterator[Cause]:
    """Yield a cause for each host port that differs from the container port, with hostNetwork.

    Host ports that are not set are not checked: in templates they are set later.
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
