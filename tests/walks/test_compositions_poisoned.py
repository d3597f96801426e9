"""A composite resource whose input makes the process of its function exit, beside healthy ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.walks.composing import COMPOSITIONS, PACKAGES, ROLLOUT, Platform, composing, condition
from tests.walks.support import eventually
from tests.walks.test_composition_scenarios import (
    DEFINITION,
    SCENES,
    _is_served,
    composition,
    function,
    is_ready,
)

from polyver.kube.objects import dump_yaml

Object = dict[str, Any]
HEALTHY = [f"healthy-{number}" for number in range(12)]
POISON = 13
FUNCTION = f"""
import os

from polyver.compositions.messages import (
    Ready, Resource, Response, ResponseMeta, State
)

with open(os.environ["STARTS"], "a") as file:
    file.write("started\\n")


def answer(request):
    composite = request.observed.composite.resource
    name, size = composite["metadata"]["name"], composite["spec"]["size"]
    if size == {POISON}:
        os._exit(3)
    made = {{
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {{"name": name, "namespace": "default"}},
        "data": {{"size": str(int(size))}},
    }}
    desired = State(request.desired.composite, {{"map": Resource(made, ready=Ready.TRUE)}})
    return Response(ResponseMeta(request.meta.tag, ttl=60.0), desired, context=request.context)
"""


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("starts") / "starts"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, starts: Path) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("functions")
    package = folder / "resize"
    package.mkdir()
    shutil.copy(ROLLOUT / "function-0.8.2" / "serve.py", package / "serve.py")
    (package / "function.py").write_text(FUNCTION)
    told = {"command": ["{python}", "serve.py"], "env": {"STARTS": str(starts)}}
    (package / "polyver-function.yaml").write_text(dump_yaml(told))
    file = folder / "packages.yaml"
    file.write_text(dump_yaml({"xpkg.example.org/resize:v1": "./resize"}))
    with composing(file) as running:
        running.write(f"{PACKAGES}/functions", function("resize"))
        running.settled("resize", "Active")
        path = f"{COMPOSITIONS}/compositeresourcedefinitions"
        running.request("POST", path, DEFINITION)
        running.request("POST", f"{COMPOSITIONS}/compositions", composition("all", "resize"))
        eventually(lambda: _is_served(running))
        yield running


def scene(name: str, size: int) -> Object:
    return {
        "apiVersion": DEFINITION["spec"]["group"] + "/v1",
        "kind": "Scene",
        "metadata": {"name": name},
        "spec": {"size": size},
    }


def composed(platform: Platform, size: int) -> None:
    """Wait until all healthy ones have this size, and none says that it is not composed."""

    def done() -> bool:
        found = platform.items(SCENES)
        maps = platform.items("/api/v1/namespaces/default/configmaps")
        sizes = {maps.get(name, {}).get("data", {}).get("size") for name in HEALTHY}
        return sizes == {str(size)} and all(is_ready(found[name]) for name in HEALTHY)

    eventually(done, every=0.05)


def resize(platform: Platform, name: str, size: int) -> None:
    found = platform.request("GET", f"{SCENES}/{name}")
    spec = {**found["spec"], "size": size}
    platform.write(SCENES, {**found, "metadata": {"name": name}, "spec": spec})


def test_a_poisonous_input_is_quarantined_and_healthy_ones_go_on(
    platform: Platform, starts: Path
) -> None:
    for name in HEALTHY:
        platform.request("POST", SCENES, scene(name, 1))
    composed(platform, 1)
    platform.request("POST", SCENES, scene("poison", POISON))

    sizes = (size for size in count(2) if size != POISON)

    def all_are_resized() -> None:
        size = next(sizes)
        for name in HEALTHY:
            resize(platform, name, size)
        composed(platform, size)

    def is_quarantined() -> bool:
        # Somebody else is answered between two calls for the poisonous one.
        all_are_resized()
        found = platform.request("GET", f"{SCENES}/poison")
        return "quarantined: resize-" in condition(found, "Synced").get("message", "")

    eventually(is_quarantined)
    all_are_resized()
    before = starts.read_text()
    for _ in range(5):
        all_are_resized()
    assert starts.read_text() == before
    found = platform.request("GET", "/api/v1/events")["items"]
    told = [each for each in found if each["reason"] == "Quarantined"]
    assert {each["involvedObject"]["name"] for each in told} == {"poison"}


def test_a_quarantine_ends_when_the_input_changes(platform: Platform) -> None:
    resize(platform, "poison", 5)
    eventually(lambda: is_ready(platform.request("GET", f"{SCENES}/poison")))
    found = platform.request("GET", "/api/v1/namespaces/default/configmaps/poison")
    assert found["data"] == {"size": "5"}
