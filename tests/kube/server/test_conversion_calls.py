"""Conversion by webhook over real connections: what is asked, what fails, and in which words."""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import re
import socket
import ssl
import struct
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from tests.kube.webhook import Webhook as Served
from tests.kube.webhook import converted as as_wanted

from polyver.kube.http.tls import Authority
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.kube.server.conversion import WebhookConversion, transport
from polyver.kube.server.conversion.certificates import explained

Object = dict[str, Any]
NOW = datetime.datetime.now(datetime.UTC)
RECORDED = Path(__file__).parents[2] / "kube" / "recorded"
KIND = ResourceKind("ex.io", "v1", "Gadget", "gadgets", "gadget", namespaced=True, custom=True)
SOURCE = "conversion webhook for ex.io/v2, Kind=Gadget"


def gadget(group: str = "ex.io", version: str = "v2", namespace: str = "n") -> Object:
    metadata = {"name": "a", "namespace": namespace, "uid": "u-1", "resourceVersion": "7"}
    spec = {"host": "h", "port": "80"} if version == "v2" else {"hostPort": "h:80"}
    return {
        "apiVersion": f"{group}/{version}",
        "kind": "Gadget",
        "metadata": metadata,
        "spec": spec,
    }


def conversion(client: Object, *versions: str) -> Object:
    hook = {"conversionReviewVersions": list(versions or ("v1",)), "clientConfig": client}
    return {"strategy": "Webhook", "webhook": hook}


async def asked(client: Object, *objects: Object, timeout: float = 30.0) -> list[Object]:
    hook = WebhookConversion(conversion(client), KIND, timeout=timeout)
    try:
        return [await hook.convert(each, "ex.io/v1") for each in objects]
    finally:
        await hook.close()


def refused(client: Object, *, timeout: float = 30.0) -> str:
    with pytest.raises(ApiError) as found:
        asyncio.run(asked(client, gadget(), timeout=timeout))
    return found.value.message


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Served() as hook:
        yield hook


def answers() -> Iterator[tuple[str, str, str]]:
    """Each wrong answer to a create in v2 that is recorded, and what the real server said."""
    for path in sorted(RECORDED.glob("conversion-answer-*.json")):
        behaviour = ""
        for step in json.loads(path.read_text()):
            if step["step"].startswith("webhook "):
                behaviour = step["step"].removeprefix("webhook ")
            elif step["status"] == 500:
                yield path.stem, behaviour, step["body"]["message"]


@pytest.mark.parametrize(("case", "behaviour", "message"), list(answers()))
def test_wrong_answers_are_refused_as_recorded(
    served: Served, case: str, behaviour: str, message: str
) -> None:
    async def convert() -> None:
        client = {"url": served.url, "caBundle": served.ca}
        hook = WebhookConversion(conversion(client), KIND)
        try:
            await hook.convert(gadget(f"{case}.ex.io", namespace=case), f"{case}.ex.io/v1")
        finally:
            await hook.close()

    served.behaviour = behaviour
    with pytest.raises(ApiError) as found:
        asyncio.run(convert())
    told = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|u-1", "<uid-1>", found.value.message)
    assert (told, found.value.code, found.value.reason) == (message, 500, "")


def test_the_recorded_answers_are_all_wrong_in_different_ways() -> None:
    assert len({message for _, _, message in answers()}) >= 14


def test_an_object_is_converted_there_and_back(served: Served) -> None:
    async def both() -> tuple[Object, Object]:
        hook = WebhookConversion(conversion({"url": served.url, "caBundle": served.ca}), KIND)
        there = await hook.convert(gadget(), "ex.io/v1")
        back = await hook.convert(there, "ex.io/v2")
        await hook.close()
        return there, back

    served.behaviour = "ok"
    served.calls.clear()
    there, back = asyncio.run(both())
    assert there == gadget(version="v1")
    assert back == gadget()
    assert served.calls == ["1 to ex.io/v1", "1 to ex.io/v2"]


def test_a_webhook_that_takes_v1beta1_is_asked_in_it(served: Served) -> None:
    async def convert() -> Object:
        hook = WebhookConversion(
            conversion({"url": served.url, "caBundle": served.ca}, "v1beta1"), KIND
        )
        found = await hook.convert(gadget(), "ex.io/v1")
        await hook.close()
        return found

    served.behaviour = "wrong-uid"  # which does not matter there
    assert asyncio.run(convert()) == gadget(version="v1")


