"""Every walk is taken on polyver's own server, and by `make e2e` on a real one as well."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from tests.editing import edited
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
    withdraw(walk)
    request(server, "DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def widgets(walk: Walk) -> Walk:
    """The same, with Widgets defined in its group."""
    walk.request("POST", DEFINITIONS, definition(walk.group))
    eventually(lambda: walk.request("GET", f"/apis/{walk.group}/v1/widgets"))
    return walk


def withdraw(walk: Walk) -> None:
    """Delete the Widgets of a walk and their definition, if they are there.

    The objects are read in the version in which they are stored: nobody has to convert them.
    """
    crd = f"{DEFINITIONS}/{walk.widgets_crd}"
    found = walk.request("GET", crd)
    if found is None:
        return
    [stored] = [each["name"] for each in found["spec"]["versions"] if each["storage"]]
    walk.request("DELETE", crd)
    widgets = f"/apis/{walk.group}/{stored}/namespaces/{walk.namespace}/widgets"
    for left in (walk.request("GET", widgets) or {}).get("items", []):
        if left["metadata"].get("finalizers"):
            edited(walk.request, f"{widgets}/{left['metadata']['name']}", _let_go)
    eventually(lambda: walk.request("GET", crd) is None)
    eventually(lambda: walk.request("GET", f"/apis/{walk.group}") is None)


def _let_go(obj: Any) -> None:
    obj["metadata"]["finalizers"] = []
