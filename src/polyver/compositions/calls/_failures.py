"""What gRPC says about a call that came to nothing, in our words.

gRPC has one status for everything about connections; what happened is in its sentences alone.
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
"""What follows a handshake that the other side takes back: servers in Python and C, and in Go."""
_MOST_TOLD = 300


@dataclass(frozen=True, slots=True)
class Meaning:
    """A failure, what the function does or did, and how often such a call is tried."""

    failure: CallFailure
    fact: str
    tries: int = 1
    sent: bool = False
    """Whether the function may have seen the request, and have failed because of it."""


def unavailable(details: str, *, secure: bool) -> Meaning:
    """Why there is no connection, or no longer one.

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
    """Why a certificate is not believed, if that is the reason."""
    if found := _VERIFY.search(details):
        return f"has an untrusted certificate: {found[1]}"
    if "Hostname Verification Check failed" in details:
        return "has a certificate for another name"
    return "does not speak TLS" if "WRONG_VERSION_NUMBER" in details else ""


def exhausted(details: str) -> Meaning:
    """What was too much: gRPC says so in the same way for either side's limit."""
    if found := _LARGER.search(details):
        what = "the response" if "CLIENT: Received" in details else "the request"
        size, most = f"{int(found[1]):,}", f"{int(found[2]):,}"
        fact = f"could not be called: {what} has {size} bytes, and {most} are allowed"
        return Meaning(CallFailure.TOO_LARGE, fact)
    return Meaning(CallFailure.FAILED, f"failed: RESOURCE_EXHAUSTED: {short(details)}")


def is_other_protocol(details: str) -> bool:
    """Whether somebody answers who speaks something else, such as HTTP/1."""
    return "Failed parsing HTTP/2" in details or "missing selected ALPN" in details


def short(details: str) -> str:
    """What somebody else wrote, in one line that is not too long."""
    line = " ".join(details.split())
    return line if len(line) <= _MOST_TOLD else f"{line[:_MOST_TOLD]}…"
