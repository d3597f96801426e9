"""Validation of `spec.conversion` of a definition."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from polyver.kube.objects.status import Cause, forbidden_field, invalid_field, required, unsupported
from polyver.languages.values.names import dns_1035_label_problems, dns_subdomain_problems
from polyver.languages.values.strings import quoted

__all__ = ["check_conversion", "is_ca_bundle"]

_PATH = "spec.conversion"
_CLIENT, _REVIEWS = f"{_PATH}.webhookClientConfig", f"{_PATH}.conversionReviewVersions"
_KNOWN = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"


def check_conversion(conversion: Mapping[str, Any], *, any_ca: bool) -> Iterable[Cause]:
    """Yield the problems of `spec.conversion`; with `any_ca` the CA bundle is not checked."""
    strategy = conversion.get("strategy") or ""
    webhook = conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if not strategy:
        yield required(f"{_PATH}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield unsupported(f"{_PATH}.strategy", strategy, ("None", "Webhook"))
    if strategy == "Webhook":
        yield from _check_client(client, any_ca=any_ca)
        yield from _check_reviews(reviews)
        return
    text = "should not be set when strategy is not set to Webhook"
    if client is not None:
        yield forbidden_field(_CLIENT, text)
    if reviews:
        yield forbidden_field(_REVIEWS, text)


def _check_client(client: Mapping[str, Any] | None, *, any_ca: bool) -> Iterable[Cause]:
    if client is None:
        yield required(_CLIENT, "required when strategy is set to Webhook")
        return
    url, service, bundle = client.get("url"), client.get("service"), client.get("caBundle")
    if (url is None) == (service is None):
        yield required(_CLIENT, "exactly one of url or service is required")
    elif url is not None:
        yield from _check_url(url, f"{_CLIENT}.url")
    elif service is not None:
        yield from _check_service(service, f"{_CLIENT}.service")
    if bundle and not any_ca and not is_ca_bundle(bundle):
        text = "unable to parse bytes as PEM block"
        if b"-----BEGIN" in base64.b64decode(bundle):
            text = "failed to parse certificate: x509: malformed certificate"
        text = f"unable to load root certificates: {text}"
        yield invalid_field(f"{_CLIENT}.caBundle", bundle, text)


def _check_url(url: str, path: str) -> Iterable[Cause]:
    if problem := _unreadable(url):
        told = f"parse {quoted(url)}: {problem}"
        yield required(path, f"url must be a valid URL: {told}{_FORM}")
        return
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    if parts.scheme != "https":
        text = f"'https' is the only allowed URL scheme{_FORM}"
        yield invalid_field(path, parts.scheme, text)
    if not host:
        yield invalid_field(path, host, f"host must be specified{_FORM}")
    if "@" in parts.netloc:
        yield invalid_field(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid_field(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid_field(path, parts.query, "query parameters are not permitted in the URL")


def _unreadable(url: str) -> str:
    """Return why a string is not a URL; an empty string if it is one."""
    if url.startswith(":"):
        return "missing protocol scheme"
    try:
        urlsplit(url)
    except ValueError:
        return "missing ']' in host"
    return ""


def _check_service(service: Mapping[str, Any], path: str) -> Iterable[Cause]:
    # In its messages kube-apiserver exchanges these two fields.
    if not service.get("namespace"):
        yield required(f"{path}.name")
    if not service.get("name"):
        yield required(f"{path}.namespace")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        yield invalid_field(f"{path}.port", port, text)
    if service.get("path") not in (None, "", "/"):
        yield from _check_path(service["path"], f"{path}.path")


def _check_path(found: str, path: str) -> Iterable[Cause]:
    if found == "//":
        yield invalid_field(path, found, "segment[0] may not be empty")
        return
    if not found.startswith("/"):
        yield invalid_field(path, found, "must start with a '/'")
    for number, segment in enumerate(found[1:].removesuffix("/").split("/")):
        if not segment:
            yield invalid_field(path, found, f"segment[{number}] may not be empty")
            continue
        for problem in dns_subdomain_problems(segment):
            yield invalid_field(path, found, f"segment[{number}]: {problem}")


def _check_reviews(versions: list[str]) -> Iterable[Cause]:
    if not versions:
        yield required(_REVIEWS)
        return
    for number, version in enumerate(versions):
        path = f"{_REVIEWS}[{number}]"
        if version in versions[:number]:
            yield invalid_field(path, version, "duplicate version")
            continue
        for problem in dns_1035_label_problems(version):
            yield invalid_field(path, version, problem)
    if not set(versions) & set(_KNOWN):
        yield invalid_field(_REVIEWS, versions, f"must include at least one of {', '.join(_KNOWN)}")


def is_ca_bundle(encoded: str) -> bool:
    """Report whether a base64 string holds certificates."""
    from cryptography import x509

    try:
        return bool(x509.load_pem_x509_certificates(base64.b64decode(encoded)))
    except (ValueError, binascii.Error):
        return False
