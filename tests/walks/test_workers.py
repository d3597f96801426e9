"""Functions at work in worker processes: hung ones hold up nobody, and secrets stay secret."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from tests.walks.support import eventually

from polyver.client.cluster import find_access
from polyver.testing._requests import ask

POLYVER = str(Path(sys.executable).parent / "polyver")
KANISTER = "/apis/cr.kanister.io/v1alpha1"
PASSWORD = "hunter2 & the 'rest'/ñ"
TOKEN = "tok-51f0c2"
CODE = """
    import base64
    import os
    import subprocess
    import time
    from polyver import functions
    from polyver.client import GroupVersionResource

    SECRETS = GroupVersionResource("", "v1", "secrets")
    NAMESPACES = GroupVersionResource("", "v1", "namespaces", namespaced=False)

    @functions.register("Hang")
    def hang(ctx, pids: str):
        beside = subprocess.Popen(["sleep", "100000"], start_new_session=True)
        with open(pids, "a") as file:
            file.write(f"{os.getpid()} {beside.pid}\\n")
        while True:
            try:
                time.sleep(100000)
            except BaseException:
                pass

    @functions.register("Quick")
    def quick(ctx, text: str = ""):
        own = ctx.client.get(NAMESPACES, ctx.namespace)
        assert ctx.params["Options"] == {} and 0 < ctx.remaining and ctx.phase == "now"
        return {"text": text, "namespace": own["metadata"]["name"]}

    @functions.register("Crash")
    def crash(ctx):
        os._exit(3)

    @functions.register("Print")
    async def prints(ctx, text: str):
        for number in range(40_000):
            print(text, number)
        for number in range(20_000):
            ctx.log.info("again", number=number, text=text)

    @functions.register("Leak")
    def leak(ctx, text: str, how: str):
        encoded = base64.b64encode(text.encode()).decode()
        print(f"printed {text}", flush=True)
        ctx.log.warning(f"logged {text}", encoded=encoded, both=[text, encoded])
        forms = {"plain": text, "base64": encoded, "repr": repr([text])}
        raise ValueError(f"no login with {forms[how]}")

    @functions.register("ReadItself")
    def read_itself(ctx):
        token = ctx.client.get(SECRETS, "login", ctx.namespace)["data"]["token"]
        raise ValueError(f"no login with {base64.b64decode(token).decode()}")

    @functions.register("Make", sensitive=["password"])
    async def make(ctx, login: str):
        return {"password": "made-p4ssword", "url": f"db://{login}@host", "size": 12}

    @functions.register("Use")
    async def use(ctx, password: str, url: str, all: str):
        assert (password, all) == ("made-p4ssword", "kept-too"), (password, all)
        return {"length": len(url)}

    @functions.register("Whole")
    async def whole(ctx):
        return {"all": "kept-too"}
"""


class Up:
    """`polyver up` with the functions above, and what it has logged."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.log, self.pids = folder, folder / "log", folder / "pids"
        (folder / "code.py").write_text(textwrap.dedent(CODE))
        self.pids.touch()
        kubeconfig = folder / "kubeconfig"
        command = [POLYVER, "up", "--port", "0", "--no-page", "--data", "data"]
        command += ["--functions", "code.py", "--kubeconfig", str(kubeconfig), *options]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout
        ready = self.process.stdout.readline() and self.process.stdout.readline()
        assert ready, self.log.read_text()
        credentials = folder / "data" / "credentials"
        self.url = find_access(kubeconfig=kubeconfig).server
        self.ca_file = credentials / "ca.crt"
        self.token = (credentials / "admin.token").read_text().strip()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return ask(self, method, path, body)

    def make(self, path: str, name: str, **content: Any) -> None:
        group = path.removeprefix("/apis/").partition("/namespaces")[0]
        kind = {"blueprints": "Blueprint", "actionsets": "ActionSet", "secrets": "Secret"}
        named = kind.get(path.rpartition("/")[2], "Namespace")
        about = {"apiVersion": group if "." in group else "v1", "kind": named}
        self.ask("POST", path, {**about, "metadata": {"name": name}, **content})

    def blueprint(
        self, namespace: str, *, secrets: list[str] | None = None, **actions: list[dict[str, Any]]
    ) -> None:
        path = f"{KANISTER}/namespaces/{namespace}/blueprints"
        named = {"secretNames": secrets} if secrets else {}
        made = {name: {"phases": each, **named} for name, each in actions.items()}
        self.make(path, "bp", actions=made)

    def run(self, namespace: str, action: str, *, count: int = 1, **more: Any) -> None:
        spec = {"name": action, "blueprint": "bp", **more}
        path = f"{KANISTER}/namespaces/{namespace}/actionsets"
        self.make(path, action, spec={"actions": [spec] * count})

    def status(self, namespace: str, action: str) -> Any:
        path = f"{KANISTER}/namespaces/{namespace}/actionsets/{action}"
        return self.ask("GET", path).get("status") or {}

    def over(self, namespace: str, action: str) -> Any:
        def status() -> Any:
            found = self.status(namespace, action)
            return found if found.get("state") in ("complete", "failed") else None

        return eventually(status)

    def processes(self) -> list[int]:
        """Those that hung functions were or started, and that are still there."""
        started = [int(each) for each in self.pids.read_text().split()]
        return [pid for pid in started if Path(f"/proc/{pid}").exists()]

    def end(self) -> None:
        assert self.process.stdout
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def up(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Up]:
    server = Up(tmp_path, *request.param)
    yield server
    server.end()


