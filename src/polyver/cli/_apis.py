"""The capability apis in the embedded control plane: conversions, and kinds declared in Python."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyver.apis import Kind
    from polyver.engine import Controller
    from polyver.server.api import Api

__all__ = ["serve_apis"]


async def serve_apis(
    api: Api, kinds: Sequence[Kind], *, address: str, ca: str
) -> list[Controller[Any]]:
    """Have conversions and kinds served; the controllers that go with them are returned."""
    from polyver.apis import Webhook, crd_of
    from polyver.capabilities.apis.conversion_kind import CONVERSIONS
    from polyver.cli._loading import apply_definition
    from polyver.engine import ConversionController, DeclaredController
    from polyver.server.declared import ConversionChecks, ConvertedKinds
    from polyver.server.direct import DirectClient
    from polyver.server.identity import ADMIN

    client = DirectClient(api, ADMIN, agent="polyver")
    api.catalogue.subscribe(client.kinds_changed)
    named = {kind.definition().name: kind for kind in kinds}
    api.admission.add(ConversionChecks(api.server))
    api.admission.add(ConvertedKinds(api.server, named))
    bundle = base64.b64encode(ca.encode()).decode()
    webhook = Webhook(url=f"https://{address}/convert", ca_bundle=bundle)
    for kind in (CONVERSIONS, *kinds):
        definition = kind.definition()
        if kind.converter is not None:
            api.server.conversions.publish(definition.name, kind.converter)
        await apply_definition(client, crd_of(definition, webhook if kind.converter else None))
    told = crd_conversion(webhook)
    conversions = ConversionController(client, api.server.conversions.publish, told=told)
    await conversions.load()
    own = [DeclaredController(client, kind) for kind in kinds if kind.controller is not None]
    return [conversions, *own]


def crd_conversion(webhook: Any) -> dict[str, Any]:
    """What a definition says of who converts."""
    client = {"url": webhook.url, "caBundle": webhook.ca_bundle}
    reviews = list(webhook.reviews)
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": reviews},
    }
