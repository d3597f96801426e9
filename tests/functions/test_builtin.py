"""The functions that come with polyver, called as a blueprint calls them."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from tests.deadlines import HANG

from polyver.client import GroupVersionResource, find
from polyver.client.in_process import DirectClient
from polyver.core import PolyverError, SemVer
from polyver.functions import AsyncContext, FunctionLog
from polyver.functions.builtin._resources import MADE_FOR
from polyver.functions.loading import built_in_functions
from polyver.functions.runtime.context import FunctionContext
from polyver.kube.objects.status import ApiError
from polyver.kube.server.api import ApiServer
from polyver.kube.server.http import User
from polyver.kube.store import MemoryStore

MAPS = GroupVersionResource("", "v1", "configmaps")
PODS = GroupVersionResource("", "v1", "pods")
NAMESPACES = GroupVersionResource("", "v1", "namespaces", namespaced=False)
ADMIN = User("admin", ("system:masters", "system:authenticated"))
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}}
REFERENCE = {"resource": "configmaps", "apiVersion": "v1", "name": "m"}
FUNCTIONS = built_in_functions()


class World:
    """An embedded server with the namespace `a`, and calls by one phase."""

    def __init__(self) -> None:
        self.client = DirectClient(ApiServer(MemoryStore()), ADMIN)
        self.key = "uid-0-0"

    def context(self, seconds: float = 30.0, **more: Any) -> AsyncContext:
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        params = {"Options": {"name": "m"}}
        log = FunctionLog()
        return FunctionContext(self.client, params, log, "x", until, "a", self.key, **more)

    async def call(self, name: str, version: str = "v0.0.0", /, **arguments: Any) -> Any:
        function = FUNCTIONS.get(name).code[SemVer.parse(version)]
        return await function.call(self.context(), arguments)


def lived(scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def live() -> None:
        world = World()
        await world.client.create(NAMESPACES, {"metadata": {"name": "a"}})
        async with asyncio.timeout(HANG):
            await scenario(world)

    asyncio.run(live())


def test_every_version_says_what_it_does_and_what_its_arguments_are() -> None:
    for known in FUNCTIONS:
        for function in known.code.values():
            assert function.description, function.label
            assert all(each.description for each in function.arguments.fields), function.label


# KubeOps


def test_an_object_is_created_patched_and_deleted_and_that_may_be_done_again() -> None:
    async def scenario(world: World) -> None:
        for _ in range(2):
            made = await world.call("KubeOps", operation="create", spec=MAP)
            assert made == {
                "apiVersion": "v1",
                "group": "",
                "resource": "configmaps",
                "kind": "ConfigMap",
                "name": "m",
                "namespace": "a",
            }
        for _ in range(2):
            change = "data: {c: d}"
            await world.call("KubeOps", operation="patch", spec=change, objectReference=REFERENCE)
        found = await world.client.get(MAPS, "m", "a")
        assert found["data"] == {"a": "b", "c": "d"}
        assert found["metadata"]["annotations"] == {MADE_FOR: "uid-0-0"}
        for _ in range(2):
            await world.call("KubeOps", operation="delete", objectReference=REFERENCE)
        assert await find(world.client, MAPS, "m", "a") is None

    lived(scenario)


def test_a_generated_name_is_the_same_for_each_call_of_a_phase() -> None:
    async def scenario(world: World) -> None:
        spec = MAP | {"metadata": {"generateName": "m-"}}
        names = [(await world.call("KubeOps", operation="create", spec=spec))["name"]]
        names += [(await world.call("KubeOps", operation="create", spec=spec))["name"]]
        world.key = "uid-0-1"
        names += [(await world.call("KubeOps", operation="create", spec=spec))["name"]]
        assert names[0] == names[1] != names[2]

    lived(scenario)


def test_what_others_have_made_is_not_taken_for_ones_own() -> None:
    async def scenario(world: World) -> None:
        await world.client.create(MAPS, MAP, "a")
        with pytest.raises(ApiError, match="already exists"):
            await world.call("KubeOps", operation="create", spec=MAP)

    lived(scenario)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"operation": "create", "spec": {"kind": "Thing"}}, "Thing is not served here"),
        ({"operation": "create"}, "an object without apiVersion and kind"),
        ({"operation": "delete"}, "delete needs an objectReference"),
        ({"operation": "patch", "objectReference": REFERENCE}, "patch needs a spec"),
        (
            {"operation": "delete", "objectReference": REFERENCE | {"group": "x.io"}},
            "configmaps.v1.x.io is not served here",
        ),
        ({"operation": "destroy"}, "expected one of create, patch, delete"),
    ],
)
def test_what_cannot_be_done_is_told(arguments: Any, told: str) -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(PolyverError, match=told):
            await world.call("KubeOps", **arguments)

    lived(scenario)


# Wait

WAITS = [
    ("Wait", '{{ if eq "{ $.data.state }" "ready" }}true{{ end }}'),
    ("WaitV2", '{{ if eq .data.state "ready" }}true{{ end }}'),
]
NAMED = {"resource": "configmaps", "apiVersion": "v1", "name": "{{ .Options.name }}"}


@pytest.mark.parametrize(("function", "condition"), WAITS)
def test_a_condition_is_waited_for_from_before_the_object_is_there(
    function: str, condition: str
) -> None:
    async def scenario(world: World) -> None:
        wanted = {"allOf": [{"condition": condition, "objectReference": NAMED}]}
        waiting = asyncio.create_task(world.call(function, conditions=wanted))
        await asyncio.sleep(0)
        await world.client.create(MAPS, MAP, "a")
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await world.client.patch(MAPS, "m", "a", change={"data": {"state": "ready"}})
        await waiting

    lived(scenario)


@pytest.mark.parametrize(("function", "condition"), WAITS)
def test_what_never_holds_takes_too_long_and_says_why(function: str, condition: str) -> None:
    async def scenario(world: World) -> None:
        one = {"condition": condition, "objectReference": NAMED}
        with pytest.raises(PolyverError, match=r"within 1s: there is no configmaps a/m"):
            await world.call(function, conditions={"anyOf": [one]}, timeout="1s")
        await world.client.create(MAPS, MAP, "a")
        with pytest.raises(PolyverError, match="the condition on configmaps a/m"):
            await world.call(function, conditions={"anyOf": [one]}, timeout="1s")
        with pytest.raises(PolyverError, match="no condition is given"):
            await world.call(function, conditions={})

    lived(scenario)


def test_any_of_needs_one_and_all_of_needs_all() -> None:
    async def scenario(world: World) -> None:
        await world.client.create(MAPS, MAP, "a")
        yes = {"condition": "true", "objectReference": NAMED}
        no = {"condition": "false", "objectReference": NAMED}
        await world.call("WaitV2", conditions={"anyOf": [no, yes], "allOf": [yes]}, timeout="1s")
        with pytest.raises(PolyverError, match="did not hold"):
            await world.call("WaitV2", conditions={"allOf": [yes, no]}, timeout="50ms")

    lived(scenario)


def test_what_is_in_an_object_never_becomes_a_template() -> None:
    async def scenario(world: World) -> None:
        hostile = MAP | {"data": {"state": '" }}{{ .Options.name }}{{ "'}}
        await world.client.create(MAPS, hostile, "a")
        text = '{{ if contains "Options" "{ $.data.state }" }}true{{ end }}'
        wanted = {"allOf": [{"condition": text, "objectReference": NAMED}]}
        await world.call("Wait", conditions=wanted, timeout="1s")

    lived(scenario)


# HTTPCall


class Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        answer = {"/echo": body, "/large": b"x" * 200_000}.get(self.path, b"no")
        self.send_response(404 if answer == b"no" else 200)
        self.send_header("content-type", self.headers.get("content-type", "text/plain"))
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_request_is_sent_and_its_answer_told(url: str) -> None:
    async def scenario(world: World) -> None:
        found = await world.call("HTTPCall", url=f"{url}/echo", method="post", body={"a": 1})
        assert (found["status"], found["body"], found["json"]) == (200, '{"a":1}', {"a": 1})
        plain = await world.call("HTTPCall", url=f"{url}/echo", method="POST", body="hello")
        assert (plain["body"], "json" in plain) == ("hello", False)
        found = await world.call(
            "HTTPCall", url=f"{url}/none", method="POST", body="", expectStatus=[404]
        )
        assert found["status"] == 404

    lived(scenario)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/none", "/none answered 404, expected 2xx: no"),
        ("/large", "answers with more than 128 KiB"),
    ],
)
def test_an_answer_that_is_no_good_fails(url: str, path: str, told: str) -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(PolyverError, match=told):
            await world.call("HTTPCall", url=url + path, method="POST", body="x")
        with pytest.raises(PolyverError, match="failed"):
            await world.call("HTTPCall", url="http://127.0.0.1:1/")
        with pytest.raises(PolyverError, match="failed"):
            await world.call("HTTPCall", url="nowhere")

    lived(scenario)


# Command


async def command(world: World, *words: str, allowed: bool = True, **arguments: Any) -> Any:
    function = FUNCTIONS.get("Command").code[SemVer.parse("v0.0.0")]
    context = world.context(allows=frozenset({"command"} if allowed else ()))
    return await function.call(context, {"command": [*words], **arguments})


def test_a_program_runs_only_where_that_is_allowed() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(PolyverError, match="Command is not allowed"):
            await command(world, "true", allowed=False)
        code = 'import sys; print("###Phase-output###: {\\"key\\": \\"n\\", \\"value\\": 3}"); '
        code += "sys.stderr.write(sys.stdin.read())"
        found = await command(world, sys.executable, "-c", code, stdin="hello")
        assert (found["n"], found["stderr"]) == (3, "hello")
        assert found["stdout"].startswith("###Phase-output###")

    lived(scenario)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sh", "-c", "echo no >&2; exit 3"], "sh exited with code 3: no"),
        (["sh", "-c", "sleep 60"], "sh took longer than 0.3s"),
        (["/no/such/program"], "cannot be run: No such file or directory"),
        (["sh", "-c", "echo '###Phase-output###: x'"], "cannot be read"),
        (["sh", "-c", "yes"], "prints more than 4 MiB"),
    ],
)
def test_a_program_that_fails_is_told_of(words: list[str], told: str) -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(PolyverError, match=told):
            await command(world, *words, timeout="300ms" if "longer" in told else "10s")

    lived(scenario)


# Pods


def test_without_nodes_commands_in_pods_and_tasks_say_what_they_need() -> None:
    async def scenario(world: World) -> None:
        run = {"namespace": "a", "pod": "p", "command": ["ls"]}
        with pytest.raises(PolyverError, match="there is no pod a/p"):
            await world.call("KubeExec", **run)
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await world.client.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, "a")
        with pytest.raises(PolyverError, match="this needs a cluster with nodes"):
            await world.call("KubeExec", "v0.2.0", **run)
        with pytest.raises(PolyverError, match=r"is Pending after 0\.05s; it was not scheduled"):
            await world.call("KubeTask", image="i", command=["ls"], timeout="50ms")
        left = await world.client.list(PODS, "a")
        assert [each["metadata"]["name"] for each in left.items] == ["p"]

    lived(scenario)
