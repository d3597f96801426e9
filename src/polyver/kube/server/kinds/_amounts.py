"""Quantities of resources, and the known resource names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause, invalid_field, required
from polyver.kube.server.kinds._checks import check_name
from polyver.languages.values.names import label_key_problems

__all__ = ["amount", "check_amount", "check_resource_name", "check_resources"]

_SUFFIXES: Mapping[str, Decimal] = {
    **{
        suffix: Decimal(1024) ** power
        for power, suffix in enumerate("Ki Mi Gi Ti Pi Ei".split(), 1)
    },
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("k M G T P E".split(), 1)},
    **{suffix: Decimal(1000) ** -power for power, suffix in enumerate("m u n".split(), 1)},
}
_NOT_NEGATIVE = "must be greater than or equal to 0"
_INTEGER = frozenset(
    """pods services replicationcontrollers resourcequotas secrets configmaps
    persistentvolumeclaims services.nodeports services.loadbalancers""".split()
)
_CONTAINER = ("cpu", "memory", "ephemeral-storage")
STANDARD = frozenset(
    """cpu memory ephemeral-storage requests.cpu requests.memory requests.ephemeral-storage
    limits.cpu limits.memory limits.ephemeral-storage storage requests.storage""".split()
).union(_INTEGER)


def amount(text: str) -> Decimal:
    """Return the value of a valid quantity.

    >>> [str(amount(text)) for text in ("100m", "1Ki", "-2", "1e3")]
    ['0.100', '1024', '-2', '1E+3']
    """
    for length in (2, 1):
        if (suffix := text[-length:]) in _SUFFIXES:
            return Decimal(text[:-length]) * _SUFFIXES[suffix]
    return Decimal(text)


def check_amount(field: str, name: str, quantity: str) -> Iterator[Cause]:
    """Yield a cause for a negative quantity, or a fraction where an integer is needed."""
    if amount(quantity) < 0:
        yield invalid_field(field, quantity, _NOT_NEGATIVE)
    if (name in _INTEGER or is_extended(name)) and amount(quantity) % 1:
        yield invalid_field(field, quantity, "must be an integer")


def check_resource_name(field: str, name: str) -> Iterator[Cause]:
    """Yield a cause unless a resource name is a standard one or has a domain."""
    yield from check_name(field, name, label_key_problems)
    if "/" not in name and name not in STANDARD and not name.startswith("hugepages-"):
        text = "must be a standard resource type or fully qualified"
        yield invalid_field(field, name, text)


def is_extended(name: str) -> bool:
    """Report whether a resource is an extended one, such as devices, which are not shared."""
    domain, slash, _ = name.rpartition("/")
    own = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return bool(slash) and not own and not name.startswith("requests.")


def check_resources(path: str, resources: Object | None) -> Iterator[Cause]:
    """Yield the problems of limits and requests, sorted by name; kube-apiserver has no order."""
    limits = (resources or {}).get("limits") or {}
    requests = (resources or {}).get("requests") or {}
    for name in sorted(limits):
        yield from _check_one(f"{path}.limits[{name}]", name, limits[name])
    for name in sorted(requests):
        yield from _check_one(f"{path}.requests[{name}]", name, requests[name])
        yield from _check_request(path, name, requests[name], limits.get(name))


def _check_one(field: str, name: str, quantity: str) -> Iterator[Cause]:
    yield from check_resource_name(field, name)
    if "/" not in name and name not in _CONTAINER and not name.startswith("hugepages-"):
        yield invalid_field(field, name, "must be a standard resource for containers")
    yield from check_amount(field, name, quantity)


def _check_request(path: str, name: str, wanted: str, limit: str | None) -> Iterator[Cause]:
    shared = "/" not in name and not name.startswith("hugepages-")
    if limit is None:
        if not shared:
            text = "Limit must be set for non overcommitable resources"
            yield required(f"{path}.limits", text)
    elif not shared and amount(wanted) != amount(limit):
        text = f"must be equal to {name} limit of {limit}"
        yield invalid_field(f"{path}.requests", wanted, text)
    elif amount(wanted) > amount(limit):
        text = f"must be less than or equal to {name} limit of {limit}"
        yield invalid_field(f"{path}.requests", wanted, text)
