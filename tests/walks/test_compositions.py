"""The proposal's story with kubectl alone: one composite resource moves to a new revision and back.

On `polyver up` polyver runs the functions of the example; on a real API server somebody else does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.walks.composing import ROLLOUT, composing_on_kubernetes, serving
from tests.walks.kubectl import typed
from tests.walks.test_packages import kubectl_needed, up

from polyver.kube.objects import load_manifests

Object = dict[str, Any]
NAME = "function-patch-and-transform"
STABLE, ALPHA = ROLLOUT / "stable", ROLLOUT / "alpha"


def printed(file: Path) -> Object:
    [document] = load_manifests(file.read_text(), file.name)
    assert isinstance(document.value, dict)
    return document.value


class Stage:
    """kubectl, and who runs the functions."""

    def __init__(self, kubeconfig: Path, endpoint: Callable[[str], str] | None = None) -> None:
        self.kubeconfig = kubeconfig
        self._endpoint = endpoint

    def kubectl(self, *arguments: str, given: object = None) -> str:
        return typed(self.kubeconfig, *arguments, given=given)

    def install(self, file: Path) -> None:
        """Apply a Function as it is printed; if others run it, with the place where they do."""
        function = printed(file)
        if self._endpoint is not None:
            at = self._endpoint(function["spec"]["package"])
            function["metadata"]["annotations"] = {"polyver.dev/endpoint": f"http://{at}"}
        self.kubectl("apply", "-f", "-", given=function)

    def state(self) -> State:
        """All that the story is about, as it is now."""
        asked = "functionrevisions,acmebuckets,configmaps"
        found = json.loads(self.kubectl("get", asked, "-o", "json"))["items"]

        def named(kind: str) -> dict[str, Object]:
            return {e["metadata"]["name"]: e for e in found if e["kind"] == kind}

        composed = {
            name: each
            for name, each in named("ConfigMap").items()
            if "crossplane.io/composite" in each["metadata"].get("labels", {})
        }
        return State(named("FunctionRevision"), named("AcmeBucket"), composed)

    def until_made_by(self, composite: str, revision: str) -> None:
        """Wait until that revision has composed it, and it is ready."""
        made = f"jsonpath={{.status.pipeline[0].revision}}={revision}"
        for what in (made, "condition=Ready"):
            self.kubectl("wait", f"acmebucket/{composite}", f"--for={what}")


@dataclass(frozen=True)
class State:
    """What is there, by its names."""

    revisions: dict[str, Object]
    buckets: dict[str, Object]
    maps: dict[str, Object]

    def data(self) -> dict[str, Object]:
        return {name: each["data"] for name, each in self.maps.items()}

    def pipelines(self) -> dict[str, list[Object]]:
        """What each bucket says that has made what it is composed of."""
        return {name: each["status"]["pipeline"] for name, each in self.buckets.items()}

    def record(self, channel: str) -> Object:
        """What they say of the revision of a channel."""
        [found] = [
            each
            for each in self.revisions.values()
            if each["metadata"]["labels"]["release-channel"] == channel
        ]
        name, digest = found["metadata"]["name"], found["spec"]["digest"]
        return {"step": "patch-and-transform", "function": NAME, "revision": name, "digest": digest}


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


OTHERS = ("orders", "reports")


@kubectl_needed
def test_one_composite_resource_moves_to_the_alpha_channel_and_back(stage: Stage) -> None:
    stage.install(STABLE / "function.yaml")
    stage.kubectl("apply", *files(STABLE, "definition.yaml", "composition.yaml"))
    stage.kubectl("wait", "--for=condition=Established", "xrd", "--all")
    stage.kubectl("apply", *files(STABLE, "buckets.yaml"))
    stage.kubectl("wait", "--for=condition=Ready", "acmebuckets", "--all", "--timeout=300s")
    before = stage.state()
    stable = before.record("stable")
    assert before.pipelines() == {name: [stable] for name in ("my-bucket", *OTHERS)}
    assert before.data() == {
        "my-bucket": {"region": "eu-north", "owner": "nobody"},
        "orders": {"region": "eu-north", "owner": "shop"},
        "reports": {"region": "us-east", "owner": "nobody"},
    }

    stage.install(ALPHA / "function.yaml")
    stage.kubectl("apply", *files(ALPHA, "composition.yaml", "my-bucket.yaml"))
    waited = ("-l", "release-channel=alpha", "--for=create", "-o", "name")
    named = stage.kubectl("wait", "functionrevisions", *waited)
    stage.until_made_by("my-bucket", named.strip().rpartition("/")[2])
    moved = stage.state()
    assert {each["spec"]["desiredState"] for each in moved.revisions.values()} == {"Active"}
    earlier = {name: stable[name] for name in ("revision", "digest")}
    alpha = {**moved.record("alpha"), "previous": earlier}
    assert moved.pipelines() == before.pipelines() | {"my-bucket": [alpha]}
    assert moved.data() == before.data() | {
        "my-bucket": {"region": "Stockholm", "owner": "nobody"},
        "my-bucket-address": {"address": "https://my-bucket.buckets.example.org"},
    }
    assert untouched(before, moved)

    stage.kubectl("apply", *files(STABLE, "buckets.yaml"))
    stage.until_made_by("my-bucket", stable["revision"])
    back = stage.state()
    later = {name: moved.record("alpha")[name] for name in ("revision", "digest")}
    returned = {"my-bucket": [{**stable, "previous": later}]}
    assert back.pipelines() == before.pipelines() | returned
    assert back.data() == before.data()
    assert back.buckets["my-bucket"]["spec"] == before.buckets["my-bucket"]["spec"]
    assert untouched(before, back)


def files(folder: Path, *names: str) -> list[str]:
    return [argument for name in names for argument in ("-f", str(folder / name))]


def untouched(before: State, after: State) -> bool:
    """Whether nobody has written what the others are and what they are composed of."""

    def written(state: State) -> list[object]:
        maps = [state.maps[name]["metadata"]["resourceVersion"] for name in OTHERS]
        return [*maps, *(state.buckets[name]["spec"] for name in OTHERS)]

    return written(before) == written(after)
