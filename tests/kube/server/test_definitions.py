"""Definitions of custom kinds between requests: names, serving, cleaning up, starting again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.deadlines import HANG

from polyver.kube.objects import encode_json
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import forbidden
from polyver.kube.server.admission import AdmissionRequest
from polyver.kube.server.api import ApiServer
from polyver.kube.server.bootstrap import prepare
from polyver.kube.server.definitions import _lifecycle
from polyver.kube.server.definitions._acceptance import NamesInUse, accepted
from polyver.kube.server.http import HttpRequest
from polyver.kube.server.identity import ADMIN
from polyver.kube.store import MemoryStore, SqliteStore, Store

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/ex.io/v1/namespaces/default/things"
HELD = {"metadata": {"name": "held", "finalizers": ["ex.io/hold"]}}
SCHEMA: dict[str, Any] = {"type": "object"}
MERGE = "application/merge-patch+json"


def version(name: str = "v1", schema: Any = None, **more: Any) -> dict[str, Any]:
    given = {"name": name, "served": True, "storage": name == "v1"}
    return given | {"schema": {"openAPIV3Schema": schema or SCHEMA}} | more


def definition(
    plural: str = "things", *versions: Any, group: str = "ex.io", **names: Any
) -> dict[str, Any]:
    names = {"plural": plural, "kind": plural.removesuffix("s").title()} | names
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": list(versions) or [version()],
        },
    }


class Client:
    """Asks the pipeline itself."""

    def __init__(self, api: ApiServer) -> None:
        self.api = api
        self.warnings: list[str] = []

    async def ask(
        self, method: str, path: str, body: Any = None, media: str = "application/json"
    ) -> tuple[int, Any]:
        sent = b"" if body is None else encode_json(self._complete(method, path, body))
        headers = {"content-type": media, "user-agent": "case/1"}
        answer = await self.api.handle(HttpRequest(method, path, "", headers, sent, ADMIN))
        assert isinstance(answer.body, bytes)
        self.warnings = [value for name, value in answer.headers if name == "warning"]
        text = answer.body
        return answer.status, json.loads(text) if text.startswith(b"{") else text.decode()

    def _complete(self, method: str, path: str, body: Any) -> Any:
        """Objects of custom kinds have to say what they are."""
        if method != "POST" or not path.startswith("/apis/ex.io/"):
            return body
        return {"apiVersion": f"ex.io/{path.split('/')[3]}", "kind": "Thing"} | body

    async def define(self, one: dict[str, Any]) -> None:
        status, answer = await self.ask("POST", DEFINITIONS, one)
        assert status == 201, answer
        await self.until(one["metadata"]["name"], lambda found: holds(found, "Established"))

    async def until(self, name: str, holds: Callable[[Any], bool]) -> Any:
        """Wait for a definition to be so."""
        async with asyncio.timeout(HANG):
            while True:
                _, found = await self.ask("GET", f"{DEFINITIONS}/{name}")
                if holds(found):
                    return found
                await asyncio.sleep(0.002)

    async def until_gone(self, name: str) -> None:
        await self.until(name, lambda found: found.get("code") == 404)

    async def names(self, path: str) -> list[str]:
        status, found = await self.ask("GET", path)
        assert status == 200, found
        return [each["metadata"]["name"] for each in found["items"]]


def condition(found: Any, kind: str) -> dict[str, str]:
    conditions = found.get("status", {}).get("conditions") or () if "spec" in found else ()
    return next((each for each in conditions if each["type"] == kind), {})


def holds(found: Any, kind: str) -> bool:
    return condition(found, kind).get("status") == "True"


@asynccontextmanager
async def serving(store: Store) -> AsyncIterator[Client]:
    async with store:
        api = ApiServer(store)
        await prepare(api, port=6443)
        running = asyncio.create_task(api.run())
        try:
            yield Client(api)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


def walk(steps: Callable[[Client], Awaitable[None]]) -> None:
    async def walked() -> None:
        async with serving(MemoryStore()) as client:
            await steps(client)

    asyncio.run(walked())


def test_what_is_established_is_served_at_once() -> None:
    async def steps(client: Client) -> None:
        for number in range(20):
            await client.define(definition(f"t{number}s"))
            assert await client.names(f"/apis/ex.io/v1/t{number}s") == []

    walk(steps)


def test_two_hundred_definitions_are_established_together() -> None:
    async def steps(client: Client) -> None:
        many = [definition(f"t{n}s", group=f"g{n % 7}.ex.io") for n in range(200)]
        for status, _ in await asyncio.gather(
            *(client.ask("POST", DEFINITIONS, one) for one in many)
        ):
            assert status == 201
        for one in many:
            await client.until(one["metadata"]["name"], lambda found: holds(found, "Established"))

    walk(steps)


def test_after_a_restart_kinds_are_served_before_anything_else_happens(tmp_path: Path) -> None:
    async def walked() -> None:
        async with serving(SqliteStore(tmp_path)) as client:
            await client.define(definition())
            await client.ask("POST", THINGS, {"metadata": {"name": "a"}})
        async with SqliteStore(tmp_path) as store:
            assert await Client(ApiServer(store)).names(THINGS) == ["a"]

    asyncio.run(walked())


def test_after_a_restart_a_deletion_goes_on(tmp_path: Path) -> None:
    async def walked() -> None:
        async with serving(SqliteStore(tmp_path)) as client:
            await client.define(definition())
            await client.ask("POST", THINGS, HELD)
            await client.ask("DELETE", f"{DEFINITIONS}/things.ex.io")
        async with serving(SqliteStore(tmp_path)) as client:
            assert (await client.ask("POST", THINGS, {"metadata": {"name": "b"}}))[0] == 403
            await client.ask("PATCH", f"{THINGS}/held", {"metadata": {"finalizers": None}}, MERGE)
            await client.until_gone("things.ex.io")

    asyncio.run(walked())


def test_a_name_that_is_set_free_goes_to_one_that_waits_for_it() -> None:
    async def steps(client: Client) -> None:
        await client.define(definition("firsts", kind="Thing"))
        for plural in ("seconds", "thirds"):
            await client.ask("POST", DEFINITIONS, definition(plural, kind="Thing"))
            found = await client.until(
                f"{plural}.ex.io", lambda found: condition(found, "NamesAccepted") != {}
            )
            assert condition(found, "NamesAccepted")["reason"] == "ListKindConflict"
        await client.ask("DELETE", f"{DEFINITIONS}/firsts.ex.io")
        await client.until_gone("firsts.ex.io")
        await client.until("seconds.ex.io", lambda found: holds(found, "Established"))
        third = await client.until("thirds.ex.io", lambda _: True)
        assert not holds(third, "Established")

    walk(steps)


def test_a_name_that_another_gives_up_is_given_on() -> None:
    async def steps(client: Client) -> None:
        await client.define(definition("firsts", shortNames=["x", "y"]))
        await client.ask("POST", DEFINITIONS, definition("seconds", shortNames=["y"]))
        await client.until("seconds.ex.io", lambda found: condition(found, "NamesAccepted") != {})
        change = {"spec": {"names": {"shortNames": ["x"]}}}
        await client.ask("PATCH", f"{DEFINITIONS}/firsts.ex.io", change, MERGE)
        await client.until("seconds.ex.io", lambda found: holds(found, "Established"))

    walk(steps)


PLURALS = st.sampled_from(["as", "bs", "cs", "ds"])
WISHES = st.fixed_dictionaries(
    {"plural": PLURALS, "kind": st.sampled_from("ABC"), "shortNames": st.lists(PLURALS, max_size=2)}
)


def _asked(wish: dict[str, Any]) -> dict[str, Any]:
    kind = wish["kind"]
    names = {"singular": kind.lower(), "listKind": f"{kind}List"} | wish
    status = {"acceptedNames": {"plural": "", "kind": ""}, "conditions": None}
    return {"metadata": {}, "spec": {"group": "ex.io", "names": names}, "status": status}


def _claims(names: dict[str, Any]) -> tuple[set[str], set[str]]:
    resources = {names["plural"], names.get("singular", ""), *names.get("shortNames", ())}
    return resources - {""}, {names["kind"], names.get("listKind", "")} - {""}


@given(st.lists(WISHES, max_size=6))
def test_no_two_definitions_are_given_the_same_name(wishes: list[dict[str, Any]]) -> None:
    in_use, resources, kinds = NamesInUse(), set[str](), set[str]()
    for key, wish in enumerate(wishes):
        status = accepted(_asked(wish), in_use, "now")
        in_use.note(str(key), "ex.io", status["acceptedNames"])
        its_resources, its_kinds = _claims(status["acceptedNames"])
        assert not its_resources & resources
        assert not its_kinds & kinds
        got_all = (its_resources, its_kinds) == _claims(_asked(wish)["spec"]["names"])
        assert (status["conditions"][1]["status"] == "True") == got_all
        resources |= its_resources
        kinds |= its_kinds


def test_objects_that_are_created_while_their_kind_goes_do_not_come_back_with_it() -> None:
    async def steps(client: Client) -> None:
        await client.define(definition())
        creations = [
            client.ask("POST", THINGS, {"metadata": {"name": f"t{number}"}}) for number in range(50)
        ]
        deletion = client.ask("DELETE", f"{DEFINITIONS}/things.ex.io")
        answers = await asyncio.gather(*creations[:25], deletion, *creations[25:])
        assert {status for status, _ in answers} <= {200, 201, 403, 404}
        await client.until_gone("things.ex.io")
        await client.define(definition())
        assert await client.names(THINGS) == []

    walk(steps)


class _Waits:
    """Holds up the creation of things until it is told not to."""

    def __init__(self) -> None:
        self.arrived, self.go_on = asyncio.Event(), asyncio.Event()

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        return kind.kind == "Thing" and operation == "CREATE"

    async def mutate(self, review: AdmissionRequest) -> None:
        del review

    async def validate(self, review: AdmissionRequest) -> None:
        del review
        self.arrived.set()
        await self.go_on.wait()


def test_an_object_that_arrives_after_its_kind_went_does_not_come_back_with_it() -> None:
    async def steps(client: Client) -> None:
        waits = _Waits()
        client.api.admission.add(waits)
        await client.define(definition())
        late = asyncio.create_task(client.ask("POST", THINGS, {"metadata": {"name": "late"}}))
        await waits.arrived.wait()
        await client.ask("DELETE", f"{DEFINITIONS}/things.ex.io")
        await client.until_gone("things.ex.io")
        waits.go_on.set()
        await late
        await client.define(definition())
        assert await client.names(THINGS) == []

    walk(steps)


def test_objects_go_with_their_kind_though_no_version_is_served() -> None:
    async def steps(client: Client) -> None:
        await client.define(definition())
        await client.ask("POST", THINGS, {"metadata": {"name": "a"}})
        unserved = {"spec": {"versions": [version(served=False)]}}
        await client.ask("PATCH", f"{DEFINITIONS}/things.ex.io", unserved, MERGE)
        await client.ask("DELETE", f"{DEFINITIONS}/things.ex.io")
        await client.until_gone("things.ex.io")
        await client.define(definition())
        assert await client.names(THINGS) == []

    walk(steps)


class _Refuses:
    """Refuses to delete things until it is told not to."""

    refusing = True

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        return kind.kind == "Thing" and operation == "DELETE"

    async def mutate(self, review: AdmissionRequest) -> None:
        del review

    async def validate(self, review: AdmissionRequest) -> None:
        if self.refusing:
            raise forbidden(review.kind, review.name, "not yet")


def test_what_stands_in_the_way_of_a_deletion_is_told_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_lifecycle, "_LOOK_AGAIN", 0.01)

    async def steps(client: Client) -> None:
        refuses = _Refuses()
        client.api.admission.add(refuses)
        await client.define(definition())
        await client.ask("POST", THINGS, {"metadata": {"name": "a"}})
        await client.ask("DELETE", f"{DEFINITIONS}/things.ex.io")
        failed = await client.until("things.ex.io", _has_failed)
        assert "not yet" in condition(failed, "Terminating")["message"]
        refuses.refusing = False
        await client.until_gone("things.ex.io")

    walk(steps)


def _has_failed(found: Any) -> bool:
    return condition(found, "Terminating").get("reason") == "InstanceDeletionFailed"


def test_a_definition_takes_nothing_from_a_kind_that_is_built_in() -> None:
    ingress = {
        "metadata": {"name": "a"},
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
    }
    ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"

    async def steps(client: Client) -> None:
        assert (await client.ask("POST", ingresses, ingress))[0] == 201
        rival = definition("ingresses", version(), group="networking.k8s.io", kind="Rival")
        rival["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
        await client.define(rival)
        assert await client.names(ingresses) == ["a"]
        _, found = await client.ask("GET", f"{ingresses}/a")
        assert found["kind"] == "Ingress"
        await client.ask("DELETE", f"{DEFINITIONS}/ingresses.networking.k8s.io")
        await client.until_gone("ingresses.networking.k8s.io")
        assert await client.names(ingresses) == ["a"]

    walk(steps)


def test_what_the_server_writes_into_a_definition_is_its_own() -> None:
    async def steps(client: Client) -> None:
        await client.define(definition())
        _, found = await client.ask("GET", f"{DEFINITIONS}/things.ex.io")
        owners = {
            (each["manager"], each.get("subresource", "")): set(each["fieldsV1"])
            for each in found["metadata"]["managedFields"]
        }
        assert owners == {("case", ""): {"f:spec"}, ("kube-apiserver", "status"): {"f:status"}}

    walk(steps)


class _Watching:
    """Reads a watch to its end."""

    def __init__(self, client: Client, path: str) -> None:
        self.events: list[tuple[str, str]] = []
        self._client, self._path = client, path
        self._begun = asyncio.Event()
        self.task = asyncio.create_task(self._read())

    async def begun(self) -> None:
        """Wait for the first event."""
        await self._begun.wait()

    async def _read(self) -> None:
        request = HttpRequest("GET", self._path, "watch=1", {}, b"", ADMIN)
        answer = await self._client.api.handle(request)
        assert not isinstance(answer.body, bytes)
        async for lines in answer.body:
            for line in lines.splitlines():
                event = json.loads(line)
                self.events.append((event["type"], event["object"]["metadata"]["name"]))
                self._begun.set()


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"names": {"shortNames": ["t"]}}},
        {"spec": {"versions": [version(schema={"type": "object", "description": "new"})]}},
        {"spec": {"versions": [version(served=False)]}},
    ],
)
def test_watches_end_when_a_definition_changes(change: dict[str, Any]) -> None:
    async def steps(client: Client) -> None:
        await client.define(definition())
        await client.ask("POST", THINGS, {"metadata": {"name": "a"}})
        watching = _Watching(client, THINGS)
        await watching.begun()
        label = {"metadata": {"labels": {"a": "b"}}}
        await client.ask("PATCH", f"{DEFINITIONS}/things.ex.io", label, MERGE)
        await client.ask("PATCH", f"{THINGS}/a", label, MERGE)
        await client.ask("PATCH", f"{DEFINITIONS}/things.ex.io", change, MERGE)
        await asyncio.wait_for(watching.task, HANG)
        assert watching.events == [("ADDED", "a"), ("MODIFIED", "a")]

    walk(steps)


def test_a_watch_tells_of_all_objects_that_go_with_their_kind_and_ends() -> None:
    async def steps(client: Client) -> None:
        await client.define(definition())
        await client.ask("POST", THINGS, {"metadata": {"name": "a"}})
        watching = _Watching(client, THINGS)
        await watching.begun()
        await client.ask("POST", THINGS, {"metadata": {"name": "b"}})
        await client.ask("DELETE", f"{DEFINITIONS}/things.ex.io")
        await asyncio.wait_for(watching.task, HANG)
        assert watching.events == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("DELETED", "a"),
            ("DELETED", "b"),
        ]

    walk(steps)


def test_a_rule_in_cel_is_enforced_as_soon_as_its_definition_is_there() -> None:
    async def steps(client: Client) -> None:
        rule = {"rule": "self.size < 5", "message": "too large"}
        spec: dict[str, Any] = {"type": "object", "x-kubernetes-validations": [rule]}
        spec["properties"] = {"size": {"type": "integer"}}
        schema = {"type": "object", "properties": {"spec": spec}}
        await client.define(definition("things", version(schema=schema)))
        large = {"metadata": {"name": "a"}, "spec": {"size": 5}}
        status, refused = await client.ask("POST", THINGS, large)
        assert status == 422
        assert refused["message"].endswith("is invalid: spec: Invalid value: too large")

    walk(steps)


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ([], "ex.io/v2beta1 Thing is deprecated"),
        (["v1alpha1"], "ex.io/v2beta1 Thing is deprecated"),
        (["v1", "v3beta1", "v2"], "ex.io/v2beta1 Thing is deprecated; use ex.io/v2 Thing"),
    ],
)
def test_a_deprecated_version_names_the_best_one_that_is_not(others: list[str], text: str) -> None:
    async def steps(client: Client) -> None:
        old = version("v2beta1", storage=True, deprecated=True)
        rest = [version(name, storage=False) for name in others]
        await client.define(definition("things", old, *rest))
        await client.ask("GET", "/apis/ex.io/v2beta1/things")
        assert client.warnings == [f'299 - "{text}"']

    walk(steps)


def test_a_refused_definition_is_as_if_it_never_was() -> None:
    async def steps(client: Client) -> None:
        wrong = definition("things", version(schema={"type": "object", "properties": {"a": {}}}))
        assert (await client.ask("POST", DEFINITIONS, wrong))[0] == 422
        assert await client.names(DEFINITIONS) == []
        await client.define(definition())

    walk(steps)
