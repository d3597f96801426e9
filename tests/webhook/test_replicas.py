"""Certificates that replicas share: whoever looks, whenever one ends, believes what is shown."""

from __future__ import annotations

import asyncio
import base64
import datetime
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.client.virtual import until
from tests.deadlines import HANG
from tests.walks.admitted import LAMPS
from tests.webhook.replicas import (
    CRD,
    DAY,
    HOURS,
    KEPT,
    NAMES,
    SERVICE,
    Replicas,
    about_to_rotate,
    prepared,
    rotated,
)

from polyver.apis.admission.kinds import wanted_by
from polyver.client.in_process import DirectClient
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects.status import ApiError
from polyver.kube.server.identity import ADMIN
from polyver.webhook.bundles import CONFIGURATIONS, CRDS, Bundles
from polyver.webhook.configurations import configurations
from polyver.webhook.served_certificate import PairUnusable
from polyver.webhook.shared_certificates import SECRETS, SEEN, SecretDocument, SharedPairs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def test_an_authority_is_followed_by_another_and_all_replicas_with_it() -> None:
    async def scenario() -> None:
        replicas = await about_to_rotate()
        [first] = (await replicas.kept()).serials
        for hours in HOURS:
            await replicas.look(after=datetime.timedelta(hours=hours))
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
        replicas = await about_to_rotate()
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


def test_a_bundle_that_was_changed_after_it_was_seen_is_published_again_first() -> None:
    async def scenario() -> None:
        replicas = await about_to_rotate()
        old = (await replicas.kept()).bundle
        await replicas.shared[0].look(Log())
        document = SecretDocument(replicas.plain, "shop", KEPT)
        held = await document.read()
        assert held is not None
        held.kept.observed = True  # as if the leader had ended right after it
        await document.replace(held, held.kept)
        text = base64.b64encode(old).decode()
        wrong = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": text}}}}}
        await replicas.plain.patch(CRDS, CRD, change=wrong)
        await replicas.shared[0].look(Log())
        kept = await replicas.kept()
        assert kept.is_to_switch
        assert set(await replicas.bundles()) == {kept.bundle}
        await replicas.look(after=datetime.timedelta(minutes=6))
        assert not (await replicas.kept()).is_to_switch

    asyncio.run(scenario())


def test_who_slept_for_decades_begins_again() -> None:
    async def scenario() -> None:
        replicas, _ = await rotated()
        for client in replicas.clients:
            client.look = None
        [before] = (await replicas.kept()).serials
        await replicas.look(after=10_000 * DAY)
        kept = await replicas.kept()
        assert before not in kept.serials
        assert set(await replicas.bundles()) == {kept.bundle}
        await replicas.check()

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
        with pytest.raises(PairUnusable, match=f"Secret shop/{KEPT} has unexpected content"):
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
    async with asyncio.timeout(HANG):
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
