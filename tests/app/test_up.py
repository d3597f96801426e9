"""`polyver up`, as someone runs it: what it says, what it serves, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.deadlines import HANG

from polyver.app import main

POLYVER = str(Path(sys.executable).parent / "polyver")
PATIENCE = HANG
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}}


class Running:
    """A `polyver up` that has said that it is ready."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [POLYVER, "up", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        assert self.process.stdout
        self.ready = self.process.stdout.readline().strip()
        self.export = self.process.stdout.readline().strip()
        assert self.export, self.process.communicate()

    @property
    def page(self) -> str:
        """The address of the page, which comes after the rest."""
        assert self.process.stdout
        return self.process.stdout.readline().strip().removeprefix("the page: ")

    @property
    def kubeconfig(self) -> Path:
        return Path(self.export.removeprefix("export KUBECONFIG=").partition(";")[0])

    def connect(self) -> http.client.HTTPSConnection:
        config = json.loads(self.kubeconfig.read_text())
        cluster = next(c["cluster"] for c in config["clusters"] if c["name"] == "polyver")
        user = next(u["user"] for u in config["users"] if u["name"] == "polyver-token")
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        self.token = user["token"]
        return http.client.HTTPSConnection(
            cluster["server"].removeprefix("https://"),
            context=ssl.create_default_context(cadata=authority),
            timeout=PATIENCE,
        )

    def ask(self, method: str, path: str, body: object = None) -> Any:
        connection = self.connect()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, headers)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """The exit code and what was said on stderr."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start(*arguments: str) -> Running:
        # A process that is ended at once leaves its temporary folder, which is then in here.
        started.append(Running(*arguments, TMPDIR=str(tmp_path)))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            running.process.kill()
        running.process.communicate()


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["up", *arguments])
    out, err = capsys.readouterr()
    assert out == ""
    return code, err


Up = Callable[..., Running]


def test_what_is_written_is_there_after_a_restart(up: Up, tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = up("--port", "0", "--data", str(data))
    assert first.ready.startswith("polyver is ready at https://127.0.0.1:")
    assert first.ready.endswith(f"data in {data}")
    assert first.kubeconfig == data / "kubeconfig"
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    uid = first.ask("POST", "/api/v1/namespaces", NAMESPACE)["metadata"]["uid"]
    token = first.token
    assert first.end() == (0, "")
    second = up("--port", "0", "--data", str(data))
    assert second.ask("GET", "/api/v1/namespaces/kept")["metadata"]["uid"] == uid
    assert second.token == token
    assert second.end(signal.SIGINT) == (0, "")


def test_nothing_is_left_of_what_was_in_memory(up: Up, tmp_path: Path) -> None:
    running = up("--port", "0", "--data", ":memory:", "--verbose")
    assert running.ready.endswith("data in memory only")
    assert running.kubeconfig.is_relative_to(tmp_path)
    assert running.ask("GET", "/version")["major"] == "1"
    code, err = running.end()
    assert code == 0
    assert "path=/version status=200" in err
    assert list(tmp_path.iterdir()) == []


def test_the_page_is_at_the_same_address_after_a_restart(up: Up, tmp_path: Path) -> None:
    data, (port, after) = tmp_path / "data", free_ports()
    first = up("--port", str(port), "--page-port", str(after), "--data", str(data))
    page = first.page
    assert page.startswith(f"http://127.0.0.1:{after}/?token=")
    assert (data / "page.url").read_text() == f"{page}\n"
    assert stat.S_IMODE((data / "page.url").stat().st_mode) == 0o600
    token = page.partition("token=")[2]
    assert looked(after, token) == 200
    first.connect().close()
    assert looked(after, first.token) == 401
    assert first.end() == (0, "")
    second = up("--port", str(port), "--page-port", str(after), "--data", str(data))
    assert second.page == page
    assert looked(after, token) == 200
    assert second.end() == (0, "")


def test_a_page_that_someone_looks_at_ends_in_good_order(up: Up) -> None:
    running = up("--port", "0", "--data", ":memory:")
    host, _, token = running.page.removeprefix("http://").partition("/?token=")
    connection = http.client.HTTPConnection(host, timeout=PATIENCE)
    connection.request("GET", "/events", headers={"Authorization": f"Bearer {token}"})
    stream = connection.getresponse()
    assert stream.readline().startswith(b"data: ")
    assert running.end() == (0, "")
    assert stream.read().endswith(b"\n")
    connection.close()


def test_there_is_no_page_where_none_is_wanted(up: Up) -> None:
    running = up("--port", "0", "--data", ":memory:", "--no-page")
    running.process.send_signal(signal.SIGTERM)
    assert running.page == ""
    assert running.process.wait(PATIENCE) == 0


def test_a_port_of_the_page_that_is_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ("--port", "0", "--data", ":memory:", "--page-port", str(port))
        code, err = complaint(capsys, *options)
    assert code == 3
    assert f"cannot listen on 127.0.0.1:{port}: the port is in use" in err
    assert "choose another port with --page-port" in err


def free_ports() -> tuple[int, int]:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        return one.getsockname()[1], two.getsockname()[1]


def looked(port: int, token: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_watch_ends_in_good_order(up: Up) -> None:
    running = up("--port", "0", "--data", ":memory:")
    running.ask("POST", "/api/v1/namespaces", NAMESPACE)
    connection = running.connect()
    headers = {"Authorization": f"Bearer {running.token}"}
    connection.request("GET", "/api/v1/namespaces?watch=1", headers=headers)
    response = connection.getresponse()
    events = [json.loads(response.readline())]
    assert running.end() == (0, "")
    # A body that was broken off could not be read to its end.
    events += [json.loads(line) for line in response.read().splitlines()]
    connection.close()
    assert "kept" in [event["object"]["metadata"]["name"] for event in events]


def test_a_second_signal_ends_it_at_once(up: Up) -> None:
    running = up("--port", "0", "--data", ":memory:")
    with half_asked(running) as address:
        running.process.send_signal(signal.SIGTERM)
        while listens(address):
            time.sleep(0.01)
        assert running.process.poll() is None
        assert running.end(signal.SIGINT) == (130, "")


@contextmanager
def half_asked(running: Running) -> Iterator[tuple[str, int]]:
    """A request that is never finished."""
    connection = running.connect()
    connection.putrequest("POST", "/api/v1/namespaces")
    connection.putheader("Content-Length", "10")
    connection.endheaders(b"{")
    # Another one's answer tells that this one has arrived.
    running.ask("GET", "/version")
    try:
        yield connection.host, connection.port
    finally:
        connection.close()


def listens(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=PATIENCE).close()
    except ConnectionRefusedError:
        return False
    return True


def test_another_kubeconfig_keeps_its_context(up: Up, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text('{"current-context": "prod", "contexts": [{"name": "prod"}]}')
    running = up("--port", "0", "--data", ":memory:", "--kubeconfig", str(config))
    assert running.export == (f"export KUBECONFIG={config}; kubectl config use-context polyver")
    assert json.loads(config.read_text())["current-context"] == "prod"
    assert running.end() == (0, "")


def test_a_folder_is_for_one_at_a_time(
    up: Up, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    up("--port", "0", "--data", str(tmp_path))
    code, err = complaint(capsys, "--port", "0", "--data", str(tmp_path))
    assert code == 3
    assert err.startswith("error: ")
    assert "in use by another process" in err
    assert err.count("\n") == 1


def test_a_port_in_use_is_an_error_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, err = complaint(capsys, "--port", port, "--data", str(tmp_path / "data"))
    assert code == 3
    assert f"cannot listen on 127.0.0.1:{port}: the port is in use" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_a_host_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    code, err = complaint(capsys, "--host", "nowhere.invalid", "--data", ":memory:")
    assert (code, err.count("\n")) == (3, 1)
    assert "nowhere.invalid" in err


def test_a_data_folder_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    code, err = complaint(capsys, "--port", "0", "--data", str(tmp_path / "file"))
    assert (code, err.count("\n")) == (3, 1)
    assert f"{tmp_path / 'file'} cannot be used" in err


@pytest.mark.parametrize("arguments", [["--port", "65536"], ["--port", "-1"], ["--data", ""]])
def test_what_makes_no_sense_is_a_wrong_command_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, err = complaint(capsys, *arguments)
    assert (code, err.count("\n")) == (2, 1)


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--help"]) == 0
    assert "Example: polyver up" in capsys.readouterr().out


# Loading.

EXAMPLES = Path(__file__).parents[2] / "examples"
PLATFORM = str(EXAMPLES / "platform")
DATABASES = "/apis/platform.example.com/v1/namespaces/shop/databases"


def write(path: Path, *objects: object) -> str:
    path.write_text("\n---\n".join(map(json.dumps, objects)))
    return str(path)


def config_map(name: str, **more: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def test_what_is_to_be_loaded_is_there_when_it_is_ready(up: Up) -> None:
    running = up("--port", "0", "--data", ":memory:", "--load", PLATFORM)
    assert running.ready.endswith("data in memory only; 7 objects loaded")
    found = running.ask("GET", f"{DATABASES}/sessions")
    assert found["spec"] == {
        "engine": "mysql",
        "owner": {"team": "shop"},
        "replicas": 1,
        "storage": 10,
    }
    assert [
        (each["manager"], each["operation"]) for each in found["metadata"]["managedFields"]
    ] == [("polyver", "Apply")]


def test_loading_again_changes_nothing_but_what_is_gone(up: Up, tmp_path: Path) -> None:
    arguments = ("--port", "0", "--data", str(tmp_path / "data"), "-f", PLATFORM)
    first = up(*arguments)
    before = first.ask("GET", f"{DATABASES}/orders")
    first.ask("DELETE", f"{DATABASES}/sessions")
    assert first.end() == (0, "")
    second = up(*arguments)
    assert second.ask("GET", f"{DATABASES}/orders") == before
    assert second.ask("GET", f"{DATABASES}/sessions")["spec"]["engine"] == "mysql"
    assert second.end() == (0, "")


def test_what_others_have_changed_since_is_left_and_said(up: Up, tmp_path: Path) -> None:
    arguments = ("--port", "0", "--data", str(tmp_path / "data"), "-f", PLATFORM)
    first = up(*arguments)
    orders = first.ask("GET", f"{DATABASES}/orders")
    orders["spec"]["storage"] = 60
    first.ask("PUT", f"{DATABASES}/orders", orders)
    first.end()
    second = up(*arguments)
    assert second.ready.endswith("7 objects loaded")
    assert second.ask("GET", f"{DATABASES}/orders")["spec"]["storage"] == 60
    code, err = second.end()
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith(f'warning: Database "orders" is not changed ({PLATFORM}/shop.yaml:')
    assert ".spec.storage" in err


def test_objects_of_a_list_and_without_a_namespace(up: Up, tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [config_map("a"), config_map("b")]}
    running = up("--port", "0", "--data", ":memory:", "-f", write(tmp_path / "list.json", listed))
    assert running.ready.endswith("2 objects loaded")
    found = running.ask("GET", "/api/v1/namespaces/default/configmaps")
    assert {"a", "b"} <= {each["metadata"]["name"] for each in found["items"]}
    assert running.end() == (0, "")


def bucket(version: str) -> str:
    """A composite resource, and behind it the definition of its kind."""
    head = f"apiVersion: custom-api.example.org/{version}\nkind: AcmeBucket\n"
    definition = (EXAMPLES / "rollout" / "stable" / "definition.yaml").read_text()
    return f"{head}metadata: {{name: x}}\nspec: {{owner: me}}\n---\n{definition}"


def test_composite_resources_are_loaded_once_their_kind_is_served(up: Up, tmp_path: Path) -> None:
    (tmp_path / "bucket.yaml").write_text(bucket("v1alpha1"))
    having = ("--capabilities", "apis,compositions")
    running = up("--port", "0", "--data", ":memory:", *having, "-f", str(tmp_path))
    assert running.ready.endswith("2 objects loaded")
    found = running.ask("GET", "/apis/custom-api.example.org/v1alpha1/acmebuckets/x")
    assert found["spec"]["owner"] == "me"
    assert running.end() == (0, "")


def test_the_earlier_name_of_a_capability_is_accepted_with_a_warning(up: Up) -> None:
    running = up("--port", "0", "--data", ":memory:", "--capabilities", "apis,revisions")
    groups = [each["name"] for each in running.ask("GET", "/apis")["groups"]]
    assert "apiextensions.crossplane.io" in groups
    code, err = running.end()
    assert code == 0
    assert err.count("revisions is deprecated; the capability is now compositions") == 1


def test_a_composite_resource_of_a_version_that_is_not_defined_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyver.cli.loading._PATIENCE", 0.5)
    (tmp_path / "bucket.yaml").write_text(bucket("v2"))
    having = ("--capabilities", "apis,compositions")
    code, err = complaint(capsys, "--port", "0", "--data", ":memory:", *having, "-f", str(tmp_path))
    assert "there is no kind AcmeBucket in custom-api.example.org/v2; its Composite" in err
    assert code == 3


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (
            "apiVersion: platform.example.com/v1\nkind: Database\nmetadata: {name: x}\n"
            "spec:\n  engine: mysql\n  storage: 0\n",
            'Database "x" cannot be loaded: Database.platform.example.com "x" is invalid: '
            "spec.storage: Invalid value: 0: spec.storage in body should be greater than or equal "
            "to 1 (WRONG:6, spec.storage); 2 objects before it were applied",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndate: {}\n",
            'ConfigMap "x" cannot be loaded: failed to create typed patch object '
            "(default/x; /v1, Kind=ConfigMap): .date: field not declared in schema (WRONG:1); "
            "2 objects before it were applied",
        ),
        (
            "apiVersion: ex.io/v1\nkind: Widget\nmetadata: {name: x}\n",
            'Widget "x" cannot be loaded: there is no kind Widget in ex.io/v1; load its '
            "CustomResourceDefinition as well (WRONG:1); 2 objects before it were applied",
        ),
    ],
    ids=["invalid", "unknown field", "unknown kind"],
)
def test_what_cannot_be_loaded_is_named_with_its_place(
    wrong: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong.yaml").write_text(wrong)
    names = (f"{PLATFORM}/definitions.yaml", str(tmp_path / "wrong.yaml"))
    files = [argument for name in names for argument in ("-f", name)]
    code, err = complaint(capsys, "--port", "0", "--data", ":memory:", *files)
    assert err == f"error: {problem.replace('WRONG', names[1])}\n"
    assert code == 3


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("- 1\n", "expected a mapping"),
        ("kind: ConfigMap\n", '"apiVersion" is missing'),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: 1}}", "metadata.name); put it in quo"),
        ("{apiVersion: v1, kind: List, items: 1}", "expected a list"),
        ("a: [}", "not YAML"),
    ],
)
def test_what_is_no_manifest_is_told_before_anything_starts(
    wrong: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong.yaml").write_text(wrong)
    data, name = tmp_path / "data", str(tmp_path / "wrong.yaml")
    code, err = complaint(capsys, "--port", "0", "--data", str(data), "-f", name)
    assert (code, err.count("\n")) == (3, 1)
    assert problem in err
    assert "wrong.yaml:1" in err
    assert not data.exists()


def test_a_definition_whose_names_are_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"kind": "Database", "plural": "stores"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    taken = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "stores.platform.example.com"},
        "spec": {
            "group": "platform.example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
    files = ("-f", f"{PLATFORM}/definitions.yaml", "-f", write(tmp_path / "taken.json", taken))
    code, err = complaint(capsys, "--port", "0", "--data", ":memory:", *files)
    assert (code, err.count("\n")) == (3, 1)
    assert 'its names are not accepted: "' in err
