"""What a client of a cluster never exceeds, so that no server can hold it up or fill its memory."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClientLimits"]


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Bounds on time, connections and sizes."""

    connect: float = 10.0
    """Seconds until a connection stands."""
    request: float = 30.0
    """Seconds for a request with all that belongs to it; for a watch, until it begins."""
    silence: float = 300.0
    """Seconds in which a watch may say nothing. It is asked to end before that, so that one that
    outlasts them has lost its server."""
    connections: int = 16
    watches: int = 256
    """Each has a connection of its own."""
    answer: int = 512 * 1024 * 1024
    """Bytes of one answer, unpacked."""
    line: int = 16 * 1024 * 1024
    """Bytes of one event."""
    look: float = 10.0
    """Seconds for which the content of a token or certificate file is taken for granted."""
    plugin: float = 60.0
    """Seconds that a program may take that tells who we are; it may have to ask a person."""
