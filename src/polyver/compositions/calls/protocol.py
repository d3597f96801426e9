"""The messages of Crossplane's function protocol, with the protocol's own numbers.

`v1` and `v1beta1` have the same messages: only the name of the service tells them apart.
"""

from __future__ import annotations

from polyver.compositions.calls._fields import (
    Duration,
    Listed,
    Mapped,
    Message,
    Number,
    Numbers,
    Octets,
    One,
    Only,
    Structure,
    Text,
    Whole,
)
from polyver.compositions.calls._message_errors import MessageError, Unreadable, Unwritable
from polyver.compositions.messages import (
    Capability,
    Condition,
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
    "Unreadable",
    "Unwritable",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
]

METHODS = tuple(
    f"/apiextensions.fn.proto.{version}.FunctionRunnerService/RunFunction"
    for version in ("v1", "v1beta1")
)
"""The newest first."""

_TEXT, _BYTES, _STRUCT = Text(), Octets(), Structure()

_RESOURCE = Message(
    Resource,
    Whole(1, "resource", _STRUCT),
    Mapped(2, "connection_details", _BYTES),
    Number(3, "ready", Ready),
)
_STATE = Message(State, Whole(1, "composite", _RESOURCE), Mapped(2, "resources", _RESOURCE))

# Messages around one field, which is all that there is to know of them.
_RESOURCES = Only(Listed(1, "items", _RESOURCE), tuple)
_CREDENTIALS = Only(One(1, "credential_data", Only(Mapped(1, "data", _BYTES), dict)), dict)
_SCHEMA = Only(Whole(1, "openapi_v3", _STRUCT), dict)
_LABELS = Only(Mapped(1, "labels", _TEXT), dict)

_REQUEST = Message(
    Request,
    Whole(
        1,
        "meta",
        Message(RequestMeta, Whole(1, "tag", _TEXT), Numbers(2, "capabilities", Capability)),
    ),
    Whole(2, "observed", _STATE),
    Whole(3, "desired", _STATE),
    One(4, "input", _STRUCT),
    One(5, "context", _STRUCT),
    Mapped(6, "extra_resources", _RESOURCES),
    Mapped(7, "credentials", _CREDENTIALS),
    Mapped(8, "required_resources", _RESOURCES),
    Mapped(9, "required_schemas", _SCHEMA),
)

_RESOURCE_SELECTOR = Message(
    ResourceSelector,
    Whole(1, "api_version", _TEXT),
    Whole(2, "kind", _TEXT),
    One(3, "match_name", _TEXT),
    One(4, "match_labels", _LABELS),
    One(5, "namespace", _TEXT),
    either=(3, 4),
)
_SCHEMA_SELECTOR = Message(SchemaSelector, Whole(1, "api_version", _TEXT), Whole(2, "kind", _TEXT))
_REQUIREMENTS = Message(
    Requirements,
    Mapped(1, "extra_resources", _RESOURCE_SELECTOR),
    Mapped(2, "resources", _RESOURCE_SELECTOR),
    Mapped(3, "schemas", _SCHEMA_SELECTOR),
)
_RESULT = Message(
    Result,
    Number(1, "severity", Severity),
    Whole(2, "message", _TEXT),
    One(3, "reason", _TEXT),
    Number(4, "target", Target),
)
_CONDITION = Message(
    Condition,
    Whole(1, "type", _TEXT),
    Number(2, "status", Status),
    Whole(3, "reason", _TEXT),
    One(4, "message", _TEXT),
    Number(5, "target", Target),
)
_RESPONSE = Message(
    Response,
    Whole(1, "meta", Message(ResponseMeta, Whole(1, "tag", _TEXT), One(2, "ttl", Duration()))),
    Whole(2, "desired", _STATE),
    Listed(3, "results", _RESULT),
    One(4, "context", _STRUCT),
    Whole(5, "requirements", _REQUIREMENTS),
    Listed(6, "conditions", _CONDITION),
    One(7, "output", _STRUCT),
)


def encode_request(request: Request) -> bytes:
    """A request as it is sent; Unwritable, with the place, if the protocol cannot carry it.

    >>> encode_request(Request(RequestMeta("t"), input={"a": True}))
    b'\\n\\x03\\n\\x01t"\\t\\n\\x07\\n\\x01a\\x12\\x02 \\x01'
    """
    return _REQUEST.dump(request)


def decode_request(data: bytes) -> Request:
    """A request as a function gets it; Unreadable if it is none."""
    return _REQUEST.load(data)


def encode_response(response: Response) -> bytes:
    """An answer as a function sends it; Unwritable if the protocol cannot carry it."""
    return _RESPONSE.dump(response)


def decode_response(data: bytes) -> Response:
    """What a function answered; Unreadable, with the place, if it is no answer.

    >>> answer = Response(results=[Result(Severity.FATAL, "no")])
    >>> decode_response(encode_response(answer)).results[0].message
    'no'
    """
    return _RESPONSE.load(data)
