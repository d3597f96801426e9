"""The messages of Crossplane's function protocol, with the numbers of their fields.

The protocol versions `v1` and `v1beta1` have the same messages; only the names of their gRPC
services differ.
"""

from __future__ import annotations

from polyver.compositions.calls._fields import (
    BytesContent,
    DurationContent,
    EnumField,
    ExplicitPresenceField,
    ImplicitPresenceField,
    MapField,
    Message,
    RepeatedEnumField,
    RepeatedField,
    SingleFieldContent,
    StringContent,
    StructContent,
)
from polyver.compositions.calls.errors import (
    MessageError,
    UnreadableMessage,
    UnwritableMessage,
)
from polyver.compositions.messages import (
    Condition,
    ProtocolCapability,
    Ready,
    Request,
    RequestMeta,
    Requirements,
    Resource,
    ResourceSelector,
    Response,
    ResponseMeta,
    Result,
    SchemaSelector,
    Severity,
    State,
    Status,
    Target,
)

__all__ = [
    "METHODS",
    "MessageError",
    "UnreadableMessage",
    "UnwritableMessage",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]

METHODS = tuple(
    f"/apiextensions.fn.proto.{version}.FunctionRunnerService/RunFunction"
    for version in ("v1", "v1beta1")
)
"""The names of the gRPC method in both versions of the protocol, the newest version first."""

_TEXT, _BYTES, _STRUCT = StringContent(), BytesContent(), StructContent()

_RESOURCE = Message(
    Resource,
    ImplicitPresenceField(1, "resource", _STRUCT),
    MapField(2, "connection_details", _BYTES),
    EnumField(3, "ready", Ready),
)
_STATE = Message(
    State, ImplicitPresenceField(1, "composite", _RESOURCE), MapField(2, "resources", _RESOURCE)
)

# Messages with a single relevant field.
_RESOURCES = SingleFieldContent(RepeatedField(1, "items", _RESOURCE), tuple)
_CREDENTIALS = SingleFieldContent(
    ExplicitPresenceField(
        1, "credential_data", SingleFieldContent(MapField(1, "data", _BYTES), dict)
    ),
    dict,
)
_SCHEMA = SingleFieldContent(ImplicitPresenceField(1, "openapi_v3", _STRUCT), dict)
_LABELS = SingleFieldContent(MapField(1, "labels", _TEXT), dict)

_REQUEST = Message(
    Request,
    ImplicitPresenceField(
        1,
        "meta",
        Message(
            RequestMeta,
            ImplicitPresenceField(1, "tag", _TEXT),
            RepeatedEnumField(2, "capabilities", ProtocolCapability),
        ),
    ),
    ImplicitPresenceField(2, "observed", _STATE),
    ImplicitPresenceField(3, "desired", _STATE),
    ExplicitPresenceField(4, "input", _STRUCT),
    ExplicitPresenceField(5, "context", _STRUCT),
    MapField(6, "extra_resources", _RESOURCES),
    MapField(7, "credentials", _CREDENTIALS),
    MapField(8, "required_resources", _RESOURCES),
    MapField(9, "required_schemas", _SCHEMA),
)

_RESOURCE_SELECTOR = Message(
    ResourceSelector,
    ImplicitPresenceField(1, "api_version", _TEXT),
    ImplicitPresenceField(2, "kind", _TEXT),
    ExplicitPresenceField(3, "match_name", _TEXT),
    ExplicitPresenceField(4, "match_labels", _LABELS),
    ExplicitPresenceField(5, "namespace", _TEXT),
    either=(3, 4),
)
_SCHEMA_SELECTOR = Message(
    SchemaSelector,
    ImplicitPresenceField(1, "api_version", _TEXT),
    ImplicitPresenceField(2, "kind", _TEXT),
)
_REQUIREMENTS = Message(
    Requirements,
    MapField(1, "extra_resources", _RESOURCE_SELECTOR),
    MapField(2, "resources", _RESOURCE_SELECTOR),
    MapField(3, "schemas", _SCHEMA_SELECTOR),
)
_RESULT = Message(
    Result,
    EnumField(1, "severity", Severity),
    ImplicitPresenceField(2, "message", _TEXT),
    ExplicitPresenceField(3, "reason", _TEXT),
    EnumField(4, "target", Target),
)
_CONDITION = Message(
    Condition,
    ImplicitPresenceField(1, "type", _TEXT),
    EnumField(2, "status", Status),
    ImplicitPresenceField(3, "reason", _TEXT),
    ExplicitPresenceField(4, "message", _TEXT),
    EnumField(5, "target", Target),
)
_RESPONSE = Message(
    Response,
    ImplicitPresenceField(
        1,
        "meta",
        Message(
            ResponseMeta,
            ImplicitPresenceField(1, "tag", _TEXT),
            ExplicitPresenceField(2, "ttl", DurationContent()),
        ),
    ),
    ImplicitPresenceField(2, "desired", _STATE),
    RepeatedField(3, "results", _RESULT),
    ExplicitPresenceField(4, "context", _STRUCT),
    ImplicitPresenceField(5, "requirements", _REQUIREMENTS),
    RepeatedField(6, "conditions", _CONDITION),
    ExplicitPresenceField(7, "output", _STRUCT),
)


def encode_request(request: Request) -> bytes:
    r"""Encode a request. If this is impossible, raise UnwritableMessage with the path of the value.

    >>> encode_request(Request(RequestMeta("t"), input={"a": True}))
    b'\n\x03\n\x01t"\t\n\x07\n\x01a\x12\x02 \x01'
    """
    return _REQUEST.dump(request)


def decode_request(data: bytes) -> Request:
    """Decode a request. If the bytes are invalid, raise UnreadableMessage with the path."""
    return _REQUEST.load(data)


def encode_response(response: Response) -> bytes:
    """Encode a response. If this is impossible, raise UnwritableMessage with the path."""
    return _RESPONSE.dump(response)


def decode_response(data: bytes) -> Response:
    """Decode a response. If the bytes are invalid, raise UnreadableMessage with the path.

    >>> answer = Response(results=[Result(Severity.FATAL, "no")])
    >>> decode_response(encode_response(answer)).results[0].message
    'no'
    """
    return _RESPONSE.load(data)
