"""The capability apis in the embedded server: conversions, and kinds declared in Python."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from polyver.capability.capability import Capability, Surroundings
from polyver.capability.contributions import READ, Contribution, Right

if TYPE_CHECKING:
    from polyver.apis.conversion import Converter
    from polyver.apis.declaring import Kind
    from polyver.capability import LineageReader
    from polyver.client import Client
    from polyver.controllers import Controller
    from polyver.kube.http.http import HttpResponse
    from polyver.kube.objects.webhooks import Webhook
    from polyver.kube.server.api import ApiServer
    from polyver.kube.server.conversion import ServedConversions
    from polyver.kube.server.http import HttpRequest
    from polyver.web.sources import PageSource

__all__ = ["CAPABILITY", "own_webhook", "serve_conversions", "serve_kinds"]

_TIMEOUT = 30.0


async def serve_kinds(
    api: ApiServer, client: Client, kinds: Sequence[Kind], webhook: Webhook
) -> list[Controller[Any]]:
    """Serve kinds declared in Python: apply their CRDs, convert their objects, call their hooks.

    Return the controllers of these kinds.
    """
    from polyver.apis.admission.kinds import ConvertedKinds, log_unknown_formats
    from polyver.apis.controllers.python_controllers import DeclaredController
    from polyver.kube.objects.webhooks import CONVERT

    named = {kind.definition().name: kind for kind in kinds}
    served = api.server.conversions
    api.admission.add(ConvertedKinds(lambda kind: served.get(kind.resource), named))
    api.paths[CONVERT] = _Reviews(served).answer
    for kind in kinds:
        if kind.converter is not None:
            served.publish(kind.definition().name, log_unknown_formats(kind.converter))
        await _define(client, kind, webhook)
    return [DeclaredController(client, kind) for kind in kinds if kind.controller is not None]


async def serve_conversions(
    api: ApiServer, client: Client, webhook: Webhook
) -> list[Controller[Any]]:
    """Serve the Conversions that users apply: check them in admission, and convert objects by them.

    Return the controller of Conversions, and the controller that stores the counts of requests.
    """
    from polyver.apis.admission.conversions import ConversionChecks
    from polyver.apis.controllers.conversions import ConversionController
    from polyver.apis.controllers.usage import UsageController
    from polyver.apis.conversion_kind import CONVERSIONS
    from polyver.apis.crds import conversion_data
    from polyver.client import CRDS, find

    api.admission.add(ConversionChecks(partial(find, client, CRDS)))
    await _define(client, CONVERSIONS, webhook)
    told = conversion_data(webhook)
    publish = partial(_publish, api.server.conversions)
    conversions = ConversionController(client, publish, told=told)
    await conversions.load()
    usage = UsageController(client, api.request_counts, api.custom_kinds, source="APIServer")
    return [conversions, usage]


def _publish(served: ServedConversions[Any], name: str, converter: Converter | None) -> None:
    from polyver.apis.admission.kinds import log_unknown_formats

    served.publish(name, None if converter is None else log_unknown_formats(converter))


async def _define(client: Client, kind: Kind, webhook: Webhook) -> None:
    from polyver.apis.crds import crd_of
    from polyver.cli.loading import apply_definition

    await apply_definition(client, crd_of(kind.definition(), webhook if kind.converter else None))


def own_webhook(address: str, ca: str) -> Webhook:
    """Return the address and the CA of the embedded server's conversion webhook.

    polyver writes both to `spec.conversion` of CRDs. `address` is HOST:PORT.
    """
    from polyver.kube.objects.webhooks import CONVERT, Webhook

    bundle = base64.b64encode(ca.encode()).decode()
    return Webhook(url=f"https://{address}{CONVERT}", ca_bundle=bundle)


class _Reviews:
    """Answers ConversionReviews that clients post, as a webhook does."""

    def __init__(self, conversions: ServedConversions[Any]) -> None:
        from polyver.webhook.workers import Workers

        self._conversions = conversions
        self._workers = Workers()

    async def answer(self, request: HttpRequest) -> HttpResponse:
        from polyver.kube.http.http import HttpResponse
        from polyver.webhook import review
        from polyver.webhook.conversion import CallsFunctions
        from polyver.webhook.workers import FunctionKinds

        converters = self._conversions.by_kind
        until = monotonic() + _TIMEOUT
        late = partial(_is_over, until)
        work = partial(review, request.body, converters, late=late)
        kinds = FunctionKinds(converters).named_early(request.body)
        try:
            made = await self._workers.run(kinds, partial(work, calling=kinds), until)
        except CallsFunctions:
            made = await self._workers.run((), work, until)
        return HttpResponse(made.status, [("content-type", "application/json")], made.body)


def _is_over(until: float) -> bool:
    return monotonic() > until


def _contribution(settings: None, around: Surroundings) -> Contribution:
    """Return the contribution of the capability apis to a control plane.

    It serves the Conversions of users, counts the requests to versions, retires versions, and
    shows kinds on the page.
    """
    from polyver.apis.controllers.retirement_observing import VersionUsers
    from polyver.apis.controllers.retirements import RetirementController
    from polyver.apis.retirement_kind import RETIREMENTS
    from polyver.apis.version_usage import VERSION_USAGES

    del settings

    def users() -> list[VersionUsers]:
        return [users for each in around.every() for users in each.version_users]

    group, retirements, usages = (
        RETIREMENTS.group,
        RETIREMENTS.names.plural,
        VERSION_USAGES.names.plural,
    )
    return Contribution(
        kinds=(RETIREMENTS, VERSION_USAGES),
        controllers=lambda client: [
            RetirementController(client, kinds=around.kinds, users=users())
        ],
        serve=serve_conversions,
        rights=(
            Right(group, retirements, READ),
            Right(group, f"{retirements}/status", ("update",)),
            Right(group, usages, ("get", "create")),
            Right(group, f"{usages}/status", ("update",)),
            Right("apiextensions.k8s.io", "customresourcedefinitions/status", ("patch",)),
        ),
        source=_source,
    )


def _source() -> PageSource:
    from polyver.apis.page import ApisSource

    return ApisSource()


def _reader() -> LineageReader:
    from polyver.apis.lineages import READER

    return READER


CAPABILITY = Capability(
    name="apis",
    contribution=_contribution,
    commands={
        "check": "polyver.apis.commands.check:app",
        "convert": "polyver.apis.commands.convert:app",
        "create": "polyver.apis.commands.create:app",
        "crds": "polyver.apis.commands.crds:app",
        "suggest": "polyver.apis.commands.suggest:app",
    },
    reader=_reader,
)
