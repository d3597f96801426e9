"""Opens gRPC channels and connections, and translates gRPC errors to failures of calls.

This module is the only one that imports gRPC. The import takes a tenth of a second, so `load_grpc`
imports this module when the first function is called. gRPC uses one status code for all connection
problems, so this module reads the problem from the error message.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

import grpc
import grpc.aio

from polyver.compositions.calls.endpoints import Endpoint, is_address
from polyver.compositions.calls.errors import CallFailure, FunctionFailed
from polyver.compositions.calls.protocol import METHODS

__all__ = [
    "ConnectionClosed",
    "FunctionConnection",
    "RpcError",
    "exhausted",
    "failed",
    "is_other_protocol",
    "meaning",
    "short",
    "unavailable",
]

_VERIFY = re.compile(r"CERTIFICATE_VERIFY_FAILED: (.*?)(?:: OK)?$")
_LARGER = re.compile(r"message larger than max \((\d+) vs\. (\d+)\)", re.IGNORECASE)
_CONNECTING = "failed to connect to all addresses"
_CLOSED = {
    True: "closes each connection after the TLS handshake: it does not trust the certificate "
    "of the caller, or is shutting down",
    False: "closes each connection at once: it accepts only TLS, or is shutting down",
}
_ENDED_AT_ONCE = (": Socket closed", ": Unwrap failed (TSI_DATA_CORRUPTED)")
"""The ends of gRPC error messages for a connection that the server closed around the handshake.

They mean that the server closed the connection during or after the TLS handshake: the first end if
the server is written in Python or C, the second if it is written in Go.
"""
_MOST_TOLD = 300
_OPTIONS = (
    # With gRPC's global pool, a new channel would share the back-off of earlier failed channels to
    # the same address.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # Detect a host that disappeared without closing the connection: gRPC closes a connection if a
    # ping is not answered. Servers reject clients that ping more often than every five minutes.
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # No retries by gRPC: the caller decides about retries. No HTTP proxy: functions run inside the
    # cluster, or on this machine.
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a gRPC error: a kind of failure, a message, and the number of tries."""

    failure: CallFailure
    fact: str
    tries: int = 1
    sent: bool = False
    """True if the function may have received the request.

    The request itself may then have caused the error.
    """


def unavailable(details: str, *, secure: bool) -> Meaning:
    """Return the meaning of an error with the status code UNAVAILABLE, from its message.

    A connection could not be made, or was lost.

    >>> meaning = unavailable("… CERTIFICATE_VERIFY_FAILED: expired: OK", secure=True)
    >>> print(meaning.failure, "|", meaning.fact)
    Refused | has an untrusted certificate: expired
    """
    if found := _refused(details):
        return Meaning(CallFailure.REFUSED, found)
    if not details.startswith(_CONNECTING):
        fact = f"cannot be reached: {short(details)}"
        return Meaning(CallFailure.UNREACHABLE, fact, tries=2, sent=True)
    if details.endswith(_ENDED_AT_ONCE):
        return Meaning(CallFailure.REFUSED, _CLOSED[secure], tries=3)
    if "Connection refused" in details:
        fact = "is not reachable: nothing listens at its address"
        return Meaning(CallFailure.UNREACHABLE, fact, tries=3)
    return Meaning(CallFailure.UNREACHABLE, f"cannot be reached: {short(details)}", tries=3)


def _refused(details: str) -> str:
    """Return why a TLS handshake failed, as the predicate of a sentence about the function.

    An example is `has a certificate for another name`. Return "" if the message names no reason.
    """
    if found := _VERIFY.search(details):
        return f"has an untrusted certificate: {found[1]}"
    if "Hostname Verification Check failed" in details:
        return "has a certificate for another name"
    return "does not speak TLS" if "WRONG_VERSION_NUMBER" in details else ""


