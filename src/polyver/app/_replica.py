"""Starts one replica of polyver for a cluster.

Every replica serves the webhooks. Only the replica that is the leader runs the controllers.
`polyver run` and the tests use the same function `replica`, so the tests cover the code of the
command.
"""

from __future__ import annotations

import asyncio
import datetime
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from polyver.apis.admission.conversions import ConversionChecks
from polyver.apis.admission.kinds import ConvertedKinds, log_unknown_formats
from polyver.apis.admission.usage import CountedWrites
from polyver.apis.controllers.conversions import ConversionController
from polyver.apis.controllers.python_controllers import DeclaredController
from polyver.apis.controllers.registrations import RegistrationController
from polyver.apis.controllers.usage import UsageController
from polyver.apis.conversion import Converter
from polyver.apis.conversion_kind import CONVERSIONS
from polyver.apis.crds import conversion_data
from polyver.apis.declaring import Kind
from polyver.app.capabilities import Choices
from polyver.capability.capability import Surroundings, WorkerAccess
from polyver.client import CRDS, Client, find
from polyver.client.cluster import ClusterAccess, ClusterClient
from polyver.controllers import Controller, ControllerManager, Leadership, Lease, Terms
from polyver.controllers.metrics import collector_of
from polyver.kube.http.addresses import url
from polyver.kube.http.background import in_background
from polyver.kube.http.listener import bind, serving
from polyver.kube.http.logs import Log
from polyver.kube.objects.webhooks import CONVERT, INJECT_CA_FROM, Webhook
from polyver.kube.server.admission import Admission, AdmissionChain
from polyver.kube.server.request_counts import RequestCounts
from polyver.webhook import ReviewHandlers, WebhookApp
from polyver.webhook.bundles import Bundles
from polyver.webhook.metrics import WebhookMetrics
from polyver.webhook.served_certificate import PairSource
from polyver.webhook.shared_certificates import SecretDocument, SharedPairs

__all__ = ["Replica", "ReplicaSettings", "replica"]

_CONVERSIONS = (CONVERSIONS.group, CONVERSIONS.kind)
_LEASE = "polyver"
_CERTIFICATES = "polyver-webhook"
_SETTLE = 1.0
"""Seconds between the time at which polyver sees a new Conversion and the time at which it writes
the webhook to the CRD. In this time, all replicas load the Conversion.
"""
_GRACE_PERIOD = 20.0


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """The settings of a replica."""

    access: ClusterAccess
    webhook: Webhook
    """The Service or URL at which API servers call the replicas, without a path."""
    host: str
    port: int
    namespace: str
    names: tuple[str, ...]
    """The host names in the certificate, at which API servers call the webhook."""
    kinds: tuple[Kind, ...] = ()
    pair: PairSource | None = None
    """The source of the certificate, if another program renews the certificate.

    By default, the replicas share a certificate that polyver renews.
    """
    identity: str = ""
    terms: Terms = field(default_factory=Terms)
    verbose: bool = False
    choices: Choices = field(default_factory=Choices)


@dataclass(frozen=True, slots=True)
class Replica:
    """A running replica."""

    url: str
    identity: str
    trust: str
    kinds: int
    leadership: Leadership
    failed: asyncio.Task[None]
    """A task that ends only if this replica cannot run its controllers any more."""
    retire: Callable[[], Awaitable[None]]
    """Stops the controllers and fails the readiness probe. The webhooks still answer requests."""


@asynccontextmanager
async def replica(settings: ReplicaSettings) -> AsyncIterator[Replica]:
    """Run a replica until the context ends. Raise a PolyverError if the replica cannot start."""
    log = Log(verbose=settings.verbose)
    identity = settings.identity or uuid.uuid4().hex
    async with AsyncExitStack() as undo:
        listener = undo.enter_context(bind(settings.host, settings.port))
        client = await undo.enter_async_context(ClusterClient(settings.access))
        wired = _Wired(client, settings, identity, log)
        follow = ConversionController(client, wired.publish)
        # Load Conversions and the certificate first. API servers must not call before they are
        # loaded.
        await follow.load()
        await wired.pair.start()
        app = wired.app
        # These controllers are stopped after the server, so that all of its reviews are counted.
        usage = UsageController(client, wired.counts, wired.counted, source="Webhooks")
        wired.published = usage.kinds_changed
        await undo.enter_async_context(ControllerManager(client, [follow, usage]))
        await undo.enter_async_context(
            serving(
                app,
                listener,
                lambda: wired.pair.shown.context,
                at_once=app.at_once,
                ending=app.drain,
                grace_period=_GRACE_PERIOD,
            )
        )
        await undo.enter_async_context(in_background(wired.pair.follow(log)))
        acting = await undo.enter_async_context(AsyncExitStack())
        task = await acting.enter_async_context(wired.leadership.running())
        at = url(settings.host, listener.getsockname()[1])

        async def retire() -> None:
            app.drain()
            await acting.aclose()

        yield Replica(
            at, identity, wired.pair.trust, len(wired.converters), wired.leadership, task, retire
        )