def test_nothing_is_asked_when_nothing_has_to_be_converted() -> None:
    same = gadget(version="v1")
    bare = {"apiVersion": "ex.io/v2", "kind": "Gadget"}
    found = asyncio.run(asked({"url": "https://127.0.0.1:1/"}, same, bare))
    assert found == [same, bare | {"apiVersion": "ex.io/v1"}]
    assert found[0]["metadata"] is not same["metadata"]


# A webhook that can misbehave below the level of HTTP.

Behaviour = Callable[["Raw", asyncio.StreamWriter, bytes], Awaitable[bool]]


@dataclass
class Raw:
    """Reads requests, and leaves it to a behaviour to answer; true keeps the connection."""

    behaviour: Behaviour
    requests: list[tuple[str, Object]] = field(default_factory=list)
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
                body = await reader.readexactly(length)
                self.requests.append((head.decode(), json.loads(body)))
                if not await self.behaviour(self, writer, body):
                    break
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


def right(body: bytes) -> bytes:
    review = json.loads(body)
    request = review["request"]
    objects = [as_wanted(item, request["desiredAPIVersion"]) for item in request["objects"]]
    result = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
    return json.dumps(
        {k: review[k] for k in ("apiVersion", "kind")} | {"response": result}
    ).encode()


async def well(_: Raw, writer: asyncio.StreamWriter, body: bytes) -> bool:
    answer = right(body)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
    return True


def saying(*parts: bytes, stay: bool = False) -> Behaviour:
    async def behaviour(_: Raw, writer: asyncio.StreamWriter, body: bytes) -> bool:
        for part in parts:
            writer.write(part.replace(b"RIGHT", right(body)))
        if stay:
            await asyncio.sleep(5)
        return False

    return behaviour


@asynccontextmanager
async def listening(
    behaviour: Behaviour, *hosts: str, now: datetime.datetime = NOW, tls: bool = True
) -> AsyncIterator[tuple[Raw, Object]]:
    authority = Authority.create("hook", now=now)
    raw = Raw(behaviour)
    context = _server_context(authority, *(hosts or ("127.0.0.1",)), now=now) if tls else None
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    bundle = base64.b64encode(authority.pem).decode()
    yield raw, {"url": f"https://127.0.0.1:{port}/convert", "caBundle": bundle}
    server.close()
    await asyncio.sleep(0.01)


