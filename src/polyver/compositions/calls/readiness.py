"""Probe of a function's readiness, over a connection of its own."""

from __future__ import annotations

from polyver.compositions.calls._grpc import load_grpc
from polyver.compositions.calls.endpoints import Endpoint
from polyver.compositions.calls.errors import CallFailure, FunctionFailed
from polyver.kube.objects.protobuf_wire import MalformedError, fields

__all__ = ["probe"]

_HEALTH = "/grpc.health.v1.Health/Check"
_MOST = 1 << 16
_SERVING = 1


async def probe(endpoint: Endpoint, *, within: float = 2.0) -> None:
    """Return if a function can be called; raise FunctionFailed, with the reason, if it cannot.

    A server without a health service counts as ready when it answers UNIMPLEMENTED: its certificate
    is the revision's, it trusts ours, and it speaks gRPC.
    """
    await load_grpc()
    from polyver.compositions.calls import _channels as channels

    channel = channels.open_channel(endpoint, most_sent=_MOST, most_received=_MOST)
    try:
        answer = await channels.answered(channel, _HEALTH, b"", within=within)
    except channels.RpcError as error:
        if error.code() is not channels.Code.UNIMPLEMENTED:
            found = channels.meaning(error, endpoint, within=within)
            raise channels.failed(found, endpoint, sent=found.sent) from None
    else:
        _check(answer, endpoint)
    finally:
        await channel.close(None)


def _check(answer: bytes, endpoint: Endpoint) -> None:
    """Raise FunctionFailed unless the health service reports SERVING in its first field."""
    try:
        states = [each.integer("status") for each in fields(answer, "") if each.number == 1]
    except MalformedError as error:
        raise _failed(
            endpoint,
            CallFailure.BROKEN,
            f"answers the health check with an invalid message: {error}",
        ) from None
    if states[-1:] != [_SERVING]:
        raise _failed(endpoint, CallFailure.UNREACHABLE, "reports that it is not ready")


def _failed(endpoint: Endpoint, failure: CallFailure, fact: str) -> FunctionFailed:
    return FunctionFailed(failure, fact, revision=endpoint.revision, address=endpoint.address)
