"""Checks that many kinds share, with the messages of kube-apiserver.

The second part checks quantities and the resources that containers request.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects.codec import encode_json
from polyver.kube.objects.status import Cause, forbidden_field, invalid_field, required, unsupported
from polyver.languages.values.names import label_key_problems, label_value_problems

__all__ = [
    "IMMUTABLE",
    "amount",
    "check_address",
    "check_amount",
    "check_endpoint_address",
    "check_labels",
    "check_name",
    "check_network",
    "check_one_of",
    "check_port",
    "check_port_name",
    "check_port_or_name",
    "check_resource_name",
    "check_resources",
    "check_selector",
    "check_share",
    "frozen",
    "in_order",
    "in_structure",
    "missing_field",
    "not_negative",
]

IMMUTABLE = "field is immutable"
_PORT = "must be between 1 and 65535, inclusive"
PROTOCOLS = ("SCTP", "TCP", "UDP")


def in_structure(cause: Cause, value: object) -> Cause:
    """In the message of an error, replace `value: null` by `value: ` and `value` as JSON.

    The fields of `value` must have the order in which kube-apiserver prints its Go structure.
    """
    text = encode_json(value).decode()
    return replace(cause, message=cause.message.replace("value: null", f"value: {text}", 1))


def missing_field(field: str, value: object) -> Cause:
    """Build the error for a value that names an object or a field that does not exist."""
    return Cause(field, f"Not found: {encode_json(value).decode()}", "FieldValueNotFound")


def not_negative(obj: Mapping[str, Any], path: str, *names: str) -> Iterator[Cause]:
    """Yield an error for each of the fields `names` that has a negative number."""
    for name in names:
        if (obj.get(name) or 0) < 0:
            yield invalid_field(f"{path}.{name}", obj[name], "must be greater than or equal to 0")


def check_name(field: str, name: str, problems: Callable[[str], list[str]]) -> Iterator[Cause]:
    for problem in problems(name):
        yield invalid_field(field, name, problem)


def check_one_of(field: str, value: object, known: Iterable[str]) -> Iterator[Cause]:
    """Yield an error if a value is not one of the known values. None is no error."""
    if value is not None and value not in (values := list(known)):
        yield unsupported(field, value, values)


def check_port(field: str, port: int) -> Iterator[Cause]:
    if not 1 <= port <= 65535:
        yield invalid_field(field, port, _PORT)


def check_port_name(field: str, name: str) -> Iterator[Cause]:
    for problem in _port_name_problems(name):
        yield invalid_field(field, name, problem)


def _port_name_problems(name: str) -> Iterator[str]:
    if len(name) > 15:
        yield "must be no more than 15 characters"
    if not re.fullmatch("[-a-z0-9]*", name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name.startswith("-") or name.endswith("-"):
        yield "must not begin or end with a hyphen"


def check_port_or_name(field: str, port: object) -> Iterator[Cause]:
    if isinstance(port, int):
        yield from check_port(field, port)
    elif isinstance(port, str):
        yield from check_port_name(field, port)


def check_labels(field: str, labels: Mapping[str, str] | None) -> Iterator[Cause]:
    for key, value in sorted((labels or {}).items()):
        yield from check_name(field, key, label_key_problems)
        yield from check_name(field, value, label_value_problems)


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def check_selector(path: str, selector: Object | None) -> Iterator[Cause]:
    """Yield the problems of a label selector."""
    if not selector:
        return
    yield from check_labels(f"{path}.matchLabels", selector.get("matchLabels"))
    for number, one in enumerate(selector.get("matchExpressions") or ()):
        yield from _check_expression(f"{path}.matchExpressions[{number}]", one)


def _check_expression(path: str, one: Object) -> Iterator[Cause]:
    operator, values = one.get("operator", ""), one.get("values")
    if operator in ("In", "NotIn") and not values:
        text = "must be specified when `operator` is 'In' or 'NotIn'"
        yield required(f"{path}.values", text)
    if operator in ("Exists", "DoesNotExist") and values:
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield forbidden_field(f"{path}.values", text)
    if operator not in _OPERATORS:
        yield invalid_field(f"{path}.operator", operator, "not a valid selector operator")
    yield from check_name(f"{path}.key", one.get("key", ""), label_key_problems)
    for number, value in enumerate(values or ()):
        yield from check_name(f"{path}.values[{number}]", value, label_value_problems)


_PERCENT = re.compile("[0-9]+%")


def check_share(field: str, value: object, *, most: bool = True) -> Iterator[Cause]:
    """Yield the problems of a number, which must not be negative, or of a percentage such as `25%`.

    With `most`, a percentage of more than 100 % is an error.
    """
    if isinstance(value, int) and value < 0:
        yield invalid_field(field, value, "must be greater than or equal to 0")
    if not isinstance(value, str):
        return
    if not _PERCENT.fullmatch(value):
        text = "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
        text += f"'1%',  or '93%', regex used for validation is '{_PERCENT.pattern}')"
        yield invalid_field(field, value, text)
    elif most and int(value[:-1]) > 100:
        yield invalid_field(field, value, "must not be greater than 100%")


def frozen(field: str, new: object, old: object, *, value: object = ...) -> Iterator[Cause]:
    """Yield an error if the immutable field `field` changed from `old` to `new`.

    The error shows `value`, by default the new value. An empty value counts as a missing value.
    """
    if (new or None) != (old or None):
        shown_value = new if value is ... else value
        if isinstance(shown_value, dict):
            yield in_structure(invalid_field(field, None, IMMUTABLE), shown_value)
        else:
            yield invalid_field(field, shown_value, IMMUTABLE)


def check_address(field: str, text: str) -> Iterator[Cause]:
    if address_of(text) is None:
        problem = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        yield invalid_field(field, text, problem)


def check_network(field: str, text: str) -> Iterator[Cause]:
    if network_of(text) is None:
        problem = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        yield invalid_field(field, text, problem)


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def network_of(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


_NOWHERE = (
    ("is_unspecified", "may not be unspecified (0.0.0.0 or ::)"),
    ("is_loopback", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
    ("is_link_local", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
)


def check_endpoint_address(field: str, text: str) -> Iterator[Cause]:
    """Yield a cause for an IP address that cannot belong to another host, such as 127.0.0.1."""
    address = address_of(text)
    for name, problem in _NOWHERE:
        if getattr(address, name, False):
            yield invalid_field(field, text, problem)


def in_order(value: Object, *names: str) -> Object:
    """Return a mapping with only the fields `names`, in this order, for an error message."""
    return {name: value[name] for name in names if name in value}


def selector_shown(selector: Object | None) -> Object | None:
    """Return a label selector with its fields in the order of kube-apiserver's error messages."""
    if selector is None:
        return None
    found = in_order(selector, "matchLabels", "matchExpressions")
    if "matchLabels" in found:
        found["matchLabels"] = dict(sorted(found["matchLabels"].items()))
    if "matchExpressions" in found:
        found["matchExpressions"] = [
            in_order(one, "key", "operator", "values") for one in found["matchExpressions"]
        ]
    return found


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
    """Convert a valid quantity, such as `100m`, to a number.

    >>> [str(amount(text)) for text in ("100m", "1Ki", "-2", "1e3")]
    ['0.100', '1024', '-2', '1E+3']
    """
    for length in (2, 1):
        if (suffix := text[-length:]) in _SUFFIXES:
            return Decimal(text[:-length]) * _SUFFIXES[suffix]
    return Decimal(text)


def check_amount(field: str, name: str, quantity: str) -> Iterator[Cause]:
    """Yield an error for a negative quantity, and for a fraction of a resource such as pods."""
    if amount(quantity) < 0:
        yield invalid_field(field, quantity, _NOT_NEGATIVE)
    if (name in _INTEGER or is_extended(name)) and amount(quantity) % 1:
        yield invalid_field(field, quantity, "must be an integer")


def check_resource_name(field: str, name: str) -> Iterator[Cause]:
    """Yield the problems of a resource name, such as `cpu` or `example.com/gpu`."""
    yield from check_name(field, name, label_key_problems)
    if "/" not in name and name not in STANDARD and not name.startswith("hugepages-"):
        text = "must be a standard resource type or fully qualified"
        yield invalid_field(field, name, text)


def is_extended(name: str) -> bool:
    """Report whether a resource name is an extended resource, such as `example.com/gpu`."""
    domain, slash, _ = name.rpartition("/")
    own = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return bool(slash) and not own and not name.startswith("requests.")


def check_resources(path: str, resources: Object | None) -> Iterator[Cause]:
    """Yield the problems of limits and requests, sorted by resource name.

    kube-apiserver reports the same problems in random order.
    """
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
