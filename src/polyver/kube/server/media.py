"""Media types: the format that a client accepts, and the format of a body."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from polyver.kube.objects.status import ApiError

__all__ = ["JSON", "PROTOBUF", "YAML", "ResponseFormat", "body_type", "choose_form"]

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_SERVED = (JSON, YAML)
# The media types listed in errors. They are true for bodies; for answers kube-apiserver lists them
# too, even for kinds that have no such format.
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
    """The format of an answer: JSON or YAML, of the object or of a Table or its metadata."""

    media: str = JSON
    kind: str = ""
    """Table, PartialObjectMetadata, PartialObjectMetadataList or APIGroupDiscoveryList."""
    version: str = ""

    @property
    def api_version(self) -> str:
        """The API version of a Table or a PartialObjectMetadata."""
        return f"meta.k8s.io/{self.version}"


PLAIN = ResponseFormat()


@lru_cache(maxsize=256)
def choose_form(
    accept: str,
    *,
    of: Literal["objects", "discovery", "documents"] = "objects",
    custom: bool = True,
) -> ResponseFormat:
    """Return the first available format in an Accept header."""
    if not accept:
        return PLAIN
    for clause in _by_weight(accept):
        form = _form(clause, _FORMS[of])
        if form is not None:
            return form
    raise _not_acceptable(custom=custom)


def error_form(accept: str) -> ResponseFormat:
    """Return the format of an error: JSON or YAML as requested, otherwise JSON."""
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
