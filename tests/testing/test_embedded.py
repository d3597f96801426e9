"""The server of the test kit, in the test process."""

from __future__ import annotations

import datetime
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.deadlines import HANG

from polyver.app import embedded as _embedded
from polyver.kube.objects.status import ApiError
from polyver.kube.store import StoreLocked
from polyver.testing import EmbeddedServer
from polyver.testing.plugin import Kube, kube, kube_server

__all__ = ["kube", "kube_server"]

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}}


def test_the_earlier_name_of_a_capability_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="it is now compositions"):
        server = EmbeddedServer(capabilities=("apis", "revisions"))
    with server:
        found = server.request("GET", "/apis/pkg.crossplane.io/v1")
    assert "functions" in {each["name"] for each in found["resources"]}


def test_an_unknown_capability_is_refused() -> None:
    with pytest.raises(ValueError, match="known: apis, functions, definitions, compositions"):
        EmbeddedServer(capabilities=("apsi",))


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_a_server_leaves_nothing_behind() -> None:
    before = set(threading.enumerate())
    with EmbeddedServer() as server:
        assert server.request("GET", "/version")["major"] == "1"
        assert server.kubeconfig.exists()
    assert set(threading.enumerate()) <= before
    assert not server.folder.exists()
    host, _, port = server.url.removeprefix("https://").partition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


def test_servers_do_not_know_each_other() -> None:
    with EmbeddedServer() as one, EmbeddedServer() as two:
        one.request("POST", "/api/v1/namespaces", NAMESPACE)
        with pytest.raises(ApiError) as missing:
            two.request("GET", "/api/v1/namespaces/kept")
        assert missing.value.reason == "NotFound"


def test_a_folder_keeps_objects_and_is_for_one_server(tmp_path: Path) -> None:
    with EmbeddedServer(data=tmp_path) as server:
        server.request("POST", "/api/v1/namespaces", NAMESPACE)
        with pytest.raises(StoreLocked), EmbeddedServer(data=tmp_path):
            pass
    with EmbeddedServer(data=tmp_path) as server:
        assert server.request("GET", "/api/v1/namespaces/kept")["metadata"]["name"] == "kept"


def test_certificates_are_renewed_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_embedded, "_RENEW_EVERY", 0.02)
    with EmbeddedServer() as server:
        kubeconfig, certificate = server.kubeconfig.read_bytes(), served(server)
        in_a_year = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=340)
        monkeypatch.setattr(_embedded, "_now", lambda: in_a_year)
        while served(server) == certificate or server.kubeconfig.read_bytes() == kubeconfig:
            time.sleep(0.01)


def served(server: EmbeddedServer) -> str:
    host, _, port = server.url.removeprefix("https://").partition(":")
    return ssl.get_server_certificate((host, int(port)), timeout=HANG)


@pytest.mark.parametrize("_", range(2))
def test_every_test_has_a_namespace_of_its_own(kube: Kube, _: int) -> None:
    path = f"/api/v1/namespaces/{kube.namespace}/secrets"
    assert kube.server.request("GET", path)["items"] == []
    kube.server.request("POST", path, {"metadata": {"name": "a"}})
    names = [each["metadata"]["name"] for each in kube.server.request("GET", path)["items"]]
    assert names == ["a"]


@pytest.mark.parametrize("_", range(2))
def test_and_all_share_the_server(kube: Kube, kube_server: EmbeddedServer, _: int) -> None:
    assert kube.url == kube_server.url
    assert kube.kubeconfig == kube_server.kubeconfig


def test_the_plugin_costs_other_test_runs_nothing() -> None:
    script = "import sys, polyver.testing.plugin; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "pytest" in loaded
    assert not {"asyncio", "cryptography", "cyclopts", "httptools", "msgspec"} & set(loaded)


def test_it_says_that_it_is_the_release_that_was_asked_for() -> None:
    with EmbeddedServer(release="1.33.2") as server:
        version = server.request("GET", "/version")
    assert (version["minor"], version["gitVersion"].partition("+")[0]) == ("33", "v1.33.2")


def test_a_path_that_is_not_there_is_an_error_like_any_other() -> None:
    with EmbeddedServer() as server:
        with pytest.raises(ApiError, match="404 page not found") as refused:
            server.request("GET", "/apis/nobody.example.com/v1/things")
        assert (refused.value.code, refused.value.reason) == (404, "NotFound")