def _server_context(authority: Authority, *hosts: str, now: datetime.datetime) -> ssl.SSLContext:
    pair = authority.server(*hosts, now=now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(path)
    return context


def failing(
    behaviour: Behaviour,
    *hosts: str,
    timeout: float = 30.0,
    calls: int = 1,
    now: datetime.datetime = NOW,
    tls: bool = True,
    **client: str,
) -> str:
    """What is told of a call that fails, without what all of them begin with."""

    async def call() -> tuple[str, str, int]:
        async with listening(behaviour, *hosts, now=now, tls=tls) as (raw, found):
            given = found | client
            with pytest.raises(ApiError) as error:
                await asked(given, gadget(), timeout=timeout)
            return error.value.message, given["url"], len(raw.requests)

    message, url, found = asyncio.run(call())
    assert found == calls
    prefix, text = f"{SOURCE} failed: ", f'Post "{url}?timeout={timeout:g}s": '
    return message.removeprefix(prefix).replace(text, "POST: ")


def test_a_call_has_the_headers_of_the_real_server() -> None:
    async def call() -> Raw:
        async with listening(well) as (raw, client):
            await asked(client, gadget())
            return raw

    ((head, body),) = asyncio.run(call()).requests
    line, *headers = head.strip().split("\r\n")
    assert line == "POST /convert?timeout=30s HTTP/1.1"
    known = dict(each.split(": ") for each in headers)
    assert known["User-Agent"] == "kube-apiserver-admission"
    assert known["Accept"] == "application/json, */*"
    assert known["Content-Type"] == "application/json"
    assert body["request"]["objects"][0]["spec"] == {"host": "h", "port": "80"}


def test_many_calls_share_a_connection_and_each_has_its_own_uid() -> None:
    async def call() -> Raw:
        async with listening(well) as (raw, client):
            await asked(client, gadget(), gadget(), gadget())
            return raw

    raw = asyncio.run(call())
    assert raw.connections == 1
    assert len({body["request"]["uid"] for _, body in raw.requests}) == 3


def test_calls_at_once_are_bounded_and_all_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MOST_CALLS", 3)

    async def call() -> tuple[Raw, list[Object]]:
        async with listening(well) as (raw, client):
            hook = WebhookConversion(conversion(client), KIND)
            found = await asyncio.gather(
                *(hook.convert(gadget(namespace=f"n{n}"), "ex.io/v1") for n in range(20))
            )
            await hook.close()
            return raw, found

    raw, found = asyncio.run(call())
    assert raw.connections <= 3
    assert [each["metadata"]["namespace"] for each in found] == [f"n{n}" for n in range(20)]


@pytest.mark.parametrize(
    "parts",
    [
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nRIGHT"],
        [b"HTTP/1.0 201 Created\r\nContent-Type: text/html\r\n\r\n", b"RIGHT"],
    ],
)
def test_an_answer_may_end_with_its_connection(parts: list[bytes]) -> None:
    async def call() -> list[Object]:
        async with listening(saying(*parts)) as (_, client):
            return await asked(client, gadget(), gadget())

    assert asyncio.run(call()) == [gadget(version="v1")] * 2


def test_an_answer_may_come_in_chunks() -> None:
    async def chunked(_: Raw, writer: asyncio.StreamWriter, body: bytes) -> bool:
        answer = right(body)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in (answer[:10], answer[10:], b""):
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await asyncio.sleep(0)
        return True

    async def call() -> tuple[int, list[Object]]:
        async with listening(chunked) as (raw, client):
            found = await asked(client, gadget(), gadget())
            return raw.connections, found

    assert asyncio.run(call()) == (1, [gadget(version="v1")] * 2)


def test_a_connection_that_was_closed_while_unused_is_replaced() -> None:
    async def once(_: Raw, writer: asyncio.StreamWriter, body: bytes) -> bool:
        await well(_, writer, body)
        return False

    async def call() -> tuple[int, list[Object]]:
        async with listening(once) as (raw, client):
            found = await asked(client, gadget(), gadget(), gadget())
            return raw.connections, found

    assert asyncio.run(call()) == (3, [gadget(version="v1")] * 3)


async def _reset(_: Raw, writer: asyncio.StreamWriter, __: bytes) -> bool:
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return False


UNREAD = "unexpected error when reading response body. Please retry. Original error: "


def test_a_call_that_breaks_off_is_told_in_the_real_servers_words() -> None:
    assert failing(saying()) == "POST: EOF"
    assert failing(saying(b"HTTP/1.1 200")) == "POST: unexpected EOF"
    short = saying(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"kind":')
    assert failing(short) == f"{UNREAD}unexpected EOF"
    route = r"POST: read tcp 127\.0\.0\.1:\d+->127\.0\.0\.1:\d+: read: connection reset by peer"
    assert re.fullmatch(route, failing(_reset))
    broken = "POST: net/http: HTTP/1.x transport connection broken: malformed HTTP response"
    assert failing(saying(b"hello there\r\n\r\n")) == f'{broken} "hello there"'


def test_a_call_that_takes_too_long_is_given_up() -> None:
    text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    assert failing(saying(stay=True), timeout=0.2) == f"POST: {text}"
    stalled = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", stay=True)
    inside = (
        "net/http: request canceled (Client.Timeout or context cancellation while reading body)"
    )
    assert failing(stalled, timeout=0.2) == f"{UNREAD}{inside}"


def test_an_answer_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LARGEST_ANSWER", 1000)
    large = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x" * 100_000)
    assert failing(large) == "POST: the answer is larger than 1000 bytes"


def test_a_webhook_that_is_busy_is_asked_again() -> None:
    busy = b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"

    async def behaviour(raw: Raw, writer: asyncio.StreamWriter, body: bytes) -> bool:
        if len(raw.requests) > 2:
            return await well(raw, writer, body)
        writer.write(busy)
        return True

    async def call() -> list[Object]:
        async with listening(behaviour) as (_, client):
            return await asked(client, gadget())

    assert asyncio.run(call()) == [gadget(version="v1")]


def test_it_is_asked_ten_times_more_at_most() -> None:
    busy = saying(b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n")
    assert failing(busy, calls=11) == "the server is currently unable to handle the request"


def test_waiting_to_ask_again_ends_with_the_time() -> None:
    busy = saying(b"HTTP/1.1 429 Busy\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n")
    text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    assert failing(busy, timeout=0.2) == f"POST: {text}"


X509 = "POST: tls: failed to verify certificate: x509: "


def test_a_certificate_that_is_not_accepted_is_told_in_the_real_servers_words() -> None:
    other = base64.b64encode(Authority.create("other", now=NOW).pem).decode()
    unknown = f"{X509}certificate signed by unknown authority"
    assert failing(well, calls=0, caBundle=other) == unknown
    assert failing(well, calls=0, caBundle="") == unknown
    without = "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"
    assert failing(well, "ex.io", calls=0) == f"{X509}{without}"
    address = f"{X509}certificate is valid for 127.0.0.2, not 127.0.0.1"
    assert failing(well, "127.0.0.2", calls=0) == address
    past = NOW - datetime.timedelta(days=400)
    expired = failing(well, calls=0, now=past)
    assert re.fullmatch(
        rf"{X509}certificate has expired or is not yet valid: current time \S+Z is after \S+Z",
        expired,
    )


def test_a_certificate_for_other_names_is_told_with_them() -> None:
    authority = Authority.create("hook", now=NOW)

    def told(*hosts: str) -> str:
        pem = authority.server(*hosts, now=NOW).certificate
        return explained(62, "", "me.svc", x509.load_pem_x509_certificate(pem), now=NOW)

    assert told("a.io", "b.io") == "certificate is valid for a.io, b.io, not me.svc"
    alone = "certificate is not valid for any names, but wanted to match me.svc"
    assert told("127.0.0.1") == alone


def test_a_server_without_tls_is_told_so() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
        writer.close()

    async def call() -> str:
        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ApiError) as error:
            await asked({"url": f"https://127.0.0.1:{port}/"}, gadget())
        server.close()
        return error.value.message

    assert asyncio.run(call()).endswith(": http: server gave HTTP response to HTTPS client")


def test_a_server_that_hangs_up_at_once_is_told_so() -> None:
    async def call() -> str:
        server = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ApiError) as error:
            await asked({"url": f"https://127.0.0.1:{port}/"}, gadget())
        server.close()
        return error.value.message

    assert asyncio.run(call()).endswith('/?timeout=30s": EOF')


def test_a_handshake_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "HANDSHAKE", 0.1)
    text = failing(saying(stay=True), tls=False, calls=0)
    assert text == "POST: net/http: TLS handshake timeout"


