"""Requests of the pipeline: parsing of paths, verbs and media types, independent of sockets.

The path of a request states the group, version, resource, namespace, name and subresource. The
method determines the verb. Media types state the format of the request body, and the formats that
the client accepts for the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol

from polyver.kube.http.http import HttpResponse
from polyver.kube.objects.status import ApiError
from polyver.kube.server.admission import User

__all__ = [
    "JSON",
    "PROTOBUF",
    "YAML",
    "ApiPath",
    "Handler",
    "HttpRequest",
    "HttpResponse",
    "ResponseFormat",
    "User",
    "body_type",
    "choose_form",
    "parse_api_path",
]


@dataclass(slots=True)
class HttpRequest:
    """An HTTP request with its whole body, as the request pipeline gets it."""

    method: str
    path: str
    """The decoded path without the query."""
    query: str
    headers: Mapping[str, str]
    """Headers by their names in lower case."""
    body: bytes
    user: User
    remote: str = ""
    own: bool = False
    """True for requests of this process itself, which are not counted as requests of a client."""


class Handler(Protocol):
    """An object that answers requests: the request pipeline, or a wrapper around it."""

    async def handle(self, request: HttpRequest) -> HttpResponse: ...


_PARTS_OF_NAMESPACES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class ApiPath:
    """The parts of an API path; a part that the path does not have is an empty string."""

    group: str
    version: str
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    old_watch: bool = False
    """True for the deprecated paths that begin a watch, such as /api/v1/watch/pods."""
    rest: bool = False
    """True if the path has too many segments for an API path."""


@lru_cache(maxsize=64)  # each path is read twice: to answer the request, and to count it
def parse_api_path(path: str) -> ApiPath | None:
    """Parse a path of a group version, such as /apis/apps/v1/deployments; None for other paths.

    >>> parse_api_path("/api/v1/namespaces/a/configmaps/b").name
    'b'
    """
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 1:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 2:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    old_watch = rest[:1] == ["watch"]
    rest = rest[1:] if old_watch else rest
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in _PARTS_OF_NAMESPACES:
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource = [*rest[:3], "", "", ""][:3]
    return ApiPath(group, version, resource, namespace, name, subresource, old_watch, len(rest) > 3)


VERBS = {
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
    "GET": "get",
    "HEAD": "get",
}


def verb_of(method: str, path: ApiPath, *, watch: bool) -> str:
    """Return the verb of a request, such as list or watch, for authorization."""
    verb = VERBS.get(method, "")
    if verb == "get" and (watch or path.old_watch):
        return "watch"
    if not path.name:
        return {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    return verb


JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_SERVED = (JSON, YAML)
# The media types that errors list. kube-apiserver accepts all of them for bodies. In errors about
# the Accept header, it lists the same types, even if the kind has no answer in such a format.
_KNOWN = (JSON, YAML, PROTOBUF)
_META_VERSIONS = ("v1", "v1beta1")
_OF_OBJECTS = frozenset(
    (kind, "meta.k8s.io", version)
    for kind in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
    for version in _META_VERSIONS
)
_OF_DISCOVERY = frozenset({("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")})
_FORMS = {"objects": _OF_OBJECTS, "discovery": _OF_DISCOVERY, "documents": frozenset[Any]()}


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """The format of an answer: JSON or YAML; and whole objects, their metadata, or a Table."""

    media: str = JSON
    kind: str = ""
    """The kind of the answer, if the client requests another kind than that of the resource.

    The value is "" (the client gets the whole objects), Table, PartialObjectMetadata,
    PartialObjectMetadataList or APIGroupDiscoveryList.
    """
    version: str = ""

    @property
    def api_version(self) -> str:
        """The API version of the answer if it is a Table or a PartialObjectMetadata."""
        return f"meta.k8s.io/{self.version}"


PLAIN = ResponseFormat()


@lru_cache(maxsize=256)
def choose_form(
    accept: str,
    *,
    of: Literal["objects", "discovery", "documents"] = "objects",
    custom: bool = True,
) -> ResponseFormat:
    """Choose the first format in the header Accept that the server has for an answer.

    `of` states what the answer contains. `custom` is True if the kind is a custom kind.
    """
    if not accept:
        return PLAIN
    for clause in _by_weight(accept):
        form = _form(clause, _FORMS[of])
        if form is not None:
            return form
    raise _not_acceptable(custom=custom)


def error_form(accept: str) -> ResponseFormat:
    """Choose the format of an error: YAML if the client requests it first, otherwise JSON."""
    try:
        form = choose_form(accept)
    except ApiError:
        return PLAIN
    return ResponseFormat(form.media)


def _by_weight(accept: str) -> list[str]:
    clauses = [clause.strip() for clause in accept.split(",")]
    return sorted(clauses, key=lambda clause: -_weight(clause))


def _weight(clause: str) -> float:
    for parameter in clause.split(";")[1:]:
        name, _, value = parameter.strip().partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _form(clause: str, forms: frozenset[tuple[str, str, str]]) -> ResponseFormat | None:
    media, *parameters = (part.strip() for part in clause.split(";"))
    named = dict(_pair(parameter) for parameter in parameters)
    wildcard = media in ("*/*", "application/*")
    if not wildcard and media not in _SERVED:
        return None
    media = JSON if wildcard else media
    if "as" not in named:
        return ResponseFormat(media)
    wanted = named["as"], named.get("g", ""), named.get("v", "")
    return ResponseFormat(media, wanted[0], wanted[2]) if wanted in forms else None


def _pair(parameter: str) -> tuple[str, str]:
    name, _, value = parameter.partition("=")
    return name.strip(), value.strip()


def _not_acceptable(*, custom: bool) -> ApiError:
    if custom:
        message = f"only the following media types are accepted: {', '.join(_KNOWN)}"
        return ApiError(406, "NotAcceptable", message)
    available = ", ".join([*_KNOWN, f"{JSON};stream=watch", f"{PROTOBUF};stream=watch"])
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return ApiError(406, "NotAcceptable", message, details={})


def body_type(header: str) -> str:
    """Return the media type of a body; the default is JSON."""
    media = header.partition(";")[0].strip().lower()
    if not media:
        return JSON
    if media not in (JSON, YAML, PROTOBUF):
        raise ApiError(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: "
            f"{JSON}, {YAML}, {PROTOBUF}",
        )
    return media
