"""Rules for Ingresses, IngressClasses, NetworkPolicies, EndpointSlices and Endpoints."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from polyver.core.plain import Object
from polyver.kube.objects.status import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_field,
    required,
    unsupported,
)
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import (
    PROTOCOLS,
    address_of,
    check_address,
    check_endpoint_address,
    check_name,
    check_network,
    check_one_of,
    check_port,
    check_port_or_name,
    check_selector,
    frozen,
    network_of,
)
from polyver.languages.values.names import dns_label_problems, dns_subdomain_problems

__all__ = [
    "EndpointSliceRules",
    "EndpointsRules",
    "IngressClassRules",
    "IngressRules",
    "NetworkPolicyRules",
]

_PATHS = ("Exact", "ImplementationSpecific", "Prefix")


class IngressRules(BuiltinRules):
    """Defaults and checks for writes of Ingresses: backends, rules and TLS."""

    def check_create(self, obj: Object) -> list[Cause]:
        return [*_check_ingress(obj["spec"])]


def _check_ingress(spec: Object) -> Iterator[Cause]:
    rules, default = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and default is None:
        text = "either `defaultBackend` or `rules` must be specified"
        yield invalid_field("spec", None, text)
    if default is not None:
        yield from _check_backend("spec.defaultBackend", default)
    for number, rule in enumerate(rules):
        yield from _check_rule(f"spec.rules[{number}]", rule)
    for number, tls in enumerate(spec.get("tls") or ()):
        for index, host in enumerate(tls.get("hosts") or ()):
            yield from _check_host(f"spec.tls[{number}].hosts[{index}]", host)
    if spec.get("ingressClassName"):
        name = spec["ingressClassName"]
        yield from check_name("spec.ingressClassName", name, dns_subdomain_problems)


def _check_rule(path: str, rule: Object) -> Iterator[Cause]:
    host, http = rule.get("host") or "", rule.get("http")
    if host and address_of(host):
        text = "must be a DNS name, not an IP address"
        yield invalid_field(f"{path}.host", host, text)
    elif host:
        yield from _check_host(f"{path}.host", host)
    if http is None:
        return
    if not http.get("paths"):
        yield required(f"{path}.http.paths")
    for number, one in enumerate(http.get("paths") or ()):
        yield from _check_path(f"{path}.http.paths[{number}]", one)


def _check_host(field: str, host: str) -> Iterator[Cause]:
    if "*" not in host:
        yield from check_name(field, host, dns_subdomain_problems)
    elif not host.startswith("*.") or dns_subdomain_problems(host[2:]):
        text = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS "
        text += "subdomain, which must consist of lower case alphanumeric characters, '-' or '.' "
        text += "and end with an alphanumeric character (e.g. '*.example.com', regex used for "
        pattern = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
        yield invalid_field(field, host, f"{text}validation is '{pattern}')")


def _check_path(path: str, one: Object) -> Iterator[Cause]:
    kind, where = one.get("pathType"), one.get("path") or ""
    if kind is None:
        yield required(f"{path}.pathType", "pathType must be specified")
    elif kind not in _PATHS:
        yield unsupported(f"{path}.pathType", kind, _PATHS)
    elif kind != "ImplementationSpecific" or where:
        yield from _check_where(f"{path}.path", where, exact=kind != "ImplementationSpecific")
    yield from _check_backend(f"{path}.backend", one.get("backend") or {})


def _check_where(field: str, where: str, *, exact: bool) -> Iterator[Cause]:
    if not where.startswith("/"):
        yield invalid_field(field, where, "must be an absolute path")
    if not exact:
        return
    for part in ("//", "/./", "/../", "%2f", "%2F"):
        if part in where:
            yield invalid_field(field, where, f"must not contain '{part}'")
    for end in ("/..", "/."):
        if where.endswith(end):
            yield invalid_field(field, where, f"cannot end with '{end}'")


def _check_backend(path: str, backend: Object) -> Iterator[Cause]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        text = "cannot set both resource and service backends"
        yield invalid_field(path, "", text)
    elif resource is not None:
        for name in ("kind", "name"):
            if not resource.get(name):
                yield required(f"{path}.resource.{name}")
    elif service is None:
        yield invalid_field(path, "", "resource or service backend is required")
    else:
        yield from _check_backend_service(path, service)


def _check_backend_service(path: str, service: Object) -> Iterator[Cause]:
    port = service.get("port") or {}
    name = service.get("name") or ""
    if name:
        yield from check_name(f"{path}.service.name", name, dns_label_problems)
    else:
        yield required(f"{path}.service.name")
    if port.get("name") and port.get("number"):
        yield invalid_field(path, "", "cannot set both port name & port number")
    elif port.get("name"):
        yield from check_port_or_name(f"{path}.service.port.name", port["name"])
    elif port.get("number"):
        yield from check_port(f"{path}.service.port.number", port["number"])
    else:
        yield required(path, "port name or number is required")


class IngressClassRules(BuiltinRules):
    """Defaults and checks for writes of IngressClasses, whose controller is immutable."""

    def check_create(self, obj: Object) -> list[Cause]:
        controller = (obj.get("spec") or {}).get("controller") or ""
        if not controller:
            return [required("spec.controller")]
        host, slash, path = controller.partition("/")
        if not slash or not path or dns_subdomain_problems(host):
            text = 'must be a domain-prefixed path (such as "acme.io/foo")'
            return [invalid_field("spec.controller", controller, text)]
        return [*_check_parameters("spec.parameters", obj["spec"].get("parameters"))]

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        new, before = obj["spec"].get("controller"), old["spec"].get("controller")
        return [*frozen("spec.controller", new, before)]


def _check_parameters(path: str, parameters: Object | None) -> Iterator[Cause]:
    if parameters is None:
        return
    for name in ("kind", "name"):
        if not parameters.get(name):
            yield required(f"{path}.{name}")
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    yield from check_one_of(f"{path}.scope", scope, ("Cluster", "Namespace"))
    if scope == "Namespace" and not namespace:
        yield required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    if scope == "Cluster" and namespace is not None:
        yield forbidden_field(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")


class NetworkPolicyRules(BuiltinRules):
    """Defaults and checks for writes of NetworkPolicies.

    The embedded server does not apply NetworkPolicies.
    """

    def check_create(self, obj: Object) -> list[Cause]:
        return [*_check_policy(obj["spec"]), *_check_networks(obj["spec"])]


def _check_policy(spec: Object) -> Iterator[Cause]:
    yield from check_selector("spec.podSelector", spec.get("podSelector"))
    for side, peers in (("ingress", "from"), ("egress", "to")):
        for number, rule in enumerate(spec.get(side) or ()):
            path = f"spec.{side}[{number}]"
            for index, port in enumerate(rule.get("ports") or ()):
                yield from _check_policy_port(f"{path}.ports[{index}]", port)
            for index, peer in enumerate(rule.get(peers) or ()):
                yield from _check_peer(f"{path}.{peers}[{index}]", peer)
    types = spec.get("policyTypes") or []
    if len(types) > 2:
        text = "may not specify more than two policyTypes"
        yield invalid_field("spec.policyTypes", types, text)
        return
    for number, kind in enumerate(types):
        yield from check_one_of(f"spec.policyTypes[{number}]", kind, ("Ingress", "Egress"))


def _check_networks(spec: Object) -> Iterator[Cause]:
    """Yield an error for each IP block without a CIDR.

    As in kube-apiserver, these errors come after all other errors of a NetworkPolicy.
    """
    for side, peers in (("ingress", "from"), ("egress", "to")):
        for number, rule in enumerate(spec.get(side) or ()):
            for index, peer in enumerate(rule.get(peers) or ()):
                block = peer.get("ipBlock")
                if block is not None and not block.get("cidr"):
                    yield required(f"spec.{side}[{number}].{peers}[{index}].ipBlock.cidr")


def _check_policy_port(path: str, port: Object) -> Iterator[Cause]:
    yield from check_one_of(f"{path}.protocol", port.get("protocol"), ("TCP", "UDP", "SCTP"))
    number, end = port.get("port"), port.get("endPort")
    if number is not None:
        yield from check_port_or_name(f"{path}.port", number)
    if end is None:
        return
    if number is None:
        text = "may not be specified when `port` is not specified"
        yield invalid_field(f"{path}.endPort", end, text)
    elif isinstance(number, str):
        text = "may not be specified when `port` is non-numeric"
        yield invalid_field(f"{path}.endPort", end, text)
    elif end < number:
        yield invalid_field(f"{path}.endPort", end, "must be greater than or equal to `port`")


def _check_peer(path: str, peer: Object) -> Iterator[Cause]:
    block = peer.get("ipBlock")
    for name in ("podSelector", "namespaceSelector"):
        yield from check_selector(f"{path}.{name}", peer.get(name))
    others = any(peer.get(name) is not None for name in ("podSelector", "namespaceSelector"))
    if block is not None:
        yield from _check_block(f"{path}.ipBlock", block)
    if block is not None and others:
        yield forbidden_field(path, "may not specify both ipBlock and another peer")
    if block is None and not others:
        yield required(path, "must specify a peer")


def _check_block(path: str, block: Object) -> Iterator[Cause]:
    network = block.get("cidr") or ""
    if not network:
        return
    yield from check_network(f"{path}.cidr", network)
    outer = network_of(network)
    for number, one in enumerate(block.get("except") or ()):
        field = f"{path}.except[{number}]"
        yield from check_network(field, one)
        inner = network_of(one)
        if outer and inner and not _strictly_inside(inner, outer):
            yield invalid_field(field, one, "must be a strict subset of `cidr`")


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _strictly_inside(inner: _Network, outer: _Network) -> bool:
    if isinstance(inner, ipaddress.IPv4Network) and isinstance(outer, ipaddress.IPv4Network):
        return inner != outer and inner.subnet_of(outer)
    if isinstance(inner, ipaddress.IPv6Network) and isinstance(outer, ipaddress.IPv6Network):
        return inner != outer and inner.subnet_of(outer)
    return False


_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")


class EndpointSliceRules(BuiltinRules):
    """Defaults and checks for writes of EndpointSlices, whose addressType is immutable."""

    def check_create(self, obj: Object) -> list[Cause]:
        kind = obj.get("addressType") or ""
        if not kind:
            return [required("addressType")]
        if kind not in _ADDRESS_TYPES:
            return [unsupported("addressType", kind, _ADDRESS_TYPES)]
        endpoints = obj.get("endpoints") or []
        causes = [*_check_slice_ports(obj.get("ports") or [])]
        for number, endpoint in enumerate(endpoints):
            causes += _check_endpoint(f"endpoints[{number}]", endpoint, kind)
        causes += [
            required(f"endpoints[{number}].addresses")
            for number, endpoint in enumerate(endpoints)
            if not endpoint.get("addresses")
        ]
        return causes

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        if obj.get("addressType") != old.get("addressType"):
            return [*frozen("addressType", obj.get("addressType"), old["addressType"], value=None)]
        return self.check_create(obj)


def _check_slice_ports(ports: list[Object]) -> Iterator[Cause]:
    names: set[str] = set()
    for number, port in enumerate(ports):
        path, name = f"ports[{number}]", port.get("name") or ""
        if name:
            yield from check_name(f"{path}.name", name, dns_label_problems)
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        yield from check_one_of(f"{path}.protocol", port.get("protocol"), PROTOCOLS)


def _check_endpoint(path: str, endpoint: Object, kind: str) -> Iterator[Cause]:
    for number, text in enumerate(endpoint.get("addresses") or ()):
        field = f"{path}.addresses[{number}]"
        if kind == "FQDN":
            yield from check_name(field, text, dns_subdomain_problems)
            continue
        yield from check_address(field, text)
        address = address_of(text)
        if address and f"IPv{address.version}" != kind:
            article = "an IPv4" if kind == "IPv4" else "an IPv6"
            yield invalid_field(f"{path}.addresses", text, f"must be {article} address")
        if address:
            yield from check_endpoint_address(field, text)


class EndpointsRules(BuiltinRules):
    """Defaults and checks for writes of Endpoints, the deprecated predecessor of EndpointSlices."""

    def check_create(self, obj: Object) -> list[Cause]:
        causes: list[Cause] = []
        for number, subset in enumerate(obj.get("subsets") or ()):
            causes += _check_subset(f"subsets[{number}]", subset)
        return causes

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        del obj, old
        return ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]


def _check_subset(path: str, subset: Object) -> Iterator[Cause]:
    addresses = [subset.get(name) or [] for name in ("addresses", "notReadyAddresses")]
    if not any(addresses):
        yield required(path, "must specify `addresses` or `notReadyAddresses`")
    for name, found in zip(("addresses", "notReadyAddresses"), addresses, strict=True):
        for number, address in enumerate(found):
            field, text = f"{path}.{name}[{number}].ip", address.get("ip") or ""
            yield from check_address(field, text)
            if address_of(text) is None:
                yield invalid_field(field, text, "must be a valid IP address")
            yield from check_endpoint_address(field, text)
    ports = subset.get("ports") or []
    for number, port in enumerate(ports):
        yield from _check_endpoint_port(f"{path}.ports[{number}]", port, named=len(ports) > 1)


def _check_endpoint_port(path: str, port: Object, *, named: bool) -> Iterator[Cause]:
    name = port.get("name") or ""
    if named and not name:
        yield required(f"{path}.name")
    elif name:
        yield from check_name(f"{path}.name", name, dns_label_problems)
    yield from check_port(f"{path}.port", port.get("port", 0))
    yield from check_one_of(f"{path}.protocol", port.get("protocol"), PROTOCOLS)
