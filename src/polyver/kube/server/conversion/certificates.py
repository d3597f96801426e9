"""Error messages about the certificate of a webhook, in the words of kube-apiserver.

OpenSSL reports only which check of the certificate failed, but the messages also need the content
of the certificate. Therefore polyver fetches the certificate again, on a new connection over which
it sends no request.
"""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from typing import Any

from cryptography import x509

__all__ = ["certificate_problem", "context_for", "explained"]

_TIMEOUT = 5.0
_NOT_YET_VALID, _EXPIRED = 9, 10
_OTHER_NAME, _OTHER_ADDRESS = 62, 64
_UNKNOWN_AUTHORITY = (2, 18, 19, 20, 21, 27)


def context_for(bundle: bytes) -> ssl.SSLContext:
    """Create a TLS context that trusts the CAs in `bundle`, which is in PEM format.

    If `bundle` is empty, the context trusts the CAs of the machine. Raise SSLError if `bundle` is
    not valid.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Certificates in the bundle are trusted even if they are not self-signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if bundle.strip():
        context.load_verify_locations(cadata=bundle.decode("ascii", "replace"))
    else:
        context.load_default_certs()
    return context


async def certificate_problem(
    error: ssl.SSLCertVerificationError, host: str, address: str, port: int
) -> str:
    """Build the message about a certificate that the TLS library refused with `error`."""
    certificate = None
    if error.verify_code in (_NOT_YET_VALID, _EXPIRED, _OTHER_NAME, _OTHER_ADDRESS):
        certificate = await _fetch(host, address, port)
    now = datetime.datetime.now(datetime.UTC)
    problem = explained(error.verify_code, error.verify_message, host, certificate, now=now)
    return f"tls: failed to verify certificate: x509: {problem}"


def explained(
    code: int,
    message: str,
    host: str,
    certificate: x509.Certificate | None,
    *,
    now: datetime.datetime,
) -> str:
    """Convert an error of OpenSSL to the message that Go's TLS library has for this error."""
    if code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if certificate is None:
        return message
    if code in (_OTHER_NAME, _OTHER_ADDRESS):
        return _other_name(host, certificate)
    wrong = "certificate has expired or is not yet valid: current time "
    end, start = certificate.not_valid_after_utc, certificate.not_valid_before_utc
    when = f"after {_time(end)}" if now > end else f"before {_time(start)}"
    return f"{wrong}{_time(now)} is {when}"


def _time(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _other_name(host: str, certificate: x509.Certificate) -> str:
    names, addresses = _names(certificate)
    if _is_address(host):
        if not addresses:
            why = "because it doesn't contain any IP SANs"
            return f"cannot validate certificate for {host} {why}"
        return f"certificate is valid for {', '.join(addresses)}, not {host}"
    if not names:
        return f"certificate is not valid for any names, but wanted to match {host}"
    return f"certificate is valid for {', '.join(names)}, not {host}"


def _names(certificate: x509.Certificate) -> tuple[list[str], list[str]]:
    """Return the DNS names and the IP addresses in a certificate."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return [], []
    addresses = found.get_values_for_type(x509.IPAddress)
    return found.get_values_for_type(x509.DNSName), [str(each) for each in addresses]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _fetch(host: str, address: str, port: int) -> x509.Certificate | None:
    """Fetch the certificate of a server, whether or not it is valid.

    Return None if the server cannot be reached.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(_TIMEOUT):
            _, writer = await asyncio.open_connection(
                address, port, ssl=context, server_hostname=host
            )
    except OSError:
        return None
    found: Any = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return x509.load_der_x509_certificate(found) if found else None
