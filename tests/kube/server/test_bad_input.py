"""What nobody should send: each gets the status that a real kube-apiserver 1.37 gave it.

The numbers were asked of a real server with the same bytes. Where ours differs, `Differs` says how
and why. After everything the server still answers others, and has written no traceback.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.crds import widget_definition
from tests.deadlines import HANG

from polyver.testing import EmbeddedServer

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/bad.example.com/v1/namespaces/default/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
LIMIT = 3 * 1024 * 1024
DEFINITION = widget_definition("bad.example.com")
KINDS = {CONFIG_MAPS: ("v1", "ConfigMap"), WIDGETS: ("bad.example.com/v1", "Widget")}


@dataclass(frozen=True)
class Differs:
    """A status that is another one here."""

    real: int
    ours: int
    because: str


Status = int | Differs
DEPTH = "values nest 200 levels here, 10,000 there"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Sends any bytes, on a connection of their own."""

    server: EmbeddedServer
    authority: ssl.SSLContext = field(init=False)

    def __post_init__(self) -> None:
        self.host, _, port = self.server.url.removeprefix("https://").rpartition(":")
        self.port = int(port)
        self.authority = ssl.create_default_context(cafile=self.server.ca_file)

    @contextmanager
    def connected(self) -> Iterator[ssl.SSLSocket]:
        with (
            socket.create_connection((self.host, self.port), timeout=HANG) as plain,
            self.authority.wrap_socket(plain, server_hostname=self.host) as wrapped,
        ):
            yield wrapped

    def head(self, method: str, target: str, headers: Mapping[str, str]) -> bytes:
        known = {"Host": "x", "Authorization": f"Bearer {self.server.token}"}
        lines = [f"{name}: {value}\r\n" for name, value in (known | dict(headers)).items()]
        return f"{method} {target} HTTP/1.1\r\n{''.join(lines)}\r\n".encode()

    def ask(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        media: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        about = {"Content-Length": str(len(body)), "Connection": "close"} | dict(headers or {})
        about |= {} if media is None else {"Content-Type": media}
        with self.connected() as connection:
            connection.sendall(self.head(method, target, about) + body)
            response = http.client.HTTPResponse(connection, method=method)
            response.begin()
            return Answer(response.status, response.getheaders(), response.read())


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with EmbeddedServer() as server:
        client = Client(server)
        assert client.ask("POST", DEFINITIONS, json.dumps(DEFINITION).encode(), JSON).status == 201
        while client.ask("GET", WIDGETS).status != 200:
            pass
        for path in KINDS:
            assert client.ask("POST", path, made(path, "there"), JSON).status == 201
        yield client


@pytest.fixture(autouse=True)
def unharmed(client: Client, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    assert client.ask("GET", f"{CONFIG_MAPS}/there").data["metadata"]["name"] == "there"
    assert "Traceback" not in capfd.readouterr().err


def made(path: str, name: object = "x", **metadata: object) -> bytes:
    version, kind = KINDS[path]
    about = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}
    return json.dumps(about).encode()


def check(answer: Answer, expected: Status) -> None:
    status = expected.ours if isinstance(expected, Differs) else expected
    assert answer.status == status, answer.body[:500]
    if status >= 400 and answer.body.startswith(b"{"):
        assert answer.data["kind"] == "Status"
        assert answer.data["code"] == status
        assert answer.data["message"]


def ids(value: object) -> str | None:
    return value.rpartition("/")[2] if isinstance(value, str) and value in KINDS else None


both = pytest.mark.parametrize("path", list(KINDS), ids=["builtin", "custom"])

# Bodies.

BODIES: dict[str, tuple[bytes, Status, Status]] = {
    "no JSON": (b"hello", 400, 400),
    "truncated": (b'{"metadata":{"name":"x"}', 400, 400),
    "empty": (b"", 400, 400),
    "a list": (b"[]", 400, 400),
    "a string": (b'"x"', 400, 400),
    "a number": (b"1", 400, 400),
    "a truth": (b"true", 400, 400),
    "null": (b"null", 422, 400),
    "an empty object": (b"{}", 422, 400),
    "no UTF-8": (b'{"metadata":{"name":"\xff\xfe"}}', 422, 400),
    "zeros": (b"\0\0\0", 400, 400),
    "a byte order mark": (b'\xef\xbb\xbf{"metadata":{"name":"x"}}', 400, 400),
    "UTF-16": ('{"metadata":{"name":"x"}}'.encode("utf-16"), 400, 400),
    "two values": (b'{"metadata":{"name":"x"}} {}', 400, 400),
    "not a number": (b'{"metadata":{"name":NaN}}', 400, 400),
    "lists, 10,000 deep": (b"[" * 10_000 + b"]" * 10_000, 400, 400),
    "lists, 100,000 deep": (b"[" * 100_000 + b"]" * 100_000, 400, 400),
    "lists that do not end": (b"[" * 100_000, 400, 400),
    "too large": (b"x" * 10_000_000, 413, 413),
    "too large by one": (b"x" * (LIMIT + 1), 413, 413),
}


@both
@pytest.mark.parametrize("name", list(BODIES))
def test_a_body_that_is_no_object(client: Client, path: str, name: str) -> None:
    body, builtin, custom = BODIES[name]
    check(client.ask("POST", path, body, JSON), builtin if path == CONFIG_MAPS else custom)


@both
@pytest.mark.parametrize("levels", [1000, 100_000])
def test_an_object_that_is_nested_too_deep(client: Client, path: str, levels: int) -> None:
    nested = b'{"a":' * levels + b"1" + b"}" * levels
    body = made(path, "deep")[:-1] + b',"zzz":' + nested + b"}"
    real = 201 if levels < 10_000 else 400
    check(client.ask("POST", path, body, JSON), Differs(real, 400, DEPTH))


def test_how_large_is_told_in_the_real_servers_words(client: Client) -> None:
    answer = client.ask("POST", CONFIG_MAPS, b"x" * (LIMIT + 1), JSON)
    assert answer.data["message"] == f"Request entity too large: limit is {LIMIT}"
    assert answer.data["reason"] == "RequestEntityTooLarge"


def test_a_body_at_the_limit_is_read(client: Client) -> None:
    empty = made(WIDGETS, "large", z="").replace(b'"z": ""', b'"annotations": {}')
    body = empty[:-1] + b',"data":"'
    body += b"x" * (LIMIT - len(body) - 2) + b'"}'
    assert len(body) == LIMIT
    assert client.ask("POST", WIDGETS + "?dryRun=All", body, JSON).status == 201


OBJECTS: dict[str, tuple[dict[str, Any], int]] = {
    "a number as name": ({"name": 7}, 400),
    "a name with a zero": ({"name": "bad\0name"}, 422),
    "a name in letters of elsewhere": ({"name": "ünï"}, 422),
    "a name with a slash": ({"name": "a/b"}, 422),
    "two dots": ({"name": ".."}, 422),
    "a long name": ({"name": "a" * 300}, 422),
    "an empty name": ({"name": ""}, 422),
    "no name": ({"name": None}, 422),
    "capital letters": ({"name": "ABC"}, 422),
    "a bad name to be generated": ({"name": "", "generateName": "../"}, 422),
    "another namespace": ({"namespace": "other"}, 400),
    "labels in a list": ({"labels": ["a"]}, 400),
    "a number as annotation": ({"annotations": {"a": 1}}, 400),
    "one finalizer": ({"finalizers": "a"}, 400),
    "no finalizer": ({"finalizers": [None]}, 422),
    "an empty owner": ({"ownerReferences": [{}]}, 422),
    "no owner": ({"ownerReferences": [None]}, 422),
    "a time that is none": ({"creationTimestamp": "yesterday"}, 400),
    "a large number": ({"generation": 10**30}, 400),
    "a number as revision": ({"resourceVersion": 5}, 400),
    "large annotations": ({"annotations": {"a/b": "x" * 300_000}}, 422),
    "many labels": ({"labels": {f"l{n}": "v" for n in range(100_000)}}, 201),
    "half a character": ({"annotations": {"a": "\ud800"}}, 201),
}


@both
@pytest.mark.parametrize("name", list(OBJECTS))
def test_metadata_that_makes_no_sense(client: Client, path: str, name: str) -> None:
    metadata, status = OBJECTS[name]
    body = made(path, **({"name": "x"} | metadata))
    check(client.ask("POST", f"{path}?dryRun=All", body, JSON), status)


def test_warnings_stay_small_enough_for_every_client(client: Client) -> None:
    unknown = {"metadata": {"name": "x"}} | {f"{n}" * 5000: 1 for n in range(60)}
    answer = client.ask("POST", f"{CONFIG_MAPS}?dryRun=All", json.dumps(unknown).encode(), JSON)
    assert answer.status == 201
    warnings = [value for name, value in answer.headers if name.lower() == "warning"]
    assert len(warnings) == 16
    assert sum(map(len, warnings)) < 5000


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%b]\n" % (letter, letter, b",".join([b"*%c" % (letter - 1)] * 9))
    for letter in b"bcdefghij"
)


