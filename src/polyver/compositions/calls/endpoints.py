"""Where a revision of a function is called, and whom to believe there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from polyver.kube.http.tls import Pair

__all__ = ["Endpoint", "Trust", "is_address"]

# gRPC takes other things too, such as paths of sockets, which nobody is to be sent to.
_ADDRESS = re.compile(
    r"(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\]):([1-9][0-9]{0,4})", re.IGNORECASE
)


def is_address(text: str) -> bool:
    """Whether a text is HOST:PORT.

    >>> is_address("127.0.0.1:9443"), is_address("[::1]:9443"), is_address("unix:/run/fn")
    (True, True, False)
    """
    found = _ADDRESS.fullmatch(text)
    return found is not None and int(found[1]) < 1 << 16


@dataclass(frozen=True, slots=True)
class Trust:
    """What both sides of a connection show and believe."""

    bundle: bytes
    """The authorities that may have signed the function's certificate, PEM."""
    pair: Pair = field(repr=False)
    """What is shown to the function."""
    name: str = ""
    """The name in the function's certificate; that of the host if none is given."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One revision at one address."""

    revision: str
    address: str
    """HOST:PORT."""
    trust: Trust | None = None
    """None for a function that serves in plain text."""
