"""Requests and responses of a client: objects, lists and events, or an error with its Status.

A response that violates the API is an error that names the request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast, get_args

import msgspec

from polyver.client.types import EventType, Listing, WatchEvent
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = [
    "JSON",
    "BadAnswer",
    "ClientRequest",
    "ClientResponse",
    "lines",
    "read_event",
    "read_listing",
    "read_object",
    "refusal",
]

_decode = msgspec.json.Decoder().decode
JSON = "application/json"
_REASONS = {401: "Unauthorized", 404: "NotFound", 410: "Expired", 429: "TooManyRequests"}
_EVENTS = frozenset(get_args(EventType))
_LONGEST_TEXT = 500


class BadAnswer(PolyverError):
    """A response that violates the API; the error names the request."""


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One request, without the address of the server and without credentials."""

    method: str
    path: str
    query: str = ""
    accept: str = JSON
    media: str = JSON
    body: bytes = b""
    tag: str = ""
    """The ETag of the known content."""
    further: tuple[tuple[str, str], ...] = ()
    """Additional headers."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def headers(self) -> dict[str, str]:
        found = {"accept": self.accept}
        if self.body:
            found["content-type"] = self.media
        if self.tag:
            found["if-none-match"] = self.tag
        return found | dict(self.further)


@dataclass(frozen=True, slots=True)
class ClientResponse:
    """A complete response; the names of headers are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(answer: ClientResponse, *, what: str) -> ApiError:
    """Return the error of a response: its Status, or the plain text of another server."""
    try:
        found: Any = _decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    after = answer.headers.get("retry-after", "")
    headers = {"retry-after": after} if after else {}
    if isinstance(found, dict) and found.get("kind") == "Status":
        error = ApiError.from_status(found | {"code": answer.status})
        error.headers = headers
        return error
    text = answer.body[: 4 * _LONGEST_TEXT].decode(errors="replace").strip()[:_LONGEST_TEXT]
    message = text or f"{what} was answered with {answer.status}"
    return ApiError(answer.status, _REASONS.get(answer.status, ""), message, headers=headers)


def read_object(body: bytes, ask: ClientRequest) -> Object:
    try:
        found: Any = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswer(f"the response is not JSON: {error}", at=str(ask)) from None
    except RecursionError:
        raise BadAnswer("the response is nested too deeply", at=str(ask)) from None
    if not isinstance(found, dict):
        raise BadAnswer("the response is not an object", at=str(ask))
    return found


def read_listing(found: Object, ask: ClientRequest) -> Listing:
    items, about = found.get("items") or [], found.get("metadata") or {}
    if not isinstance(items, list) or not isinstance(about, dict):
        raise BadAnswer("the response is not a list", at=str(ask))
    return Listing(items, about.get("resourceVersion", ""), about.get("continue", ""))


async def lines(
    pieces: AsyncGenerator[bytes, None], ask: ClientRequest, *, most: int
) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a stream, however its chunks are split."""
    begun: list[bytes] = []
    size = 0
    try:
        async for piece in pieces:
            *ended, rest = piece.split(b"\n")
            for end in ended:
                line = b"".join([*begun, end])
                begun, size = [], 0
                if line:
                    yield line
            begun.append(rest)
            size += len(rest)
            if size > most:
                raise BadAnswer(f"an event has more than {most} bytes", at=str(ask))
    finally:
        # Closing ends the watch on the server.
        await pieces.aclose()
    if size:
        yield b"".join(begun)


def read_event(line: bytes, ask: ClientRequest) -> WatchEvent:
    found = read_object(line, replace(ask, method="watch"))
    kind, content = found.get("type"), found.get("object")
    if not isinstance(content, dict):
        raise BadAnswer("an event has no object", at=f"watch {ask.path}")
    if kind == "ERROR":
        raise ApiError.from_status(content)
    if kind not in _EVENTS:
        raise BadAnswer(f"an event has the type {kind!r}", at=f"watch {ask.path}")
    return WatchEvent(cast("EventType", kind), content)
