"""A client of a cluster beside servers that misbehave: every failure has a bound and a place."""

from __future__ import annotations

import asyncio
import datetime
import gc
import json
import ssl
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.client.scripted import Reply, Scripted, Seen, asked, refused, reply, scripted, settled
from tests.client.virtual import VirtualClock
from tests.deadlines import HANG

from polyver.client import GroupVersionResource
from polyver.client.client import BadAnswer
from polyver.client.cluster import (
    ClientLimits,
    ClusterClient,
    NoAccess,
    Unauthorized,
    Unreachable,
    Untrusted,
)
from polyver.client.cluster._access import KubeconfigUser
from polyver.kube.http.tls import Authority
from polyver.kube.objects.status import ApiError

MAPS = GroupVersionResource("", "v1", "configmaps")
PATH = "/api/v1/namespaces/a/configmaps"
NOW = datetime.datetime.now(datetime.UTC)


# Refusals


def test_a_server_that_asks_to_wait_is_asked_again_when_it_said() -> None:
    busy = refused(429, "TooManyRequests", "busy", retry_after="3")
    clock = VirtualClock()

    def answer(_: Seen) -> Reply:
        return busy if clock.time() < 3 else reply({"metadata": {"name": "m"}})

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        waiting = asyncio.create_task(client.create(MAPS, {"metadata": {"name": "m"}}, "a"))
        await settled(lambda: len(server.seen) == 1 and bool(clock._timers))
        await clock.advance(2)
        assert len(server.seen) == 1
        await clock.advance(2)
        assert (await waiting)["metadata"]["name"] == "m"
        assert len(server.seen) == 2

    asked(answer, scenario, clock=clock)


def test_a_server_that_stays_busy_is_not_asked_for_ever() -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(ApiError, match="busy") as caught:
            await client.get(MAPS, "m", "a")
        assert (caught.value.code, caught.value.headers) == (429, {"retry-after": "0"})
        assert len(server.seen) == 6

    asked(lambda _: refused(429, "TooManyRequests", "busy", retry_after="0"), scenario)


@pytest.mark.parametrize("after", ["3600", "soon", "-1", "", "9" * 5000])
def test_who_asks_is_told_when_waiting_makes_no_sense(after: str) -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(ApiError, match="busy"):
            await client.get(MAPS, "m", "a")
        assert len(server.seen) == 1

    asked(lambda _: refused(429, "TooManyRequests", "busy", retry_after=after), scenario)


def test_a_write_that_may_have_happened_is_not_repeated() -> None:
    away = refused(503, "ServiceUnavailable", "away", retry_after="0")

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(ApiError, match="away"):
            await client.create(MAPS, {"metadata": {"name": "m"}}, "a")
        assert len(server.seen) == 1
        with pytest.raises(ApiError, match="away"):
            await client.get(MAPS, "m", "a")
        assert len(server.seen) == 7

    asked(lambda _: away, scenario)


def test_who_is_not_known_is_told_what_was_shown() -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(Unauthorized) as caught:
            await client.get(MAPS, "m", "a")
        assert caught.value.status["code"] == 401
        assert caught.value.message == "Unauthorized"
        assert str(caught.value) == (
            "the server does not accept the credentials: Unauthorized "
            f"({server.url}, a test); log in again, or renew the token or certificate in the "
            "kubeconfig"
        )
        assert server.seen[0].headers["authorization"] == "Bearer wrong"

    user = KubeconfigUser(token="wrong")
    asked(lambda _: refused(401, "Unauthorized", "Unauthorized"), scenario, user=user)


def test_what_something_else_than_an_api_server_says_is_passed_on() -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(ApiError, match="<h1>Bad gateway</h1>") as caught:
            await client.get(MAPS, "m", "a")
        assert caught.value.code == 502

    asked(lambda _: Reply(502, b"<h1>Bad gateway</h1>" + b" " * 100_000), scenario)


def test_nobody_is_sent_elsewhere_with_a_token() -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(ApiError) as caught:
            await client.get(MAPS, "m", "a")
        assert caught.value.code == 302
        assert len(server.seen) == 1

    asked(lambda seen: Reply(302, b"", {"location": seen.target}), scenario)


# Answers that are none


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "is not JSON"),
        (b"", "is not JSON"),
        (b"[]", "is not an object"),
        (b'"\xff"', "is not JSON"),
        (b'{"a":' * 100_000, "is nested too deeply"),
    ],
)
def test_an_answer_that_cannot_be_read_names_the_request(body: bytes, problem: str) -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(BadAnswer, match=problem) as caught:
            await client.get(MAPS, "m", "a")
        assert caught.value.at == f"GET {PATH}/m"

    asked(lambda _: Reply(body=body), scenario)