def phase(function: str, **args: Any) -> dict[str, Any]:
    return {"func": function, "name": "now", "args": args}


@pytest.mark.parametrize("up", [("--function-timeout", "3s")], indirect=True)
def test_hung_functions_end_at_their_deadline_and_their_slots_are_free(up: Up) -> None:
    up.blueprint(
        "default",
        hang=[phase("Hang", pids=str(up.pids))],
        quick=[phase("Quick")],
        crash=[phase("Crash")],
        prints=[phase("Print", text="x")],
    )
    up.run("default", "hang", count=32)
    hung = up.over("default", "hang")
    reasons = {each["phases"][0]["reason"] for each in hung["actions"]}
    assert reasons == {"Hang v0.0.0 took longer than 3s"}
    eventually(lambda: not up.processes())
    up.run("default", "quick")
    assert up.over("default", "quick")["state"] == "complete"
    # A process that ends by itself is a failure of its phase.
    up.run("default", "crash")
    told = up.over("default", "crash")["error"]["message"]
    assert "Crash v0.0.0: its worker process ended with exit code 3" in told
    # polyver limits the output that a function prints and logs.
    up.run("default", "prints")
    up.over("default", "prints")
    eventually(lambda: "further lines are dropped" in up.log.read_text())
    assert up.log.stat().st_size < 4_000_000


@pytest.mark.parametrize("up", [()], indirect=True)
def test_hung_functions_leave_room_for_other_namespaces_and_end_with_polyver(up: Up) -> None:
    up.make("/api/v1/namespaces", "other")
    up.blueprint("default", hang=[phase("Hang", pids=str(up.pids))])
    up.blueprint("other", quick=[phase("Quick", text="hi")])
    up.run("default", "hang", count=33)

    def waiting() -> list[Any]:
        actions = up.status("default", "hang").get("actions") or ()
        return [each["waiting"] for each in actions if "waiting" in each]

    # Half of the slots are for others. Those that have to wait report it.
    eventually(lambda: len(waiting()) == 17)
    assert sorted(each["place"] for each in waiting()) == [*range(1, 18)]
    assert waiting()[0]["message"] == (
        "it waits for a slot to call phase now: it is number 1 of 1 in the queue, 16 of at most 32 "
        "calls run, 16 of them in this namespace"
    )
    up.run("other", "quick")
    [made] = up.over("other", "quick")["actions"][0]["phases"]
    assert made["output"] == {"text": "hi", "namespace": "other"}
    # A cancelled action ends, and nothing is left of it.
    eventually(lambda: len(up.processes()) == 32)
    path = f"{KANISTER}/namespaces/default/actionsets/hang"
    up.ask("DELETE", path)
    eventually(lambda: not up.processes())
    eventually(lambda: not up.ask("GET", f"{KANISTER}/namespaces/default/actionsets")["items"])
    # Nor when polyver is killed.
    up.pids.write_text("")
    up.run("default", "hang")
    eventually(lambda: len(up.processes()) == 2)
    os.kill(up.process.pid, signal.SIGKILL)
    eventually(lambda: not up.processes())


def every_form(value: str) -> list[str]:
    encoded = base64.b64encode(value.encode()).decode()
    quoted = [quote(value), quote(value, safe="")]
    return [value, encoded, encoded.rstrip("="), repr(value)[1:-1], *quoted]


