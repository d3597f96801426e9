"""HTTP types and functions that all ASGI applications share: requests, responses, bodies."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from polyver.core import PolyverError

__all__ = [
    "Application",
    "AtOnce",
    "BodyTooLarge",
    "ClientDisconnected",
    "EncodedResponse",
    "HttpResponse",
    "Quick",
    "Receive",
    "RequestHeaders",
    "Scope",
    "Send",
    "read_body",
    "read_duration",
    "read_into",
    "start",
]

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class RequestHeaders(NamedTuple):
    """A request without its body."""

    method: str
    path: str
    query: bytes
    headers: Sequence[tuple[bytes, bytes]]
    """Headers; their names are in lower case."""


class EncodedResponse(msgspec.Struct, frozen=True, gc=False):
    """A complete response."""

    status: int
    headers: bytes
    """Header lines with line ends; the connection adds Content-Length, Date and Connection."""
    body: bytes


Quick = Callable[[bytes | bytearray], EncodedResponse | None]
"""Answers the request with this body immediately, or returns None.

If the result is None, the application gets the request with the same body.
"""


AtOnce = Callable[[RequestHeaders], Quick | None]
"""Returns the function that may answer the request with these headers immediately, or None."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(slots=True)
class HttpResponse:
    """A response; if the body is an iterator, its chunks are sent one by one."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes | AsyncIterator[bytes]


class ClientDisconnected(Exception):
    """The client disconnected before it had sent the whole request."""


class BodyTooLarge(PolyverError):
    """A body that is larger than this server accepts."""


async def read_body(
    receive: Receive,
    *,
    most: int,
    most_discarded: int,
    keep: Callable[[int], None] = lambda _: None,
) -> bytes:
    """Receive the whole body of a request; raise `BodyTooLarge` above `most` bytes.

    `keep` is called with the size of each part that is kept in memory.
    """
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        part = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(part)
        # Many clients read no answer before they have sent the whole body. Therefore a body above
        # the limit is received and discarded, up to the limit `most_discarded`.
        if size <= most:
            keep(len(part))
            parts.append(part)
        elif size > most_discarded:
            break
    if size > most:
        raise BodyTooLarge(f"Request entity too large: limit is {most}")
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_into(receive: Receive, body: bytearray, *, most: int, most_discarded: int) -> None:
    """Receive a body into a buffer, like `read_body`, but with only one copy in memory."""
    size, more = len(body), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        part = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(part)
        if size <= most:
            body += part
        elif size > most_discarded:
            break
        else:
            body.clear()
    if size > most:
        raise BodyTooLarge(f"Request entity too large: limit is {most}")


def start(response: HttpResponse, added: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
    """Build the ASGI start message; headers in `added` do not replace headers of the response."""
    # Control characters in values, such as line ends, become spaces.
    headers = [
        (
            name.lower().encode(),
            (value if value.isprintable() else _CONTROL.sub(" ", value)).encode("utf-8", "replace"),
        )
        for name, value in response.headers
    ]
    names = {name for name, _ in headers}
    more = [(name.encode(), value.encode()) for name, value in added]
    headers += [(name, value) for name, value in more if name not in names]
    if isinstance(response.body, bytes) and response.status not in (204, 304):
        headers.append((b"content-length", b"%d" % len(response.body)))
    return {"type": "http.response.start", "status": response.status, "headers": headers}


_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_duration(text: str) -> float | None:
    """Convert a duration in Go's format to seconds; return None if the text is not valid.

    >>> read_duration("1m30s"), read_duration("300ms"), read_duration("5")
    (90.0, 0.3, None)
    """
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))