@pytest.mark.parametrize("body", [b'{"items": 7}', b'{"metadata": "x"}'])
def test_a_list_that_is_none_names_the_request(body: bytes) -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(BadAnswer, match=f"not a list .GET {PATH}"):
            await client.list(MAPS, "a")

    asked(lambda _: Reply(body=body), scenario)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{\n", "is not JSON"),
        (b'{"type": "ADDED"}\n', "an event has no object"),
        (b'{"type": "EATEN", "object": {}}\n', "an event has the type 'EATEN'"),
        (b'{"type": "ADDED", "object": ' + b"7" * 2000, "an event has more than 1000 bytes"),
    ],
)
def test_an_event_that_cannot_be_read_names_the_path(body: bytes, problem: str) -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        async with aclosing(client.watch(MAPS, "a", resource_version="1")) as events:
            with pytest.raises(BadAnswer, match=problem) as caught:
                await anext(events)
        assert caught.value.at.endswith(PATH)

    asked(lambda _: Reply(body=body), scenario, limits=ClientLimits(line=1000))


def test_an_answer_has_no_more_than_so_many_bytes() -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(BadAnswer, match="more than 1000 bytes"):
            await client.get(MAPS, "m", "a")

    asked(lambda _: Reply(body=b" " * 2000), scenario, limits=ClientLimits(answer=1000))


