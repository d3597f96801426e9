"""Certificates that replicas share: whoever looks, whenever one ends, believes what is shown."""

from __future__ import annotations

import asyncio
import base64
import datetime
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from tests.client.virtual import VirtualClock, until
from tests.walks.admitted import LAMPS

from polyver import apis
from polyver.admission.configurations import configurations
from polyver.admission.kinds import wanted_by
from polyver.client import Client, Object, Resource
from polyver.objects.status import ApiError
from polyver.server.api import Api
from polyver.server.direct import DirectClient
from polyver.server.identity import ADMIN
from polyver.serving.logs import Log
from polyver.store import MemoryStore
from polyver.webhook.bundles import CONFIGURATIONS, CRDS, Bundles
from polyver.webhook.kept import Kept
from polyver.webhook.pairs import PairUnusable
from polyver.webhook.shared import SECRETS, SEEN, SecretDocument, SharedPairs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DAY = datetime.timedelta(days=1)
MINUTE = datetime.timedelta(minutes=1)
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
NAMES = ["hooks.shop.svc"]

# The Secret, on a server.


class Ended(Exception):
    """The process is gone."""


class Watched(DirectClient):
    """Counts writes, has each looked at, and ends before or after one of them."""

    def __init__(self, api: Api, *, ends_at: float = float("inf")) -> None:
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
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
KEPT = "webhook-certificates"
TARGETS = [(CRDS, CRD), *((each, "polyver") for each in CONFIGURATIONS)]


async def prepared() -> Api:
    """A server on which lamps are defined, and on which the webhook is asked about them."""
    api = Api(MemoryStore())
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

    def __init__(self, api: Api, count: int = 2, clock: VirtualClock | None = None) -> None:
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

    async def kept(self) -> Kept:
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


async def rotated(ends_at: float = float("inf")) -> tuple[Replicas, int]:
    """A whole rotation, in which the leader ends at one of its writes; and how many those were."""
    replicas = Replicas(await prepared())
    await replicas.start()
    for _ in range(9):  # so that no certificate ends before the authority is to be followed
        await replicas.look(after=324.5 * DAY)
    client = replicas.clients[0]
    before = client.writes
    client.ends_at = before + ends_at
    for hours in HOURS:
        await replicas.look(after=datetime.timedelta(hours=hours))
    return replicas, client.writes - before


def test_an_authority_is_followed_by_another_and_all_replicas_with_it() -> None:
    async def scenario() -> None:
        replicas = Replicas(await prepared())
        await replicas.start()
        [first] = (await replicas.kept()).serials
        replicas, _ = await rotated()
        kept = await replicas.kept()
        assert len(kept.serials) == 1
        assert kept.serials != [first]
        assert set(await replicas.bundles()) == {kept.bundle}
        assert len({each.shown.content for each in replicas.shared}) == 1
        await replicas.check()

    asyncio.run(scenario())


def test_wherever_the_leader_ends_another_goes_on_and_all_are_believed() -> None:
    async def scenario() -> None:
        _, writes = await rotated()
        assert writes > 8
        for number in range(1, writes + 1):
            for ends_at in (number, number + 0.5):
                replicas, _ = await rotated(ends_at)
                assert replicas.leader != 0, "the leader has ended"
                for _ in range(3):
                    await replicas.look(after=DAY)
                kept = await replicas.kept()
                assert len(kept.serials) == 1
                assert set(await replicas.bundles()) == {kept.bundle}
                assert {each.shown.content[0] for each in replicas.shared} == {
                    kept.leaf.pair.certificate.encode() if kept.leaf else b""
                }

    asyncio.run(scenario())


def test_replicas_that_begin_together_agree() -> None:
    async def scenario() -> None:
        replicas = Replicas(await prepared(), 4)
        await asyncio.gather(*(each.start() for each in replicas.shared))
        assert len({each.shown.content for each in replicas.shared}) == 1
        kept = await replicas.kept()
        assert len(kept.serials) == 1
        assert set(await replicas.bundles()) == {kept.bundle}
        await replicas.check()

    asyncio.run(scenario())


def test_two_that_both_believe_to_lead_do_no_harm() -> None:
    async def scenario() -> None:
        replicas = Replicas(await prepared(), 2)
        await replicas.start()
        replicas.clock._time += (2921 * DAY).total_seconds()
        now = replicas.clock.now()
        for _ in range(2):
            await asyncio.gather(*(each.advance(now) for each in replicas.shared))
        assert len((await replicas.kept()).serials) == 2

    asyncio.run(scenario())


def test_a_replica_that_is_behind_is_waited_for_up_to_a_day() -> None:
    async def scenario() -> None:
        replicas = Replicas(await prepared(), 2)
        await replicas.start()
        for _ in range(9):
            await replicas.look(after=324.5 * DAY)
        leader = replicas.shared[0]
        for minutes in (0, 6, 60, 60):
            replicas.clock._time += minutes * 60
            await leader.look(Log())
        kept = await replicas.kept()
        assert kept.leaf is not None
        assert kept.leaf.signer == kept.serials[1], "the leaf was switched"
        assert len(kept.serials) == 2, "one still shows the old one"
        replicas.clients[0].look = None  # after that day nobody believes the one that is behind
        replicas.clock._time += DAY.total_seconds()
        await leader.look(Log())
        assert len((await replicas.kept()).serials) == 1

    asyncio.run(scenario())


