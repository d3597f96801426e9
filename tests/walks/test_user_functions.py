"""Functions of users that block, or end in any way, cost nobody but those who use them."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.deadlines import HANG

from polyver import apis
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

MANY = 24
"""More than there are threads for a kind."""

KINDS = """
import asyncio, pathlib, time
from polyver import apis

def declare(name):
    kind = apis.Kind(name, group="ex.io")

    @kind.version("v1")
    class V1:
        class Spec:
            do: str = ""
        spec: Spec

    @kind.version("v2", storage=True)
    class V2:
        class Spec:
            do: str = ""
        spec: Spec

    @kind.converts("v1", "v2")
    def up(obj: dict) -> dict:
        return act(obj)

    @kind.converts("v2", "v1")
    def down(obj: dict) -> dict:
        return act(obj)

    return kind

def act(obj):
    match obj["spec"].get("do", ""):
        case "exit":
            raise SystemExit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "cancel":
            raise asyncio.CancelledError
        case "generator":
            raise GeneratorExit
        case "stop":
            raise StopIteration
        case "timeout":
            raise TimeoutError("of its own")
        case "" :
            pass
        case path:
            while not pathlib.Path(path).exists():
                time.sleep(0.01)
    return obj

slow, fast = declare("Slow"), declare("Fast")
"""
RULES = """
apiVersion: polyver.dev/v1alpha1
kind: Conversion
metadata: {name: rules.ex.io}
spec:
  group: ex.io
  kind: Rule
  versions: [v1, v2]
  edges:
  - {from: v1, to: v2, rules: [{move: {from: spec.a, to: spec.b}}]}
"""
ENDINGS = ["exit", "interrupt", "cancel", "generator", "stop", "timeout"]


class Webhook:
    """A `polyver serve` that runs."""

    def __init__(self, url: str, ca: Path) -> None:
        self._host = url.removeprefix("https://").removesuffix("/convert")
        self._ca = ca

    def ask(
        self, method: str, path: str, body: object = None, timeout: float = HANG
    ) -> tuple[int, Any]:
        context = ssl.create_default_context(cafile=self._ca)
        connection = http.client.HTTPSConnection(self._host, context=context, timeout=timeout)
        with closing(connection):
            headers = {"content-type": "application/json"}
            sent = None if body is None else json.dumps(body).replace("Hidden", r"Sl\u006fw")
            connection.request(method, path, sent, headers)
            answer = connection.getresponse()
            found = answer.read()
            return answer.status, json.loads(found) if found[:1] == b"{" else found

    def convert(self, kind: str, do: str = "", *, query: str = "?timeout=30s") -> tuple[int, Any]:
        return self.convert_all([(kind, do)], query=query)

    def convert_all(
        self, objects: list[tuple[str, str]], *, query: str = "?timeout=30s"
    ) -> tuple[int, Any]:
        """Convert objects of these kinds, that do these things."""
        head = {"apiVersion": "ex.io/v1", "metadata": {"name": "a"}}
        given = [head | {"kind": kind, "spec": {"do": do}} for kind, do in objects]
        request = {"uid": "1", "desiredAPIVersion": "ex.io/v2", "objects": given}
        review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
        status, answer = self.ask("POST", f"/convert{query}", review | {"request": request})
        return status, answer.get("response") or answer


@pytest.fixture(scope="module")
def webhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    folder = tmp_path_factory.mktemp("functions")
    (folder / "shop.py").write_text(KINDS)
    (folder / "rules.yaml").write_text(RULES)
    command = [sys.executable, "-m", "polyver", "serve", "--port", "0", "--linger", "0"]
    command += ["--kinds", str(folder / "shop.py"), "-f", str(folder / "rules.yaml")]
    command += ["--certificates", str(folder / "own")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = line.split(" at ")[1].split(";")[0]
        try:
            yield Webhook(url, folder / "own" / "ca.crt")
        finally:
            process.terminate()
            assert process.wait(HANG) == 0


@contextmanager
def blocked(webhook: Webhook, release: Path) -> Iterator[list[Any]]:
    """Many reviews whose function waits for a file, and their answers in the end."""
    answers: list[Any] = []
    with ThreadPoolExecutor(MANY) as threads:
        # Some that are quick first: from what they take, the others are expected to be quick, too.
        for _ in range(5):
            assert webhook.convert("Slow")[0] == 200
        asked = [threads.submit(webhook.convert, "Slow", str(release)) for _ in range(MANY)]
        try:
            yield answers
        finally:
            release.touch()
            answers += [each.result() for each in asked]


def test_functions_that_block_delay_nobody_else(webhook: Webhook, tmp_path: Path) -> None:
    with blocked(webhook, tmp_path / "release") as answers:
        assert webhook.ask("GET", "/readyz")[0] == 200
        for kind in ("Fast", "Rule"):
            status, response = webhook.convert(kind)
            assert (status, response["result"]["status"]) == (200, "Success")
        assert webhook.convert("Slow", query="?timeout=1s")[0] == 504
    assert {status for status, _ in answers} == {200}


def test_a_review_of_two_kinds_uses_up_the_threads_of_neither(
    webhook: Webhook, tmp_path: Path
) -> None:
    both = [("Fast", ""), ("Slow", str(tmp_path / "release"))]
    with ThreadPoolExecutor(MANY) as threads:
        asked = [threads.submit(webhook.convert_all, both) for _ in range(MANY)]
        try:
            for kind in ("Fast", "Slow", "Rule"):
                assert webhook.convert(kind)[1]["result"]["status"] == "Success"
        finally:
            (tmp_path / "release").touch()
        assert {each.result()[0] for each in asked} == {200}


def test_a_function_has_the_deadline_of_the_request(webhook: Webhook, tmp_path: Path) -> None:
    release = tmp_path / "release"
    try:
        status, answer = webhook.convert("Slow", str(release), query="?timeout=500ms")
    finally:
        release.touch()
    assert (status, answer["message"]) == (504, "the conversion timed out")


@pytest.mark.parametrize("ending", ENDINGS)
def test_whatever_a_function_raises_fails_its_review(webhook: Webhook, ending: str) -> None:
    status, response = webhook.convert("Fast", ending)
    assert status == 200
    assert response["result"]["status"] == "Failure"
    assert "Fast a (objects[0]) cannot be converted to ex.io/v2" in response["result"]["message"]
    assert webhook.ask("GET", "/readyz")[0] == 200


def test_an_escaped_kind_does_not_bring_a_function_onto_the_loop(
    webhook: Webhook, tmp_path: Path
) -> None:
    with blocked(webhook, tmp_path / "release"), ThreadPoolExecutor(1) as thread:
        hidden = thread.submit(webhook.convert, "Hidden", str(tmp_path / "release"))
        assert webhook.ask("GET", "/readyz")[0] == 200
        (tmp_path / "release").touch()
        assert hidden.result()[0] == 200


# In the embedded server.


class Gate:
    """Blocks or fails the functions and hooks of the kinds below, as `spec.do` requests."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.ends = False

    def pass_(self, obj: dict[str, Any]) -> dict[str, Any]:
        match obj["spec"].get("do", ""):
            case "wait":
                self.opened.wait(HANG)
            case "exit":
                raise SystemExit(3)
            case "interrupt":
                raise KeyboardInterrupt
            case "timeout":
                raise TimeoutError("of its own")
            case "later" if self.ends:
                raise SystemExit(3)
        return obj


