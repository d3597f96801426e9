"""The webhook's application: what is asked of it over HTTP, and what it answers."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from tests.deadlines import HANG
from tests.webhook.converters import Hosts, asked, host, served

from polyver.kube.http import http
from polyver.kube.http.http import RequestHeaders
from polyver.webhook import ReviewHandlers, WebhookApp
from polyver.webhook import app as webhook_app


def serving(*converters: Hosts) -> ReviewHandlers:
    return ReviewHandlers(served(*converters))


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    app: WebhookApp,
    method: str,
    path: str,
    body: bytes | Sequence[bytes] = b"",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()],
    }
    parts = [body] if isinstance(body, bytes) else list(body)
    sent: list[Mapping[str, Any]] = []

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, end = sent
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], found, end["body"])


def answer(*arguments: Any, app: WebhookApp | None = None, **options: Any) -> Answer:
    async def run() -> Answer:
        return await ask(app or WebhookApp(serving()), *arguments, **options)

    return asyncio.run(run())


def post(body: bytes | Sequence[bytes], **headers: str) -> Answer:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return answer("POST", "/convert?timeout=30s", body, given)


REVIEW = asked(host(hostPort="h:1"))


@pytest.mark.parametrize("form", ["application/json", "application/json; charset=utf-8", ""])
def test_reviews_are_json_or_do_not_say_what_they_are(form: str) -> None:
    found = post(REVIEW, content_type=form)
    assert found.status == 200
    assert found.headers["content-type"] == "application/json"
    assert int(found.headers["content-length"]) == len(found.body)
    assert found.json["response"]["convertedObjects"] == [host("v2", host="h", port="1")]


def test_a_body_may_come_in_pieces() -> None:
    assert post([REVIEW[:10], REVIEW[10:100], REVIEW[100:]]).status == 200


@pytest.mark.parametrize(
    "headers", [{"content_type": "application/yaml"}, {"content_encoding": "gzip"}]
)
def test_other_forms_are_refused(headers: dict[str, str]) -> None:
    found = post(REVIEW, **headers)
    assert (found.status, found.json["reason"]) == (415, "UnsupportedMediaType")


def test_what_is_no_review_is_refused() -> None:
    found = post(b"hello")
    assert (found.status, found.json["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("GET", "/convert", 405, "POST"),
        ("PUT", "/convert?timeout=30s", 405, "POST"),
        ("POST", "/metrics", 405, "GET, HEAD"),
        ("DELETE", "/readyz", 405, "GET, HEAD"),
        ("POST", "/", 404, None),
        ("GET", "", 404, None),
        ("GET", "/convert/", 404, None),
        ("GET", "/healthzz", 404, None),
        ("GET", "/readyz/nothing", 404, None),
    ],
)
def test_other_paths_and_methods(method: str, path: str, status: int, allowed: str | None) -> None:
    found = answer(method, path)
    assert found.status == status
    assert found.headers.get("allow") == allowed


def test_a_review_that_is_too_large_is_refused() -> None:
    async def run() -> None:
        app = WebhookApp(serving(), most_body=1000)
        assert (await ask(app, "POST", "/convert", REVIEW)).status == 200
        for body in (REVIEW + b" " * 1000, [REVIEW, b" " * 1000], [b" " * 900] * 10):
            found = await ask(app, "POST", "/convert", body)
            assert (found.status, found.json["reason"]) == (413, "RequestEntityTooLarge")

    asyncio.run(run())


def test_a_review_without_memory_waits_and_is_asked_to_come_again() -> None:
    async def run() -> None:
        release = threading.Event()
        waiting = Hosts(change=lambda _: release.wait(HANG))
        app = WebhookApp(serving(waiting), memory=1)
        large = REVIEW + b" " * 6 * 1024 * 1024
        first = asyncio.create_task(ask(app, "POST", "/convert", large))
        second = asyncio.create_task(ask(app, "POST", "/convert", large))
        await asyncio.sleep(0)
        found = await ask(app, "POST", "/convert?timeout=500ms", large)
        assert (found.status, found.headers["retry-after"]) == (429, "1")
        assert not second.done()
        release.set()
        assert [(await each).status for each in (first, second)] == [200, 200]
        assert counts_of(await ask(app, "GET", "/metrics"))["memory_refusals_total"] == 1
        assert (await ask(app, "POST", "/convert", large)).status == 200

    asyncio.run(run())


def test_a_review_that_would_never_find_memory_is_too_large() -> None:
    app = WebhookApp(serving(), memory=1)
    found = answer("POST", "/convert", asked(*[host()] * 60_000), app=app)
    assert (found.status, found.json["reason"]) == (413, "RequestEntityTooLarge")
    assert "MiB of memory" in found.json["message"]


def test_a_conversion_that_does_not_end_is_not_waited_for() -> None:
    async def run() -> None:
        release = threading.Event()
        app = WebhookApp(serving(Hosts(change=lambda _: release.wait(HANG))))
        found = await ask(app, "POST", "/convert?timeout=50ms", REVIEW)
        assert (found.status, found.json["reason"]) == (504, "Timeout")
        release.set()
        assert (await ask(app, "POST", "/convert", REVIEW)).status == 200

    asyncio.run(run())


def test_conversions_are_replaced_as_a_whole() -> None:
    async def run() -> None:
        app = WebhookApp(ReviewHandlers({}))
        found = await ask(app, "POST", "/convert", REVIEW)
        assert found.json["response"]["result"]["status"] == "Failure"
        app.serve(serving())
        found = await ask(app, "POST", "/convert", REVIEW)
        assert found.json["response"]["result"]["status"] == "Success"

    asyncio.run(run())


# Health.


def test_it_is_ready_when_conversions_and_certificate_are() -> None:
    async def run() -> None:
        problems = ["the certificate expired"]
        app = WebhookApp(ReviewHandlers({}), checks={"certificate": lambda: problems[0]})

        async def ready(path: str = "/readyz") -> int:
            return (await ask(app, "GET", path)).status

        assert await ready() == 503
        app.serve(serving())
        assert (await ready(), await ready("/readyz/certificate")) == (503, 503)
        problems[0] = ""
        assert await ready() == 200
        app.drain()
        found = await ask(app, "GET", "/readyz?verbose")
        assert (found.status, found.headers["connection"]) == (503, "close")
        assert b"[-]shutdown failed" in found.body
        assert await ready("/livez") == await ready("/healthz") == 200

    asyncio.run(run())


def test_liveness_asks_for_nothing_else() -> None:
    app = WebhookApp(ReviewHandlers({}), checks={"certificate": lambda: "ended"})
    assert answer("GET", "/livez?verbose", app=app).body == b"[+]ping ok\nlivez check passed\n"


# Metrics.


def counts(app: WebhookApp) -> dict[str, float]:
    return counts_of(answer("GET", "/metrics", app=app))


def counts_of(found: Any) -> dict[str, float]:
    text = found.body.decode()
    found = re.findall(r"^(polyver_webhook_\w+_total\S*) (\S+)$", text, re.MULTILINE)
    return {name.removeprefix("polyver_webhook_"): float(value) for name, value in found}


def test_reviews_objects_and_failures_are_counted() -> None:
    app = WebhookApp(serving())
    for body in (asked(host(), host(), host("v2")), asked(host(), host(wrong=True)), b"{"):
        answer("POST", "/convert", body, app=app)
    labels = '{group="hosts.example.com",kind="Host"}'
    assert counts(app) == {
        'reviews_total{code="200",result="success"}': 1,
        'reviews_total{code="200",result="failure"}': 1,
        'reviews_total{code="400",result="refused"}': 1,
        f'objects_total{labels[:-1]},version="v2"}}': 3,
        f"failures_total{labels}": 1,
        "memory_refusals_total": 0,
        "memory_waits_total": 0,
    }


def test_what_clients_write_is_no_label() -> None:
    app = WebhookApp(serving())
    for number in range(50):
        answer("POST", "/convert", asked(host() | {"kind": f"Kind{number}"}), app=app)
    failures = {name for name in counts(app) if name.startswith("failures")}
    assert failures == {'failures_total{group="",kind=""}'}


def test_kinds_that_are_served_no_more_are_forgotten() -> None:
    app = WebhookApp(serving(Hosts(), Hosts("Route")))
    answer("POST", "/convert", REVIEW, app=app)
    app.serve(ReviewHandlers({}))
    assert not [name for name in counts(app) if "Host" in name]


def test_every_metric_is_described() -> None:
    text = answer("GET", "/metrics").body.decode()
    names = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    assert names == set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))


def test_objects_may_be_raw() -> None:
    class Renaming(Hosts):
        def convert_raw(self, raw: bytes | msgspec.Raw, version: str) -> Any:
            return msgspec.Raw(super().convert_raw(raw, version))

    found = answer("POST", "/convert", REVIEW, app=WebhookApp(serving(Renaming())))
    assert found.json["response"]["convertedObjects"] == [host("v2", host="h", port="1")]


# At once.


JSON = ((b"content-type", b"application/json"),)
USUAL = RequestHeaders("POST", "/convert", b"timeout=30s", JSON)


def at_once(
    app: WebhookApp, body: bytes, head: RequestHeaders = USUAL
) -> http.EncodedResponse | None:
    """What is said at once to a request that has come as a whole."""
    quick = app.at_once(head)
    return None if quick is None else quick(body)


@pytest.fixture
def all_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes on this machine."""
    for name in ("_QUICK", "_AT_FIRST"):
        monkeypatch.setattr(webhook_app, name, float("inf"))


