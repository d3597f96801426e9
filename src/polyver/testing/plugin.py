"""pytest fixtures that start a Kubernetes-compatible API server, without a cluster.

`kube_server` is started once per test run, and all tests share it: a start takes only a fraction of
a second, but there may be thousands of tests. `kube` gives each test its own namespace on the
shared server, so that tests do not see each other's objects. Kinds and other cluster-scoped objects
are shared. A test that needs a server of its own can start an `EmbeddedServer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from polyver.testing._embedded import EmbeddedServer

__all__ = ["Kube", "kube", "kube_server"]


@dataclass(frozen=True, slots=True)
class Kube:
    """A running server, and a namespace on this server for one test."""

    server: EmbeddedServer
    namespace: str

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def kubeconfig(self) -> Path:
        return self.server.kubeconfig


@pytest.fixture(scope="session")
def kube_server() -> Iterator[EmbeddedServer]:
    """A server in memory, for the whole test run."""
    from polyver.testing._embedded import EmbeddedServer

    with EmbeddedServer() as server:
        yield server


@pytest.fixture
def kube(kube_server: EmbeddedServer) -> Iterator[Kube]:
    """A fresh namespace on the shared server, deleted after the test.

    Example::

        def test_it(kube):
            subprocess.run(
                ["kubectl", "--kubeconfig", kube.kubeconfig, "-n", kube.namespace, "get", "pods"],
                check=True,
            )
    """
    import secrets

    name = f"test-{secrets.token_hex(5)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    kube_server.request("POST", "/api/v1/namespaces", body)
    yield Kube(kube_server, name)
    kube_server.request("DELETE", f"/api/v1/namespaces/{name}")
