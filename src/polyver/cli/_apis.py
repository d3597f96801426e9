"""The capability apis in the embedded control plane: conversions, and kinds declared in Python."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyver.apis import Kind
    from polyver.engine import Controller
    from polyver.server._http import Request
    from polyver.server.api import Api
    from polyver.server.conversion import ServedConversions
    from polyver.serving.http import Response

__all__ = ["serve_apis"]

_PATH = "/convert"


async def serve_apis(
    api: Api, kinds: Sequence[Kind], *, address: str, ca: str
) -> list[Controller[Any]]:
    """Have conversions and kinds served; the controllers that go with them are returned."""
    from polyver.admission.conversions import ConversionChecks
    from polyver.admission.kinds import ConvertedKinds
    from polyver.apis import Webhook, crd_of
    from polyver.capabilities.apis import conversion_data
    from polyver.capabilities.apis.conversion_kind import CONVERSIONS
    from polyver.cli._loading import apply_definition
    from polyver.client import CRDS, find
    from polyver.engine import ConversionController, DeclaredController
    from polyver.server.direct import DirectClient
    from polyver.server.identity import ADMIN

    client = DirectClient(api, ADMIN, agent="polyver")
    api.catalogue.subscribe(client.kinds_changed)
    named = {kind.definition().name: kind for kind in kinds}
    served = api.server.conversions
    api.admission.add(ConversionChecks(partial(find, client, CRDS)))
    api.admission.add(ConvertedKinds(lambda kind: served.get(kind.resource), named))
    api.paths[_PATH] = partial(_review, served)
    bundle = base64.b64encode(ca.encode()).decode()
    webhook = Webhook(url=f"https://{address}{_PATH}", ca_bundle=bundle)
    for kind in (CONVERSIONS, *kinds):
        definition = kind.definition()
        if kind.converter is not None:
            served.publish(definition.name, kind.converter)
        await apply_definition(client, crd_of(definition, webhook if kind.converter else None))
    told = conversion_data(webhook)
    conversions = ConversionController(client, served.publish, told=told)
    await conversions.load()
    own = [DeclaredController(client, kind) for kind in kinds if kind.controller is not None]
    return [conversions, *own]


async def _review(conversions: ServedConversions, request: Request) -> Response:
    """Reviews that somebody posts, answered as a webhook answers them."""
    from polyver.serving.http import Response
    from polyver.webhook import review

    made = await asyncio.to_thread(review, request.body, conversions.by_kind)
    return Response(made.status, [("content-type", "application/json")], made.body)