def test_values_of_secrets_are_shown_nowhere(tmp_path: Path) -> None:
    up = Up(tmp_path)
    try:
        leaked = walked(up)
    finally:
        up.end()
    for value in (PASSWORD, TOKEN, "made-p4ssword", "kept-too"):
        for form in every_form(value):
            assert form not in leaked, form
    log = up.log.read_text()
    for value in (PASSWORD, TOKEN):
        for form in every_form(value):
            assert form not in log, form
    assert "printed ***" in log
    assert "logged ***" in log


def walked(up: Up) -> str:
    """Run actions that leak Secrets; return all that a user without access to Secrets can read."""
    data = {"password": PASSWORD, "token": TOKEN}
    up.make("/api/v1/namespaces/default/secrets", "login", stringData=data)
    secret = "{{ .Secrets.login.Data.password }}"
    invalid = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": secret},
    }
    actions = {
        **{how: [phase("Leak", text=secret, how=how)] for how in ("plain", "base64", "repr")},
        "itself": [phase("ReadItself")],
        "server": [phase("KubeOps", operation="create", spec=invalid)],
        "template": [phase("Quick", text=f"{{{{ fail {secret[2:-2].strip()} }}}}")],
        "http": [phase("HTTPCall", url=f"http://127.0.0.1:1/?password={secret}")],
    }
    up.blueprint("default", secrets=["login"], **actions)
    named = {"login": {"name": "login"}}
    for action in actions:
        up.run("default", action, secrets=named)
        assert up.over("default", action)["state"] == "failed"
        assert "***" in up.status("default", action)["error"]["message"], action
    check_sensitive_outputs(up, secret, named)
    shown = [
        up.ask("GET", path) for path in (f"{KANISTER}/actionsets", "/api/v1/events", "/functions")
    ]
    return msgspec.json.encode(shown).decode() + str(shown)


def check_sensitive_outputs(up: Up, secret: str, named: Any) -> None:
    """Sensitive outputs are in Secrets, and later phases see them."""
    make, whole = phase("Make", login=secret), phase("Whole")
    outputs = {
        "password": "{{ .Phases.make.Output.password }}",
        "url": "{{ .Phases.make.Output.url }}",
        "all": "{{ .Phases.whole.Output.all }}",
    }
    phases = [
        {**make, "name": "make"},
        {**whole, "name": "whole", "sensitiveOutputs": ["*"]},
        phase("Use", **outputs),
    ]
    left = {"made": {"keyValue": {"url": outputs["url"], "size": "12"}}}
    path = f"{KANISTER}/namespaces/default/blueprints"
    make = {"phases": phases, "outputArtifacts": left, "secretNames": ["login"]}
    content = {"actions": {"make": make}}
    up.make(path, "sensitive", **content)
    up.run("default", "make", secrets=named, blueprint="sensitive")
    status = up.over("default", "make")
    assert status["state"] == "complete", status
    made, whole_one, used = status["actions"][0]["phases"]
    # The function calls one of them sensitive; the other holds a value from a Secret.
    assert made["output"] == {"password": "***", "url": "***", "size": 12}
    assert whole_one["output"] == {"all": "***"}
    url = f"db://{PASSWORD}@host"
    assert used["output"] == {"length": len(url)}
    assert kept(up, made["outputSecret"]) == {"password": "made-p4ssword", "url": url}
    # A restore cannot use a masked artifact, so it is kept whole as well.
    [action] = status["actions"]
    assert action["artifacts"]["made"]["keyValue"] == {"url": "***", "size": "12"}
    assert kept(up, action["artifactsSecret"])["made"]["keyValue"]["url"] == url
    assert "its artifacts contain values from Secrets" in status["warnings"][0]
    again = {"artifacts": action["artifacts"], "blueprint": "sensitive"}
    up.make(
        f"{KANISTER}/namespaces/default/actionsets",
        "again",
        spec={"actions": [{"name": "make", "secrets": named, **again}]},
    )
    assert "contain masked values" in up.over("default", "again")["error"]["message"]


def kept(up: Up, name: str) -> Any:
    found = up.ask("GET", f"/api/v1/namespaces/default/secrets/{name}")
    [owner] = found["metadata"]["ownerReferences"]
    assert owner["kind"] == "ActionSet"
    return msgspec.json.decode(base64.b64decode(found["data"]["output"]))