def test_notes_of_those_who_are_gone_are_taken_away() -> None:
    async def scenario() -> None:
        replicas = Replicas(await prepared(), 2)
        await replicas.start()
        for _ in range(3):
            replicas.clock._time += DAY.total_seconds()
            await replicas.shared[0].look(Log())
        secret = await replicas.plain.get(SECRETS, KEPT, "shop")
        notes = [key for key in secret["metadata"]["annotations"] if key.startswith(SEEN)]
        assert notes == [f"{SEEN}hooks-0"]

    asyncio.run(scenario())


def test_others_are_left_alone() -> None:
    async def scenario() -> None:
        replicas = Replicas(await prepared())
        await replicas.start()
        found = await replicas.plain.get(CONFIGURATIONS[0], "polyver")
        assert found["webhooks"][-1]["clientConfig"]["caBundle"] == "b3RoZXI="
        told = {"metadata": {"annotations": {"cert-manager.io/inject-ca-from": "shop/cert"}}}
        away = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "bm8="}}}}}
        await replicas.plain.patch(CRDS, CRD, change=told | away)
        await replicas.shared[0].look(Log())
        crd = await replicas.plain.get(CRDS, CRD)
        assert crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == "bm8="

    asyncio.run(scenario())


def test_a_secret_of_somebody_else_is_not_touched() -> None:
    async def scenario() -> None:
        replicas = Replicas(await prepared())
        metadata = {"name": KEPT, "namespace": "shop"}
        made = await replicas.plain.create(SECRETS, {"metadata": metadata, "data": {"a": "YQ=="}})
        with pytest.raises(PairUnusable, match=f"Secret shop/{KEPT} is not what was written"):
            await replicas.shared[0].start()
        assert await replicas.plain.get(SECRETS, KEPT, "shop") == made

    asyncio.run(scenario())


# Following.


@asynccontextmanager
async def following(replicas: Replicas) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each.follow(Log())) for each in replicas.shared]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await holds():
            await asyncio.sleep(0.01)


def test_what_somebody_changes_is_repaired() -> None:
    async def scenario() -> None:
        replicas = Replicas(await prepared())
        await replicas.start()
        bundle = (await replicas.kept()).bundle

        async def repaired() -> bool:
            return set(await replicas.bundles()) == {bundle}

        async with following(replicas):
            wrong = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "bm8="}}}}}
            await replicas.plain.patch(CRDS, CRD, change=wrong)
            await eventually(repaired)
            await replicas.plain.delete(CONFIGURATIONS[1], "polyver")
            again = configurations(wanted_by(LAMPS), SERVICE)[1]
            await replicas.plain.create(CONFIGURATIONS[1], again)
            await eventually(repaired)

    asyncio.run(scenario())


def test_a_secret_that_was_deleted_is_made_again_as_it_was() -> None:
    async def scenario() -> None:
        replicas = Replicas(await prepared())
        await replicas.start()
        before = await replicas.kept()
        document = SecretDocument(replicas.plain, "shop", KEPT)

        async def is_back() -> bool:
            return await document.read() is not None

        async with following(replicas):
            await asyncio.sleep(0)
            await replicas.plain.delete(SECRETS, KEPT, "shop")
            await eventually(is_back)
        assert await replicas.kept() == before

    asyncio.run(scenario())


def test_those_who_follow_show_what_the_leader_switched_to() -> None:
    async def scenario() -> None:
        replicas = Replicas(await prepared(), 3)
        await replicas.start()
        before = replicas.shared[1].shown.content
        replicas.clock._time += (340 * DAY).total_seconds()

        async with following(replicas):
            await until(lambda: all(each.shown.content != before for each in replicas.shared))
            assert len({each.shown.content for each in replicas.shared}) == 1

    asyncio.run(scenario())


def test_a_server_that_refuses_leaves_everything_as_it_is() -> None:
    class Refusing(DirectClient):
        async def patch(self, *arguments: Any, **options: Any) -> Object:
            raise ApiError(403, "Forbidden", "you may not")

    async def scenario() -> None:
        api = await prepared()
        client = Refusing(api, ADMIN)
        document = SecretDocument(client, "shop", KEPT)
        bundles = Bundles(client, SERVICE, document.bundle, crds=lambda: [CRD])
        shared = SharedPairs(document, bundles, NAMES, replica="a", leads=lambda: True)
        with pytest.raises(ApiError, match="you may not"):
            await shared.start()
        held = await document.read()
        assert held is not None
        assert held.kept.leaf is None, "nothing is shown that nobody could believe"

    asyncio.run(scenario())
