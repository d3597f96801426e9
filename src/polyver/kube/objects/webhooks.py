"""The address of a webhook, and its `clientConfig`, by which API servers find the webhook."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["CONVERT", "INJECT_CA_FROM", "Webhook", "client_data", "webhook_problem"]

CONVERT = "/convert"
"""The URL path at which polyver serves conversion reviews."""
INJECT_CA_FROM = "cert-manager.io/inject-ca-from"
_REVIEWS = ("v1", "v1beta1")


@dataclass(frozen=True, slots=True)
class Webhook:
    """The address of a webhook: a service in the cluster, or a URL."""

    namespace: str = ""
    service: str = ""
    port: int | None = None
    path: str = ""
    url: str = ""
    ca_bundle: str = ""
    """The CA certificates with which API servers verify the webhook: PEM, in base64."""
    inject_ca_from: str = ""
    """The Certificate, as NAMESPACE/NAME, from which cert-manager takes the CA for the webhook."""
    reviews: tuple[str, ...] = ("v1",)

    def at(self, path: str) -> Webhook:
        """Return the webhook with the same server and the URL path `path`.

        >>> Webhook(url="https://hooks.example.com").at("/convert").url
        'https://hooks.example.com/convert'
        """
        if self.url:
            return replace(self, url=f"{self.url.rstrip('/')}{path}")
        return replace(self, path=path)


def client_data(webhook: Webhook) -> dict[str, Any]:
    """Build the field `clientConfig` of a webhook configuration or a CRD."""
    client: dict[str, Any] = {"url": webhook.url}
    if not webhook.url:
        service = {"namespace": webhook.namespace, "name": webhook.service}
        client = {"service": _present(service, path=webhook.path, port=webhook.port)}
    return _present(client, caBundle=webhook.ca_bundle)


def webhook_problem(webhook: Webhook) -> str:
    """Return the first reason why API servers cannot call a webhook, or an empty string.

    >>> webhook_problem(Webhook(namespace="shop", service="hooks"))
    ''
    >>> webhook_problem(Webhook(service="hooks"))
    'a Service needs a namespace and a name'
    """
    return next(_problems(webhook), "")


def _problems(webhook: Webhook) -> Iterator[str]:
    service, port = webhook.service or webhook.namespace, webhook.port
    if bool(webhook.url) == bool(service):
        yield "it needs either a Service or a URL"
    if webhook.url and not re.match("https://[^/]", webhook.url):
        yield f"the URL {webhook.url} does not begin with https:// and a host"
    if webhook.url and (port is not None or webhook.path):
        yield "port and path belong to a Service; write them in the URL"
    if service and not (webhook.service and webhook.namespace):
        yield "a Service needs a namespace and a name"
    if port is not None and not 0 < port < 65536:
        yield f"the port {port} is not between 1 and 65535"
    if webhook.path and not webhook.path.startswith("/"):
        yield f"the path {webhook.path} does not begin with /"
    if webhook.inject_ca_from and not re.fullmatch(r"[^/:]+/[^/:]+", webhook.inject_ca_from):
        yield f"inject_ca_from {webhook.inject_ca_from} is not NAMESPACE/NAME"
    if webhook.ca_bundle and not _has_certificate(webhook.ca_bundle):
        yield "ca_bundle is not a PEM certificate in base64"
    if not webhook.reviews or not {*webhook.reviews} <= {*_REVIEWS}:
        yield f"reviews must be one or both of {' and '.join(_REVIEWS)}"


def _has_certificate(bundle: str) -> bool:
    try:
        return b"-----BEGIN CERTIFICATE-----" in base64.b64decode(bundle, validate=True)
    except (binascii.Error, ValueError):
        return False


def _present(data: dict[str, Any], **more: Any) -> dict[str, Any]:
    return data | {name: value for name, value in more.items() if value not in ("", None)}
