"""Whatever is asked of the pipeline, it answers, and what is stored afterwards is whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from polyver.kube.objects import encode_json
from polyver.kube.server.api import ApiServer
from polyver.kube.server.bootstrap import prepare
from polyver.kube.server.http import HttpRequest, HttpResponse
from polyver.kube.server.identity import ADMIN
from polyver.kube.store.memory import MemoryStore

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/drawn.example.com/v1/namespaces/default/widgets"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "subresources": {"status": {}},
    "schema": {"openAPIV3Schema": ANYTHING},
}
DEFINITION = {
    "metadata": {"name": "widgets.drawn.example.com"},
    "spec": {
        "group": "drawn.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [VERSION],
    },
}
# 500 is what the real server says of bad revisions and of a few patches, in words that it has for
# them. A failure of ours would not be answered here at all: it would be raised.
ANSWERS = frozenset({200, 201, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 500, 504})


class Pipeline:
    """A server in a loop of its own, which lives as long as all examples."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.store = MemoryStore()
        self.api = ApiServer(self.store)
        self.runner.run(self._prepare())

    async def _prepare(self) -> None:
        await prepare(self.api, port=1)
        self.running = asyncio.create_task(self.api.run())
        await self._ask("POST", DEFINITIONS, DEFINITION)
        while (await self._ask("GET", WIDGETS)).status != 200:
            await asyncio.sleep(0)

    async def _ask(self, method: str, path: str, body: object = None) -> HttpResponse:
        sent = b"" if body is None else encode_json(body)
        return await self.api.handle(HttpRequest(method, path, "", {}, sent, ADMIN))

    def handle(self, request: HttpRequest) -> tuple[int, bytes]:
        return self.runner.run(self._handled(request))

    async def _handled(self, request: HttpRequest) -> tuple[int, bytes]:
        response = await self.api.handle(request)
        for name, value in response.headers:
            assert name == name.lower()
            assert "\n" not in name + value
        if isinstance(response.body, bytes):
            return response.status, response.body
        assert isinstance(response.body, AsyncGenerator)
        try:
            async with asyncio.timeout(0.001):
                return response.status, await anext(response.body)
        except (TimeoutError, StopAsyncIteration):
            return response.status, b""
        finally:
            await response.body.aclose()

    def get(self, path: str) -> Any:
        status, body = self.handle(HttpRequest("GET", path, "", {}, b"", ADMIN))
        assert status == 200, body
        return json.loads(body)

    def check_store(self) -> None:
        """Every object is whole, and found both alone and in its list."""
        # The server may remove a kind at any moment whose definition somebody has deleted.
        kept = {
            (each["spec"]["group"], each["spec"]["names"]["plural"])
            for each in self.get(DEFINITIONS)["items"]
            if "deletionTimestamp" not in each["metadata"]
        }
        for resource in self.api.catalogue:
            kind = resource.kind
            if resource.review or "list" not in kind.verbs:
                continue
            builtin = self.api.catalogue.is_builtin(kind.group)
            if not builtin and (kind.group, kind.plural) not in kept:
                continue
            root = f"/apis/{kind.group}" if kind.group else "/api"
            items = self.get(f"{root}/{kind.version}/{kind.plural}")["items"]
            for item in items:
                metadata = item["metadata"]
                assert metadata["uid"]
                assert metadata["creationTimestamp"]
                assert int(metadata["resourceVersion"]) <= self.store.revision
                space = f"namespaces/{metadata['namespace']}/" if kind.namespaced else ""
                path = f"{root}/{kind.version}/{space}{kind.plural}/{metadata['name']}"
                assert self.get(path)["metadata"] == metadata
            assert len(items) == len(self.store.page(resource.prefix).entries)

    def close(self) -> None:
        self.running.cancel()
        self.runner.close()


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Pipeline]:
    pipeline = Pipeline()
    yield pipeline
    pipeline.check_store()
    pipeline.close()


# Requests that are nearly right are drawn more often than noise, which only meets the first door.

