"""Parsing of API paths: group, version, resource, namespace, name, subresource; and the verb."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

__all__ = ["ApiPath", "parse_api_path"]

_PARTS_OF_NAMESPACES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class ApiPath:
    """A parsed API path; a part that the path does not have is an empty string."""

    group: str
    version: str
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    old_watch: bool = False
    """True for one of the deprecated paths below /watch/."""
    rest: bool = False
    """True if the path has more segments than an API path can have."""


@lru_cache(maxsize=64)  # each path is read twice: to answer the request, and to count it
def parse_api_path(path: str) -> ApiPath | None:
    """Parse a path below a group version; None for other paths.

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
    """Return the verb of a request, as authorization uses it."""
    verb = VERBS.get(method, "")
    if verb == "get" and (watch or path.old_watch):
        return "watch"
    if not path.name:
        return {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    return verb
