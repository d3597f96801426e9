"""What gRPC says about a call that came to nothing, in our words.

gRPC has one status for everything about connections; what happened is in its sentences alone.
"""

from __future__ import annotations

import re

from polyver.calling.errors import Failure

__all__ = ["is_connecting", "short", "unavailable"]

_VERIFY = re.compile(r"CERTIFICATE_VERIFY_FAILED: (.*?)(?:: OK)?$")
_CONNECTING = "failed to connect to all addresses"
_CLOSED = {
    True: "closes each connection after the TLS handshake: it does not believe the caller's "
    "certificate, or is just ending",
    False: "closes each connection at once: it speaks TLS alone, or is just ending",
}
_MOST_TOLD = 300


def unavailable(details: str, *, secure: bool) -> tuple[Failure, str]:
    """Why there is no connection, or no longer one: the failure, and what the function does.

    >>> failure, fact = unavailable("… CERTIFICATE_VERIFY_FAILED: expired: OK", secure=True)
    >>> print(failure, "|", fact)
    Refused | shows a certificate that is not believed: expired
    """
    if found := _VERIFY.search(details):
        return Failure.REFUSED, f"shows a certificate that is not believed: {found[1]}"
    if "Hostname Verification Check failed" in details:
        return Failure.REFUSED, "shows a certificate for another name"
    if "WRONG_VERSION_NUMBER" in details:
        return Failure.REFUSED, "does not speak TLS"
    if is_connecting(details) and details.endswith(": Socket closed"):
        return Failure.REFUSED, _CLOSED[secure]
    if "Connection refused" in details:
        return Failure.UNREACHABLE, "is not there: nobody listens at its address"
    return Failure.UNREACHABLE, f"cannot be reached: {short(details)}"


def is_connecting(details: str) -> bool:
    """Whether there was no connection at all, so that the function has seen nothing."""
    return details.startswith(_CONNECTING)


def short(details: str) -> str:
    """What somebody else wrote, in one line that is not too long."""
    line = " ".join(details.split())
    return line if len(line) <= _MOST_TOLD else f"{line[:_MOST_TOLD]}…"