def declared(name: str, gate: Gate) -> apis.Kind:
    kind = apis.Kind(name, group="ex.io", plural=f"{name.lower()}s")
    for version in ("v1", "v2"):
        spec = type("Spec", (), {"__annotations__": {"do": str, "hook": str}, "do": "", "hook": ""})
        body = {"__annotations__": {"spec": spec}, "Spec": spec}
        kind.version(version, storage=version == "v2")(type(name, (), body))

    @kind.converts("v1", "v2")
    def up(obj: dict[str, Any]) -> dict[str, Any]:
        return gate.pass_(obj)

    @kind.converts("v2", "v1")
    def down(obj: dict[str, Any]) -> dict[str, Any]:
        return gate.pass_(obj)

    @kind.validate("v2")
    def check(obj: dict[str, Any]) -> None:
        gate.pass_({"spec": {"do": obj["spec"].get("hook", "")}})

    return kind


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate()


@pytest.fixture(scope="module")
def server(gate: Gate) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(kinds=[declared("Slow", gate), declared("Fast", gate)]) as running:
        yield running


def create(server: EmbeddedServer, kind: str, name: str, version: str = "v2", **spec: str) -> Any:
    body = {"apiVersion": f"ex.io/{version}", "kind": kind, "metadata": {"name": name}}
    where = f"/apis/ex.io/{version}/namespaces/default/{kind.lower()}s"
    return server.request("POST", where, body | {"spec": spec})


@pytest.mark.parametrize("how", ["do", "hook"])
def test_a_kind_whose_functions_block_delays_no_other_kind(
    server: EmbeddedServer, gate: Gate, how: str
) -> None:
    gate.opened.clear()
    with ThreadPoolExecutor(MANY) as threads:
        asked = [
            threads.submit(create, server, "Slow", f"{how}-{number}", **{how: "wait"})
            for number in range(MANY)
        ]
        try:
            create(server, "Fast", f"beside-{how}")
            found = server.request("GET", f"/apis/ex.io/v1/namespaces/default/fasts/beside-{how}")
            assert found["apiVersion"] == "ex.io/v1"
        finally:
            gate.opened.set()
        assert all(each.exception() is None for each in asked)


@pytest.mark.parametrize("ending", ["exit", "interrupt", "timeout"])
@pytest.mark.parametrize("how", ["do", "hook"])
def test_whatever_user_code_raises_fails_its_request_alone(
    server: EmbeddedServer, how: str, ending: str
) -> None:
    with pytest.raises(ApiError) as found:
        create(server, "Fast", f"{how}-{ending}", **{how: ending})
    assert "see the log" in str(found.value)
    create(server, "Fast", f"after-{how}-{ending}")


def test_a_function_that_ends_while_an_object_is_read_fails_that_read(
    server: EmbeddedServer, gate: Gate
) -> None:
    where = "/apis/ex.io/v1/namespaces/default/fasts"
    create(server, "Fast", "good")
    create(server, "Fast", "later", do="later")
    gate.ends = True
    try:
        with pytest.raises(ApiError, match="see the log of the server"):
            server.request("GET", f"{where}/later")
        assert server.request("GET", f"{where}/good")["metadata"]["name"] == "good"
    finally:
        gate.ends = False