@both
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"\tfoo: [", 400),
        (BOMB, 400),
        (b"a: &a [*a]", 400),
        (b"[" * 20_000 + b"]" * 20_000, 400),
        (b"- " * 20_000, 400),
        (b"? " * 20_000, 400),
        (b"%YAML 9.9\n---\na: b", 400),
    ],
    ids=["tabs", "a bomb", "within itself", "deep", "deep lists", "deep keys", "another YAML"],
)
def test_yaml_that_is_none(client: Client, path: str, body: bytes, status: int) -> None:
    check(client.ask("POST", path, body, YAML), status)


@both
@pytest.mark.parametrize(
    ("media", "status"),
    [
        ("text/plain", 415),
        ("application/xml", 415),
        ("garbage", 415),
        ("multipart/form-data", 415),
        ("application/json; charset=utf-16", 201),
        ("APPLICATION/JSON", 201),
        ("", 201),
        ("application/json;;;=", Differs(415, 201, "parameters are not looked at")),
    ],
)
def test_types_of_bodies(client: Client, path: str, media: str, status: Status) -> None:
    check(client.ask("POST", f"{path}?dryRun=All", made(path), media), status)


@both
@pytest.mark.parametrize(
    "body",
    [b"", b"garbage", b"k8s\0", b"k8s\0\xff\xff\xff\xff", b"k8s\0\x0a\xff\xff\xff\xff\x0f", b"{}"],
)
def test_protobuf_that_is_none(client: Client, path: str, body: bytes) -> None:
    refused = Differs(0, 415, "the real server panics, and drops the connection")
    check(client.ask("POST", path, body, PROTOBUF), 400 if path == CONFIG_MAPS else refused)


