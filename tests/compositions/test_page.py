"""Function packages and compositions on the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.compositions.controllers.installing import MemoryRuntime
from tests.editing import edited
from tests.walks.support import eventually
from tests.web.visiting import Visitor

from polyver.testing import EmbeddedServer

PACKAGES = "/apis/pkg.crossplane.io/v1"
CROSSPLANE = "apiextensions.crossplane.io"
NAME = "function-a"


def function(package: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": {"name": NAME, "labels": labels},
        "spec": {"package": package, "activeRevisionLimit": 2, "revisionHistoryLimit": 0},
    }


def composition(name: str, number: int, *steps: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"{CROSSPLANE}/v1",
        "kind": "CompositionRevision",
        "metadata": {"name": name, "labels": {"crossplane.io/composition-name": "x"}},
        "spec": {
            "revision": number,
            "compositeTypeRef": {"apiVersion": "shop.example/v1", "kind": "Cart"},
            "pipeline": [*steps],
        },
    }


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    capabilities = ("apis", "compositions")
    with EmbeddedServer(capabilities=capabilities, runtime=MemoryRuntime(), page=True) as running:
        running.request("POST", f"{PACKAGES}/functions", function("ex.io/a:v1", channel="stable"))
        eventually(lambda: len(_revisions(running)) == 1)
        edited(running.request, f"{PACKAGES}/functions/{NAME}", _release)
        eventually(lambda: len(_revisions(running)) == 2)
        yield running


def _release(obj: dict[str, Any]) -> None:
    obj["spec"]["package"] = "ex.io/a:v2"
    obj["metadata"]["labels"] = {"channel": "alpha"}


def _revisions(server: EmbeddedServer) -> list[Any]:
    return list(server.request("GET", f"{PACKAGES}/functionrevisions")["items"])


def test_a_package_is_a_lineage_of_its_revisions(server: EmbeddedServer) -> None:
    visitor = Visitor(server.page)

    def told() -> bool:
        data = visitor.lineage("compositions", NAME)
        versions = [(each["version"], each["stage"]) for each in data["releases"]]
        return versions == [("2", "active"), ("1", "active")] and not data["incomplete"]

    eventually(told)
    # The page hears of the Function, and of the endpoints of its revisions, apart from the rest.
    eventually(lambda: visitor.lineage("compositions", NAME)["facts"] == {"package": "ex.io/a:v2"})
    eventually(lambda: "served at" in visitor.see(f"/lineages/compositions/{NAME}").words)
    data = visitor.lineage("compositions", NAME)
    assert [each["labels"]["channel"] for each in data["releases"]] == ["alpha", "stable"]


def test_steps_of_compositions_are_told_what_they_get(server: EmbeddedServer) -> None:
    visitor = Visitor(server.page)
    ref = {"step": "one", "functionRef": {"name": NAME}}
    stable = {"functionRevisionSelector": {"matchLabels": {"channel": "stable"}}}
    other = {"step": "three", "functionRef": {"name": "nothing"}}
    steps = (ref, ref | stable | {"step": "two"}, other)
    path = f"/apis/{CROSSPLANE}/v1/compositionrevisions"
    server.request("POST", path, composition("x-1", 1, ref))
    server.request("POST", path, composition("x-2", 2, *steps))

    def told() -> bool:
        rows = visitor.lineage("compositions", NAME)["uses"]["items"]
        return [(row["name"], row["requested"], row["reason"]) for row in rows] == [
            ("CompositionRevision x-2", "", "highest-numbered active revision"),
            (
                "CompositionRevision x-2",
                "channel=stable",
                "highest-numbered active revision with channel=stable",
            ),
        ]

    eventually(told)
    uses = visitor.data("/dependents/CompositionRevision x-2")["uses"]
    assert uses[2]["problem"] == "there is no function nothing"