class _Wired:
    """Creates the parts of one replica, and connects them with each other."""

    def __init__(self, client: Client, settings: ReplicaSettings, identity: str, log: Log) -> None:
        self._client = client
        self._settings = settings
        self._log = log
        # Worker processes use the credentials of this replica.
        lent = nullcontext(WorkerAccess(settings.access))
        self._contributions = settings.choices.contributions(
            Surroundings(namespace=settings.namespace, lend=lambda: lent, kinds=settings.kinds)
        )
        own = [kind for each in self._contributions for kind in each.kinds]
        self._kinds = {kind.definition().name: kind for kind in (*own, *settings.kinds)}
        self.converters: dict[str, Converter] = {
            name: log_unknown_formats(kind.converter)
            for name, kind in self._kinds.items()
            if kind.converter is not None
        }
        """The converters of all kinds, by the names of their CRDs."""
        self._engine: ControllerManager | None = None
        lease = Lease(client, _LEASE, settings.namespace, identity, terms=settings.terms)
        self.leadership = Leadership(lease, self._acting, tell=self._tell)
        self._document = SecretDocument(client, settings.namespace, _CERTIFICATES)
        self.pair = settings.pair or self._shared(identity)
        self.published: Callable[[], None] = lambda: None
        """Called when the kinds that this replica converts have changed."""
        self.counts = RequestCounts()
        """The requests that the webhooks of this replica see."""
        links: list[Admission] = [
            CountedWrites(self.counts, lambda name: name in self.counted()),
            ConversionChecks(partial(find, client, CRDS)),
            ConvertedKinds(lambda kind: self.converters.get(kind.resource), self._kinds),
        ]
        for each in self._contributions:
            links += each.links(client)
        self._chain = AdmissionChain(links)
        self.app = WebhookApp(
            self._served(),
            checks={
                "certificate": lambda: self.pair.shown.problem(_now()),
                "conversions": lambda: "",  # they were loaded before the server started
            },
            metrics=WebhookMetrics(
                lambda: self.pair.shown.until, also=[collector_of(lambda: self._engine)]
            ),
            log=log,
            documents={
                path: partial(document, client)
                for each in self._contributions
                for path, document in each.documents.items()
            },
            counts=self.counts,
        )

    def _shared(self, identity: str) -> SharedPairs:
        bundles = Bundles(
            self._client,
            self._settings.webhook,
            self._document.bundle,
            crds=lambda: [*self.converters],
        )
        return SharedPairs(
            self._document,
            bundles,
            list(self._settings.names),
            replica=identity,
            leads=lambda: self.leadership.leads,
        )

    def publish(self, name: str, converter: Converter | None) -> None:
        """Use `converter` for the objects of the CRD `name` from now on.

        If `converter` is None, use the converter of the kind that is declared in Python. If there
        is no such kind, or if it has no converter, stop converting these objects.
        """
        own = self._kinds[name].converter if name in self._kinds else None
        if (found := converter or own) is not None:
            self.converters[name] = log_unknown_formats(found)
        else:
            self.converters.pop(name, None)
        self.app.serve(self._served())
        self.published()

    def counted(self) -> Collection[str]:
        """Return the names of the CRDs whose requests are counted: those that polyver converts."""
        return self.converters.keys()

    def _served(self) -> ReviewHandlers:
        converters = {(each.group, each.kind): each for each in self.converters.values()}
        hooked = {(kind.group, kind.kind) for kind in self._kinds.values()}
        names = {(each.group, each.kind): name for name, each in self.converters.items()}
        return ReviewHandlers(
            converters, self._chain, frozenset(hooked | {*converters, _CONVERSIONS}), names
        )

    def _tell(self, fact: str, detail: str) -> None:
        self._log.info(f"this replica {fact}", holder=detail)

    def _acting(self) -> ControllerManager:
        """Create the controller manager. Only the leader among the replicas calls this method."""
        self._engine = ControllerManager(self._client, self._controllers())
        return self._engine

    def _controllers(self) -> list[Controller[Any]]:
        settings = self._settings
        bundle = self._document.bundle if settings.pair is None else None
        at = settings.webhook.at(CONVERT)
        converted = frozenset(n for n, k in self._kinds.items() if k.converter is not None)
        return [
            ConversionController(
                self._client,
                told=conversion_data(at),
                annotations={INJECT_CA_FROM: at.inject_ca_from} if at.inject_ca_from else {},
                bundle=bundle,
                kinds=converted,
                settle=_SETTLE,
            ),
            RegistrationController(
                self._client,
                settings.webhook,
                kinds=[*self._kinds.values()],
                wanted=[wanted for each in self._contributions for wanted in each.wanted],
                bundle=bundle,
            ),
            *(
                controller
                for each in self._contributions
                for controller in each.controllers(self._client)
            ),
            *(
                DeclaredController(self._client, kind)
                for kind in settings.kinds
                if kind.controller is not None
            ),
        ]


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
