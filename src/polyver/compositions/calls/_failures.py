"""Translation of gRPC's error messages into our kinds of failure.

gRPC uses one status for all connection problems; only its message says which one it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from polyver.compositions.calls.errors import CallFailure

__all__ = ["Meaning", "exhausted", "is_other_protocol", "short", "unavailable"]

_VERIFY = re.compile(r"CERTIFICATE_VERIFY_FAILED: (.*?)(?:: OK)?$")
_LARGER = re.compile(r"message larger than max \((\d+) vs\. (\d+)\)", re.IGNORECASE)
_CONNECTING = "failed to connect to all addresses"
_CLOSED = {
    True: "closes each connection after the TLS handshake: it does not trust the certificate "
    "of the caller, or is shutting down",
    False: "closes each connection at once: it accepts only TLS, or is shutting down",
}
_ENDED_AT_ONCE = (": Socket closed", ": Unwrap failed (TSI_DATA_CORRUPTED)")
"""Endings of messages after the server ended the connection during or after the TLS handshake: the
first from servers in Python and C, the second from Go.
"""
_MOST_TOLD = 300


@dataclass(frozen=True, slots=True)
class Meaning:
    """A kind of failure, a sentence about the function, and the number of tries for such calls."""

    failure: CallFailure
    fact: str
    tries: int = 1
    sent: bool = False
    """True if the function may have received the request, and have failed because of it."""


def unavailable(details: str, *, secure: bool) -> Meaning:
    """Return the reason why there is no connection, or why it broke.

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
    """Return the reason why the TLS handshake failed; empty if the cause is another one."""
    if found := _VERIFY.search(details):
        return f"has an untrusted certificate: {found[1]}"
    if "Hostname Verification Check failed" in details:
        return "has a certificate for another name"
    return "does not speak TLS" if "WRONG_VERSION_NUMBER" in details else ""


def exhausted(details: str) -> Meaning:
    """Return the meaning of RESOURCE_EXHAUSTED, which gRPC uses for both sides' size limits."""
    if found := _LARGER.search(details):
        what = "the response" if "CLIENT: Received" in details else "the request"
        size, most = f"{int(found[1]):,}", f"{int(found[2]):,}"
        fact = f"could not be called: {what} has {size} bytes, and {most} are allowed"
        return Meaning(CallFailure.TOO_LARGE, fact)
    return Meaning(CallFailure.FAILED, f"failed: RESOURCE_EXHAUSTED: {short(details)}")


def is_other_protocol(details: str) -> bool:
    """Report whether the server speaks another protocol, such as HTTP/1."""
    return "Failed parsing HTTP/2" in details or "missing selected ALPN" in details


def short(details: str) -> str:
    """Return a message of another program as one line of limited length."""
    line = " ".join(details.split())
    return line if len(line) <= _MOST_TOLD else f"{line[:_MOST_TOLD]}…"
