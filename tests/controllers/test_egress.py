"""The servers that `--allow-http` allows, and the requests that polyver sends to them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.web_server import WebServer, web_server

from polyver.controllers.egress import (
    AllowedHttp,
    HttpNotAllowed,
    HttpServer,
    InvalidHttpPattern,
    InvalidUrl,
)
from polyver.controllers.outgoing import HttpAnswer, HttpRequests, NoAnswer


def allows(pattern: str, url: str) -> bool:
    try:
        AllowedHttp.read([pattern]).server(url)
    except HttpNotAllowed:
        return False
    return True


@pytest.mark.parametrize(
    ("pattern", "url", "is_so"),
    [
        ("shop.example", "http://shop.example/health", True),
        ("shop.example", "https://SHOP.example.:443/", True),
        ("shop.example", "http://shop.example:8080/", False),
        ("shop.example:*", "http://shop.example:8080/", True),
        ("shop.example:8080", "http://shop.example:8080/", True),
        ("shop.example:8080", "http://shop.example/", False),
        ("https://shop.example", "http://shop.example/", False),
        ("shop.example", "http://a.shop.example/", False),
        ("shop.example", "http://shop.example@evil.example/", None),
        ("*.example", "https://a.b.example/", True),
        ("*.example", "https://example/", False),
        ("*.example", "https://badexample/", False),
        ("*", "http://shop.example/", True),
        ("*", "http://shop.example:9090/", False),
        ("prometheus.monitoring:9090", "http://prometheus.monitoring:9090/", True),
        ("127.0.0.1:9090", "http://127.0.0.1:9090/", True),
        ("[::1]:9090", "http://[0:0::1]:9090/", True),
    ],
)
def test_a_pattern_allows_a_server(pattern: str, url: str, is_so: bool | None) -> None:
    if is_so is None:
        with pytest.raises(InvalidUrl):
            allows(pattern, url)
    else:
        assert allows(pattern, url) is is_so


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "0.0.0.0",
        "169.254.169.254",
        "[fe80::1]",
        "10.96.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "[fd00::1]",
        "224.0.0.1",
        "localhost",
        "a.localhost",
        "prometheus",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "metadata.google.internal",
        "2130706433",
    ],
)
def test_a_wildcard_allows_nothing_of_the_machine_and_the_cluster(host: str) -> None:
    assert not allows("*:*", f"http://{host}/")
    assert allows(host, f"http://{host}/")
    if "." in host and host[0].isalpha():
        assert not allows(f"*.{host.partition('.')[2]}", f"http://{host}/")


@pytest.mark.parametrize(
    "text",
    ["", "*.", "a*", "http://", "ftp://a", "a:0", "a:70000", "a/path", "a b", "*.*", "::1", "a:b"],
)
def test_other_patterns_are_refused(text: str) -> None:
    with pytest.raises(InvalidHttpPattern, match=r"HOST\[:PORT\]"):
        AllowedHttp.read([text])


@pytest.mark.parametrize(
    "url",
    [
        "",
        "shop",
        "ftp://a/",
        "http://",
        "http://a:0/",
        "http://a:x/",
        "http://a b/",
        "http://a\\@b/",
        "http://bücher.example/",
        "http://u:p@a/",
        "http://a/\n",
        "http://[::1%25eth0]/",
        "http://[x/",
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidUrl):
        HttpServer.of(url)


@given(st.text(max_size=30) | st.text(max_size=30).map("http://{}".format))
def test_every_text_is_read_or_refused(text: str) -> None:
    for read in (HttpServer.of, lambda each: AllowedHttp.read([each])):
        with suppress(InvalidUrl, InvalidHttpPattern):
            read(text)


# Requests.


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


def send(allowed: str, method: str, url: str, **more: Any) -> HttpAnswer:
    return asyncio.run(HttpRequests(AllowedHttp.read([allowed])).send(method, url, **more))


def test_a_request_is_sent_to_an_allowed_server(web: WebServer) -> None:
    web.answers["/a%20b?q=1"] = (201, b"made")
    answer = send(web.pattern, "POST", f"{web.url}/a%20b?q=1", json=b"{}", largest=100)
    assert answer == HttpAnswer(201, b"made")
    [asked] = web.asked
    assert (asked.method, asked.target, asked.body) == ("POST", "/a%20b?q=1", b"{}")
    assert asked.headers["host"] == web.pattern


def test_nothing_is_sent_to_another_server(web: WebServer) -> None:
    with pytest.raises(HttpNotAllowed, match="not allowed; the option --allow-http"):
        send("shop.example", "GET", web.url)
    assert not web.asked


def test_redirects_and_proxies_are_not_followed(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    web.answers["/old"] = (302, b"")
    web.headers["/old"] = {"location": f"{web.url}/new", "set-cookie": "a=b"}
    assert send(web.pattern, "GET", f"{web.url}/old").status == 302
    assert [each.target for each in web.asked] == ["/old"]


def test_a_large_body_is_refused(web: WebServer) -> None:
    web.answers["/"] = (200, b"x" * 3000)
    with pytest.raises(NoAnswer, match="answered with more than 2 KiB"):
        send(web.pattern, "GET", web.url, largest=2048)
    assert send(web.pattern, "GET", web.url).body == b""


def test_a_server_that_refuses_the_connection_or_does_not_speak_http(web: WebServer) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(NoAnswer, match=f"http://{at} did not answer: Connection refused"):
            send(at, "GET", f"http://{at}/secret")
    with pytest.raises(NoAnswer, match="did not answer"):
        send(web.pattern, "GET", web.url.replace("http:", "https:"))


class Names:
    """Answers of a DNS server that change from one question to the next."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = [*answers]

    async def getaddrinfo(self, host: str, port: int, **more: Any) -> list[Any]:
        return [(None, None, None, "", (each, port)) for each in self.answers.pop(0)]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    found = Names()
    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", found.getaddrinfo)
    return found


def test_a_name_with_a_local_address_is_in_no_wildcard(web: WebServer, names: Names) -> None:
    names.answers = [["127.0.0.1"]]
    with pytest.raises(HttpNotAllowed, match=r"has the address 127.0.0.1, which no wildcard"):
        send("*.example:*", "GET", f"http://shop.example:{web.port}/")
    assert not web.asked


def test_a_name_is_resolved_once_and_each_address_is_tried(web: WebServer, names: Names) -> None:
    names.answers = [["::1", "127.0.0.1"], []]
    url = f"http://shop.example:{web.port}/"
    assert send("shop.example:*", "GET", url).status == 200
    assert web.asked[0].headers["host"] == f"shop.example:{web.port}"
    assert names.answers == [[]]
