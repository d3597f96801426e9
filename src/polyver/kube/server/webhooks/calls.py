"""Calls to admission webhooks over persistent connections."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from collections.abc import Iterable, Mapping
from typing import Any

from polyver.kube.server.conversion.certificates import context_for
from polyver.kube.server.conversion.reviews import WebhookCallFailed
from polyver.kube.server.conversion.statuses import WebhookResponse, problem_of
from polyver.kube.server.conversion.transport import (
    Transport,
    WebhookAddress,
    no_service,
    post_with_retries,
    service_url,
)
from polyver.kube.server.webhooks.configuration import AdmissionWebhook

__all__ = ["WebhookCaller"]

_TIMED_OUT = "context deadline exceeded"
_Key = tuple[str, str, int]


class WebhookCaller:
    """Sends AdmissionReviews to webhooks."""

    def __init__(self) -> None:
        self._transports: dict[_Key, Transport] = {}

    async def call(self, hook: AdmissionWebhook, body: bytes) -> bytes:
        """Send a review and return the body of the answer.

        Raise `WebhookCallFailed` if there is no usable answer.
        """
        try:
            answer = await self._answer(hook, body)
        except WebhookCallFailed as error:
            raise _failed(str(error)) from None
        if problem := problem_of(answer):
            raise _failed(problem)
        return answer.body

    async def _answer(self, hook: AdmissionWebhook, body: bytes) -> WebhookResponse:
        url, service = _url(hook.client), hook.client.get("service")
        if service:
            raise no_service(WebhookAddress.parse(url), service["name"], hook.timeout)
        until = asyncio.get_running_loop().time() + hook.timeout
        return await post_with_retries(self._transport(hook, url), body, until=until)

    def _transport(self, hook: AdmissionWebhook, url: str) -> Transport:
        key = _key(hook)
        if key not in self._transports:
            bundle = hook.client.get("caBundle") or ""
            self._transports[key] = Transport(
                WebhookAddress.parse(url),
                lambda: _context(bundle),
                timeout=hook.timeout,
                timed_out=_TIMED_OUT,
            )
        return self._transports[key]

    async def keep(self, hooks: Iterable[AdmissionWebhook]) -> None:
        """Close all connections except those to the webhooks in `hooks`."""
        needed = {_key(hook) for hook in hooks}
        gone = [key for key in self._transports if key not in needed]
        for transport in [self._transports.pop(key) for key in gone]:
            await transport.close()


def _failed(problem: str) -> WebhookCallFailed:
    return WebhookCallFailed(f"failed to call webhook: {problem}")


def _key(hook: AdmissionWebhook) -> _Key:
    return _url(hook.client), hook.client.get("caBundle") or "", hook.timeout


def _url(client: Mapping[str, Any]) -> str:
    service = client.get("service")
    return service_url(service) if service else client.get("url") or ""


def _context(bundle: str) -> ssl.SSLContext:
    try:
        return context_for(base64.b64decode(bundle))
    except (ssl.SSLError, binascii.Error):
        message = "unable to load root certificates: unable to parse bytes as PEM block"
        raise WebhookCallFailed(message) from None
