"""Answers requests for documents about the server: its version, its kinds, OpenAPI schemas."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from polyver.kube.objects import dump_yaml, encode_json
from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.status import ApiError, not_allowed
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.server.discovery import (
    aggregated_discovery,
    api_group,
    api_group_list,
    api_resource_list,
    api_versions,
    etag,
    version_info,
)
from polyver.kube.server.http import JSON, PLAIN, YAML, HttpRequest, HttpResponse, choose_form
from polyver.kube.server.openapi import CustomSchema, OpenApi
from polyver.kube.server.options import Query
from polyver.kube.server.resource import ResourceCatalogue

__all__ = ["ApiDocuments", "unknown_path"]

_PLAIN = [("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff")]
_SWAGGER_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class ApiDocuments:
    """Answers requests for documents.

    Builds the documents again when the resources have changed.
    """

    def __init__(self, catalogue: ResourceCatalogue, *, release: str, address: str) -> None:
        self._catalogue = catalogue
        self._release = release
        self._address = address
        self._edition = _Edition(catalogue, release, address)

    def has(self, path: str) -> bool:
        """Report whether the document for a path exists already, so that it need not be built."""
        edition = self._edition
        return edition.number == self._catalogue.edition and edition.has(path)

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer a request for a document, such as `/version` or `/openapi/v2`."""
        if self._edition.number != self._catalogue.edition:
            self._edition = _Edition(self._catalogue, self._release, self._address)
        found = self._edition.answer(request)
        if request.method not in ("GET", "HEAD") and found.status != 404:
            raise not_allowed()
        return found


