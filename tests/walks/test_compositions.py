"""The proposal's story with kubectl alone: one composite resource moves to a new revision and back.

On `polyver up` polyver runs the functions of the example; on a real API server somebody else does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.walks.composing import ROLLOUT, composing_on_kubernetes, condition, serving
from tests.walks.kubectl import typed
from tests.walks.support import eventually
from tests.walks.test_packages import kubectl_needed, up

from polyver.objects import load_manifests

Object = dict[str, Any]
NAME = "function-patch-and-transform"
STABLE, ALPHA = ROLLOUT / "stable", ROLLOUT / "alpha"


def printed(file: Path) -> list[Object]:
    return [dict(each.value) for each in load_manifests(file.read_text(), file.name)]


class Stage:
    """kubectl, and who runs the functions."""

    def __init__(self, kubeconfig: Path, endpoint: Callable[[str], str] | None = None) -> None:
        self.kubeconfig = kubeconfig
        self._endpoint = endpoint

    def kubectl(self, *arguments: str, given: object = None) -> str:
        return typed(self.kubeconfig, *arguments, given=given)

    def install(self, file: Path) -> None:
        """Apply a Function as it is printed; if others run it, with the place where they do."""
        [function] = printed(file)
        if self._endpoint is not None:
            at = self._endpoint(function["spec"]["package"])
            function["metadata"]["annotations"] = {"polyver.dev/endpoint": f"http://{at}"}
        self.kubectl("apply", "-f", "-", given=function)

    def items(self, *what: str) -> dict[str, Object]:
        found = json.loads(self.kubectl("get", *what, "-o", "json"))["items"]
        return {each["metadata"]["name"]: each for each in found}

    def revisions(self) -> list[Object]:
        found = self.items("functionrevisions").values()
        return sorted(found, key=lambda each: int(each["spec"]["revision"]))

    def active(self, number: int) -> list[Object]:
        """So many revisions, all active and healthy."""

        def found() -> list[Object] | None:
            there = [e for e in self.revisions() if condition(e, "Healthy").get("status") == "True"]
            return there if len(there) == number else None

        return eventually(found)

    def maps(self) -> dict[str, Object]:
        return self.items("configmaps", "-l", "crossplane.io/composite")


@pytest.fixture(params=["up", pytest.param("kubernetes", marks=pytest.mark.kube)])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    if request.param == "up":
        file = str(ROLLOUT / "packages.yaml")
        with up(tmp_path, "--packages", file, "--no-page") as place:
            yield Stage(place.data / "kubeconfig")
        return
    with ExitStack() as undo:

        def endpoint(package: str) -> str:
            return undo.enter_context(serving(ROLLOUT / f"function-{package.rpartition(':v')[2]}"))

        running = undo.enter_context(composing_on_kubernetes(tmp_path))
        yield Stage(running.server.kubeconfig, endpoint)


def pipeline(composite: Object) -> list[Object]:
    found: list[Object] = composite["status"]["pipeline"]
    return found


def record(revision: Object) -> Object:
    """What a composite resource says that this revision has made."""
    name, digest = revision["metadata"]["name"], revision["spec"]["digest"]
    return {"step": "patch-and-transform", "function": NAME, "revision": name, "digest": digest}


def versions(objects: dict[str, Object]) -> dict[str, str]:
    return {name: each["metadata"]["resourceVersion"] for name, each in objects.items()}


@kubectl_needed
def test_one_composite_resource_moves_to_the_alpha_channel_and_back(stage: Stage) -> None:
    stage.install(STABLE / "function.yaml")
    for file in ("definition.yaml", "composition.yaml"):
        stage.kubectl("apply", "-f", str(STABLE / file))
    stage.kubectl("wait", "--for=condition=Established", "xrd", "--all")
    stage.kubectl("apply", "-f", str(STABLE / "buckets.yaml"))
    stage.kubectl("wait", "--for=condition=Ready", "acmebuckets", "--all", "--timeout=20s")
    [first] = stage.active(1)
    before = stage.items("acmebuckets")
    assert [*before] == ["my-bucket", "orders", "reports"]
    assert all(pipeline(each) == [record(first)] for each in before.values())
    made = stage.maps()
    assert {name: each["data"] for name, each in made.items()} == {
        "my-bucket": {"region": "eu-north", "owner": "nobody"},
        "orders": {"region": "eu-north", "owner": "shop"},
        "reports": {"region": "us-east", "owner": "nobody"},
    }

    stage.install(ALPHA / "function.yaml")
    both = stage.active(2)
    assert [each["metadata"]["labels"]["release-channel"] for each in both] == ["stable", "alpha"]
    stage.kubectl("apply", "-f", str(ALPHA / "composition.yaml"))
    eventually(lambda: len(stage.items("compositionrevisions")) == 2)
    stage.kubectl("apply", "-f", str(ALPHA / "my-bucket.yaml"))
    eventually(lambda: pipeline(stage.items("acmebuckets")["my-bucket"]) == [record(both[1])])
    stage.kubectl("wait", "--for=condition=Ready", "acmebucket/my-bucket", "--timeout=20s")
    moved, after = stage.maps(), stage.items("acmebuckets")
    assert moved["my-bucket"]["data"] == {"region": "Stockholm", "owner": "nobody"}
    assert moved["my-bucket-address"]["data"] == {
        "address": "https://my-bucket.buckets.example.org"
    }
    others = ("orders", "reports")
    assert all(after[each]["spec"] == before[each]["spec"] for each in others)
    assert all(pipeline(after[each]) == [record(first)] for each in others)
    assert all(versions(moved)[each] == versions(made)[each] for each in others)

    stage.kubectl("apply", "-f", str(STABLE / "buckets.yaml"))
    eventually(lambda: pipeline(stage.items("acmebuckets")["my-bucket"]) == [record(first)])
    eventually(lambda: "my-bucket-address" not in stage.maps())
    back = stage.items("acmebuckets")["my-bucket"]
    assert (
        back["spec"]["compositionRevisionRef"]
        == before["my-bucket"]["spec"]["compositionRevisionRef"]
    )
    assert stage.maps()["my-bucket"]["data"] == made["my-bucket"]["data"]
    assert all(versions(stage.maps())[each] == versions(made)[each] for each in others)
