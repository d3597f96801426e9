"""Rules for writes of Services: types, ports, and the fields that depend on the type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause, duplicate, forbidden_field, invalid_field, required
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import (
    PROTOCOLS,
    check_address,
    check_endpoint_address,
    check_labels,
    check_name,
    check_network,
    check_one_of,
    check_port,
    check_port_or_name,
    in_structure,
)
from polyver.languages.values.names import dns_label_problems, dns_subdomain_problems

__all__ = ["ServiceRules", "is_headless", "needs_node_ports"]

_MOST_SECONDS = 86400
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def is_headless(spec: Object) -> bool:
    return spec.get("clusterIPs") == ["None"]


def needs_node_ports(spec: Object) -> bool:
    balanced = spec.get("type") == "LoadBalancer"
    return spec.get("type") == "NodePort" or (
        balanced and spec.get("allocateLoadBalancerNodePorts") is not False
    )


class ServiceRules(BuiltinRules):
    """Rules for writes of Services.

    They do not allocate cluster IPs and node ports: `ServiceAddresses` does this after all checks.
    """

    name_problems = staticmethod(dns_label_problems)

    def begin(self, obj: Object) -> None:
        obj["spec"] = _paired(obj["spec"], {})

    def keep(self, obj: Object, old: Object) -> None:
        spec, before = dict(obj["spec"]), old["spec"]
        if _has_address(spec) and _has_address(before) and not spec.get("clusterIP"):
            names = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
            spec |= {name: before[name] for name in names if name in before and not spec.get(name)}
        spec = _paired(spec, before)
        _keep_node_ports(spec, before)
        _drop_what_belongs_to_the_type(spec, before)
        obj["spec"] = spec
        if spec.get("type") != "LoadBalancer":
            obj["status"] = (obj.get("status") or {}) | {"loadBalancer": {}}

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        if obj["spec"].get("externalIPs") and not (old and old["spec"].get("externalIPs")):
            text = "is deprecated and may no longer be implemented in some clusters"
            yield f"spec.externalIPs {text}"

    def check_create(self, obj: Object) -> list[Cause]:
        return _check_all(obj["spec"])

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        return [*_check_address_change(obj["spec"], old["spec"]), *_check_all(obj["spec"])]


def _check_all(spec: Object) -> list[Cause]:
    """Return all problems of a Service.

    As in kube-apiserver, if a cluster IP is malformed, only the problems of cluster IPs are
    returned.
    """
    addresses = [] if is_headless(spec) else spec.get("clusterIPs") or []
    wrong = [
        cause
        for number, address in enumerate(addresses)
        for cause in check_address(f"spec.clusterIPs[{number}]", address)
    ]
    return wrong or [*_check_service(spec)]


def _has_address(spec: Object) -> bool:
    return spec.get("type") != "ExternalName"


def _paired(spec: Object, before: Object) -> Object:
    """Make clusterIP the first item of clusterIPs, if a client set or changed only clusterIP.

    `before` is the spec before the update, or {} for a new Service.
    """
    one, many = spec.get("clusterIP"), spec.get("clusterIPs")
    if one and (not many or (many == before.get("clusterIPs") and one != before.get("clusterIP"))):
        return spec | {"clusterIPs": [one, *(many or [])[1:]]}
    return spec


def _keep_node_ports(spec: Object, before: Object) -> None:
    """Give each port without a node port the node port that this port had before the update.

    A port is identified by its protocol and its number.
    """
    if not (needs_node_ports(spec) and needs_node_ports(before)):
        return
    known = {_port_key(each): each.get("nodePort") for each in before.get("ports") or ()}
    spec["ports"] = [
        each | {"nodePort": known[_port_key(each)]}
        if not each.get("nodePort") and known.get(_port_key(each))
        else each
        for each in spec.get("ports") or ()
    ]


def _port_key(port: Object) -> tuple[object, object]:
    return port.get("protocol"), port.get("port")


def _drop_what_belongs_to_the_type(spec: Object, before: Object) -> None:
    """Remove fields that only the old type of the Service has, unless the update changes them."""
    gone: list[str] = []
    if _has_address(before) and not _has_address(spec):
        gone += ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        gone += ["allocateLoadBalancerNodePorts", "loadBalancerClass"]
    if _outside(before) and not _outside(spec):
        gone.append("externalTrafficPolicy")
    for name in gone:
        if name in spec and spec[name] == before.get(name):
            del spec[name]
    if needs_node_ports(before) and not needs_node_ports(spec):
        old = [each.get("nodePort") for each in before.get("ports") or ()]
        if [each.get("nodePort") for each in spec.get("ports") or ()] == old:
            spec["ports"] = [
                {key: value for key, value in each.items() if key != "nodePort"}
                for each in spec["ports"]
            ]


def _outside(spec: Object) -> bool:
    kind = spec.get("type")
    return kind in ("NodePort", "LoadBalancer") or bool(
        kind == "ClusterIP" and spec.get("externalIPs")
    )


def _check_address_change(new: Object, old: Object) -> Iterator[Cause]:
    if not (_has_address(new) and _has_address(old)):
        return
    before, after = old.get("clusterIPs") or [], new.get("clusterIPs") or []
    if before and not after:
        text = "primary clusterIP can not be unset"
        yield invalid_field("spec.clusterIPs[0]", after or None, text)
    for number, (one, other) in enumerate(zip(before, after, strict=False)):
        if one != other:
            text = "may not change once set"
            yield invalid_field(f"spec.clusterIPs[{number}]", after, text)


def _check_service(spec: Object) -> Iterator[Cause]:
    kind, ports = spec.get("type"), spec.get("ports") or []
    if not ports and not is_headless(spec) and kind != "ExternalName":
        yield required("spec.ports")
    yield from _check_type(spec, kind)
    names: set[str] = set()
    for number, port in enumerate(ports):
        port_path = f"spec.ports[{number}]"
        yield from _check_port(port_path, port, names, named=len(ports) > 1)
    yield from check_labels("spec.selector", spec.get("selector"))
    affinities = ("ClientIP", "None")
    yield from check_one_of("spec.sessionAffinity", spec.get("sessionAffinity"), affinities)
    yield from _check_affinity("spec.sessionAffinityConfig", spec)
    policies = ("PreferDualStack", "RequireDualStack", "SingleStack")
    yield from check_one_of("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), policies)
    for number, address in enumerate(spec.get("externalIPs") or ()):
        field = f"spec.externalIPs[{number}]"
        yield from check_address(field, address)
        yield from check_endpoint_address(field, address)
    yield from check_one_of("spec.type", kind, _TYPES)
    yield from _check_node_ports(kind, ports)
    yield from _check_unique_ports(ports)
    yield from _check_sources(spec)
    yield from _check_balancing(spec)
    yield from _check_traffic(spec)


def _check_affinity(path: str, spec: Object) -> Iterator[Cause]:
    client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    seconds = client.get("timeoutSeconds")
    if seconds is not None and not 0 < seconds <= _MOST_SECONDS:
        text = f"must be greater than 0 and less than {_MOST_SECONDS}"
        yield invalid_field(f"{path}.clientIP.timeoutSeconds", seconds, text)


def _check_balancing(spec: Object) -> Iterator[Cause]:
    """Yield the problems of the fields that only a Service of type LoadBalancer may have."""
    balanced = spec.get("type") == "LoadBalancer"
    for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
        if not balanced and spec.get(name) is not None:
            text = "may only be used when `type` is 'LoadBalancer'"
            yield forbidden_field(f"spec.{name}", text)
    port, local = spec.get("healthCheckNodePort"), spec.get("externalTrafficPolicy") == "Local"
    if port and not (balanced and local):
        text = (
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        )
        yield invalid_field("spec.healthCheckNodePort", port, text)


def _check_sources(spec: Object) -> Iterator[Cause]:
    # In errors of kube-apiserver, the name of this field begins with a capital letter.
    field, ranges = "spec.LoadBalancerSourceRanges", spec.get("loadBalancerSourceRanges") or []
    if ranges and spec.get("type") != "LoadBalancer":
        yield forbidden_field(field, "may only be used when `type` is 'LoadBalancer'")
    for number, network in enumerate(ranges):
        yield from check_network(f"{field}[{number}]", network.strip())


def _check_type(spec: Object, kind: object) -> Iterator[Cause]:
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        text = f"may not be set to 'None' for {kind} services"
        yield invalid_field("spec.clusterIPs[0]", "None", text)
    if kind != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield forbidden_field(f"spec.{name}", "may not be set for ExternalName services")
    name = (spec.get("externalName") or "").removesuffix(".")
    if name:
        yield from check_name("spec.externalName", name, dns_subdomain_problems)
    else:
        yield required("spec.externalName")


def _check_port(path: str, port: Object, names: set[str], *, named: bool) -> Iterator[Cause]:
    name = port.get("name") or ""
    if named and not name:
        yield required(f"{path}.name")
    elif name:
        yield from check_name(f"{path}.name", name, dns_label_problems)
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
    yield from check_port(f"{path}.port", port.get("port", 0))
    yield from check_one_of(f"{path}.protocol", port.get("protocol"), PROTOCOLS)
    yield from check_port_or_name(f"{path}.targetPort", port.get("targetPort", 0))


def _check_node_ports(kind: object, ports: list[Object]) -> Iterator[Cause]:
    given: set[tuple[object, object]] = set()
    for number, port in enumerate(ports):
        field, node = f"spec.ports[{number}].nodePort", port.get("nodePort")
        if node and kind == "ClusterIP":
            yield forbidden_field(field, "may not be used when `type` is 'ClusterIP'")
        if node and (port.get("protocol"), node) in given:
            yield duplicate(field, node)
        given.add((port.get("protocol"), node))


def _check_unique_ports(ports: list[Object]) -> Iterator[Cause]:
    given: set[tuple[object, object]] = set()
    for number, port in enumerate(ports):
        if _port_key(port) in given:
            shown = {"Name": "", "Protocol": port.get("protocol"), "AppProtocol": None}
            shown |= {"Port": port.get("port"), "TargetPort": 0, "NodePort": 0}
            yield in_structure(duplicate(f"spec.ports[{number}]", None), shown)
        given.add(_port_key(port))


def _check_traffic(spec: Object) -> Iterator[Cause]:
    outside, inside = spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy")
    policies = ("Cluster", "Local")
    if outside and not _outside(spec):
        text = "may only be set for externally-accessible services"
        yield invalid_field("spec.externalTrafficPolicy", outside, text)
    elif outside:
        yield from check_one_of("spec.externalTrafficPolicy", outside, policies)
    yield from check_one_of("spec.internalTrafficPolicy", inside, policies)