# Patches.

PATCHES: dict[str, tuple[bytes, str, Status, Status]] = {
    "an empty merge": (b"", MERGE, 400, 400),
    "a merge that is no JSON": (b"hello", MERGE, 400, 400),
    "a merge of a list": (b"[]", MERGE, 400, 400),
    "a merge of nothing": (b"null", MERGE, 400, 400),
    "a merge without metadata": (b'{"metadata":null}', MERGE, 400, 400),
    "a merge of metadata in a list": (b'{"metadata":[]}', MERGE, 422, 422),
    "a merge of labels in a list": (b'{"metadata":{"labels":[]}}', MERGE, 422, 422),
    "a merge of another uid": (b'{"metadata":{"uid":"other"}}', MERGE, 422, 422),
    "a merge for no revision": (b'{"metadata":{"resourceVersion":"abc"}}', MERGE, 500, 500),
    "a deep merge": (
        b'{"data":' + b"[" * 1000 + b"]" * 1000 + b"}",
        MERGE,
        Differs(422, 400, DEPTH),
        Differs(200, 400, DEPTH),
    ),
    "a merge that is no UTF-8": (b'{"metadata":{"annotations":{"a":"\xff"}}}', MERGE, 200, 200),
    "a strategic list": (b"[]", STRATEGIC, 400, 415),
    "a strategic uid": (b'{"metadata":{"uid":"other"}}', STRATEGIC, 422, 415),
    "a strategic directive": (b'{"data":{"$patch":"zzz"}}', STRATEGIC, 200, 415),
    "an object as JSON patch": (b"{}", JSON_PATCH, 400, 400),
    "a JSON patch that is no UTF-8": (b'[{"op":"\xff"}]', JSON_PATCH, 422, 422),
    "an empty operation": (b"[{}]", JSON_PATCH, 422, 422),
    "no operation": (b"[null]", JSON_PATCH, 422, 422),
    "an operation that there is not": (b'[{"op":"zzz","path":"/a"}]', JSON_PATCH, 422, 422),
    "a number as path": (
        b'[{"op":"add","path":1}]',
        JSON_PATCH,
        Differs(400, 422, "a path is looked at when it is used"),
        Differs(400, 422, "a path is looked at when it is used"),
    ),
    "without anything": (b'[{"op":"remove","path":""}]', JSON_PATCH, 422, 422),
    "a copy into itself": (
        b'[{"op":"copy","from":"","path":"/metadata/annotations"}]',
        JSON_PATCH,
        422,
        422,
    ),
    "far behind the end": (
        b'[{"op":"add","path":"/metadata/finalizers/99999999999999999999","value":"a"}]',
        JSON_PATCH,
        422,
        422,
    ),
    "an index of 5,000 digits": (
        b'[{"op":"add","path":"/l","value":[]},{"op":"add","path":"/l/%b","value":1}]'
        % (b"9" * 5000),
        JSON_PATCH,
        422,
        422,
    ),
    "an apply of nothing": (b"", APPLY, 400, 400),
    "an apply of a list": (b"[]", APPLY, 400, 400),
    "an apply of a bomb": (BOMB, APPLY, 400, 400),
    "a patch of no type": (b"{}", "", 415, 415),
    "a patch of another type": (b"{}", JSON, 415, 415),
}


