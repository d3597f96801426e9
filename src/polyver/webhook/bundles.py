"""Write the CA bundle to all CRDs and webhook configurations that name the webhook server.

Each object is read before the bundle is read, and is changed only if its resourceVersion is still
the same. So a slow replica cannot overwrite a newer bundle with an older bundle.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from polyver.client import CRDS, Change, Client, Clock, GroupVersionResource, Informer, find
from polyver.client.field_managers import POLYVER
from polyver.core.plain import Object
from polyver.kube.objects.status import MODIFIED, ApiError
from polyver.kube.objects.webhooks import INJECT_CA_FROM, Webhook

__all__ = ["CONFIGURATIONS", "CRDS", "Bundles", "trusting"]

CONFIGURATIONS = tuple(
    GroupVersionResource(
        "admissionregistration.k8s.io", "v1", f"{each}webhookconfigurations", namespaced=False
    )
    for each in ("mutating", "validating")
)
_MOST_TRIES = 20
Target = tuple[GroupVersionResource, str]


def trusting(obj: Object, bundle: bytes, at: Webhook) -> Object | None:
    """Build the merge patch that sets the CA bundle in each `clientConfig` for the webhook server.

    Return None if no patch is needed: the bundle is set already, the object does not name the
    webhook server, or cert-manager injects the bundle.
    """
    metadata = obj["metadata"]
    if INJECT_CA_FROM in (metadata.get("annotations") or {}):
        return None
    text = base64.b64encode(bundle).decode()
    guard = {"metadata": {"resourceVersion": metadata["resourceVersion"]}}
    if "webhooks" in obj:
        webhooks = [_trusting(each, text, at) for each in obj["webhooks"] or ()]
        return None if webhooks == (obj["webhooks"] or []) else guard | {"webhooks": webhooks}
    webhook = (obj.get("spec", {}).get("conversion") or {}).get("webhook") or {}
    if _trusting(webhook, text, at) == webhook:
        return None
    return guard | {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": text}}}}}


def _trusting(webhook: Object, text: str, at: Webhook) -> Object:
    client = webhook.get("clientConfig") or {}
    return (
        webhook | {"clientConfig": client | {"caBundle": text}} if _names(client, at) else webhook
    )


def _names(client: Object, at: Webhook) -> bool:
    if at.url:
        url = str(client.get("url") or "")
        return url == at.url or url.startswith(f"{at.url.rstrip('/')}/")
    service = client.get("service") or {}
    return (service.get("namespace"), service.get("name")) == (at.namespace, at.service)


class Bundles:
    """Writes the CA bundle of one webhook server to all objects that name this server."""

    def __init__(
        self,
        client: Client,
        at: Webhook,
        bundle: Callable[[], Awaitable[bytes]],
        *,
        crds: Callable[[], Iterable[str]] = tuple,
        configurations: Sequence[str] = ("polyver",),
    ) -> None:
        """Create the writer for the webhook server `at`.

        `bundle` returns the CA bundle. `crds` returns the names of the CRDs that may name the
        server; `configurations` are the names of the webhook configurations.
        """
        self._client = client
        self._at = at
        self._bundle = bundle
        self._crds = crds
        self._configurations = configurations

    def _targets(self) -> list[Target]:
        configurations = [(each, name) for each in CONFIGURATIONS for name in self._configurations]
        return [*((CRDS, name) for name in self._crds()), *configurations]

    async def publish(self) -> int:
        """Write the current bundle to all objects; return the number of changed objects."""
        found = [(*target, await find(self._client, *target)) for target in self._targets()]
        there = [(resource, name, obj) for resource, name, obj in found if obj is not None]
        if not there:
            return 0
        bundle = await self._bundle()
        return sum([await self._write(*each, bundle) for each in there])

    async def _write(
        self, resource: GroupVersionResource, name: str, known: Object, known_bundle: bytes
    ) -> bool:
        obj: Object | None = known
        bundle = known_bundle
        for _ in range(_MOST_TRIES):
            change = obj and trusting(obj, bundle, self._at)
            if not change:
                return False
            try:
                await self._client.patch(resource, name, change=change, manager=POLYVER)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise
            else:
                return True
            obj = await find(self._client, resource, name)
            bundle = await self._bundle()
        raise ApiError(409, "Conflict", f"{resource.plural} {name}: {MODIFIED}")

    async def observed(self, bundle: bytes) -> bool:
        """Report whether all objects that name the webhook have this bundle."""
        for resource, name in self._targets():
            obj = await find(self._client, resource, name)
            if obj is not None and trusting(obj, bundle, self._at) is not None:
                return False
        return True

    async def watch(self, changed: Callable[[], None], *, clock: Clock) -> None:
        """Call `changed` for every change of an object that may name the webhook.

        The method runs until its task is cancelled.
        """

        async def handle(change: Change[str]) -> None:
            if change.after is not None:
                changed()

        async with asyncio.TaskGroup() as group:
            for resource in (CRDS, *CONFIGURATIONS):
                informer: Informer[str] = Informer(
                    self._client,
                    resource,
                    keep=_revision,
                    handler=handle,
                    metadata=True,
                    clock=clock,
                )
                group.create_task(informer.run())


def _revision(obj: dict[str, Any]) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))
