"""`GET /functions` on every replica of `polyver run`, and how commands find it on a cluster."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.app.test_cli import Ran
from tests.walks.replicas import NAMESPACE, Balancer, replicas
from tests.walks.support import request

from polyver import apis
from polyver.functions.kinds import ACTION_SETS, BLUEPRINTS
from polyver.testing import EmbeddedServer

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PROXY = f"/api/v1/namespaces/{NAMESPACE}/services/https:polyver:443/proxy/functions"


def read(port: int, path: str) -> Any:
    trusting = ssl._create_unverified_context()
    with urllib.request.urlopen(f"https://127.0.0.1:{port}{path}", context=trusting) as answer:
        assert answer.headers["content-type"] == "application/json"
        return json.load(answer)


def test_every_replica_tells_which_functions_there_are(tmp_path: Path) -> None:
    code = tmp_path / "own.py"
    code.write_text(
        "from polyver import functions\n@functions.register('Own')\ndef own(ctx, a: str): ...\n"
    )
    balancer = Balancer()
    with EmbeddedServer() as server:
        request(server, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for kind in (BLUEPRINTS, ACTION_SETS):
            request(server, "POST", CRDS, apis.crd_of(kind.definition()))
        options = ("--capabilities", "apis,functions", "--functions", str(code))
        with replicas(server, balancer, 2, *options) as running:
            for each in running:
                found = {f["name"]: f for f in read(each.port, "/functions")["functions"]}
                assert found["Own"]["versions"][0]["arguments"][0]["name"] == "a"
                assert found["KubeExec"]["default"] == "v0.1.0"
    balancer.close()


class _Api(http.server.BaseHTTPRequestHandler):
    """An API server that has no functions itself, and a Service of polyver."""

    def do_GET(self) -> None:
        found = self.path == PROXY
        version = {"version": "v3.0.0", "stage": "stable", "registered": True}
        functions = [{"name": "There", "default": "v3.0.0", "versioned": True}]
        body = json.dumps({"functions": [{**functions[0], "versions": [version]}]})
        self.send_response(200 if found else 404)
        self.send_header("content-type", "application/json")
        self.end_headers()
        status = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not there"}
        self.wfile.write((body if found else json.dumps(status)).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    at = f"http://127.0.0.1:{server.server_port}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": at}}],
        "users": [{"name": "u", "user": {}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config))
    yield file
    server.shutdown()
    server.server_close()


def test_on_a_cluster_the_service_of_the_installation_is_asked(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    ran = Ran(capsys, "functions", "list")
    assert (ran.code, ran.err) == (0, "")
    assert [line.split() for line in ran.out.splitlines()][1:] == [["There", "v3.0.0", "stable"]]


def test_a_server_that_does_not_say_is_an_error_with_the_way_out(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.setattr("polyver.functions.commands.served_functions._NAMESPACE", "elsewhere")
    ran = Ran(capsys, "why", "actionset/a")
    assert ran.code == 3
    assert "does not list its functions" in ran.err
    assert "pass code with --functions" in ran.err