@both
@pytest.mark.parametrize("name", list(PATCHES))
def test_a_patch_that_is_none(client: Client, path: str, name: str) -> None:
    body, media, builtin, custom = PATCHES[name]
    target = f"{path}/there?dryRun=All&fieldManager=me"
    expected = builtin if path == CONFIG_MAPS else custom
    check(client.ask("PATCH", target, body, media), expected)


@both
def test_a_json_patch_that_copies_without_end(client: Client, path: str) -> None:
    start = [{"op": "add", "path": "/data", "value": {"a": "x" * 1000}}]
    copies = [{"op": "copy", "from": "/data", "path": f"/data/{n}"} for n in range(40)]
    body = json.dumps(start + copies).encode()
    check(client.ask("PATCH", f"{path}/there", body, JSON_PATCH), 422)


@both
def test_a_json_patch_that_makes_something_deep(client: Client, path: str) -> None:
    operations: list[object] = [{"op": "add", "path": "/zzz", "value": {}}]
    operations += [{"op": "add", "path": "/zzz" + "/a" * n, "value": {}} for n in range(1, 1000)]
    answer = client.ask("PATCH", f"{path}/there", json.dumps(operations).encode(), JSON_PATCH)
    check(answer, Differs(200, 422, DEPTH))


@both
def test_a_json_patch_of_too_many_steps(client: Client, path: str) -> None:
    body = json.dumps([{"op": "test", "path": "/kind", "value": "x"}] * 10_001).encode()
    check(client.ask("PATCH", f"{path}/there", body, JSON_PATCH), 413)


@both
def test_a_json_patch_that_leaves_no_object(client: Client, path: str) -> None:
    body = b'[{"op":"replace","path":"","value":1}]'
    check(client.ask("PATCH", f"{path}/there", body, JSON_PATCH), 422)


# Revisions and options of writes.


@both
@pytest.mark.parametrize(
    ("given", "builtin", "custom"),
    [
        ("abc", 500, 500),
        ("-1", 500, 500),
        ("1", 409, 409),
        ("99999999", 409, 409),
        ("9" * 30, 500, 500),
        ("9" * 5000, 500, 500),
        ("1.5", 500, 500),
        ("0", 200, 422),
    ],
)
def test_an_update_for_a_revision(
    client: Client, path: str, given: str, builtin: Status, custom: Status
) -> None:
    body = made(path, "there", resourceVersion=given)
    answer = client.ask("PUT", f"{path}/there?dryRun=All", body, JSON)
    check(answer, builtin if path == CONFIG_MAPS else custom)


