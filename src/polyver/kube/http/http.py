"""Answers, and bodies that are whole and bounded, as every application here sees them."""

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
    """What is said before the body of a request."""

    method: str
    path: str
    query: bytes
    headers: Sequence[tuple[bytes, bytes]]
    """Names are in lower case."""


class EncodedResponse(msgspec.Struct, frozen=True, gc=False):
    """What is answered as a whole."""

    status: int
    head: bytes
    """Lines of headers, each with its end; the length, the date and the connection's are added."""
    body: bytes


Quick = Callable[[bytes | bytearray], EncodedResponse | None]
"""Answers a body without waiting for anything, or leaves it to the application (None).

What it leaves may be shown to it again.
"""


AtOnce = Callable[[RequestHeaders], Quick | None]
"""Returns what may answer the body of a request at once, from the request without its body."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(slots=True)
class HttpResponse:
    """What is answered; an iterator is sent piece by piece, as the pieces come."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes | AsyncIterator[bytes]


class ClientDisconnected(Exception):
    """The client went away before it had said everything."""


class BodyTooLarge(PolyverError):
    """A body that is larger than this server takes."""


async def read_body(
    receive: Receive,
    *,
    most: int,
    most_discarded: int,
    keep: Callable[[int], None] = lambda _: None,
) -> bytes:
    """All that the client sends, if it is not too much; `keep` hears of all that is kept of it."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        part = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(part)
        # What is too much is still taken, up to a point: many clients read no answer before they
        # have sent everything.
        if size <= most:
            keep(len(part))
            parts.append(part)
        elif size > most_discarded:
            break
    if size > most:
        raise BodyTooLarge(f"Request entity too large: limit is {most}")
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_into(receive: Receive, body: bytearray, *, most: int, most_discarded: int) -> None:
    """Append all that the client sends, if it is not too much: a body is in memory once."""
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
    """How an answer begins; headers that are added stand back behind its own."""
    headers = [(name.lower().encode(), _in_one_line(value)) for name, value in response.headers]
    names = {name for name, _ in headers}
    more = [(name.encode(), value.encode()) for name, value in added]
    headers += [(name, value) for name, value in more if name not in names]
    if isinstance(response.body, bytes) and response.status not in (204, 304):
        headers.append((b"content-length", b"%d" % len(response.body)))
    return {"type": "http.response.start", "status": response.status, "headers": headers}


def _in_one_line(value: str) -> bytes:
    """A header's value; one that would end its line, such as a warning with a name, is mended."""
    return (value if value.isprintable() else _CONTROL.sub(" ", value)).encode("utf-8", "replace")


_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_duration(text: str) -> float | None:
    """A duration as Go writes it, in seconds; None if it is none.

    >>> read_duration("1m30s"), read_duration("300ms"), read_duration("5")
    (90.0, 0.3, None)
    """
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))
