"""gRPC channels, and the meaning of gRPC statuses.

Only this module imports gRPC, which takes a tenth of a second: `load_grpc` imports this module with
the first call.
"""

from __future__ import annotations

import asyncio

import grpc
import grpc.aio

from polyver.compositions.calls._failures import (
    Meaning,
    exhausted,
    is_other_protocol,
    short,
    unavailable,
)
from polyver.compositions.calls.endpoints import Endpoint, is_address
from polyver.compositions.calls.errors import CallFailure, FunctionFailed

__all__ = [
    "Channel",
    "Code",
    "ConnectionClosed",
    "RpcError",
    "answered",
    "failed",
    "meaning",
    "open_channel",
]

Channel = grpc.aio.Channel
Code = grpc.StatusCode
RpcError = grpc.aio.AioRpcError


class ConnectionClosed(Exception):
    """The connection was closed during a call."""


_OPTIONS = (
    # With gRPC's global pool, a new channel would share the back-off of earlier failed channels to
    # the same address.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # Detect a host that vanished without closing the connection: an unanswered ping ends it.
    # Servers reject clients that ping more often than every five minutes.
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # The caller decides about retries; HTTP proxies are for addresses outside the cluster.
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
)


def open_channel(endpoint: Endpoint, *, most_sent: int, most_received: int) -> Channel:
    """Open a channel that connects with the first call, and again after the connection is lost.

    Raise FunctionFailed if the endpoint's address is not HOST:PORT.
    """
    if not is_address(endpoint.address):
        fact = f"has no address: {endpoint.address!r} is not HOST:PORT"
        raise FunctionFailed(CallFailure.UNREACHABLE, fact, revision=endpoint.revision)
    options: list[tuple[str, int | str]] = [
        *_OPTIONS,
        ("grpc.max_send_message_length", most_sent),
        ("grpc.max_receive_message_length", most_received),
    ]
    trust = endpoint.trust
    if trust is None:
        return grpc.aio.insecure_channel(endpoint.address, options)
    if trust.name:
        # One authority signs the certificates of all functions: only the name distinguishes them.
        options.append(("grpc.ssl_target_name_override", trust.name))
    credentials = grpc.ssl_channel_credentials(
        trust.bundle, private_key=trust.pair.key, certificate_chain=trust.pair.certificate
    )
    return grpc.aio.secure_channel(endpoint.address, credentials, options)


async def answered(channel: Channel, method: str, request: bytes, *, within: float) -> bytes:
    """Return the bytes of a method's response; raise RpcError or ConnectionClosed otherwise."""
    # Without serializer functions, gRPC passes bytes on as they are.
    try:
        return bytes(await channel.unary_unary(method, None, None)(request, timeout=within))
    except grpc.aio.UsageError as error:
        raise ConnectionClosed from error
    except asyncio.CancelledError:
        # gRPC raises CancelledError for calls on a channel that gets closed, too; only `cancelling`
        # distinguishes that from a cancelled task.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionClosed from None


def failed(found: Meaning, endpoint: Endpoint, *, sent: bool) -> FunctionFailed:
    """Return the error to raise; `sent` means that the function may have got the request."""
    about = {"revision": endpoint.revision, "address": endpoint.address}
    return FunctionFailed(found.failure, found.fact, **about, sent=sent)


def meaning(error: RpcError, endpoint: Endpoint, *, within: float) -> Meaning:
    """Translate a gRPC status into a kind of failure and a sentence."""
    code, details = error.code(), error.details() or ""
    if is_other_protocol(details):
        return Meaning(CallFailure.BROKEN, "does not speak gRPC")
    match code:
        case Code.DEADLINE_EXCEEDED:
            return Meaning(CallFailure.DEADLINE, f"did not answer within {within:g}s", sent=True)
        case Code.UNAVAILABLE:
            return unavailable(details, secure=endpoint.trust is not None)
        case Code.RESOURCE_EXHAUSTED:
            return exhausted(details)
        case Code.UNIMPLEMENTED:
            said = f"neither v1 nor v1beta1: {short(details)}"
            return Meaning(CallFailure.BROKEN, f"does not support the function protocol, {said}")
    return Meaning(
        CallFailure.FAILED, f"failed: {code.name}: {short(details) or 'without a message'}"
    )