def test_an_address_where_nobody_listens_is_named() -> None:
    message = json.loads((RECORDED / "conversion-webhook-unreachable.json").read_text())[4]["body"]
    recorded = message["message"].replace("conversion-webhook-unreachable.ex.io", "ex.io")
    assert refused({"url": "https://127.0.0.1:1/convert"}) == recorded


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://127.0.0.1/c", "dial tcp 127.0.0.1:443: connect: connection refused"),
        ("https://h.invalid/c", "dial tcp: lookup h.invalid: no such host"),
        ("https://127.0.0.1:99999/c", "dial tcp: address 99999: invalid port"),
    ],
)
def test_an_address_that_cannot_be_reached_is_told(url: str, text: str) -> None:
    assert refused({"url": url}) == f'{SOURCE} failed: Post "{url}?timeout=30s": {text}'


def test_a_service_is_never_found() -> None:
    service = {"name": "svc", "namespace": "ns1", "path": "/c"}
    url = "https://svc.ns1.svc:443/c?timeout=30s"
    text = f'{SOURCE} failed: Post "{url}": service "svc" not found'
    assert refused({"service": service}) == text
    other = {"name": "svc", "namespace": "ns1", "port": 8443}
    assert 'Post "https://svc.ns1.svc:8443/?timeout=30s"' in refused({"service": other})


def test_a_bundle_that_holds_no_certificate_makes_the_kind_unusable() -> None:
    nonsense = base64.b64encode(b"nonsense").decode()
    text = "Internal error occurred: error resolving resource"
    assert refused({"url": "https://127.0.0.1:1/", "caBundle": nonsense}) == text


def test_a_caller_who_goes_away_leaves_the_webhook_usable() -> None:
    async def behaviour(raw: Raw, writer: asyncio.StreamWriter, body: bytes) -> bool:
        if len(raw.requests) == 1:
            await asyncio.sleep(5)
        return await well(raw, writer, body)

    async def call() -> Object:
        async with listening(behaviour) as (_, client):
            hook = WebhookConversion(conversion(client), KIND)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(hook.convert(gadget(), "ex.io/v1"), 0.2)
            found = await hook.convert(gadget(), "ex.io/v1")
            await hook.close()
            return found

    assert asyncio.run(call()) == gadget(version="v1")
