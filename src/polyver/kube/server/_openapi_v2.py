"""Conversion from OpenAPI 3.0 to Swagger 2.0, which can express less.

As in kube-apiserver, parts that Swagger cannot express are left out rather than approximated: a
client that validates must not reject objects that the server accepts.
"""

from __future__ import annotations

from collections.abc import Mapping

from polyver.kube.server._openapi_types import REF

__all__ = ["in_v2", "swagger_path"]

Schema = dict[str, object]

_DEFINITIONS = "#/definitions/"
_UNKNOWN_TO_V2 = {"oneOf", "anyOf", "allOf", "not", "default", "nullable", "example"}
_KEPT_IF_OPEN = "x-kubernetes-"
_JSON = "application/json"


def in_v2(schema: Mapping[str, object], *, root: bool = False) -> Schema:
    """Convert a schema to Swagger 2.0."""
    if isinstance(reference := schema.get("$ref"), str):
        return {"$ref": reference.replace(REF, _DEFINITIONS)}
    if "oneOf" in schema and "type" not in schema:
        return _one_of(schema)
    if schema.get("nullable") or schema.get("x-kubernetes-preserve-unknown-fields"):
        return _open(schema, root=root)
    made = {key: _part(key, value) for key, value in schema.items() if key not in _UNKNOWN_TO_V2}
    return {**made, **_only_reference(schema)}


def _one_of(schema: Mapping[str, object]) -> Schema:
    """Convert quantities and integers-or-strings, which are strings in Swagger."""
    kept = {key: value for key, value in schema.items() if key in ("description", "format")}
    return {**kept, "type": "string"}


def _open(schema: Mapping[str, object], *, root: bool) -> Schema:
    """Convert a schema that allows null or unknown fields, which Swagger cannot describe."""
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
            name: in_v2(place) if isinstance(place, Mapping) else place
            for name, place in value.items()
        }
    if key in ("items", "additionalProperties") and isinstance(value, Mapping):
        return in_v2(value)
    return value


def _only_reference(schema: Mapping[str, object]) -> Schema:
    match schema.get("allOf"):
        case [{"$ref": str() as reference}]:
            return {"$ref": reference.replace(REF, _DEFINITIONS)}
        case _:
            return {}


def swagger_path(item: Mapping[str, object]) -> Schema:
    """Convert a path with its operations to Swagger 2.0."""
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
    """Return the media types of a content, and its schema, which is the same for all of them."""
    if not isinstance(content, Mapping) or not content:
        return [], {}
    first = next(iter(content.values()))
    return list(content), in_v2(first["schema"])


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
