"""Plans of Compositions and Functions that really run, beside `polyver up` and a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.composites import DEFINITION, STACKS, function, stack
from bench.composites import GROUP as STACK_GROUP
from tests.app.test_cli import Ran
from tests.walks.composing import (
    COMPOSITIONS,
    PACKAGES,
    Platform,
    composing,
    composing_on_kubernetes,
    condition,
    stamping,
)
from tests.walks.support import eventually

from polyver.kube.objects import dump_yaml
from polyver.kube.objects.status import ApiError

Object = dict[str, Any]
NAME = "resize"
MAPS = "/api/v1/namespaces/default/configmaps"
PUBLISHED = {f"xpkg.example.org/{NAME}:v{each}": str(each) for each in (1, 2)}
NUMBER = 3


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stamping(tmp_path_factory.mktemp("functions"), PUBLISHED)


@pytest.fixture(scope="module", params=["up", pytest.param("kubernetes", marks=pytest.mark.kube)])
def platform(
    request: pytest.FixtureRequest, packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Platform]:
    """Three stacks that were composed with the first version of a function."""
    options = ("--packages", str(packages))
    folder = tmp_path_factory.mktemp("data")
    around = composing(packages)
    if request.param != "up":
        around = composing_on_kubernetes(folder, *options)
    with around as running:
        running.write(f"{PACKAGES}/functions", function(NAME, 1))
        running.write(f"{COMPOSITIONS}/compositeresourcedefinitions", DEFINITION)
        running.write(f"{COMPOSITIONS}/compositions", composition(NAME))
        eventually(lambda: _written(running))
        eventually(lambda: all(map(_is_ready, running.items(STACKS).values())))
        yield running


def composition(*functions: str) -> Object:
    steps = [{"step": each, "functionRef": {"name": each}} for each in functions]
    kind = {"apiVersion": f"{STACK_GROUP}/v1", "kind": "Stack"}
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": "stacks"},
        "spec": {"compositeTypeRef": kind, "mode": "Pipeline", "pipeline": steps},
    }


def _written(platform: Platform) -> bool:
    try:
        for number in range(NUMBER):
            platform.write(STACKS, stack(number))
    except ApiError as error:
        if error.code != 404:  # the kind is not served yet
            raise
        return False
    return True


def _is_ready(obj: Object) -> bool:
    return condition(obj, "Ready").get("status") == "True"


def _data(platform: Platform) -> list[Object]:
    found = platform.items(MAPS)
    return [found[f"s{number}"]["data"] for number in range(NUMBER)]


def test_a_plan_runs_the_functions_here_and_says_what_the_cluster_then_does(
    platform: Platform,
    packages: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(platform.server.kubeconfig))
    local = ("--packages", str(packages), "--data", "data")
    before = _data(platform)
    Path("new.yaml").write_text(dump_yaml(function(NAME, 2)))
    done = Ran(capsys, "plan", "-f", "new.yaml", *local)
    assert (done.code, done.err) == (0, ""), done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("3 composite resources: 0 unchanged, 3 changed, 0 would lose")
    assert "3 ConfigMaps: data.compose 1 → 2" in lines
    told = json.loads(Ran(capsys, "plan", "-f", "new.yaml", *local, "-o", "json").out)
    [planned] = told["functions"]
    [change] = told["changes"]
    assert change["example"]["diff"].count("\n+  compose: '2'") == 1
    missing = Ran(capsys, "plan", "-f", "new.yaml", "--data", "other")
    assert (missing.code, missing.out) == (3, "")
    assert "list its folder, wheel or requirement in the file of --packages" in missing.err
    Path("bad.yaml").write_text(dump_yaml(composition(NAME, "nobody")))
    bad = Ran(capsys, "plan", "-f", "bad.yaml", *local)
    assert (bad.code, bad.err) == (1, "error: 3 composite resources would fail\n")
    assert "3 composite resources would fail: function nobody has no revisions" in bad.out
    assert _data(platform) == before
    assert len(platform.revisions(NAME)) == 1
    platform.write(f"{PACKAGES}/functions", function(NAME, 2))
    eventually(lambda: [each["compose"] for each in _data(platform)] == ["2"] * NUMBER)
    assert [each["metadata"]["name"] for each in platform.revisions(NAME)][-1] == planned[
        "publishes"
    ]
