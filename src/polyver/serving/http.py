"""Answers, and bodies that are whole and bounded, as every application here sees them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from polyver.core import PolyverError

__all__ = ["Gone", "Receive", "Response", "Scope", "Send", "TooLarge", "read_body"]

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


@dataclass(slots=True)
class Response:
    """What is answered; an iterator is sent piece by piece, as the pieces come."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes | AsyncIterator[bytes]


class Gone(Exception):
    """The client went away before it had said everything."""


class TooLarge(PolyverError):
    """A body that is larger than this server takes."""


async def read_body(receive: Receive, *, most: int, most_discarded: int) -> bytes:
    """All that the client sends, if it is not too much."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        part = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(part)
        # What is too much is still taken, up to a point: many clients read no answer before they
        # have sent everything.
        if size <= most:
            parts.append(part)
        elif size > most_discarded:
            break
    if size > most:
        raise TooLarge(f"Request entity too large: limit is {most}")
    return parts[0] if len(parts) == 1 else b"".join(parts)
