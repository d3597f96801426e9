"""Endpoints of function revisions: the address, and the certificates for calls."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from polyver.kube.http.tls import Pair

__all__ = ["Endpoint", "Trust", "is_address"]

# gRPC also accepts other targets, such as paths of sockets. polyver does not allow them. With
# dns:///, the form of endpoints of Deployments, gRPC resolves the name again after failures.
_ADDRESS = re.compile(
    r"(?:dns:///)?(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\]):([1-9][0-9]{0,4})", re.IGNORECASE
)


def is_address(text: str) -> bool:
    """Report whether a string is HOST:PORT or dns:///HOST:PORT.

    >>> is_address("127.0.0.1:9443"), is_address("dns:///fn-1.ns:9443"), is_address("unix:/run/fn")
    (True, True, False)
    """
    found = _ADDRESS.fullmatch(text)
    return found is not None and int(found[1]) < 1 << 16


@dataclass(frozen=True, slots=True)
class Trust:
    """The certificates with which polyver and a function authenticate each other."""

    bundle: bytes
    """The certificates of the trusted CAs, in PEM.

    One of these CAs must have signed the function's certificate.
    """
    pair: Pair = field(repr=False)
    """The client certificate, with its key, with which polyver calls the function."""
    name: str = ""
    """The host name that the function's certificate must have. If empty, the host in the address.
    """


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of one function revision, and the certificates for calls."""

    revision: str
    address: str
    """The address of the function revision: HOST:PORT or dns:///HOST:PORT."""
    trust: Trust | None = None
    """The certificates for calls. None if the function serves without TLS."""
