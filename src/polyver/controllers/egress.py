"""The servers to which polyver may send HTTP requests on behalf of users: `--allow-http`.

A user who may write a RolloutPolicy chooses URLs that polyver requests from its own place in the
network. So polyver sends requests only to servers that its administrator has allowed.

This module decides; `polyver.controllers.outgoing` sends the requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

from polyver.core import PolyverError

__all__ = ["AllowedHttp", "HttpNotAllowed", "HttpServer", "InvalidHttpPattern", "InvalidUrl"]

IPAddress = IPv4Address | IPv6Address
_PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_PATTERN: Final = re.compile(r"(?:(https?)://)?(\[[^\]]*\]|[^:/\[\]]+)(?::(\d{1,5}|\*))?")
_LOCAL: Final = re.compile(r"[^.]*|.*\.(svc|local|localhost|internal)")
"""Matches names of servers that a wildcard does not allow: names without a dot, and names that end
with svc, local, localhost or internal. These servers are in the cluster, on the machine, or in its
network.
"""
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
"""IPv6 addresses that a gateway translates to the IPv4 address in their last 32 bits (NAT64)."""


class InvalidHttpPattern(PolyverError):
    """A value of `--allow-http` that is not a pattern."""


class InvalidUrl(PolyverError):
    """A URL to which polyver sends no requests."""


class HttpNotAllowed(PolyverError):
    """A request to a server that `--allow-http` does not allow."""


@dataclass(frozen=True, slots=True)
class HttpServer:
    """The server in a URL: its scheme, host and port.

    >>> str(HttpServer.of("https://Hooks.example/services/secret?token=1"))
    'https://hooks.example:443'
    """

    scheme: str
    host: str
    """A name in lower case, or an IP address in its shortest form."""
    port: int

    @classmethod
    def of(cls, url: str) -> HttpServer:
        """Return the server of a URL; raise InvalidUrl if polyver sends no requests to the URL."""
        if not re.fullmatch(r"[!-\[\]-~]+", url):
            hint = "write other characters in their ASCII form, such as %20 or xn--bcher-kva"
            raise InvalidUrl("a URL has no spaces, backslashes or non-ASCII characters", hint=hint)
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme, _host(parts.hostname or ""), parts.port
        except ValueError:
            scheme, host, port = "", "", None
        if scheme not in _PORTS or not host or port == 0:
            raise InvalidUrl("this is not a URL", hint="write a URL such as http://prometheus:9090")
        if parts.username is not None:
            hint = "everyone who can read the object could read the password"
            raise InvalidUrl("a URL cannot contain a user name", hint=hint)
        return cls(scheme, host, port or _PORTS[scheme])

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """The host and the port, as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def host_header(self) -> str:
        """The header `Host` of requests, which leaves out the default port."""
        return self.authority.removesuffix(f":{_PORTS[self.scheme]}")


def _host(text: str) -> str:
    """Return a host in its normal form; an empty string if it is not a host."""
    name = text.lower().removesuffix(".")
    try:
        return str(ip_address(name.removeprefix("[").removesuffix("]"))) if "%" not in name else ""
    except ValueError:
        return name if len(name) <= 253 and _NAME.fullmatch(name) else ""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A pattern of `--allow-http`: `[SCHEME://]HOST[:PORT]`."""

    scheme: str
    """`http` or `https`; empty for both."""
    host: str
    """A host, `*` for any, or `*.` with a domain for any name below it."""
    port: int | None
    """None for the default port of the scheme, 0 for any port."""

    @property
    def is_wildcard(self) -> bool:
        return self.host.startswith("*")

    def includes(self, server: HttpServer) -> bool:
        if self.scheme not in ("", server.scheme):
            return False
        if self.port != 0 and server.port != (self.port or _PORTS[server.scheme]):
            return False
        return server.host.endswith(self.host[1:]) if self.is_wildcard else server.host == self.host


def _read(text: str) -> _Pattern:
    found = _PATTERN.fullmatch(text)
    host = ""
    if found is not None:
        wildcard = re.fullmatch(r"\*(?:\.(.+))?", found[2])
        domain = _host(found[2] if wildcard is None else wildcard[1] or "")
        host = domain if wildcard is None else f"*.{domain}" if wildcard[1] else "*"
    if found is None or not host or host == "*." or found[3] == "0" or _number(found[3]) > 65535:
        fact = f"{text!r} does not name a server"
        hint = "write [SCHEME://]HOST[:PORT], such as prometheus.monitoring:9090"
        raise InvalidHttpPattern(fact, hint=hint)
    port = None if found[3] is None else _number(found[3])
    return _Pattern(found[1] or "", host, port)


def _number(port: str | None) -> int:
    """Return the number of a port in a pattern; 0 for any port."""
    return 0 if port in (None, "*") else int(port or 0)


@dataclass(frozen=True, slots=True)
class AllowedHttp:
    """The servers that the administrator has allowed; without patterns, none.

    >>> allowed = AllowedHttp.read(["prometheus.monitoring:9090", "https://*.example.com"])
    >>> str(allowed.server("https://hooks.example.com/x"))
    'https://hooks.example.com:443'
    >>> allowed.server("http://hooks.example.com/x")
    Traceback (most recent call last):
    ...
    polyver.controllers.egress.HttpNotAllowed: requests to http://hooks.example.com:80 are not \
allowed; the option --allow-http of polyver allows them
    """

    patterns: tuple[_Pattern, ...] = ()

    @classmethod
    def read(cls, texts: Iterable[str]) -> AllowedHttp:
        """Read the values of `--allow-http`; raise InvalidHttpPattern."""
        return cls(tuple(map(_read, texts)))

    def server(self, url: str) -> HttpServer:
        """Return the server of a URL; raise InvalidUrl or HttpNotAllowed.

        A server that only a wildcard allows can still be refused when its name is resolved.
        """
        server = HttpServer.of(url)
        if not self._is_allowed(server):
            hint = "the option --allow-http of polyver allows them"
            raise HttpNotAllowed(f"requests to {server} are not allowed", hint=hint)
        return server

    def _is_allowed(self, server: HttpServer) -> bool:
        if self._is_named(server):
            return True
        if not any(each.includes(server) for each in self.patterns):
            return False
        try:
            return _is_public(ip_address(server.host))
        except ValueError:
            return not _LOCAL.fullmatch(server.host)

    def _is_named(self, server: HttpServer) -> bool:
        """Return whether a pattern names exactly this host."""
        return any(each.includes(server) for each in self.patterns if not each.is_wildcard)

    def reaches(self, server: HttpServer, address: str) -> bool:
        """Report whether a request to an allowed server may connect to one of its IP addresses.

        A wildcard never allows an address of the machine, the cluster or a private network.
        """
        return self._is_named(server) or _is_public(ip_address(address.partition("%")[0]))


def _is_public(address: IPAddress) -> bool:
    """Report whether an address, or the IPv4 address inside it, is on the public internet."""
    if isinstance(address, IPv6Address):
        if address in _TRANSLATED:
            return _is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return _is_public(inner)
        if address.teredo is not None:
            return False
    return address.is_global and not address.is_multicast