class _Edition:
    """The documents that describe one state of the catalogue of served resources.

    Each document is built when a client first requests it.
    """

    def __init__(self, catalogue: ResourceCatalogue, release: str, address: str) -> None:
        self.number = catalogue.edition
        self._catalogue = catalogue
        self._release = release
        self._address = address
        self._kinds = [resource.kind for resource in catalogue]
        self._made: dict[str, bytes] = {}

    def has(self, path: str) -> bool:
        return path in self._made or f"{path} aggregated" in self._made or path == "/version"

    def answer(self, request: HttpRequest) -> HttpResponse:
        path = "/" + "/".join(filter(None, request.path.split("/")))
        accept = request.headers.get("accept", "")
        match path.strip("/").split("/"):
            case ["openapi", "v2"]:
                return self._swagger(request)
            case ["openapi", "v3", *rest]:
                return self._schemas(request, "/".join(rest))
            case ["api" | "apis"]:
                return self._groups(request, path)
            case parts:
                return self._document(path, accept, lambda: self._content(parts))

    def _content(self, parts: list[str]) -> dict[str, Any] | None:
        match parts:
            case [""]:
                return self._root()
            case ["version"]:
                return dict(version_info(self._release))
            case ["api", version]:
                return api_resource_list(self._kinds, "", version)
            case ["apis", group]:
                return api_group(self._kinds, group)
            case ["apis", group, version]:
                return api_resource_list(self._kinds, group, version)
        return None

    def _document(
        self, path: str, accept: str, make: Callable[[], dict[str, Any] | None]
    ) -> HttpResponse:
        form = PLAIN if path == "/version" else choose_form(accept, of="documents")
        if path not in self._made:
            content = make()
            if content is None:
                return unknown_path(builtin=self._is_builtin(path))
            self._made[path] = encode_json(content)
        body = self._made[path]
        if form.media == YAML:
            return HttpResponse(200, [("content-type", YAML)], _as_yaml(body))
        return HttpResponse(200, [("content-type", JSON)], body)

    def _is_builtin(self, path: str) -> bool:
        parts = path.strip("/").split("/")
        return parts[0] == "api" or (len(parts) > 1 and self._catalogue.is_builtin(parts[1]))

    def _root(self) -> dict[str, Any]:
        groups = {f"/apis/{kind.group}" for kind in self._kinds if kind.group}
        versions = {f"/apis/{kind.api_version}" for kind in self._kinds if kind.group}
        others = "/healthz /livez /metrics /openapi/v2 /openapi/v3 /readyz /version".split()
        return {"paths": sorted({"/api", "/api/v1", "/apis", *groups, *versions, *others})}

    def _groups(self, request: HttpRequest, path: str) -> HttpResponse:
        form = choose_form(request.headers.get("accept", ""), of="discovery")
        core = path == "/api"
        if form.kind:
            name = f"{path} aggregated"
            if name not in self._made:
                self._made[name] = encode_json(aggregated_discovery(self._kinds, core=core))
            return _tagged(request, self._made[name], _AGGREGATED)
        if core:
            addresses = {"0.0.0.0/0": self._address}
            return self._document(
                path, form.media, lambda: api_versions(self._kinds, addresses=addresses)
            )
        return self._document(path, form.media, lambda: api_group_list(self._kinds))

    @cached_property
    def _openapi(self) -> OpenApi:
        schemas = {
            (one.kind.group, one.kind.version, one.kind.kind): CustomSchema(
                one.schema or {}, selectable=tuple(f".{field}" for field in one.selectable)
            )
            for one in self._catalogue
            if one.kind.custom
        }

        def schema_of(group: str, version: str, kind: str) -> Shape | CustomSchema | None:
            return schemas.get((group, version, kind)) or shape_of(group, version, kind)

        return OpenApi(self._kinds, schema_of=schema_of, release=f"v{self._release}")

    def _schemas(self, request: HttpRequest, path: str) -> HttpResponse:
        if not path:
            if "openapi" not in self._made:
                self._made["openapi"] = encode_json(self._openapi.index())
            return _tagged(request, self._made["openapi"], "text/plain; charset=utf-8")
        name = f"openapi {path}"
        if name not in self._made:
            content = self._openapi.document(path)
            if content is None:
                return HttpResponse(404, [], b"")
            self._made[name] = encode_json(content)
        # A client may cache the answer to a request with the current hash for ever. A request with
        # an old hash is redirected to the current hash.
        requested_hash, right = Query(request.query).text("hash"), self._openapi.hash(path)
        if requested_hash and requested_hash != right:
            location = ("location", f"/openapi/v3/{path}?hash={right}")
            return HttpResponse(301, [location, ("content-type", JSON)], b"")
        response = _tagged(request, self._made[name], JSON)
        if requested_hash:
            response.headers.append(("cache-control", "public, immutable"))
        return response

    def _swagger(self, request: HttpRequest) -> HttpResponse:
        if "proto-openapi" in request.headers.get("accept", "").partition(",")[0]:
            # kubectl requests this format if it has not found a kind in other documents. This
            # document would not contain the kind either, so a document without paths suffices.
            info = _field(1, b"Kubernetes") + _field(2, f"v{self._release}".encode())
            document = _field(1, b"2.0") + _field(2, info) + _field(8, b"")
            return _tagged(request, document, _SWAGGER_PROTOBUF)
        if "swagger" not in self._made:
            self._made["swagger"] = encode_json(self._openapi.swagger())
        return _tagged(request, self._made["swagger"], JSON)


def _field(number: int, content: bytes) -> bytes:
    """Encode a field of a protobuf message whose value is bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def _tagged(request: HttpRequest, body: bytes, media: str) -> HttpResponse:
    """Build the response with a document and its ETag.

    If the client already has the document (If-None-Match), build a response with status 304.
    """
    tag = etag(body)
    headers = [("content-type", media), ("etag", tag), ("vary", "Accept")]
    if request.headers.get("if-none-match") == tag:
        return HttpResponse(304, headers[1:], b"")
    return HttpResponse(200, headers, body)


def _as_yaml(body: bytes) -> bytes:
    return dump_yaml(msgspec.json.decode(body)).encode()


def unknown_path(*, builtin: bool) -> HttpResponse:
    """Answer a request for a path that does not exist.

    With `builtin`, the path belongs to a group of built-in kinds, and the answer is a Status.
    Otherwise the answer is plain text.
    """
    if builtin:
        text = "the server could not find the requested resource"
        raise ApiError(404, "NotFound", text, details={})
    return HttpResponse(404, list(_PLAIN), b"404 page not found\n")
