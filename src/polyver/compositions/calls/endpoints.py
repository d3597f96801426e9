"""Endpoints: the address of a function's revision, and the certificates for calls to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from polyver.kube.http.tls import Pair

__all__ = ["Endpoint", "Trust", "is_address"]

# gRPC accepts other targets too, such as socket paths; these are not allowed.
_ADDRESS = re.compile(
    r"(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\]):([1-9][0-9]{0,4})", re.IGNORECASE
)


def is_address(text: str) -> bool:
    """Report whether a string is HOST:PORT.

    >>> is_address("127.0.0.1:9443"), is_address("[::1]:9443"), is_address("unix:/run/fn")
    (True, True, False)
    """
    found = _ADDRESS.fullmatch(text)
    return found is not None and int(found[1]) < 1 << 16


@dataclass(frozen=True, slots=True)
class Trust:
    """Certificates with which both sides of a connection authenticate each other."""

    bundle: bytes
    """Authorities that may have signed the function's certificate, as PEM."""
    pair: Pair = field(repr=False)
    """Client certificate and key that the function sees."""
    name: str = ""
    """Name in the function's certificate; by default that of the host."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One revision at one address."""

    revision: str
    address: str
    """HOST:PORT."""
    trust: Trust | None = None
    """None for a function that serves without TLS."""
