"""OpenAPI documents: one for each group and version, and one in Swagger 2.0 for all of them.

`kubectl explain` prints these documents, and kubectl reads from them what a server supports.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import groupby
from operator import itemgetter

from polyver import __version__
from polyver.kube.objects.codec import digest
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.server._openapi_paths import paths_of
from polyver.kube.server._openapi_schemas import Components, CustomSchema
from polyver.kube.server._openapi_v2 import in_v2, swagger_path

__all__ = ["CustomSchema", "OpenApi", "SchemaOf"]

SchemaOf = Callable[[str, str, str], Shape | CustomSchema | None]
"""Returns the schema of a group, version and kind: a shape if the kind is built in."""

_SECURITY = {
    "BearerToken": {
        "description": "A token, as `Bearer` and the token itself.",
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
    }
}
# In kube-apiserver another component describes custom kinds, with this title and version.
_CUSTOM_INFO = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}


class OpenApi:
    """The documents about these kinds, each made at its first request.

    >>> api = OpenApi([], schema_of=lambda group, version, kind: None)
    >>> api.index()
    {'paths': {}}
    """

    def __init__(
        self, kinds: Iterable[ResourceKind], *, schema_of: SchemaOf, release: str = "1.35"
    ) -> None:
        ordered = sorted(kinds, key=lambda kind: (_path(kind), kind.plural))
        self._kinds = {path: list(members) for path, members in groupby(ordered, _path)}
        self._schema_of = schema_of
        self._release = release

    def index(self) -> dict[str, object]:
        """Return the answer of `/openapi/v3`: the address of each document, with its hash."""
        paths = {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={self.hash(path)}"}
            for path in self._kinds
        }
        return {"paths": paths}

    def hash(self, path: str) -> str:
        """Return a hash that changes with the document.

        It is computed without the document, because the index contains the hashes of all documents.
        """
        kinds = self._kinds[path]
        known = [self._schema_of(kind.group, kind.version, kind.kind) for kind in kinds]
        described = [each if isinstance(each, CustomSchema) else None for each in known]
        made_from = (__version__, self._release, kinds, described)
        return digest(made_from).partition(":")[2].upper()

    def document(self, path: str) -> dict[str, object] | None:
        """Return the answer of `/openapi/v3/PATH`, such as `apis/apps/v1`; None if not served."""
        kinds = self._kinds.get(path)
        if kinds is None:
            return None
        components: dict[str, object] = {"schemas": self._components(kinds).sorted()}
        custom = all(kind.custom for kind in kinds)
        if not custom:
            components["securitySchemes"] = _SECURITY
        return {
            "openapi": "3.0.0",
            "info": _CUSTOM_INFO if custom else self._info(),
            "paths": _paths(kinds),
            "components": components,
        }

    def swagger(self) -> dict[str, object]:
        """Return the answer of `/openapi/v2`: everything, in Swagger 2.0."""
        kinds = [kind for members in self._kinds.values() for kind in members]
        schemas = self._components(kinds).sorted()
        return {
            "swagger": "2.0",
            "info": self._info(),
            "paths": {path: swagger_path(item) for path, item in _paths(kinds).items()},
            "definitions": {name: in_v2(schema, root=True) for name, schema in schemas.items()},
            "securityDefinitions": _SECURITY,
            "security": [{"BearerToken": []}],
        }

    def _info(self) -> dict[str, str]:
        return {"title": "Kubernetes", "version": self._release}

    def _components(self, kinds: Collection[ResourceKind]) -> Components:
        components = Components()
        components.add_requests(kinds)
        for kind in kinds:
            components.add(kind, self._schema_of(kind.group, kind.version, kind.kind))
            for part in kind.subresources:
                group = kind.group if part.group is None else part.group
                version = part.version or kind.version
                if part.kind and part.kind != kind.kind:
                    shape = self._schema_of(group, version, part.kind)
                    inside = shape if isinstance(shape, Shape) else None
                    components.add_part(group, version, part.kind, inside)
        return components


def _path(kind: ResourceKind) -> str:
    return f"apis/{kind.api_version}" if kind.group else f"api/{kind.api_version}"


def _paths(kinds: Iterable[ResourceKind]) -> dict[str, dict[str, object]]:
    return dict(sorted((each for kind in kinds for each in paths_of(kind)), key=itemgetter(0)))
