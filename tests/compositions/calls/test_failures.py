"""What gRPC's sentences mean: each was said by a real server, of Python or of Go."""

from __future__ import annotations

import pytest

from polyver.compositions.calls._channels import exhausted, is_other_protocol, short, unavailable
from polyver.compositions.calls.errors import CallFailure

CONNECTING = "failed to connect to all addresses; last error: "
TLS = "Tls handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: error:1000007d:SSL routines:"


@pytest.mark.parametrize(
    ("details", "failure", "fact", "tries"),
    [
        (
            f"{CONNECTING}UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: "
            "Connection refused",
            CallFailure.UNREACHABLE,
            "is not reachable: nothing listens at its address",
            3,
        ),
        (
            f"{CONNECTING}UNKNOWN: ipv4:127.0.0.1:1: {TLS}OPENSSL_internal:"
            "CERTIFICATE_VERIFY_FAILED: certificate has expired: OK",
            CallFailure.REFUSED,
            "has an untrusted certificate: certificate has expired",
            1,
        ),
        (
            f"{CONNECTING}UNAVAILABLE: ipv4:127.0.0.1:1: Unwrap failed (TSI_DATA_CORRUPTED)",
            CallFailure.REFUSED,
            "closes each connection after the TLS handshake: it does not trust the certificate "
            "of the caller, or is shutting down",
            3,
        ),
        (
            f"{CONNECTING}UNAVAILABLE: ipv4:127.0.0.1:1: Handshake read failed (Socket closed)",
            CallFailure.UNREACHABLE,
            f"cannot be reached: {CONNECTING}UNAVAILABLE: ipv4:127.0.0.1:1: "
            "Handshake read failed (Socket closed)",
            3,
        ),
        ("Socket closed", CallFailure.UNREACHABLE, "cannot be reached: Socket closed", 2),
        (
            "Cancelling all calls",
            CallFailure.UNREACHABLE,
            "cannot be reached: Cancelling all calls",
            2,
        ),
    ],
)
def test_why_there_is_no_connection(
    details: str, failure: CallFailure, fact: str, tries: int
) -> None:
    found = unavailable(details, secure=True)
    assert (found.failure, found.fact, found.tries) == (failure, fact, tries)


@pytest.mark.parametrize(
    ("details", "what"),
    [
        ("SERVER: Received message larger than max (7 vs. 4)", "the request has 7 bytes"),
        ("grpc: received message larger than max (7 vs. 4)", "the request has 7 bytes"),
        (
            "Stream removed (CLIENT: Received message larger than max (7 vs. 4))",
            "the response has 7",
        ),
    ],
)
def test_which_message_was_too_large(details: str, what: str) -> None:
    found = exhausted(details)
    assert found.failure is CallFailure.TOO_LARGE
    assert what in found.fact


def test_what_others_write_is_one_line_of_some_length() -> None:
    assert short(" a\n b\t") == "a b"
    assert len(short("x" * 10_000)) == 301
    assert is_other_protocol("UNKNOWN: Cannot check peer: missing selected ALPN property.")
