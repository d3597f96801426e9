"""`polyver serve` with a Conversion from a file, asked by an API server about a kind's objects."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.apis.conversions import EVERY_RULE, SCHEMAS
from tests.deadlines import HANG
from tests.walks.widgets import Widgets, widgets_by_webhook

from polyver.apis import DefinedVersion, Definition, Names, crd_of
from polyver.kube.objects import dump_yaml

if TYPE_CHECKING:
    from tests.walks.support import Walk

V1: dict[str, Any] = {
    "cronSpec": "@daily",
    "hostPort": "h:08080",
    "image": "x",
    "policy": "Odd",
    "only1": {"a": "b"},
    "containers": [{"name": "one", "cmd": "run", "debug": "yes"}],
}


@pytest.fixture(params=["v1", "v2", "v3"])
def widgets(walk: Walk, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Widgets]:
    """Widgets with the rules of the reference, stored in each of their versions in turn."""
    text = EVERY_RULE.replace("crontabs.stable.example.com", walk.widgets_crd)
    text = text.replace("stable.example.com", walk.group).replace("CronTab", "Widget")
    versions = [DefinedVersion(name, storage=name == "v2", schema=s) for name, s in SCHEMAS.items()]
    names = Names("Widget", "widgets")
    crd = dump_yaml(crd_of(Definition(walk.group, names, tuple(versions))))
    (tmp_path / "conversions.yaml").write_text(f"{text}---\n{crd}")
    specs = {name: schema["properties"]["spec"] for name, schema in SCHEMAS.items()}
    with (
        served(tmp_path) as (url, ca),
        widgets_by_webhook(walk, url, ca, specs, storage=request.param) as found,
    ):
        yield found


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """The command, running: where it converts, and what to trust."""
    program = [sys.executable, "-c", "import sys; from polyver.app import main; sys.exit(main())"]
    command = [*program, "serve", "--port", "0", "--linger", "0"]
    command += ["--conversions", str(folder), "--certificates", str(folder / "own")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"at (https://\S+/convert); CA bundle in (\S+)", line)
        assert found, line
        try:
            yield found[1], base64.b64encode(Path(found[2]).read_bytes()).decode()
        finally:
            process.terminate()
            assert process.wait(HANG) == 0


def visible(obj: dict[str, Any]) -> dict[str, Any]:
    return {name: obj["spec"].get(name) for name in V1}


def test_what_is_written_in_one_version_is_read_in_all(widgets: Widgets) -> None:
    widgets.create("v1", "a", **V1)
    third = widgets.get("v3", "a")["spec"]
    assert (third["schedule"], third["host"], third["port"]) == ("@daily", "h", 8080)
    assert third["containers"] == [{"name": "one", "command": "run"}]
    assert visible(widgets.get("v1", "a")) == V1
    [listed] = widgets.list("v2")["items"]
    assert listed["spec"]["images"] == ["x"]


def test_edits_in_a_new_version_keep_what_only_the_old_one_has(widgets: Widgets) -> None:
    widgets.create("v1", "a", **V1)
    for version, change in (("v3", "first"), ("v2", "second")):
        found = widgets.get(version, "a")
        found["spec"]["schedule"] = change
        widgets.replace(version, found)
        assert visible(widgets.get("v1", "a")) == V1 | {"cronSpec": change}


def test_edits_in_the_old_version_keep_what_only_the_new_one_has(widgets: Widgets) -> None:
    template = {"images": ["x", "y"]}
    widgets.create("v3", "a", schedule="@daily", template=template, only3=[{"name": "z"}])
    old = widgets.get("v1", "a")
    old["spec"]["image"] = "changed"
    widgets.replace("v1", old)
    found = widgets.get("v3", "a")["spec"]
    assert found["template"] == {"images": ["changed", "y"]}
    assert found["only3"] == [{"name": "z"}]
