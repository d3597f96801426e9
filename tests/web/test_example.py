"""What `make up` loads, on its page."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.walks.support import eventually
from tests.web.visiting import Visitor

from polyver.kube.objects import load_manifests

ROOT = Path(__file__).parents[2]
BUCKETS = "composition/example"


def arguments() -> list[str]:
    """How `make up` starts the control plane, but for where its data is."""
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    [line] = [line for line in text.splitlines() if line.startswith("\t@$(RUN)/polyver up ")]
    return shlex.split(line.partition("--data .polyver ")[2])


@pytest.fixture(scope="module")
def visitor() -> Iterator[Visitor]:
    command = [sys.executable, "-m", "polyver", "up", "--data", ":memory:", "--port", "0"]
    with subprocess.Popen(
        [*command, *arguments()], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(3)]
        try:
            yield Visitor(lines[2].strip().removeprefix("the page: "))
        finally:
            process.send_signal(signal.SIGTERM)


def test_it_shows_who_gets_nothing_and_who_uses_what_will_go(visitor: Visitor) -> None:
    wanted = [
        ("error", "webservice", "-"),
        ("warning", "Queue", "v1beta1"),
        ("warning", "webservice", "1.2.3"),
        ("warning", "KubeExec", "v0.0.0"),
    ]

    def told() -> bool:
        found = visitor.data("/lineages")["attention"]
        return sorted((e["level"], e["name"], e["release"]) for e in found) == sorted(wanted)

    eventually(told)


def test_it_shows_every_way_to_ask(visitor: Visitor) -> None:
    path = "ComponentDefinition/vela-system/webservice"

    def told() -> bool:
        rows = visitor.lineage("definitions", path)["uses"]["items"]
        found = {row["name"].rpartition("/")[2]: row["release"] for row in rows}
        return found == {"cart": "1.2.4", "payments": "1.2.3", "search": "1.3.0", "reports": ""}

    eventually(told)


def test_its_buckets_are_composed_by_the_revision_that_there_is(visitor: Visitor) -> None:
    def told() -> bool:
        found = visitor.data("/lineages")["lineages"]
        users = {e["path"]: [r["users"] for r in e["releases"]] for e in found}
        # Two compositions, the three buckets and the ten websites that are composed by them.
        composed = users.get("function-patch-and-transform") == [15]
        return composed and users[BUCKETS] == [3] and users.get("composition/websites") == [10]

    eventually(told)


def test_its_actions_run(visitor: Visitor) -> None:
    eventually(lambda: visitor.data("/runs")["states"] == {"complete": 2})
    [step] = visitor.data("/runs/ActionSet checkout/tidy-up-2")["steps"]
    assert (step["path"], step["release"]) == ("Expired", "v0.1.0")


def test_no_two_components_of_the_example_make_the_same_object() -> None:
    file = ROOT / "examples" / "many-versions" / "applications.yaml"
    found: list[Any] = [each.value for each in load_manifests(file.read_text(), file.name)]
    components = [
        (each["metadata"]["namespace"], component["name"])
        for each in found
        if each["kind"] == "Application"
        for component in each["spec"]["components"]
    ]
    assert len(components) == len({*components})
