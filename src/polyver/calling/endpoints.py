"""Where a revision of a function is called, and whom to believe there."""

from __future__ import annotations

from dataclasses import dataclass, field

from polyver.tls import Pair

__all__ = ["Endpoint", "Trust"]


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
