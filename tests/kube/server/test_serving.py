"""Between a socket and the pipeline: what clients see, whatever the pipeline answers."""

from __future__ import annotations

import asyncio
import datetime
import http.client
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.deadlines import HANG

from polyver.kube.http import connections
from polyver.kube.http import listener as listening
from polyver.kube.http.listener import CannotListen, bind, serving
from polyver.kube.objects import encode_json
from polyver.kube.server.asgi import ApiServerApp
from polyver.kube.server.credentials import Credentials, server_names
from polyver.kube.server.http import HttpRequest, HttpResponse
from polyver.kube.server.identity import Identities, self_review
from polyver.kube.store import Store
from polyver.testing import EmbeddedServer

JSON = [("content-type", "application/json")]
LIMIT = 3 * 1024 * 1024


class Pipeline:
    """Answers with what was asked, and streams until it is told to stop."""

    def __init__(self) -> None:
        self.streaming = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)

    async def handle(self, request: HttpRequest) -> HttpResponse:
        match request.path:
            case "/fails":
                raise ValueError("a secret of the server")
            case "/stream":
                return HttpResponse(200, list(JSON), self._numbers())
            case "/breaks":
                return HttpResponse(200, list(JSON), self._broken())
            case "/slow":
                await asyncio.sleep(0.1)
            case "/large":
                return HttpResponse(200, list(JSON), b"x" * int(request.query))
            case "/warns":
                return HttpResponse(200, [*JSON, ("warning", "a\r\nset-cookie: b\u2713")], b"{}")
        about = {"path": request.path, "query": request.query, "size": len(request.body)}
        return HttpResponse(200, list(JSON), encode_json(about | self_review(request.user)))

    async def _numbers(self) -> AsyncIterator[bytes]:
        try:
            yield b"1\n"
            yield b"2\n"
            self.streaming.release()
            await asyncio.Event().wait()
        finally:
            self.ended.release()

    async def _broken(self) -> AsyncIterator[bytes]:
        yield b"1\n"
        raise ValueError("a secret of the server")


class Client:
    """Asks one server, each time on a connection of its own."""

    def __init__(self, server: EmbeddedServer, pipeline: Pipeline) -> None:
        self.server = server
        self.pipeline = pipeline
        self.host, _, port = server.url.removeprefix("https://").rpartition(":")
        self.port = int(port)
        self.authorized = {"Authorization": f"Bearer {server.token}"}

    def tls(self, *, certificate: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.server.ca_file)
        if certificate:
            context.load_cert_chain(self.server.client_cert_file, self.server.client_key_file)
        return context

    @contextmanager
    def connected(self, *, certificate: bool = False) -> Iterator[http.client.HTTPSConnection]:
        context = self.tls(certificate=certificate)
        connection = http.client.HTTPSConnection(
            self.host, self.port, context=context, timeout=HANG
        )
        try:
            yield connection
        finally:
            connection.close()

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        certificate: bool = False,
    ) -> tuple[http.client.HTTPResponse, bytes]:
        with self.connected(certificate=certificate) as connection:
            sent = self.authorized if headers is None else headers
            connection.request(method, path, body, dict(sent))
            response = connection.getresponse()
            return response, response.read()

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Any:
        return json.loads(self.ask("GET", path, headers)[1])

    def raw(self, sent: bytes, *, tls: bool = True) -> bytes:
        """Everything that comes back for some bytes."""
        with self.socket(tls=tls) as connection:
            connection.sendall(sent)
            found = b""
            while part := connection.recv(65536):
                found += part
            return found

    @contextmanager
    def socket(self, *, tls: bool = True) -> Iterator[socket.socket]:
        with socket.create_connection((self.host, self.port), timeout=HANG) as plain:
            if not tls:
                yield plain
                return
            with self.tls().wrap_socket(plain, server_hostname=self.host) as wrapped:
                yield wrapped


@contextmanager
def started(data: Path | None = None) -> Iterator[Client]:
    pipeline = Pipeline()

    @asynccontextmanager
    async def opens(store: Store, address: str) -> AsyncIterator[Pipeline]:
        yield pipeline

    with EmbeddedServer(data=data, opens=opens) as server:
        yield Client(server, pipeline)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with started() as client:
        yield client


