"""Library for composition functions in Python: the messages of the protocol, and their encoding.

It is an alternative to Crossplane's SDK for Python, and needs only polyver and gRPC.
"""

from typing import TYPE_CHECKING

from polyver.core.loading import imported_on_use

if TYPE_CHECKING:
    from polyver.compositions.calls.protocol import METHODS, decode_request, encode_response
    from polyver.compositions.messages import (
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
        Severity,
        State,
        Status,
        Target,
    )

__all__ = [
    "METHODS",
    "Condition",
    "Ready",
    "Request",
    "RequestMeta",
    "Requirements",
    "Resource",
    "ResourceSelector",
    "Response",
    "ResponseMeta",
    "Result",
    "Severity",
    "State",
    "Status",
    "Target",
    "decode_request",
    "encode_response",
]

__getattr__ = imported_on_use(
    __name__,
    {
        "polyver.compositions.calls.protocol": "METHODS decode_request encode_response",
        "polyver.compositions.messages": (
            "Condition Ready Request RequestMeta Requirements Resource ResourceSelector Response "
            "ResponseMeta Result Severity State Status Target"
        ),
    },
)