def test_an_answer_may_be_packed() -> None:
    import gzip

    packed = gzip.compress(b'{"metadata": {"name": "m"}}')

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        assert await client.get(MAPS, "m", "a") == {"metadata": {"name": "m"}}

    asked(lambda _: Reply(body=packed, headers={"content-encoding": "gzip"}), scenario)
    broken = Reply(body=b"no gzip", headers={"content-encoding": "gzip"})

    async def fails(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(Unreachable, match="cannot be decompressed"):
            await client.get(MAPS, "m", "a")

    asked(lambda _: broken, fails)


# Servers that are away


def test_a_server_that_is_not_there_is_named(unused_port: int) -> None:
    async def scenario() -> None:
        access = Scripted(lambda _: Reply(), url=f"http://127.0.0.1:{unused_port}").access()
        async with ClusterClient(access) as client:
            with pytest.raises(Unreachable) as caught:
                await client.get(MAPS, "m", "a")
        assert str(caught.value) == (
            f"the server cannot be reached: Connection refused (http://127.0.0.1:{unused_port}, "
            "a test); check that it runs, and check the address"
        )

    asyncio.run(scenario())


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        return int(holder.getsockname()[1])


def test_a_server_that_never_answers_is_not_waited_for() -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(Unreachable, match=f"GET {PATH}/m was not answered within 0.2 s"):
            await client.get(MAPS, "m", "a")

    asked(lambda _: Reply(body=b"{", hangs=True), scenario, limits=ClientLimits(request=0.2))


def test_a_connection_that_is_given_up_is_closed() -> None:
    """A server that takes connections and never shakes hands; who asked is cancelled meanwhile."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        begun.set()
        while await reader.read(1024):
            pass
        ended.set()
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with ClusterClient(Scripted(lambda _: Reply(), url=url).access()) as client:
            task = asyncio.create_task(client.get(MAPS, "m", "a"))
            await asyncio.wait_for(begun.wait(), HANG)
            gc.disable()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(ended.wait(), HANG)
        access = Scripted(lambda _: Reply(), url=url).access()
        async with ClusterClient(access, limits=ClientLimits(connect=0.1)) as client:
            with pytest.raises(Unreachable, match="cannot be reached: it timed out"):
                await client.get(MAPS, "m", "a")
        server.close()

    try:
        asyncio.run(scenario())
    finally:
        gc.enable()


def test_a_watch_that_falls_silent_is_noticed() -> None:
    line = json.dumps({"type": "ADDED", "object": {"metadata": {"name": "m"}}}).encode() + b"\n"

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        async with aclosing(client.watch(MAPS, "a", resource_version="1")) as events:
            assert (await anext(events)).object["metadata"]["name"] == "m"
            with pytest.raises(Unreachable, match="the server does not answer any more"):
                await anext(events)

    asked(lambda _: Reply(body=line, hangs=True), scenario, limits=ClientLimits(silence=1.0))


def test_a_watch_is_asked_to_end_before_silence_would_be_noticed() -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        for timeout in (0, 7):
            watch = client.watch(MAPS, "a", resource_version="1", timeout=timeout)
            assert [event async for event in watch] == []
        own, given = (seen.target.partition("timeoutSeconds=")[2] for seen in server.seen)
        assert 150 <= int(own) <= 270
        assert given == "7"

    asked(lambda _: Reply(body=b""), scenario)


def test_a_kept_connection_that_was_closed_costs_a_read_nothing() -> None:
    """The answer breaks off once: a read is asked for again, a write is not."""
    broken = True

    def answer(_: Seen) -> Reply:
        nonlocal broken
        was, broken = broken, False
        return Reply(body=b"", breaks=True) if was else reply({"metadata": {"name": "m"}})

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        nonlocal broken
        assert await client.get(MAPS, "m", "a") == {"metadata": {"name": "m"}}
        assert len(server.seen) == 2
        broken = True
        with pytest.raises(Unreachable, match=f"POST {PATH}: the connection was lost"):
            await client.create(MAPS, {"metadata": {"name": "m"}}, "a")
        assert len(server.seen) == 3

    asked(answer, scenario)


def test_watches_have_only_so_many_connections() -> None:
    limits = ClientLimits(watches=2, connect=1.0)

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        watches = [client.watch(MAPS, "a", resource_version="1") for _ in range(3)]
        tasks = [asyncio.create_task(anext(each)) for each in watches[:2]]
        await settled(lambda: len(server.seen) == 2)
        with pytest.raises(Unreachable, match="all connections are in use"):
            await anext(watches[2])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asked(lambda _: Reply(body=b"", hangs=True), scenario, limits=limits)


# Whom to trust


def _serving(authority: Authority, *names: str, tmp_path: Path) -> ssl.SSLContext:
    pair = authority.server(*names, now=NOW)
    (tmp_path / "server.crt").write_bytes(pair.certificate)
    (tmp_path / "server.key").write_bytes(pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    return context


@pytest.mark.parametrize("case", ["stranger", "name", "right"])
def test_only_a_server_that_may_be_trusted_is_talked_to(case: str, tmp_path: Path) -> None:
    known, other = (Authority.create(name, now=NOW) for name in ("known", "other"))
    (tmp_path / "ca.crt").write_bytes(known.pem)
    authority = other if case == "stranger" else known
    tls = _serving(authority, "inner.example.org", tmp_path=tmp_path)

    async def scenario() -> None:
        async with scripted(lambda _: reply({"metadata": {}}), tls=tls) as server:
            name = None if case == "name" else "inner.example.org"
            access = server.access(certificate_auth=str(tmp_path / "ca.crt"), tls_server_name=name)
            async with ClusterClient(access) as client:
                if case == "right":
                    await client.get(MAPS, "m", "a")
                    return
                with pytest.raises(Untrusted) as caught:
                    await client.get(MAPS, "m", "a")
                text = str(caught.value)
                assert text.startswith("the certificate of the server is not trusted: ")
                assert server.url in text
                assert server.seen == []

    asyncio.run(scenario())


def test_who_acts_as_another_says_so() -> None:
    user = KubeconfigUser(
        token="t",
        acts_as="jane",
        acts_as_uid="7",
        acts_as_groups=["a"],
        acts_as_extra={"Ex.io/scope": ["x"]},
    )

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        await client.get(MAPS, "m", "a")
        headers = server.seen[0].headers
        found = {name: value for name, value in headers.items() if name.startswith("imperson")}
        assert found == {
            "impersonate-user": "jane",
            "impersonate-uid": "7",
            "impersonate-group": "a",
            "impersonate-extra-ex.io%2fscope": "x",
        }

    asked(lambda _: reply({}), scenario, user=user)


# Proxies


def test_a_proxy_is_asked_if_one_is_named() -> None:
    async def scenario() -> None:
        async with scripted(lambda _: reply({"metadata": {}})) as proxy:
            access = proxy.access(server="http://cluster.invalid", proxy_url=proxy.url)
            async with ClusterClient(access) as client:
                await client.get(MAPS, "m", "a")
            assert [seen.target for seen in proxy.seen] == [f"http://cluster.invalid{PATH}/m"]

    asyncio.run(scenario())


def test_the_environment_names_a_proxy_but_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with (
            scripted(lambda _: reply({"metadata": {}})) as proxy,
            scripted(lambda _: reply({"metadata": {}})) as near,
        ):
            for name in ("NO_PROXY", "no_proxy"):
                monkeypatch.delenv(name, raising=False)
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.setenv("http_proxy", proxy.url)
            for access in (proxy.access(server="http://cluster.invalid"), near.access()):
                async with ClusterClient(access) as client:
                    await client.get(MAPS, "m", "a")
            assert (len(proxy.seen), len(near.seen)) == (1, 1)

    asyncio.run(scenario())


@pytest.mark.parametrize("proxy", ["gopher://a", "socks5://127.0.0.1:1", "http://[::1"])
def test_a_proxy_that_cannot_be_used_is_told(proxy: str) -> None:
    async def scenario() -> None:
        access = Scripted(lambda _: Reply(), url="http://cluster.invalid").access(proxy_url=proxy)
        async with ClusterClient(access) as client:
            with pytest.raises(NoAccess, match=r"the proxy cannot be used: .* \(a test\)"):
                await client.get(MAPS, "m", "a")

    asyncio.run(scenario())
