"""Limits of a client of a cluster, so that no server can block it or fill its memory."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClientLimits"]


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Bounds on time, connections and sizes."""

    connect: float = 10.0
    """Seconds until a connection is established."""
    request: float = 30.0
    """Seconds for a complete request; for a watch, until it begins."""
    silence: float = 300.0
    """Seconds without data after which a watch is considered dead. Watches request a shorter
    timeout from the server, so a live one ends before.
    """
    connections: int = 16
    watches: int = 256
    """The maximum number of watches; each has its own connection."""
    answer: int = 512 * 1024 * 1024
    """Bytes of one response, uncompressed."""
    line: int = 16 * 1024 * 1024
    """Bytes of one event."""
    look: float = 10.0
    """Seconds for which the content of a token or certificate file is cached."""
    plugin: float = 60.0
    """Seconds that a credential plugin may take; it may have to ask a person."""