BODIES = [
    REVIEW,
    asked(),
    asked(host(), host("v2"), host(hostPort="h:1")),
    asked(host(), host(wrong=True)),
    asked(host() | {"kind": "Nothing"}),
    asked(host(raises=True)),
    b"",
    b"{",
    b"[1]",
    b"[" * 100_000,
    b"\xff",
]


@pytest.mark.usefixtures("all_are_quick")
@pytest.mark.parametrize("body", BODIES)
def test_what_is_answered_at_once_is_what_the_application_says(body: bytes) -> None:
    app, other = WebhookApp(serving()), WebhookApp(serving())
    found = at_once(app, body)
    assert found is not None
    assert found.headers == b"content-type: application/json\r\n"
    told = answer("POST", "/convert?timeout=30s", body, app=other)
    assert (found.status, found.body) == (told.status, told.body)
    assert counts(app) == counts(other)
    quick = WebhookApp(serving()).at_once(USUAL)
    assert quick is not None
    assert quick(bytearray(body)) == found, "wherever it was put"


@pytest.mark.usefixtures("all_are_quick")
@pytest.mark.parametrize(
    ("head", "body"),
    [
        (USUAL._replace(path="/admit/mutate"), REVIEW),
        (USUAL._replace(path="/readyz"), REVIEW),
        (USUAL._replace(method="GET"), REVIEW),
        (USUAL._replace(headers=((b"content-type", b"application/yaml"),)), REVIEW),
        (USUAL._replace(headers=((b"content-encoding", b"gzip"),)), REVIEW),
        (USUAL, REVIEW + b" " * 1000),
    ],
)
def test_all_that_is_unusual_is_left_to_the_application(head: RequestHeaders, body: bytes) -> None:
    app = WebhookApp(serving(), most_body=1000)
    assert at_once(app, body, head) is None
    assert at_once(app, REVIEW) is not None
    app.drain()
    assert at_once(app, REVIEW) is None


