"""Requests and responses of a client: objects, lists, events and discovery, or an error.

If a response violates the API, the functions raise an error that names the request. Discovery lists
the kinds that a server serves. Current servers return one aggregated document with the kinds of all
groups. Older servers, and some proxies, return a separate document for each group version.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast, get_args

import msgspec
from msgspec import Struct

from polyver.client.types import Discovery, EventType, Listing, WatchEvent
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.codec import prepare
from polyver.kube.objects.kinds import ResourceKind, Subresource
from polyver.kube.objects.status import ApiError

__all__ = [
    "JSON",
    "BadAnswer",
    "ClientRequest",
    "ClientResponse",
    "group_versions",
    "is_aggregated",
    "lines",
    "read_aggregated",
    "read_event",
    "read_listing",
    "read_object",
    "read_resources",
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
    """The ETag of the response that the client already has. The server then sends only changed
    content.
    """
    further: tuple[tuple[str, str], ...] = ()
    """Additional headers of the request, as pairs of name and value."""

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
    """Build the ApiError for an error response, from the Status or the plain text in its body.

    `what` describes the request in the message, if the response does not.
    """
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
    more, remaining = about.get("continue", ""), about.get("remainingItemCount") or 0
    return Listing(items, about.get("resourceVersion", ""), more, remaining)


async def lines(
    pieces: AsyncGenerator[bytes, None], ask: ClientRequest, *, most: int
) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a stream, whose chunks may end in the middle of a line.

    A line may have at most `most` bytes.
    """
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


# Discovery: one aggregated document


class _Named(Struct):
    name: str = ""


class _Gvk(Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Part(Struct, rename="camel"):
    subresource: str
    verbs: tuple[str, ...] = ()
    response_kind: _Gvk | None = None


class _Resource(Struct, rename="camel"):
    resource: str
    scope: str
    verbs: tuple[str, ...] = ()
    response_kind: _Gvk | None = None
    singular_resource: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[_Part, ...] = ()


class _Version(Struct):
    version: str
    resources: tuple[_Resource, ...] = ()
    freshness: str = "Current"


class _Group(Struct):
    metadata: _Named = msgspec.field(default_factory=_Named)
    versions: tuple[_Version, ...] = ()


class _Groups(Struct):
    items: tuple[_Group, ...] = ()


prepare(_Groups)


def is_aggregated(answer: Object) -> bool:
    """Report whether a response is an aggregated discovery document, with all kinds."""
    return answer.get("kind") == "APIGroupDiscoveryList"


def read_aggregated(answer: Object) -> Discovery:
    """Return all kinds of an aggregated discovery document, the most preferred first."""
    groups = msgspec.convert(answer, _Groups).items
    kinds = [kind for group in groups for kind in _kinds(group)]
    return Discovery(tuple(kinds), dict(_stale(groups)))


def _kinds(group: _Group) -> Iterator[ResourceKind]:
    for version in group.versions:
        for resource in version.resources:
            yield _kind(group.metadata.name, version.version, resource)


def _kind(group: str, version: str, resource: _Resource) -> ResourceKind:
    return ResourceKind(
        group=group,
        version=version,
        kind=resource.response_kind.kind if resource.response_kind else "",
        plural=resource.resource,
        singular=resource.singular_resource,
        namespaced=resource.scope == "Namespaced",
        short_names=resource.short_names,
        categories=resource.categories,
        verbs=resource.verbs,
        subresources=tuple(map(_part, resource.subresources)),
    )


def _part(part: _Part) -> Subresource:
    kind = part.response_kind or _Gvk()
    return Subresource(
        name=part.subresource,
        verbs=part.verbs,
        group=kind.group,
        version=kind.version,
        kind=kind.kind,
    )


def _stale(groups: Iterable[_Group]) -> Iterator[tuple[str, str]]:
    for group in groups:
        for version in group.versions:
            if version.freshness == "Stale":
                name = group.metadata.name
                gv = f"{name}/{version.version}" if name else version.version
                yield gv, f"stale GroupVersion discovery: {gv}"


# Discovery: one document for each group version


class _OfGroup(Struct, rename="camel"):
    group_version: str


class _PlainGroup(Struct, rename="camel"):
    versions: tuple[_OfGroup, ...] = ()
    preferred_version: _OfGroup | None = None


class _PlainGroups(Struct):
    versions: tuple[str, ...] = ()
    """The versions of the core group. Only the response of `/api` has this field."""
    groups: tuple[_PlainGroup, ...] = ()


class _PlainResource(Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool = False
    singular_name: str = ""
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class _PlainResources(Struct):
    resources: tuple[_PlainResource, ...] = ()


prepare(_PlainGroups, _PlainResources)


def group_versions(answer: Object) -> list[str]:
    """Return the group versions in a response of `/api` or `/apis`, the preferred ones first."""
    found = msgspec.convert(answer, _PlainGroups)
    return [*found.versions, *(each for group in found.groups for each in _versions(group))]


def _versions(group: _PlainGroup) -> list[str]:
    first = [group.preferred_version] if group.preferred_version else []
    # The preferred version is also in the list of all versions.
    return [*dict.fromkeys(each.group_version for each in [*first, *group.versions])]


def read_resources(group_version: str, answer: Object) -> list[ResourceKind]:
    """Return the kinds of one group version."""
    group, _, version = group_version.rpartition("/")
    resources = msgspec.convert(answer, _PlainResources).resources
    parts: dict[str, list[Subresource]] = {}
    for each in resources:
        plural, _, part = each.name.partition("/")
        if part:
            other = (each.group, each.version, each.kind)
            parts.setdefault(plural, []).append(Subresource(part, each.verbs, *other))
    return [
        ResourceKind(
            group=group,
            version=version,
            kind=each.kind,
            plural=each.name,
            singular=each.singular_name,
            namespaced=each.namespaced,
            short_names=each.short_names,
            categories=each.categories,
            verbs=each.verbs,
            subresources=tuple(parts.get(each.name, ())),
        )
        for each in resources
        if "/" not in each.name
    ]
