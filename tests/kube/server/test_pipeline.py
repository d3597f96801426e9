"""What the transcripts do not ask for: facts about the pipeline that a user would notice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.crds import widget_definition
from tests.deadlines import HANG

from polyver.client.in_process import DirectClient
from polyver.controllers import ControllerManager, NamespaceController
from polyver.kube.server.api import ApiServer
from polyver.kube.server.bootstrap import prepare
from polyver.kube.server.http import HttpRequest, HttpResponse
from polyver.kube.server.identity import ADMIN, CONTROLLERS, AuthenticationResult
from polyver.kube.store import MemoryStore

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/ex.io/v1/namespaces/default/widgets"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
DEFINITION = widget_definition("ex.io", subresources={"status": {}})


class Client:
    """Asks a pipeline as its administrator."""

    def __init__(self, api: ApiServer) -> None:
        self.api = api

    async def ask(
        self, method: str, path: str, body: object = None, *, kind: str = "application/json"
    ) -> HttpResponse:
        path, _, query = path.partition("?")
        content = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": kind, "user-agent": "test/1"}
        return await self.api.handle(HttpRequest(method, path, query, headers, content, ADMIN))

    async def get(self, path: str) -> Any:
        answer = await self.ask("GET", path)
        assert answer.status == 200, answer.body
        assert isinstance(answer.body, bytes)
        return json.loads(answer.body)

    async def make(self, path: str, body: object) -> Any:
        answer = await self.ask("POST", path, body)
        assert answer.status == 201, answer.body
        assert isinstance(answer.body, bytes)
        return json.loads(answer.body)

    async def events(self, path: str, *, most: int) -> list[Any]:
        """The first events of a watch."""
        answer = await self.ask("GET", path)
        assert answer.status == 200
        assert not isinstance(answer.body, bytes)
        found: list[Any] = []
        async with asyncio.timeout(HANG):
            async for chunk in answer.body:
                found += map(json.loads, chunk.splitlines())
                if len(found) >= most:
                    break
        return found


@asynccontextmanager
async def served(*, controllers: bool = False) -> AsyncIterator[Client]:
    api = ApiServer(MemoryStore())
    await prepare(api, port=6443)
    running = asyncio.create_task(api.run())
    try:
        if not controllers:
            yield Client(api)
            return
        direct = DirectClient(api, CONTROLLERS)
        async with ControllerManager(direct, [NamespaceController(direct)]):
            yield Client(api)
    finally:
        running.cancel()
        await asyncio.wait((running,))


def run(test: Callable[[Client], Awaitable[None]], *, controllers: bool = False) -> None:
    async def main() -> None:
        async with served(controllers=controllers) as client:
            await test(client)

    asyncio.run(main())


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(HANG):
        while not await holds():
            await asyncio.sleep(0.01)


async def define(client: Client) -> None:
    await client.make(DEFINITIONS, DEFINITION)

    async def is_served() -> bool:
        return (await client.ask("GET", WIDGETS)).status == 200

    await eventually(is_served)


def widget(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name, **metadata}}


def test_a_namespace_that_is_made_again_can_be_used() -> None:
    async def test(client: Client) -> None:
        await client.make("/api/v1/namespaces", {"metadata": {"name": "again"}})
        await client.ask("DELETE", "/api/v1/namespaces/again")

        async def is_gone() -> bool:
            return (await client.ask("GET", "/api/v1/namespaces/again")).status == 404

        await eventually(is_gone)
        await client.make("/api/v1/namespaces", {"metadata": {"name": "again"}})
        await client.make("/api/v1/namespaces/again/configmaps", {"metadata": {"name": "a"}})

    run(test, controllers=True)


def test_a_namespace_with_a_generated_name_is_labelled_with_it() -> None:
    async def test(client: Client) -> None:
        made = await client.make("/api/v1/namespaces", {"metadata": {"generateName": "x-"}})
        name = made["metadata"]["name"]
        assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}

    run(test)


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"a b": "c"}},
        {"labels": {"a": "!"}},
        {"finalizers": ["a b/c"]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "", "name": "", "uid": ""}]},
    ],
)
@pytest.mark.parametrize("path", [CONFIG_MAPS, WIDGETS])
def test_an_update_is_checked_like_a_create(path: str, metadata: dict[str, Any]) -> None:
    async def test(client: Client) -> None:
        await define(client)
        await client.make(path, widget("a") if path == WIDGETS else {"metadata": {"name": "a"}})
        answer = await client.ask("PATCH", f"{path}/a", {"metadata": metadata}, kind=MERGE)
        assert answer.status == 422

    run(test)


@pytest.mark.parametrize("method", ["DELETE", "POST"])
def test_a_part_of_an_object_is_neither_created_nor_deleted(method: str) -> None:
    async def test(client: Client) -> None:
        await define(client)
        await client.make(WIDGETS, widget("a"))
        assert (await client.ask(method, f"{WIDGETS}/a/status", widget("b"))).status == 405
        assert [each["metadata"]["name"] for each in (await client.get(WIDGETS))["items"]] == ["a"]

    run(test)


def test_an_old_watch_of_one_object_shows_no_other() -> None:
    async def test(client: Client) -> None:
        for name in ("a", "b"):
            await client.make(CONFIG_MAPS, {"metadata": {"name": name}})
        path = "/api/v1/watch/namespaces/default/configmaps/b"
        [event] = await client.events(f"{path}?timeoutSeconds=1", most=1)
        assert event["object"]["metadata"]["name"] == "b"
        for method in ("POST", "DELETE"):
            assert (await client.ask(method, path, {})).status == 405

    run(test)


def test_what_leaves_a_selection_keeps_its_annotations() -> None:
    async def test(client: Client) -> None:
        labels = {"labels": {"l": "1"}}
        made = await client.make(CONFIG_MAPS, {"metadata": {"name": "a"} | labels})
        next_one = str(int(made["metadata"]["resourceVersion"]) + 1)
        odd = {"metadata": {"annotations": {"resourceVersion": next_one}}}
        changed = await client.ask("PATCH", f"{CONFIG_MAPS}/a", odd, kind=MERGE)
        assert isinstance(changed.body, bytes)
        revision = json.loads(changed.body)["metadata"]["resourceVersion"]
        assert revision == next_one, "else this shows nothing"
        await client.ask("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"labels": None}}, kind=MERGE)
        path = f"{CONFIG_MAPS}?watch=1&labelSelector=l&resourceVersion={revision}"
        [event] = await client.events(path, most=1)
        assert event["type"] == "DELETED"
        assert event["object"]["metadata"]["annotations"] == {"resourceVersion": next_one}
        assert int(event["object"]["metadata"]["resourceVersion"]) > int(revision)

    run(test)


def test_initial_events_of_a_revision_that_is_yet_to_come_are_refused() -> None:
    async def test(client: Client) -> None:
        query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        path = f"{CONFIG_MAPS}?{query}&allowWatchBookmarks=true&resourceVersion=99999"
        [event] = await client.events(path, most=1)
        assert (event["type"], event["object"]["reason"]) == ("ERROR", "Timeout")

    run(test)


@pytest.mark.parametrize("config", [{"apiVersion": 5, "kind": []}, {"metadata": []}, {}])
def test_an_apply_of_nonsense_is_refused(config: dict[str, Any]) -> None:
    async def test(client: Client) -> None:
        path = f"{CONFIG_MAPS}/a?fieldManager=me"
        assert (await client.ask("PATCH", path, config, kind=APPLY)).status == 400

    run(test)


def test_a_kind_that_changed_shows_old_objects_as_it_is_now() -> None:
    async def test(client: Client) -> None:
        await define(client)
        await client.make(WIDGETS, widget("a"))
        schema = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}

        async def is_changed() -> bool:
            # The server writes the status of a definition after it began to serve the kind.
            changed = await client.get(f"{DEFINITIONS}/widgets.ex.io")
            changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
            answer = await client.ask("PUT", f"{DEFINITIONS}/widgets.ex.io", changed)
            assert answer.status in (200, 409), answer.body
            return answer.status == 200

        await eventually(is_changed)

        async def has_default() -> bool:
            return bool((await client.get(f"{WIDGETS}/a")).get("size") == 3)

        await eventually(has_default)
        assert [each["size"] for each in (await client.get(WIDGETS))["items"]] == [3]

    run(test)


REVIEWS: dict[str, tuple[dict[str, Any], str]] = {
    "authentication.k8s.io/v1/tokenreviews": ({"token": "right"}, "authenticated"),
    "authorization.k8s.io/v1/subjectaccessreviews": (
        {
            "user": "jane",
            "groups": ["system:masters"],
            "resourceAttributes": {"verb": "get", "resource": "pods"},
        },
        "allowed",
    ),
}


@pytest.mark.parametrize("path", REVIEWS)
def test_a_review_is_answered(path: str) -> None:
    spec, field = REVIEWS[path]

    async def test(client: Client) -> None:
        proof = {"right": AuthenticationResult(ADMIN)}
        client.api.server.authenticate = lambda token, _: proof.get(token, AuthenticationResult())
        answered = await client.make(f"/apis/{path}", {"spec": spec})
        assert answered["status"][field] is True
        wrong = {"token": "wrong"} if "token" in spec else spec | {"groups": []}
        answered = await client.make(f"/apis/{path}", {"spec": wrong})
        assert not answered["status"].get(field)

    run(test)