names = st.sampled_from(["a", "b", "default", "widgets.drawn.example.com", "..", "", "A", "a b"])
names |= st.text(max_size=3)
plurals = st.sampled_from(
    """configmaps secrets serviceaccounts events namespaces pods services deployments widgets leases
    jobs ingresses endpointslices customresourcedefinitions selfsubjectaccessreviews nodes
    horizontalpodautoscalers roles rolebindings persistentvolumeclaims zzz""".split()
)
groups = st.sampled_from(
    """/api/v1 /apis/apps/v1 /apis/drawn.example.com/v1 /apis/apiextensions.k8s.io/v1 /apis/batch/v1
    /apis/coordination.k8s.io/v1 /apis/authorization.k8s.io/v1 /apis/networking.k8s.io/v1
    /apis/events.k8s.io/v1 /apis/rbac.authorization.k8s.io/v1 /apis/autoscaling/v2 /api /apis
    /openapi/v3 /openapi/v2 /version""".split()
)
parts = st.sampled_from(["", "/status", "/scale", "/finalize", "/zzz", "/", "/status/x"])
spaces = st.sampled_from(["", "/namespaces/default", "/namespaces/none", "/namespaces/", "/watch"])


@st.composite
def paths(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 19)) == 0:
        return "/" + draw(st.text(max_size=20))
    home = draw(st.sampled_from([CONFIG_MAPS, WIDGETS]))
    if draw(st.booleans()):
        return home + draw(st.sampled_from(["", "/a", "/b", "/a/status"]))
    named = draw(st.just("") | names.map(lambda name: f"/{name}"))
    return f"{draw(groups)}{draw(spaces)}/{draw(plurals)}{named}{draw(parts)}"


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"

words = st.text(max_size=4) | st.sampled_from(
    ["true", "0", "1", "-1", "abc", "All", "Strict", "99999999999999999999", "metadata.name=a"]
)
parameters = st.sampled_from(
    """limit continue resourceVersion resourceVersionMatch labelSelector fieldSelector watch
    timeoutSeconds sendInitialEvents allowWatchBookmarks dryRun fieldManager fieldValidation force
    pretty gracePeriodSeconds propagationPolicy orphanDependents includeObject timeout""".split()
)
queries = st.lists(
    st.builds(
        lambda name, value: f"{name}={quote_from_bytes(value.encode('utf-8', 'replace'))}",
        parameters,
        words,
    ),
    max_size=3,
).map("&".join) | st.text(st.characters(max_codepoint=255), max_size=10)

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
METADATA = """name namespace generateName labels annotations finalizers ownerReferences uid
resourceVersion creationTimestamp deletionTimestamp generation managedFields selfLink""".split()
metadata = st.fixed_dictionaries({}, optional=dict.fromkeys(METADATA, values)) | st.builds(
    lambda name, more: {**more, "name": name}, st.sampled_from("ab"), st.just({})
)
TOP = "data binaryData spec status immutable type rules subjects involvedObject template".split()
objects = st.builds(
    lambda named, about, rest: {**named, "metadata": about, **rest},
    st.sampled_from(
        [
            {},
            {"apiVersion": "v1", "kind": "ConfigMap"},
            {"apiVersion": "drawn.example.com/v1", "kind": "Widget"},
        ]
    ),
    metadata | values,
    st.dictionaries(st.sampled_from(TOP) | words, values, max_size=3),
)
pointers = st.lists(st.sampled_from(["metadata", "data", "name", "0", "-", "a~1"]), max_size=3)
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "zzz"])},
    optional={
        "path": pointers.map(lambda steps: "".join(f"/{step}" for step in steps)) | values,
        "from": pointers.map(lambda steps: "".join(f"/{step}" for step in steps)) | values,
        "value": values,
    },
)
contents = objects | values | st.lists(operations, max_size=3)


def cut(content: bytes, at: int) -> bytes:
    return content[: at % (len(content) + 1)]


