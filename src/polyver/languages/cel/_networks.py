"""CEL values for IP addresses and CIDRs, which are parsed as strictly as by Go's `netip`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyver.languages.cel._values import CelEvaluationError, Opaque, no_overload
from polyver.languages.values.strings import quoted

__all__ = ["CIDR", "IP", "NETWORKS"]

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class IP(Opaque):
    """An IP address."""

    address: _Address
    type_name = "net.IP"

    @classmethod
    def parse(cls, text: str) -> IP:
        """Parse an address.

        An address with a zone (`fe80::1%eth0`) and an IPv4-mapped IPv6 address (`::ffff:1.2.3.4`)
        are errors.
        """
        try:
            found = read_address(text)
        except CelEvaluationError as problem:
            shown = f"IP Address {quoted(text)} parse error during conversion from string"
            raise CelEvaluationError(f"{shown}: {problem}") from problem
        if isinstance(found, ipaddress.IPv6Address):
            if found.scope_id is not None:
                raise CelEvaluationError(
                    f"IP address {quoted(text)} with zone value is not allowed"
                )
            if found.ipv4_mapped is not None:
                raise CelEvaluationError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
        return cls(found)

    def __str__(self) -> str:
        return str(self.address)

    def __len__(self) -> int:
        return 4 if self.address.version == 4 else 16


@dataclass(frozen=True, slots=True)
class CIDR(Opaque):
    """A network in CIDR notation: an IP address, and the length of its prefix in bits."""

    address: _Address
    bits: int
    type_name = "net.CIDR"

    @classmethod
    def parse(cls, text: str) -> CIDR:
        """Parse a CIDR."""
        prefix = "network address parse error during conversion from string"
        try:
            found = _read_prefix(text)
        except CelEvaluationError as problem:
            raise CelEvaluationError(f"{prefix}: {prefix}: {problem}") from problem
        if isinstance(found.address, ipaddress.IPv6Address) and found.address.ipv4_mapped:
            shown = f"IPv4-mapped IPv6 address {quoted(text)} is not allowed"
            raise CelEvaluationError(f"{prefix}: {shown}")
        return found

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def __len__(self) -> int:
        return (self.bits + 7) // 8

    def masked(self) -> CIDR:
        network = ipaddress.ip_network(f"{self.address}/{self.bits}", strict=False)
        return CIDR(network.network_address, self.bits)

    def contains(self, address: _Address, bits: int | None = None) -> bool:
        """Report whether this network contains an address.

        With `bits`, report whether it contains the whole network with this address and prefix
        length.
        """
        if address.version != self.address.version:
            return False
        if bits is not None and bits < self.bits:
            return False
        shift = self.address.max_prefixlen - self.bits
        return int(address) >> shift == int(self.address) >> shift


def read_address(text: str) -> _Address:
    """Parse an address; the errors have Go's messages."""

    def wrong(problem: str) -> CelEvaluationError:
        return CelEvaluationError(f"ParseAddr({quoted(text)}): {problem}")

    first = re.search(r"[.:%]", text)
    if first is None:
        raise wrong("unable to parse IP")
    if first[0] == "%":
        raise wrong("missing IPv6 address")
    if first[0] == ".":
        problem = _problem_of_v4(text)
        if problem:
            raise wrong(problem)
        return ipaddress.IPv4Address(text)
    return _read_v6(text, wrong)


def _problem_of_v4(text: str) -> str:
    """Return the first error in an IPv4 address, or an empty string."""
    value = places = digits = 0
    for at, char in enumerate(text):
        if char in "0123456789":
            if digits == 1 and value == 0:
                return "IPv4 field has octet with leading zero"
            value, digits = value * 10 + int(char), digits + 1
            if value > 255:
                return "IPv4 field has value >255"
        elif char == ".":
            if at == 0 or at == len(text) - 1 or text[at - 1] == ".":
                return f"IPv4 field must have at least one digit (at {quoted(text[at:])})"
            if places == 3:
                return "IPv4 address too long"
            places, value, digits = places + 1, 0, 0
        else:
            return f"unexpected character (at {quoted(text[at:])})"
    return "" if places == 3 else "IPv4 address too short"


def _read_v6(text: str, wrong: Callable[[str], CelEvaluationError]) -> _Address:
    address, percent, zone = text.partition("%")
    if percent and not zone:
        raise wrong("zone must be a non-empty string")
    try:
        return ipaddress.IPv6Address(f"{address}{percent}{zone}")
    except ValueError:
        raise wrong(_problem_of_v6(address)) from None