# Requests.


def test_a_path_is_decoded_once_and_a_query_not_at_all(client: Client) -> None:
    found = client.get("/x/a%2Fb%20c/%252F?q=%20a")
    assert (found["path"], found["query"]) == ("/x/a/b c/%2F", "q=%20a")


def test_answers_have_the_headers_of_the_real_server(client: Client) -> None:
    response, body = client.ask("GET", "/x")
    headers = {name.lower(): value for name, value in response.getheaders()}
    assert headers["cache-control"] == "no-cache, private"
    assert headers["content-type"] == "application/json"
    assert headers["content-length"] == str(len(body))
    assert len(headers["audit-id"]) == 36
    assert headers["date"].endswith("GMT")
    assert "server" not in headers


def test_a_client_may_name_its_request(client: Client) -> None:
    response, _ = client.ask("GET", "/x", client.authorized | {"Audit-Id": "mine-1"})
    assert response.getheader("audit-id") == "mine-1"


def test_no_header_reaches_beyond_its_line(client: Client) -> None:
    response, _ = client.ask("GET", "/warns", client.authorized | {"Audit-Id": "\t \xe9"})
    assert response.status == 200
    assert response.getheader("set-cookie") is None
    assert (response.getheader("warning") or "").startswith("a  set-cookie: b")
    assert len(response.getheader("audit-id") or "") == 36


def test_head_has_the_length_and_no_body(client: Client) -> None:
    response, body = client.ask("HEAD", "/x")
    assert (response.status, body) == (200, b"")
    assert int(response.getheader("content-length") or 0) > 0


def test_a_connection_serves_many_requests(client: Client) -> None:
    with client.connected() as connection:
        for number in range(5):
            connection.request("POST", f"/{number}", b"x" * 100_000, client.authorized)
            found = json.loads(connection.getresponse().read())
            assert (found["path"], found["size"]) == (f"/{number}", 100_000)


def test_a_body_as_large_as_allowed_is_taken(client: Client) -> None:
    _, body = client.ask("POST", "/x", body=b"x" * LIMIT)
    assert json.loads(body)["size"] == LIMIT


@pytest.mark.parametrize("size", [LIMIT + 1, 3 * LIMIT])
def test_a_larger_one_is_refused_in_the_real_servers_words(client: Client, size: int) -> None:
    response, body = client.ask("POST", "/x", body=b"x" * size)
    assert response.status == 413
    assert json.loads(body) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Request entity too large: limit is 3145728",
        "reason": "RequestEntityTooLarge",
        "code": 413,
    }


def test_a_failure_tells_the_client_nothing(
    client: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    response, body = client.ask("GET", "/fails")
    assert (response.status, json.loads(body)["reason"]) == (500, "InternalError")
    assert b"secret" not in body
    assert "a secret of the server" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"hello\r\n\r\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n", b"400 Bad Request"),
        (b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", b"400 Bad Request"),
        (b"GET /healthz HTTP/1.1\r\n\r\n", b"400 Bad Request: missing required Host header"),
        (
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n",
            b"400 Bad Request: too many Host headers",
        ),
        (
            b"GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n",
            b"400 Bad Request: malformed Host header",
        ),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * 1_200_000, b"431 Request Header Fields Too Large"),
    ],
)
def test_what_is_no_http_is_refused(client: Client, sent: bytes, status: bytes) -> None:
    found = client.raw(sent)
    assert found.startswith(b"HTTP/1.1 " + status[:3])
    assert found.endswith(b"\r\n\r\n" + status)


