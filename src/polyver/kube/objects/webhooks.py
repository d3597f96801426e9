"""The address of a webhook, and its `clientConfig`, by which API servers find the webhook."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

__all__ = ["INJECT_CA_FROM", "Webhook", "client_data"]

INJECT_CA_FROM = "cert-manager.io/inject-ca-from"


@dataclass(frozen=True, slots=True)
class Webhook:
    """The address of a webhook: a service in the cluster, or a URL."""

    namespace: str = ""
    service: str = ""
    port: int | None = None
    path: str = ""
    url: str = ""
    ca_bundle: str = ""
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


def _present(data: dict[str, Any], **more: Any) -> dict[str, Any]:
    return data | {name: value for name, value in more.items() if value not in ("", None)}
