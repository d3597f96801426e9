"""Replicas of a webhook on a server, which end wherever a test wants them to."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Awaitable, Callable
from typing import Any

from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from tests.client.virtual import VirtualClock
from tests.walks.admitted import LAMPS

from polyver import apis
from polyver.apis.admission.kinds import wanted_by
from polyver.client import Client, GroupVersionResource
from polyver.client.in_process import DirectClient
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.server.api import ApiServer
from polyver.kube.server.identity import ADMIN
from polyver.kube.store import MemoryStore
from polyver.webhook.bundles import CONFIGURATIONS, CRDS, Bundles
from polyver.webhook.certificate_state import CertificateDocument
from polyver.webhook.configurations import configurations
from polyver.webhook.rotation import Create, Issue, Publish
from polyver.webhook.shared_certificates import SecretDocument, SharedPairs

DAY = datetime.timedelta(days=1)
MINUTE = datetime.timedelta(minutes=1)
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
NAMES = ["hooks.shop.svc"]


class Ended(Exception):
    """The process is gone."""


class Watched(DirectClient):
    """Counts writes, has each looked at, and ends before or after one of them."""

    def __init__(self, api: ApiServer, *, ends_at: float = float("inf")) -> None:
        super().__init__(api, ADMIN)
        self.writes = 0
        self.ends_at = ends_at
        """A half is after the write, a whole before it."""
        self.look: Callable[[], Awaitable[None]] | None = None

    async def _written(self, write: Awaitable[Object]) -> Object:
        self.writes += 1
        if self.writes == self.ends_at:
            write.close()  # type: ignore[attr-defined]
            raise Ended
        made = await write
        if self.look is not None:
            await self.look()
        if self.writes + 0.5 == self.ends_at:
            raise Ended
        return made

    async def create(self, *arguments: Any, **options: Any) -> Object:
        return await self._written(super().create(*arguments, **options))

    async def update(self, *arguments: Any, **options: Any) -> Object:
        return await self._written(super().update(*arguments, **options))

    async def patch(self, *arguments: Any, **options: Any) -> Object:
        return await self._written(super().patch(*arguments, **options))


SERVICE = apis.Webhook("shop", "hooks", path="/convert")
CRD = LAMPS.definition().name
NAMESPACES = GroupVersionResource("", "v1", "namespaces", namespaced=False)
KEPT = "webhook-certificates"
TARGETS = [(CRDS, CRD), *((each, "polyver") for each in CONFIGURATIONS)]


async def prepared() -> ApiServer:
    """A server on which lamps are defined, and on which the webhook is asked about them."""
    api = ApiServer(MemoryStore())
    client = DirectClient(api, ADMIN)
    await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    await client.create(CRDS, apis.crd_of(LAMPS.definition(), SERVICE))
    found = configurations(wanted_by(LAMPS), SERVICE)
    other = {"service": {"namespace": "shop", "name": "other"}, "caBundle": "b3RoZXI="}
    found[0]["webhooks"].append(found[0]["webhooks"][0] | {"name": "a.b.c", "clientConfig": other})
    for resource, content in zip(CONFIGURATIONS, found, strict=True):
        await client.create(resource, content)
    return api


class Replicas:
    """Some replicas of the webhook, the first of which leads."""

    def __init__(self, api: ApiServer, count: int = 2, clock: VirtualClock | None = None) -> None:
        self.api = api
        self.clock = clock or VirtualClock()
        self.leader = 0
        self.count = count
        self.clients = [Watched(api) for _ in range(count)]
        self.shared: list[SharedPairs] = [self._new(each) for each in range(count)]
        self.plain = DirectClient(api, ADMIN)

    def _new(self, number: int) -> SharedPairs:
        client: Client = self.clients[number]
        document = SecretDocument(client, "shop", KEPT)
        bundles = Bundles(client, SERVICE, document.bundle, crds=lambda: [CRD])
        return SharedPairs(
            document,
            bundles,
            NAMES,
            replica=f"hooks-{number}",
            leads=lambda: self.leader == number,
            clock=self.clock,
        )

    async def restart(self, number: int) -> None:
        """A process that has ended begins again, and another leads meanwhile."""
        self.clients[number] = Watched(self.api)
        self.clients[number].look = self.check
        self.leader = (self.leader + 1) % self.count
        self.shared[number] = self._new(number)
        await self.shared[number].start()

    async def start(self) -> None:
        for each in self.shared:
            await each.start()
        await self.shared[self.leader].look(Log())
        for client in self.clients:
            client.look = self.check

    async def look(self, *, after: datetime.timedelta) -> None:
        """Some time passes; all look, the one that leads first and last."""
        self.clock._time += after.total_seconds()
        for number in [self.leader, *range(self.count), self.leader]:
            try:
                await self.shared[number].look(Log())
            except Ended:
                await self.restart(number)

    async def kept(self) -> CertificateDocument:
        held = await SecretDocument(self.plain, "shop", KEPT).read()
        assert held is not None
        return held.kept

    async def bundles(self) -> list[bytes]:
        """What is trusted, wherever the webhook is named."""
        found = []
        for resource, name in TARGETS:
            obj = await self.plain.get(resource, name)
            webhooks = obj.get("webhooks") or [obj["spec"]["conversion"]["webhook"]]
            clients = [each["clientConfig"] for each in webhooks]
            ours = [each for each in clients if each["service"]["name"] == "hooks"]
            found += [base64.b64decode(each.get("caBundle", "")) for each in ours]
        return found

    async def check(self) -> None:
        """Every replica is believed by all."""
        now = self.clock.now()
        for bundle in await self.bundles():
            for each in self.shared:
                if each._loaded is not None and now < each.shown.until:
                    assert is_believed(each.shown.content[0], bundle, now)


def is_believed(certificate: bytes, bundle: bytes, now: datetime.datetime) -> bool:
    store = Store(x509.load_pem_x509_certificates(bundle))
    verifier = PolicyBuilder().store(store).time(now).build_server_verifier(x509.DNSName(NAMES[0]))
    try:
        return bool(verifier.verify(x509.load_pem_x509_certificate(certificate), []))
    except VerificationError:
        return False


HOURS = [0.0, 0.05, 0.1, 0.2, 0.4, 25, 26]


async def about_to_rotate() -> Replicas:
    """Two replicas, whose authority is so old that another is to follow it."""
    replicas = Replicas(await prepared())
    now, kept = replicas.clock.now(), CertificateDocument()
    kept.take(Create(), NAMES, now - 2921 * DAY)
    kept.take(Publish((kept.serials[0],)), NAMES, now - 2921 * DAY)
    kept.take(Issue(kept.serials[0]), NAMES, now)
    document = SecretDocument(replicas.plain, "shop", KEPT)
    await document.create(kept)
    for each in replicas.shared:
        await each.start()
    await Bundles(
        replicas.plain,
        SERVICE,
        SecretDocument(replicas.plain, "shop", KEPT).bundle,
        crds=lambda: [CRD],
    ).publish()
    for client in replicas.clients:
        client.look = replicas.check
    return replicas


async def rotated(ends_at: float = float("inf")) -> tuple[Replicas, int]:
    """A whole rotation, in which the leader ends at one of its writes; and how many those were."""
    replicas = await about_to_rotate()
    client = replicas.clients[0]
    before = client.writes
    client.ends_at = before + ends_at
    for hours in HOURS:
        await replicas.look(after=datetime.timedelta(hours=hours))
    return replicas, client.writes - before
