"""Allocation of cluster IPs and node ports to Services. Nothing listens on these addresses.

Each address and each port belongs to one Service only. Addresses and ports are allocated after all
other checks of a Service. The stored Services show which addresses are in use. So when a Service is
deleted, its address is free again.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError, internal, invalid, invalid_field
from polyver.kube.server.admission import AdmissionRequest
from polyver.kube.server.call import ServerContext
from polyver.kube.server.kinds._checks import address_of
from polyver.kube.server.kinds._services import is_headless, needs_node_ports

__all__ = ["ServiceAddresses"]

NETWORK = ipaddress.ip_network("10.0.0.0/16")
_FIRST_PORT, _LAST_PORT = 30000, 32767
_RANGE = f"The range of valid ports is {_FIRST_PORT}-{_LAST_PORT}"


@dataclass(frozen=True, slots=True)
class _Pool:
    """A range of IP addresses or of ports, from which each Service gets values of its own."""

    name: str
    numbers: range
    written: Callable[[int], str]

    def pick(self, taken: set[str]) -> str | None:
        """Return a value that is not in `taken`; None if all are taken.

        The search begins at a random value, so that clients cannot rely on the order of the values.
        """
        start = secrets.randbelow(len(self.numbers))
        for step in range(len(self.numbers)):
            found = self.written(self.numbers[(start + step) % len(self.numbers)])
            if found not in taken:
                return found
        return None


# The first address belongs to the Service `kubernetes` in the namespace `default`.
_ADDRESSES = _Pool("an IP", range(2, NETWORK.num_addresses - 1), lambda at: str(NETWORK[at]))
_PORTS = _Pool("a nodePort", range(_FIRST_PORT, _LAST_PORT + 1), str)


class ServiceAddresses:
    """The admission link that allocates the cluster IPs and node ports that a Service does not set.

    It refuses a Service that sets an address or a port of another Service.
    """

    def __init__(self, server: ServerContext, services: ResourceKind) -> None:
        self._server = server
        self._kind = services
        # Values that this object has allocated. The Services with these values may not be stored
        # yet. The set is cleared when no other value is free.
        self._given: set[str] = set()

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        return operation in ("CREATE", "UPDATE") and kind.resource == self._kind.resource

    async def mutate(self, review: AdmissionRequest) -> None:
        """Do nothing: addresses are allocated after all checks, in `validate`."""

    async def validate(self, review: AdmissionRequest) -> None:
        obj = review.object
        if obj is None or review.subresource:
            return
        spec = dict(obj["spec"])
        if spec.get("type") != "ExternalName":
            _set_families(spec, review)
            if not is_headless(spec):
                self._set_address(spec, review)
        if needs_node_ports(spec):
            self._set_ports(spec, review)
        obj["spec"] = spec

    def _set_address(self, spec: Object, review: AdmissionRequest) -> None:
        wanted = spec.get("clusterIP") or ""
        mine = ((review.old or {}).get("spec") or {}).get("clusterIP")
        if wanted and wanted == mine:
            return
        taken = {each.get("clusterIP", "") for each in self._others(review)}
        if wanted:
            self._check_address(review, wanted, taken)
        else:
            wanted = self._pick(taken, _ADDRESSES, review)
        spec |= {"clusterIP": wanted, "clusterIPs": [wanted]}

    def _check_address(self, review: AdmissionRequest, wanted: str, taken: set[str]) -> None:
        address = address_of(wanted)
        problem = ""
        if address not in NETWORK:
            problem = "the provided network does not match the current range"
        elif wanted in taken:
            problem = "provided IP is already allocated"
        if problem:
            text = f"failed to allocate IP {wanted}: {problem}"
            raise _refused(review, "spec.clusterIPs", [wanted], text)

    def _set_ports(self, spec: Object, review: AdmissionRequest) -> None:
        before = ((review.old or {}).get("spec") or {}).get("ports") or []
        mine = {each.get("nodePort") for each in before}
        taken = {str(port.get("nodePort")) for port in _ports(self._others(review))}
        ports = [dict(port) for port in spec.get("ports") or ()]
        for number, port in enumerate(ports):
            wanted = port.get("nodePort")
            if not wanted:
                port["nodePort"] = int(self._pick(taken, _PORTS, review))
            elif wanted not in mine:
                field = f"spec.ports[{number}].nodePort"
                _check_node_port(review, field, wanted, taken)
        spec["ports"] = ports

    def _pick(self, taken: set[str], pool: _Pool, review: AdmissionRequest) -> str:
        found = pool.pick(taken | self._given)
        if found is None:
            self._given.clear()
            found = pool.pick(taken)
        if found is None:
            raise internal(f"failed to allocate {pool.name}: range is full")
        taken.add(found)
        if not review.dry_run:
            self._given.add(found)
        return found

    def _others(self, review: AdmissionRequest) -> Iterator[Object]:
        """Yield the specs of all stored Services except the Service in the request."""
        own = (review.namespace, review.name)
        for entry in self._server.store.page(f"/{self._kind.group}/{self._kind.plural}/").entries:
            service: Object = msgspec.json.decode(entry.value)
            metadata = service["metadata"]
            if (metadata.get("namespace", ""), metadata.get("name", "")) != own:
                yield service.get("spec") or {}


def _set_families(spec: Object, review: AdmissionRequest) -> None:
    """Set the IP families of a Service.

    The cluster supports only IPv4. However, a headless Service without a selector may have the
    families IPv4 and IPv6.
    """
    if not is_headless(spec):
        for number, family in enumerate(spec.get("ipFamilies") or ()):
            if family != "IPv4":
                text = "not configured on this cluster"
                raise _refused(review, f"spec.ipFamilies[{number}]", family, text)
        if spec.get("ipFamilyPolicy") == "RequireDualStack":
            text = "this cluster is not configured for dual-stack services"
            raise _refused(review, "spec.ipFamilyPolicy", "RequireDualStack", text)
    alone = is_headless(spec) and not spec.get("selector")
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if alone else "SingleStack")
    both = spec["ipFamilyPolicy"] == "RequireDualStack" and is_headless(spec)
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4", "IPv6"] if both else ["IPv4"]


def _ports(specs: Iterable[Object]) -> Iterator[Object]:
    for spec in specs:
        yield from spec.get("ports") or ()


def _check_node_port(review: AdmissionRequest, field: str, wanted: int, taken: set[str]) -> None:
    if not _FIRST_PORT <= wanted <= _LAST_PORT:
        text = f"provided port is not in the valid range. {_RANGE}"
        raise _refused(review, field, wanted, text)
    if str(wanted) in taken:
        raise _refused(review, field, wanted, "provided port is already allocated")


def _refused(review: AdmissionRequest, field: str, value: object, text: str) -> ApiError:
    return invalid(review.kind, review.name, [invalid_field(field, value, text)])