@both
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"hello", 400),
        (b"[]", 400),
        (b'{"gracePeriodSeconds":"a"}', 400),
        (b'{"propagationPolicy":"Zzz"}', 422),
        (b'{"preconditions":[]}', 400),
        (b'{"preconditions":{"uid":"x"}}', 409),
        (b'{"dryRun":["Some"]}', 422),
        (b"[" * 1000 + b"]" * 1000, 400),
    ],
)
def test_a_deletion_that_is_none(client: Client, path: str, body: bytes, status: int) -> None:
    check(client.ask("DELETE", f"{path}/there", body, JSON), status)


def token(content: str) -> str:
    return "continue=" + urlsafe_b64encode(content.encode()).decode().rstrip("=")


QUERIES: dict[str, Status] = {
    "limit=99999999999999999999": 400,
    "limit=" + "9" * 5000: 400,
    "limit=-1": 200,
    "limit=abc": 400,
    "limit=1&limit=abc": 200,
    "limit=+1": 400,
    "limit=%D9%A1": 400,
    "limit=1;watch=1": 200,
    "resourceVersion=abc": 400,
    "resourceVersion=-1": 400,
    "resourceVersion=" + "9" * 30: 400,
    "resourceVersion=" + "9" * 5000: 400,
    "resourceVersion=99999999": 504,
    "continue=abc": 400,
    "continue=!!!!": 400,
    token('{"v":"meta.k8s.io/v1","rv":99999999999999999999,"start":"a"}'): 400,
    token('{"v":"meta.k8s.io/v1","rv":1.5,"start":"a"}'): 400,
    token('{"v":"meta.k8s.io/v1","rv":true,"start":"a"}'): 400,
    token('{"v":"meta.k8s.io/v1","rv":-1,"start":"\\ud800"}'): 200,
    token("[" * 20_000): 400,
    "labelSelector=a=b=c": 400,
    "labelSelector=,": 400,
    "labelSelector=" + "a," * 5000: 400,
    "labelSelector=%ff": 400,
    "labelSelector=%zz": 200,
    "fieldSelector=spec.zzz=1": 400,
    "fieldSelector=metadata.name=%00": 200,
    "fieldSelector=a": 400,
    "watch=1&timeoutSeconds=abc": 400,
    "watch=1&timeoutSeconds=-1": 200,
    "watch=1&timeoutSeconds=99999999999999999999": 400,
    "watch=1&resourceVersion=abc": 500,
    "watch=1&sendInitialEvents=true": 422,
    "watch=1&continue=x": 422,
    "watch=1&limit=zzz": 400,
    "&".join(f"p{n}={n}" for n in range(3000)): 200,
    "&".join(f"p{n}={n}" for n in range(10_000)): Differs(200, 400, "a target has 64 KB here"),
    ";;;&&&===": 200,
    "=": 200,
    "%": 200,
    "%00=%00": 200,
}


@both
@pytest.mark.parametrize("query", list(QUERIES), ids=lambda query: query[:40])
def test_a_query_that_makes_no_sense(client: Client, path: str, query: str) -> None:
    check(client.ask("GET", f"{path}?{query}"), QUERIES[query])


# Paths, methods and names.


@both
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("%C3%BC", 404),
        ("a%2Fb", 404),
        ("../../secrets", 404),
        ("a" * 300, 404),
        ("a" * 9000, 404),
        ("%00", 404),
        ("%ff", 404),
        ("%20", 404),
        ("there/", 200),
        ("/there", 404),
        ("there/zzz", 404),
        ("there/status/x", 404),
        ("there?resourceVersion=abc", 500),
        ("there?resourceVersion=99999999", 504),
        ("..", Differs(400, 404, "there is no such object either way")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_names_in_paths(client: Client, path: str, name: str, status: Status) -> None:
    check(client.ask("GET", f"{path}/{name}"), status)


PATHS: dict[str, Status] = {
    "/api//v1/configmaps": 404,
    "/api/v1//namespaces": 404,
    "/api/v1/namespaces//configmaps": 200,
    "/api/v1/namespaces/default//configmaps": 404,
    "/api/v1/": 200,
    "/api/v1/%00": 404,
    "/api/%ff": 404,
    "/api/v1/../v1/configmaps": 404,
    "/..": 404,
    "/api/v2": 404,
    "/apis/nope/v1/x": 404,
    "/" + "a/" * 2000: 404,
    "/" + "a" * 60_000: 404,
    "/api/v1/namespaces/%00/configmaps": 200,
    "/api/v1/namespaces/default/secrets/x/y/z": 404,
    "/api/v1/configmaps/x": 404,
    "/api/v1/namespaces/default/namespaces": 404,
    "*": 404,
    "http://elsewhere.example/api": 200,
    "//": Differs(404, 200, "slashes at the ends count for nothing"),
    "/api/v1/watch": Differs(500, 404, "there is nothing to watch"),
    "/api/v1/namespaces/..": Differs(400, 404, "there is no such object either way"),
    "/ä": Differs(404, 400, "a target has no letters beyond ASCII"),
}


@pytest.mark.parametrize("target", list(PATHS), ids=lambda target: target[:40])
def test_paths_that_lead_nowhere(client: Client, target: str) -> None:
    check(client.ask("GET", target), PATHS[target])


@both
@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "PURGE"])
def test_methods_that_are_not_served(client: Client, path: str, method: str) -> None:
    assert client.ask(method, path).status == 405
    assert client.ask(method, f"{path}/there").status == 405


