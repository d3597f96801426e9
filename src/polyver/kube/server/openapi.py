"""OpenAPI documents: one for each group and version, and one for all groups in Swagger 2.0.

`kubectl explain` prints parts of these documents. kubectl also reads them to find out which
features a server supports. Swagger 2.0 can express less than OpenAPI 3.0. As in kube-apiserver, the
Swagger document leaves out constraints that Swagger cannot express exactly: a client that validates
an object must not reject an object that the server accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import groupby
from operator import itemgetter

from polyver import __version__
from polyver.kube.objects.codec import digest
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.server._openapi_paths import paths_of
from polyver.kube.server._openapi_schemas import Components, CustomSchema
from polyver.kube.server._openapi_types import REF, Schema

__all__ = ["CustomSchema", "OpenApi", "SchemaOf"]


_DEFINITIONS = "#/definitions/"
_UNKNOWN_TO_V2 = {"oneOf", "anyOf", "allOf", "not", "default", "nullable", "example"}
_KEPT_IF_OPEN = "x-kubernetes-"
_JSON = "application/json"


def _in_v2(schema: Mapping[str, object], *, root: bool = False) -> Schema:
    """Convert a schema from OpenAPI 3.0 to Swagger 2.0."""
    if isinstance(reference := schema.get("$ref"), str):
        return {"$ref": reference.replace(REF, _DEFINITIONS)}
    if "oneOf" in schema and "type" not in schema:
        return _one_of(schema)
    if schema.get("nullable") or schema.get("x-kubernetes-preserve-unknown-fields"):
        return _open(schema, root=root)
    made = {key: _part(key, value) for key, value in schema.items() if key not in _UNKNOWN_TO_V2}
    return {**made, **_only_reference(schema)}


def _one_of(schema: Mapping[str, object]) -> Schema:
    """Convert a schema with `oneOf`: a quantity or an integer-or-string.

    In Swagger, it is a string.
    """
    kept = {key: value for key, value in schema.items() if key in ("description", "format")}
    return {**kept, "type": "string"}


def _open(schema: Mapping[str, object], *, root: bool) -> Schema:
    """Convert a schema that allows null or unknown fields, which Swagger cannot express.

    Only keywords that do not restrict values are kept. With `root`, it is the schema of a kind.
    """
    if root:
        marks = ("description", "x-kubernetes-group-version-kind", "x-kubernetes-selectable-fields")
        return {"type": "object", **{key: schema[key] for key in marks if key in schema}}
    return {
        key: value
        for key, value in schema.items()
        if key == "description" or key.startswith(_KEPT_IF_OPEN)
    }


def _part(key: str, value: object) -> object:
    if key == "properties" and isinstance(value, Mapping):
        return {
            name: _in_v2(inner) if isinstance(inner, Mapping) else inner
            for name, inner in value.items()
        }
    if key in ("items", "additionalProperties") and isinstance(value, Mapping):
        return _in_v2(value)
    return value


def _only_reference(schema: Mapping[str, object]) -> Schema:
    match schema.get("allOf"):
        case [{"$ref": str() as reference}]:
            return {"$ref": reference.replace(REF, _DEFINITIONS)}
        case _:
            return {}


def _swagger_path(item: Mapping[str, object]) -> Schema:
    """Convert a path item with its operations to Swagger 2.0."""
    return {
        key: _parameters(value) if isinstance(value, list) else _operation(value)
        for key, value in item.items()
        if isinstance(value, list | Mapping)
    }


def _operation(operation: Mapping[str, object]) -> Schema:
    known = dict(operation)
    body, responses = known.pop("requestBody", None), known.pop("responses", None)
    parameters = _parameters(known.pop("parameters", ()))
    consumes = [_JSON, "application/yaml"]
    if isinstance(body, Mapping):
        consumes, schema = _media(body["content"])
        required = {"required": True} if body.get("required") else {}
        parameters.insert(0, {"name": "body", "in": "body", **required, "schema": schema})
    return {
        **known,
        "consumes": consumes,
        "produces": _produced(responses),
        "schemes": ["https"],
        "parameters": parameters,
        "responses": _responses(responses),
    }


def _media(content: object) -> tuple[list[str], Schema]:
    """Return the media types of a body, and its schema, which is the same for all media types."""
    if not isinstance(content, Mapping) or not content:
        return [], {}
    first = next(iter(content.values()))
    return list(content), _in_v2(first["schema"])


def _produced(responses: object) -> list[str]:
    if not isinstance(responses, Mapping):
        return []
    every = (_media(response.get("content"))[0] for response in responses.values())
    return list(dict.fromkeys(media for each in every for media in each))


def _responses(responses: object) -> Schema:
    if not isinstance(responses, Mapping):
        return {}
    made: Schema = {}
    for code, response in responses.items():
        schema = _media(response.get("content"))[1]
        shown = {"schema": schema} if schema else {}
        made[code] = {"description": response["description"], **shown}
    return made


def _parameters(parameters: object) -> list[Schema]:
    if not isinstance(parameters, list | tuple):
        return []
    return [
        {**{key: value for key, value in each.items() if key != "schema"}, **each["schema"]}
        for each in parameters
    ]


SchemaOf = Callable[[str, str, str], Shape | CustomSchema | None]
"""A function that returns the schema for a group, a version and a kind.

The schema of a built-in kind is a Shape.
"""

_SECURITY = {
    "BearerToken": {
        "description": "The word `Bearer` and a token.",
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
    }
}
# The title and version that kube-apiserver uses in the documents of custom kinds.
_CUSTOM_INFO = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}


class OpenApi:
    """The OpenAPI documents about a set of kinds.

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
        """Build the answer for `/openapi/v3`: the URL of each document.

        The URL contains the document's hash.
        """
        paths = {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={self.hash(path)}"}
            for path in self._kinds
        }
        return {"paths": paths}

    def hash(self, path: str) -> str:
        """Return a hash that changes whenever the document changes.

        The hash is computed without building the document, because the index contains the hashes of
        all documents.
        """
        kinds = self._kinds[path]
        known = [self._schema_of(kind.group, kind.version, kind.kind) for kind in kinds]
        described = [each if isinstance(each, CustomSchema) else None for each in known]
        made_from = (__version__, self._release, kinds, described)
        return digest(made_from).partition(":")[2].upper()

    def document(self, path: str) -> dict[str, object] | None:
        """Build the answer for `/openapi/v3/PATH`; return None if the path does not exist.

        `path` is the part after `/openapi/v3/`, such as `apis/apps/v1`.
        """
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
        """Build the answer for `/openapi/v2`: all kinds in one Swagger 2.0 document."""
        kinds = [kind for members in self._kinds.values() for kind in members]
        schemas = self._components(kinds).sorted()
        return {
            "swagger": "2.0",
            "info": self._info(),
            "paths": {path: _swagger_path(item) for path, item in _paths(kinds).items()},
            "definitions": {name: _in_v2(schema, root=True) for name, schema in schemas.items()},
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