def test_plain_http_is_told_what_is_wrong(client: Client) -> None:
    found = client.raw(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", tls=False)
    assert found.startswith(b"HTTP/1.0 400 Bad Request\r\n")
    assert found.endswith(b"Client sent an HTTP request to an HTTPS server.\n")


def test_noise_is_hung_up_on(client: Client) -> None:
    assert client.raw(b"\x00\x01\x02", tls=False) == b""
    assert client.get("/x")["path"] == "/x"


def test_silent_and_slow_clients_are_in_nobodys_way(client: Client) -> None:
    with client.socket(tls=False), client.socket(tls=False) as shaking, client.socket() as slow:
        shaking.sendall(b"\x16\x03\x01")
        slow.sendall(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        assert client.get("/x")["path"] == "/x"


def test_a_client_that_leaves_in_the_middle_of_its_body_is_forgotten(client: Client) -> None:
    with client.socket() as connection:
        connection.sendall(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
    assert client.get("/x")["path"] == "/x"


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=300), st.booleans())
def test_whatever_is_sent_the_server_goes_on(client: Client, sent: bytes, tls: bool) -> None:
    with client.socket(tls=tls) as connection:
        connection.sendall(sent)
    assert client.ask("GET", "/healthz")[1] == b"ok"


@pytest.mark.parametrize(
    "sent", [b"", b"GET", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na"]
)
def test_a_request_that_does_not_end_is_not_waited_for(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_REQUEST", 0.05)
    with started() as client, client.socket() as connection:
        connection.sendall(sent)
        assert hangs_up(connection)


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01"])
def test_a_handshake_that_does_not_come_is_not_waited_for(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "_HANDSHAKE", 0.05)
    with started() as client, client.socket(tls=False) as connection:
        connection.sendall(sent)
        assert hangs_up(connection)


def hangs_up(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except (ConnectionError, ssl.SSLError):
        return True


def test_an_upgrade_that_is_not_served_is_answered(client: Client) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x"}
    response, _ = client.ask("GET", "/x", client.authorized | headers)
    assert response.status == 200


# Who asks.


def test_a_token_and_a_certificate_name_the_same_user(client: Client) -> None:
    by_token = client.get("/x")["userInfo"]
    _, body = client.ask("GET", "/x", {}, certificate=True)
    by_certificate = json.loads(body)["userInfo"]
    assert by_token["username"] == by_certificate["username"] == "kubernetes-admin"
    assert by_token["groups"] == by_certificate["groups"]


def test_without_either_one_is_anonymous(client: Client) -> None:
    assert client.get("/x", {})["userInfo"]["username"] == "system:anonymous"


def test_a_wrong_token_is_refused_even_for_health(client: Client) -> None:
    response, body = client.ask("GET", "/healthz", {"Authorization": "Bearer wrong"})
    assert (response.status, json.loads(body)["message"]) == (401, "Unauthorized")


def test_a_certificate_of_someone_else_is_no_way_in(client: Client, tmp_path: Path) -> None:
    other = Credentials.open(tmp_path / "other", ["x"], now=datetime.datetime.now(datetime.UTC))
    context = client.tls()
    context.load_cert_chain(other.client_cert_file, other.client_key_file)
    connection = http.client.HTTPSConnection(
        client.host, client.port, context=context, timeout=HANG
    )
    # Whether the client hears why, or only that it is over, depends on who is quicker.
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except OSError:
        status = 0
    finally:
        connection.close()
    assert status == 0


def test_an_administrator_is_taken_for_whom_they_name(client: Client) -> None:
    headers = client.authorized | {"Impersonate-User": "jane"}
    assert client.get("/x", headers)["userInfo"]["username"] == "jane"
    response, _ = client.ask("GET", "/x", {"Impersonate-User": "jane"})
    assert response.status == 403


# Health and metrics.


def test_health_is_for_all_and_its_parts_are_not(client: Client) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        response, body = client.ask("GET", path, {})
        assert (response.status, body) == (200, b"ok")
    assert client.ask("GET", "/readyz/store", {})[0].status == 403
    assert client.ask("GET", "/readyz/store")[1] == b"ok"
    assert client.get("/healthzz")["path"] == "/healthzz"


def test_metrics_are_for_those_who_may(client: Client) -> None:
    assert client.ask("GET", "/metrics", {})[0].status == 403
    _, body = client.ask("GET", "/metrics")
    assert b"apiserver_request_total{" in body
    viewer = {"Authorization": f"Bearer {client.server.viewer_token}"}
    assert client.ask("GET", "/metrics", viewer)[0].status == 200


# Streams.


def test_pieces_arrive_as_they_come_and_the_stream_ends_with_its_client(client: Client) -> None:
    with client.connected() as connection:
        connection.request("GET", "/stream", headers=client.authorized)
        response = connection.getresponse()
        assert response.getheader("transfer-encoding") == "chunked"
        assert [response.readline(), response.readline()] == [b"1\n", b"2\n"]
        assert client.pipeline.streaming.acquire(timeout=HANG)
        response.close()
    assert client.pipeline.ended.acquire(timeout=HANG)


def test_a_stream_that_fails_is_broken_off(
    client: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    with client.connected() as connection:
        connection.request("GET", "/breaks", headers=client.authorized)
        response = connection.getresponse()
        with pytest.raises((http.client.IncompleteRead, ssl.SSLError)):
            response.read()
    assert "a stream failed" in capfd.readouterr().err


def test_at_the_end_streams_are_closed_in_good_order() -> None:
    with started() as client:
        connection = http.client.HTTPSConnection(
            client.host, client.port, context=client.tls(), timeout=HANG
        )
        connection.request("GET", "/stream", headers=client.authorized)
        response = connection.getresponse()
        assert client.pipeline.streaming.acquire(timeout=HANG)
    assert response.read() == b"1\n2\n"
    connection.close()
    assert client.pipeline.ended.acquire(timeout=HANG)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((client.host, client.port))


def test_at_the_end_many_streams_are_closed_in_good_order() -> None:
    async def watch(client: Client) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(client.host, client.port, ssl=client.tls())
        token = client.authorized["Authorization"]
        writer.write(f"GET /stream HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n\r\n".encode())
        await reader.readuntil(b"2\n\r\n")
        return reader, writer

    async def rest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        left = await reader.read()
        writer.close()
        await writer.wait_closed()
        return left

    with asyncio.Runner() as runner:

        async def all_watch(client: Client) -> list[Any]:
            return await asyncio.gather(*(watch(client) for _ in range(40)))

        async def all_rest(open_ones: list[Any]) -> list[bytes]:
            return await asyncio.gather(*(rest(*each) for each in open_ones))

        with started() as client:
            watches = runner.run(all_watch(client))
        assert runner.run(all_rest(watches)) == [b"0\r\n\r\n"] * 40


def test_at_the_end_requests_in_flight_are_answered() -> None:
    with started() as client:
        connection = http.client.HTTPSConnection(
            client.host, client.port, context=client.tls(), timeout=HANG
        )
        connection.request("GET", "/x", headers=client.authorized)
        connection.getresponse().read()
        connection.request("GET", "/slow", headers=client.authorized)
        large = http.client.HTTPSConnection(
            client.host, client.port, context=client.tls(), timeout=HANG
        )
        large.request("GET", "/large?20000000", headers=client.authorized)
        answer = large.getresponse()
        taken: list[int] = []
        reading = threading.Timer(0.2, lambda: taken.append(len(answer.read())))
        reading.start()
    assert json.loads(connection.getresponse().read())["path"] == "/slow"
    reading.join()
    assert taken == [20_000_000]
    connection.close()
    large.close()


# Listening.


def test_a_port_in_use_is_named() -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=rf"127.0.0.1:{port}: the port is in use; .*--port"):
            bind("127.0.0.1", port)


def test_hosts_that_are_not_ours() -> None:
    with pytest.raises(CannotListen, match="this machine has no such address"):
        bind("192.0.2.1", 0)
    with pytest.raises(CannotListen, match="cannot be resolved"):
        bind("nowhere.invalid", 0)


def test_a_new_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    now = datetime.datetime.now(datetime.UTC)

    async def serial(port: int, ca: Path) -> str:
        context = ssl.create_default_context(cafile=ca)
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        certificate = writer.get_extra_info("ssl_object").getpeercert()
        writer.close()
        await writer.wait_closed()
        return str(certificate["serialNumber"])

    async def run() -> None:
        kept = Credentials.open(tmp_path, server_names("127.0.0.1"), now=now)
        context = kept.tls()
        listener = bind("127.0.0.1", 0)
        app = ApiServerApp(Pipeline(), Identities({}))
        port = listener.getsockname()[1]
        async with serving(app, listener, lambda: context):
            before = await serial(port, kept.ca_file)
            assert before == await serial(port, kept.ca_file)
            Credentials.open(tmp_path, [*server_names("127.0.0.1"), "new"], now=now)
            context.load_cert_chain(kept.server_cert_file, kept.server_key_file)
            assert before != await serial(port, kept.ca_file)

    asyncio.run(run())