def exhausted(details: str) -> Meaning:
    """Return the meaning of an error with the status code RESOURCE_EXHAUSTED, from its message.

    In most cases, a message is larger than a limit of polyver or of the function.
    """
    if found := _LARGER.search(details):
        what = "the response" if "CLIENT: Received" in details else "the request"
        size, most = f"{int(found[1]):,}", f"{int(found[2]):,}"
        fact = f"could not be called: {what} has {size} bytes, and {most} are allowed"
        return Meaning(CallFailure.TOO_LARGE, fact)
    return Meaning(CallFailure.FAILED, f"failed: RESOURCE_EXHAUSTED: {short(details)}")


def is_other_protocol(details: str) -> bool:
    """Report whether an error message shows that the server speaks another protocol than gRPC."""
    return "Failed parsing HTTP/2" in details or "missing selected ALPN" in details


def short(details: str) -> str:
    """Shorten a message from gRPC or a function to one line of limited length."""
    line = " ".join(details.split())
    return line if len(line) <= _MOST_TOLD else f"{line[:_MOST_TOLD]}…"


Channel = grpc.aio.Channel
Code = grpc.StatusCode
RpcError = grpc.aio.AioRpcError


class ConnectionClosed(Exception):
    """This process closed the connection during a call."""


def open_channel(endpoint: Endpoint, *, most_sent: int, most_received: int) -> Channel:
    """Create a channel. It connects at its first call, and connects again after a lost connection.

    Raise FunctionFailed if the address of the endpoint is not HOST:PORT or dns:///HOST:PORT.
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
        # One authority signs the certificates of all functions. So the name in the certificate is
        # checked too.
        options.append(("grpc.ssl_target_name_override", trust.name))
    credentials = grpc.ssl_channel_credentials(
        trust.bundle, private_key=trust.pair.key, certificate_chain=trust.pair.certificate
    )
    return grpc.aio.secure_channel(endpoint.address, credentials, options)


async def answered(channel: Channel, method: str, request: bytes, *, within: float) -> bytes:
    """Call a method. Return the response as bytes, or raise RpcError or ConnectionClosed."""
    # Without serializers (None, None), gRPC sends and returns bytes.
    try:
        return bytes(await channel.unary_unary(method, None, None)(request, timeout=within))
    except grpc.aio.UsageError as error:
        raise ConnectionClosed from error
    except asyncio.CancelledError:
        # gRPC also raises CancelledError if the channel is closed during the call. Only
        # `cancelling` shows whether the task was cancelled.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionClosed from None


def failed(found: Meaning, endpoint: Endpoint, *, sent: bool) -> FunctionFailed:
    """Build the error for a failed call.

    `sent` is True if the function may have received the request.
    """
    about = {"revision": endpoint.revision, "address": endpoint.address}
    return FunctionFailed(found.failure, found.fact, **about, sent=sent)


def meaning(error: RpcError, endpoint: Endpoint, *, within: float) -> Meaning:
    """Return the meaning of a gRPC error. `within` is the timeout of the call in seconds."""
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


class FunctionConnection:
    """A connection to a function.

    The first call opens it. If it is lost, the next call opens it again.
    """

    def __init__(self, endpoint: Endpoint, *, most_sent: int, most_received: int) -> None:
        self.endpoint = endpoint
        self.calls = 0
        """Number of calls in progress, including those that wait for their next try."""
        self._channel = open_channel(endpoint, most_sent=most_sent, most_received=most_received)
        self._methods = METHODS

    async def ask(self, request: bytes, *, within: float) -> bytes:
        """Send a request, and return the response as bytes.

        Raise RpcError if there is no response. If the function does not support the current version
        of the protocol, send the request again in the other version, and use that version for all
        later calls.
        """
        known, other = self._methods
        try:
            return await answered(self._channel, known, request, within=within)
        except RpcError as error:
            if error.code() is not Code.UNIMPLEMENTED:
                raise
        answer = await answered(self._channel, other, request, within=within)
        self._methods = (other, known)
        return answer

    async def close(self) -> None:
        """Close the connection. Calls in progress fail."""
        await self._channel.close(None)
