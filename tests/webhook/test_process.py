"""The webhook as it runs: over HTTPS, in a process of its own, while things change around it."""

from __future__ import annotations

import datetime
import json
import signal
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.webhook.converters import SECRET, asked, host
from tests.webhook.running import Running, convert, eventually, get, running

from polyver.kube.http.tls import Authority, Pair

NOW = datetime.datetime.now(datetime.UTC)
CONVERTED = [host("v2", host="h", port="1")]


class Mounted:
    """A secret as Kubernetes mounts it: two links through a folder that is swapped as a whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self.authority = Authority.create("test", now=NOW)
        self.ca = folder / "ca.crt"
        self.ca.write_bytes(self.authority.pem)
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        for link in (self.certificate, self.key):
            link.symlink_to(Path("..data") / link.name)
        self.swap(self.pair())

    @property
    def files(self) -> tuple[Path, Path, Path]:
        return self.certificate, self.key, self.ca

    def pair(self) -> Pair:
        return self.authority.server("127.0.0.1", now=NOW)

    def swap(self, pair: Pair) -> None:
        self._number += 1
        real = self._folder / f"..{self._number}"
        real.mkdir()
        (real / "tls.crt").write_bytes(pair.certificate)
        (real / "tls.key").write_bytes(pair.key)
        temporary = self._folder / "..next"
        temporary.symlink_to(real.name)
        temporary.replace(self._folder / "..data")

    def write(self, pair: Pair, *, half: Callable[[], None]) -> None:
        """Write over the files, one after the other."""
        self.certificate.write_bytes(pair.certificate)
        half()
        self.key.write_bytes(pair.key)


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    folder = tmp_path / "mounted"
    folder.mkdir()
    return Mounted(folder)


@pytest.fixture(scope="module")
def hook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("hook")) as found:
        yield found


def serial(hook: Running) -> str:
    with hook.connected() as connection:
        assert isinstance(connection.sock, ssl.SSLSocket)
        certificate: Any = connection.sock.getpeercert()
        return str(certificate["serialNumber"])


@contextmanager
def asking(*asks: Callable[[], None]) -> Iterator[None]:
    """Ask again and again, each in a thread, while the body runs; whatever fails is raised."""
    ended = threading.Event()

    def ask_on(ask: Callable[[], None]) -> int:
        count = 0
        while not ended.is_set():
            ask()
            count += 1
        return count

    with ThreadPoolExecutor() as threads:
        going_on = [threads.submit(ask_on, ask) for ask in asks]
        try:
            yield
        finally:
            ended.set()
        assert all(each.result() for each in going_on)


# Serving.


def test_it_says_where_it_is_and_whom_to_trust(hook: Running) -> None:
    assert hook.ready == f"polyver converts 1 kind at {hook.url}; CA bundle in {hook.ca}"
    assert hook.convert(host(hostPort="h:1")) == CONVERTED


def test_the_keys_are_for_their_owner_alone(hook: Running) -> None:
    folder = hook.ca.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


def test_it_is_well_and_ready(hook: Running) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/readyz/certificate", "/readyz/conversions"):
        assert hook.get(path) == (200, "ok")


def test_metrics_tell_what_was_done(hook: Running) -> None:
    with hook.connected() as connection:
        convert(connection, asked(*[host(hostPort="h:1")] * 7))
        _, text = get(connection, "/metrics")
    labels = 'group="hosts.example.com",kind="Host",version="v2"'
    assert f"polyver_webhook_objects_total{{{labels}}}" in text
    assert 'polyver_webhook_reviews_total{code="200",result="success"}' in text
    assert "polyver_webhook_certificate_until_seconds" in text


def test_what_user_code_raises_is_logged_with_its_traceback(hook: Running) -> None:
    with hook.connected() as connection:
        connection.request("POST", "/convert", asked(host(raises=True)))
        assert SECRET not in connection.getresponse().read().decode()
    eventually(lambda: hook.says(SECRET))
    assert hook.says("in convert_raw")


def test_health_is_told_while_a_review_takes_its_time(hook: Running) -> None:
    with ThreadPoolExecutor() as threads:
        # Once this was slow, the next ones are expected to be.
        hook.convert(host(seconds=1, hostPort="h:1"))
        slow = threads.submit(hook.convert, host(seconds=3, hostPort="h:1"))
        eventually(hook.is_converting)
        answers = [hook.get("/livez") for _ in range(3)]
        assert not slow.done()
        assert answers == [(200, "ok")] * 3
        assert slow.result()[0]["spec"]["host"] == "h"


def test_silent_and_slow_clients_are_in_nobodys_way(hook: Running) -> None:
    name, _, port = hook.address.rpartition(":")
    address = name, int(port)
    with (
        socket.create_connection(address),
        socket.create_connection(address) as shaking,
        hook.connected() as slow,
    ):
        shaking.sendall(b"\x16\x03\x01")
        slow.putrequest("POST", "/convert")
        slow.putheader("Content-Length", "1000")
        slow.endheaders(b"{")
        assert hook.convert(host(hostPort="h:1")) == CONVERTED


# Changing.


def test_a_certificate_is_replaced_without_a_failed_request(
    tmp_path: Path, mounted: Mounted
) -> None:
    with running(tmp_path, files=mounted.files) as hook, hook.connected() as kept:
        body = asked(host(hostPort="h:1"))

        def on_a_connection_that_is_kept() -> None:
            assert convert(kept, body) == CONVERTED

        def on_a_new_connection() -> None:
            assert hook.convert(host(hostPort="h:1")) == CONVERTED

        with asking(on_a_connection_that_is_kept, on_a_new_connection):
            for _ in range(2):
                before = serial(hook)
                mounted.swap(mounted.pair())
                eventually(lambda before=before: serial(hook) != before)  # type: ignore[misc]
            before = serial(hook)

            def half() -> None:
                eventually(lambda: hook.says("the old certificate stays in use"))
                assert serial(hook) == before

            mounted.write(mounted.pair(), half=half)
            eventually(lambda: serial(hook) != before)
        assert hook.end(signal.SIGINT) == 0


def test_conversions_are_loaded_again_when_they_change(tmp_path: Path) -> None:
    with running(tmp_path) as hook:

        def route() -> bool:
            with hook.connected() as connection:
                body = asked(host(hostPort="h:1") | {"kind": "Route"})
                connection.request("POST", "/convert", body)
                found = json.loads(connection.getresponse().read())
                return bool(found["response"]["result"]["status"] == "Success")

        assert not route()
        hook.kinds.write_text('["Host", "Route"]')
        eventually(route)
        hook.kinds.write_text("[")
        eventually(lambda: hook.says(f"this is no list of kinds ({hook.kinds}:1)"))
        assert route(), "what was good is served still"
        hook.process.send_signal(signal.SIGHUP)
        hook.kinds.write_text('["Host"]')
        eventually(lambda: not route())
        assert hook.end(signal.SIGTERM) == 0


# Ending.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_review_in_flight_is_answered(tmp_path: Path, number: int) -> None:
    with running(tmp_path) as hook, hook.connected() as slow, hook.connected() as idle:
        assert get(idle, "/readyz") == (200, "ok")
        slow.request("POST", "/convert", asked(host(seconds=1.5, hostPort="h:1")))
        eventually(hook.is_converting)
        hook.process.send_signal(number)
        found = json.loads(slow.getresponse().read())
        assert found["response"]["convertedObjects"][0]["spec"]["host"] == "h"
        assert hook.ended() == 0


def test_before_its_end_it_is_not_ready_and_converts_still(tmp_path: Path) -> None:
    with running(tmp_path, linger=3) as hook:
        hook.process.send_signal(signal.SIGTERM)
        eventually(lambda: hook.get("/readyz")[0] == 503)
        assert hook.get("/livez") == (200, "ok")
        with hook.connected() as connection:
            connection.request("POST", "/convert", asked(host(hostPort="h:1")))
            response = connection.getresponse()
            assert response.status == 200
            assert response.getheader("connection") == "close"
            assert json.loads(response.read())["response"]["convertedObjects"] == CONVERTED
        assert hook.ended() == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with running(tmp_path, linger=600) as hook:
        hook.process.send_signal(signal.SIGTERM)
        eventually(lambda: hook.get("/readyz")[0] == 503)
        assert hook.end(signal.SIGTERM) == 128 + signal.SIGTERM


def test_a_restart_keeps_its_authority(tmp_path: Path) -> None:
    with running(tmp_path) as hook:
        trusted = hook.ca.read_bytes()
        assert hook.end(signal.SIGINT) == 0
    with running(tmp_path) as hook:
        assert hook.ca.read_bytes() == trusted
        assert hook.convert(host(hostPort="h:1")) == CONVERTED