def test_nothing_slow_is_answered_at_once() -> None:
    app = WebhookApp(serving())
    assert at_once(app, REVIEW) is None, "nobody knows yet"
    answer("POST", "/convert", asked(host(seconds=0.2, hostPort="h:1")), app=app)
    assert at_once(app, REVIEW) is None


def test_what_was_quick_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_app, "_QUICK", 60.0)
    app = WebhookApp(serving())
    answer("POST", "/convert", REVIEW, app=app)
    assert at_once(app, REVIEW) is not None


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 5000])
@pytest.mark.parametrize("place", ["spec", "metadata"])
def test_a_number_out_of_range_is_no_failure_of_the_webhook(
    number: str, place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    from tests.webhook.test_ways import KIND, by_functions

    def there(obj: dict[str, Any]) -> dict[str, Any]:
        return {**obj, "spec": {}}

    sent = json.loads(asked(host(hostPort="h:1")))
    sent["request"]["objects"][0][place]["much"] = "@"
    body = json.dumps(sent).replace('"@"', number).encode()
    app = WebhookApp(ReviewHandlers({KIND: by_functions(there)}))
    found = answer("POST", "/convert", body, app=app).json["response"]
    assert found["result"]["status"] == "Failure"
    assert "out of range" in found["result"]["message"]
    assert "Traceback" not in capfd.readouterr().err