@pytest.mark.parametrize("method", ["FOO", "get", "LIST", "WATCH"])
def test_methods_that_are_none(client: Client, method: str) -> None:
    check(client.ask(method, CONFIG_MAPS), Differs(405, 400, "they are no HTTP here"))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Bearer {'x' * 20_000}"}, 401),
        ({"Authorization": "Bearer"}, 403),
        ({"Authorization": "Basic eDp5"}, 403),
        ({"Authorization": ""}, 403),
        ({"Authorization": "\x01"}, 400),
        ({"Impersonate-User": "bob"}, 403),
        ({"Impersonate-Group": "x"}, 400),
        ({"Accept": "application/xml"}, 406),
        ({"Accept": "application/json;as=Zzz;v=v1;g=meta.k8s.io"}, 406),
        ({"Accept": ";;;,,,"}, 406),
        ({"Accept": "*/*;q=abc"}, 200),
        ({"X-Large": "x" * 500_000}, 200),
    ],
    ids=lambda value: str(value)[:40],
)
def test_headers(client: Client, headers: dict[str, str], status: int) -> None:
    check(client.ask("GET", f"{CONFIG_MAPS}/there", headers=headers), status)


@pytest.mark.parametrize(
    "spec", [b"", b"{}", b"[]", b'{"spec":[]}', b'{"spec":{"resourceAttributes":[]}}']
)
def test_a_review_that_is_none(client: Client, spec: bytes) -> None:
    assert 400 <= client.ask("POST", REVIEWS, spec, JSON).status < 500


# Connections.


def test_requests_in_a_row_are_answered_in_their_order(client: Client) -> None:
    targets = [f"{CONFIG_MAPS}/there", "/zzz", "/version", f"{CONFIG_MAPS}/there"] * 5
    with client.connected() as connection:
        connection.sendall(b"".join(client.head("GET", target, {}) for target in targets))
        statuses = []
        for _ in targets:
            response = http.client.HTTPResponse(connection)
            response.begin()
            response.read()
            statuses.append(response.status)
    assert statuses == [200, 404, 200, 200] * 5


def test_old_http_is_answered_and_hung_up_on(client: Client) -> None:
    with client.connected() as connection:
        head = client.head("GET", "/version", {}).replace(b"HTTP/1.1", b"HTTP/1.0")
        connection.sendall(head)
        found = b""
        while part := connection.recv(65536):
            found += part
    assert b" 200 " in found.partition(b"\r\n")[0]
    assert b'"gitVersion"' in found


def test_two_hundred_idle_connections_are_in_nobodys_way(client: Client) -> None:
    idle = [socket.create_connection((client.host, client.port), timeout=HANG) for _ in range(200)]
    try:
        for number, each in enumerate(idle):
            each.sendall(b"\x16\x03\x01"[: number % 4])
        assert client.ask("GET", f"{CONFIG_MAPS}/there").status == 200
    finally:
        for each in idle:
            each.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST %b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
        b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST %b HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET %b\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_two_requests_to_some_is_none_here(client: Client, sent: bytes) -> None:
    # The real server's library is more patient: it answers before it has read the body.
    with client.connected() as connection:
        connection.sendall(sent % CONFIG_MAPS.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 400")
