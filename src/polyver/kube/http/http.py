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
    """A request without its body: method, path, query and headers."""

    method: str
    path: str
    query: bytes
    headers: Sequence[tuple[bytes, bytes]]
    """The headers as pairs of name and value; names are in lower case."""


class EncodedResponse(msgspec.Struct, frozen=True, gc=False):
    """A complete response: the status code, the encoded headers and the body."""

    status: int
    headers: bytes
    """The header lines with their line ends, such as `content-type: text/plain` and CR LF.

    The connection adds the lines for Content-Length, Date and Connection.
    """
    body: bytes


Quick = Callable[[bytes | bytearray], EncodedResponse | None]
"""A function that is called with the body of a request, and answers the request immediately.

If it returns None, the application answers the request.
"""


AtOnce = Callable[[RequestHeaders], Quick | None]
"""A function that is called with the headers of a request that has arrived completely.

It returns the function that may answer the request immediately, or None if the application must
answer the request.
"""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(slots=True)
class HttpResponse:
    """A response to a request. If the body is an iterator, its chunks are sent one by one."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes | AsyncIterator[bytes]


class ClientDisconnected(Exception):
    """Raised if the client disconnects before it has sent the whole request."""


class BodyTooLarge(PolyverError):
    """Raised if the body of a request is larger than the server accepts."""


async def read_body(
    receive: Receive,
    *,
    most: int,
    most_discarded: int,
    keep: Callable[[int], None] = lambda _: None,
) -> bytes:
    """Receive the whole body of a request; raise `BodyTooLarge` above `most` bytes.

    `keep` is called with the number of bytes of each part. Above `most`, parts are received and
    discarded, because many clients read no answer before they have sent the body. Above
    `most_discarded` bytes, the function stops receiving.
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
    """Receive the whole body of a request into a buffer, so that memory holds only one copy of it.

    The limits are those of `read_body`.
    """
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
    """Build the ASGI message that starts a response.

    `added` has further headers. A header of the response with the same name has priority.
    """
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
