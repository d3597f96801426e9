"""Connections of gRPC, and what its statuses mean.

Nothing else knows gRPC, which takes a tenth of a second to load: this module is imported with the
first call, by `_loading`.
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
    """A connection that was closed while a call was under way."""


_OPTIONS = (
    # Otherwise whoever asks again waits until others, who asked before, may connect again.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # A machine that went away without a word is noticed: what it does not confirm in this time
    # ends the connection. Servers take whoever asks more often than every five minutes for rude.
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # Retrying is decided by whoever calls; proxies are for the world outside.
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
)


def open_channel(endpoint: Endpoint, *, most_sent: int, most_received: int) -> Channel:
    """A connection that is made with the first call, and made again when it is lost.

    FunctionFailed if there is no way to make it.
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
        # Any function's certificate is signed by the same authority: the name tells them apart.
        options.append(("grpc.ssl_target_name_override", trust.name))
    credentials = grpc.ssl_channel_credentials(
        trust.bundle, private_key=trust.pair.key, certificate_chain=trust.pair.certificate
    )
    return grpc.aio.secure_channel(endpoint.address, credentials, options)


async def answered(channel: Channel, method: str, request: bytes, *, within: float) -> bytes:
    """The bytes that a method answers; RpcError or ConnectionClosed if it does not."""
    # Without functions that turn messages into bytes, gRPC passes the bytes on.
    try:
        return bytes(await channel.unary_unary(method, None, None)(request, timeout=within))
    except grpc.aio.UsageError as error:
        raise ConnectionClosed from error
    except asyncio.CancelledError:
        # gRPC takes a connection that somebody closes for a task that somebody cancels.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionClosed from None


def failed(found: Meaning, endpoint: Endpoint, *, sent: bool) -> FunctionFailed:
    """Return the error to raise; `sent` means that the function may have seen the request."""
    about = {"revision": endpoint.revision, "address": endpoint.address}
    return FunctionFailed(found.failure, found.fact, **about, sent=sent)


def meaning(error: RpcError, endpoint: Endpoint, *, within: float) -> Meaning:
    """What a status means."""
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