def _problem_of_v6(text: str) -> str:
    """Return the first error in an IPv6 address, or an empty string."""
    gap = text.startswith("::")
    rest, groups = text[2:] if gap else text, 0
    while groups < 8 and rest:
        number = re.match(r"[0-9a-fA-F]*", rest)
        assert number is not None
        problem = _problem_of_group(rest, number[0], last=gap or groups == 6)
        if problem is not None:
            return problem
        groups += 1
        rest = rest[number.end() + 1 :]
        if rest.startswith(":"):
            if gap:
                return f"multiple :: in address (at {quoted(rest)})"
            gap, rest = True, rest[1:]
    if rest:
        return f"trailing garbage after address (at {quoted(rest)})"
    text = "the :: must expand to at least one field of zeros"
    return text if gap else "address string too short"


def _problem_of_group(rest: str, number: str, *, last: bool) -> str | None:
    """Return the error in a group of an IPv6 address, or directly after it; None if valid.

    `number` has the digits of the group, and `rest` is the address from this group on.
    """
    after = rest[len(number) :]
    place = f"(at {quoted(rest)})"
    if len(number) > 4:
        return f"each group must have 4 or less digits {place}"
    if not number:
        return f"each colon-separated field must have at least one digit {place}"
    if after.startswith("."):
        text = "embedded IPv4 address must replace the final 2 fields of the address"
        return _problem_of_v4(rest) if last else f"{text} {place}"
    if after and after[0] != ":":
        return f"unexpected character, want colon (at {quoted(after)})"
    if after == ":":
        return f"colon must be followed by more characters (at {quoted(after)})"
    return None


def _read_prefix(text: str) -> CIDR:
    def wrong(problem: str) -> CelEvaluationError:
        return CelEvaluationError(f"netip.ParsePrefix({quoted(text)}): {problem}")

    address, slash, bits = text.rpartition("/")
    if not slash:
        raise wrong("no '/'")
    try:
        found = read_address(address)
    except CelEvaluationError as problem:
        raise wrong(str(problem)) from problem
    if isinstance(found, ipaddress.IPv6Address) and found.scope_id is not None:
        raise wrong("IPv6 zones cannot be present in a prefix")
    if not re.fullmatch("0|[1-9][0-9]*", bits):
        raise wrong(f"bad bits after slash: {quoted(bits)}")
    if len(bits) > 4 or int(bits) > found.max_prefixlen:
        raise wrong("prefix length out of range")
    return CIDR(found, int(bits))


def _is(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except CelEvaluationError:
            return False
        return True

    return check


def _is_loopback(found: IP) -> bool:
    return found.address.is_loopback


def _is_link_local(found: IP) -> bool:
    return found.address.is_link_local


def _is_link_local_multicast(found: IP) -> bool:
    if found.address.version == 4:
        return int(found.address) >> 8 == 0xE00000
    return int(found.address) >> 112 & 0xFF0F == 0xFF02


def _is_global_unicast(found: IP) -> bool:
    address = found.address
    if address.is_unspecified or address.is_loopback or address.is_multicast:
        return False
    return not address.is_link_local and str(address) != "255.255.255.255"


def _contains_ip_text(network: CIDR, text: str) -> bool:
    try:
        return network.contains(IP.parse(text).address)
    except CelEvaluationError:
        raise no_overload() from None


def _contains(network: CIDR, other: CIDR) -> bool:
    return network.contains(other.address, other.bits)


NETWORKS: dict[str, Callable[..., Any]] = {
    "string_to_ip": IP.parse,
    "is_ip": _is(IP.parse),
    "ip_is_canonical": lambda text: str(IP.parse(text)) == text,
    "ip_family": lambda found: found.address.version,
    "ip_is_unspecified": lambda found: found.address.is_unspecified,
    "ip_is_loopback": _is_loopback,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_link_local_unicast": _is_link_local,
    "ip_is_global_unicast": _is_global_unicast,
    "string_to_cidr": CIDR.parse,
    "is_cidr": _is(CIDR.parse),
    "cidr_ip": lambda network: IP(network.address),
    "cidr_contains_ip_ip": lambda network, found: network.contains(found.address),
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_cidr": _contains,
    "cidr_contains_cidr_string": lambda network, text: _contains(network, CIDR.parse(text)),
    "cidr_prefix_length": lambda network: network.bits,
    "cidr_masked": lambda network: network.masked(),
}
