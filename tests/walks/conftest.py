"""Every walk is taken on polyver's own server, and by `make e2e` on a real one as well."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from tests.walks.support import Server, Walk, definition, eventually, request

from polyver.testing import EmbeddedServer, LocalCluster

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(
    scope="session", params=["embedded", pytest.param("kubernetes", marks=pytest.mark.kube)]
)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with EmbeddedServer() if request.param == "embedded" else LocalCluster() as running:
        yield running


@pytest.fixture
def walk(server: Server) -> Iterator[Walk]:
    """A namespace and a group for one walk."""
    name = f"walk-{secrets.token_hex(4)}"
    request(server, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    eventually(lambda: request(server, "GET", f"/api/v1/namespaces/{name}/serviceaccounts/default"))
    walk = Walk(server, name, f"{name}.walks.dev")
    yield walk
    _withdraw(walk)
    request(server, "DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def widgets(walk: Walk) -> Walk:
    """The same, with Widgets defined in its group."""
    walk.request("POST", DEFINITIONS, definition(walk.group))
    eventually(lambda: walk.request("GET", f"/apis/{walk.group}/v1/widgets"))
    return walk


def _withdraw(walk: Walk) -> None:
    """Whatever a walk left, the next one has Widgets in a group that is its own."""
    if walk.request("DELETE", f"{DEFINITIONS}/{walk.widgets_crd}") is None:
        return
    widgets = f"/apis/{walk.group}/v1/namespaces/{walk.namespace}/widgets"
    for left in (walk.request("GET", widgets) or {}).get("items", []):
        if left["metadata"].pop("finalizers", None):
            walk.request("PUT", f"{widgets}/{left['metadata']['name']}", left)
    eventually(lambda: walk.request("GET", f"/apis/{walk.group}") is None)