bodies = contents.map(lambda value: json.dumps(value).encode())
bodies |= st.builds(cut, bodies, st.integers(0, 200)) | st.binary(max_size=20) | st.just(b"")
media = st.sampled_from(
    """application/json application/json application/yaml application/vnd.kubernetes.protobuf
    application/merge-patch+json application/json-patch+json application/apply-patch+yaml
    application/strategic-merge-patch+json text/plain""".split()
) | st.text(max_size=5)
accepted = st.sampled_from(
    [
        "",
        "*/*",
        "application/json",
        "application/yaml",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ]
) | st.text(max_size=5)
requests = st.builds(
    HttpRequest,
    st.sampled_from("GET GET POST POST PUT PATCH PATCH DELETE HEAD OPTIONS ZZZ".split()),
    paths(),
    queries,
    st.fixed_dictionaries({"content-type": media, "accept": accepted}),
    bodies,
    st.just(ADMIN),
)


HOMES: dict[str, dict[str, Any]] = {
    CONFIG_MAPS: {"data": {"a": "b"}},
    WIDGETS: {"apiVersion": "drawn.example.com/v1", "kind": "Widget", "spec": {"a": 1}},
    "/api/v1/namespaces/default/secrets": {"data": {"a": "Yg=="}},
    "/api/v1/namespaces/default/services": {"spec": {"ports": [{"port": 80}]}},
    "/api/v1/namespaces/default/pods": {"spec": {"containers": [{"name": "a", "image": "b"}]}},
    "/api/v1/namespaces": {},
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": {"spec": {}},
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles": {"rules": []},
    DEFINITIONS: {"spec": DEFINITION["spec"]},
}
PATCHES = ["merge-patch+json", "json-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"]


@st.composite
def spoiled(draw: st.DrawFn, content: Any) -> Any:
    """Something right in which one place, somewhere, is not as it should be."""
    if not isinstance(content, dict | list) or not content or draw(st.integers(0, 3)) == 0:
        return draw(values)
    places = list(content) if isinstance(content, dict) else list(range(len(content)))
    place = draw(st.sampled_from(places))
    changed = dict(content) if isinstance(content, dict) else dict(enumerate(content))
    changed[place] = draw(spoiled(content[place]))
    return changed if isinstance(content, dict) else list(changed.values())


@st.composite
def likely(draw: st.DrawFn) -> HttpRequest:
    """A request that is right, or nearly."""
    home = draw(st.sampled_from(list(HOMES)))
    name = draw(st.sampled_from(["a", "b", "widgets.drawn.example.com"]))
    about: dict[str, Any] = {"name": name, "labels": {"a": "b"}, "annotations": {"c": "d"}}
    if draw(st.booleans()):
        about["finalizers"] = ["example.com/kept"]
    content: Any = {"metadata": about, **HOMES[home]}
    method = draw(st.sampled_from(["POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "GET"]))
    media = "application/json"
    if method == "PATCH":
        media = f"application/{draw(st.sampled_from(PATCHES))}"
    if media.startswith("application/json-patch"):
        content = [draw(operations)]
    if method == "DELETE":
        content = {"preconditions": {"uid": "x"}, "propagationPolicy": "Orphan"}
    if draw(st.booleans()):
        content = draw(spoiled(content))
    sent = b"" if method in ("GET", "DELETE") and draw(st.booleans()) else encode_text(content)
    path = home if method == "POST" else f"{home}/{name}{draw(st.sampled_from(['', '/status']))}"
    query = draw(st.sampled_from(["", "", "dryRun=All", "fieldValidation=Strict", "force=1"]))
    headers = {"content-type": media, "accept": "application/json"}
    return HttpRequest(method, path, f"fieldManager=me&{query}", headers, sent, ADMIN)


def encode_text(content: object) -> bytes:
    return json.dumps(content).encode()


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow])
@given(likely() | requests)
def test_every_request_is_answered(pipeline: Pipeline, request: HttpRequest) -> None:
    status, body = pipeline.handle(request)
    event(str(status))
    assert status in ANSWERS, body
    if body.startswith(b"{"):
        for line in body.splitlines():
            json.loads(line)
    if status >= 400 and body.startswith(b"{"):
        assert json.loads(body)["code"] == status


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(likely(), max_size=20))
def test_what_is_stored_stays_whole(pipeline: Pipeline, several: list[HttpRequest]) -> None:
    for request in several:
        pipeline.handle(request)
    pipeline.check_store()
