"""`polyver suggest`, as someone types it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.app.test_cli import Ran
from tests.modules import forget_modules

from polyver.kube.objects import dump_yaml, load_manifests

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
V1 = {"cmd": TEXT, "timeoutSeconds": WHOLE, "legacy": TEXT}
V2 = {"command": TEXT, "timeoutMillis": WHOLE, "engine": WHOLE}
CLASSES = """
from polyver import apis

toy = apis.Kind("Toy", group="ex.io")

@toy.version("v1")
class ToyV1:
    class Spec:
        cmd: str
    spec: Spec

@toy.version("v2", storage=True)
class ToyV2:
    class Spec:
        command: str
    spec: Spec
"""


def crd(name: str = "toys", **versions: Any) -> str:
    made = [
        {
            "name": version,
            "served": True,
            "storage": number == 0,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _of(fields)}}},
        }
        for number, (version, fields) in enumerate(versions.items())
    ]
    spec = {
        "group": "ex.io",
        "scope": "Namespaced",
        "names": {"kind": name[:-1].capitalize(), "plural": name},
        "versions": made,
    }
    return dump_yaml(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{name}.ex.io"},
            "spec": spec,
        }
    )


def _of(fields: Any) -> Any:
    return {"type": "object", "properties": fields}


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Ran]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    Path("old.yaml").write_text(crd(v1=V1))
    Path("new.yaml").write_text(crd(v2=V2, v1=V1))
    yield lambda *arguments: Ran(capsys, "suggest", "--examples", "20", *arguments)
    forget_modules(tmp_path)


DRAFT = """
# 88%: both string; similar name
- move: {from: spec.cmd, to: spec.command}
# 99%: other unit; similar name
- scale: {from: spec.timeoutSeconds, to: spec.timeoutMillis, factor: 1000}
# preserved: only v1 has it
- drop: {at: spec.legacy}
# preserved: only v2 has it
- add: {at: spec.engine}
"""


def test_two_files_give_a_conversion_with_reasons(run: Callable[..., Ran]) -> None:
    ran = run("old.yaml", "new.yaml")
    assert (ran.code, ran.err) == (0, "")
    assert "\n".join(line.strip() for line in ran.out.split("rules:")[1].splitlines()) == (
        DRAFT.removesuffix("\n")
    )
    [document] = load_manifests(ran.out, "draft.yaml")
    spec: Any = document.value
    assert spec["spec"]["versions"] == ["v1", "v2"]
    assert run("new.yaml").out == ran.out


def test_the_draft_passes_the_check(
    run: Callable[..., Ran], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("draft.yaml").write_text(run("old.yaml", "new.yaml").out)
    checked = Ran(capsys, "check", "--conversions", "draft.yaml", "--conversions", "new.yaml")
    assert checked.code == 0, checked.out


def test_classes_without_conversions_are_read(run: Callable[..., Ran]) -> None:
    Path("toys.py").write_text(CLASSES)
    ran = run("toys.py")
    assert (ran.code, "- move: {from: spec.cmd, to: spec.command}" in ran.out) == (0, True)


def test_json_has_the_confidence_as_a_field(run: Callable[..., Ran]) -> None:
    found = json.loads(run("old.yaml", "new.yaml", "-o", "json").out)
    assert found["conversion"]["kind"] == "Conversion"
    [edge] = found["edges"]
    assert edge["rules"][0] == {
        "rule": "move",
        "from": "spec.cmd",
        "to": "spec.command",
        "reason": "both string; similar name",
        "confidence": 0.88,
    }


def test_less_likely_rules_are_left_out(run: Callable[..., Ran]) -> None:
    out = run("old.yaml", "new.yaml", "--confidence", "95").out
    assert "- move" not in out
    assert "- scale" in out
    assert "# preserved: only v1 has it; perhaps spec.command of v2 (88%)" in out


def test_every_kind_with_several_versions_is_drafted(run: Callable[..., Ran]) -> None:
    both = [crd(v1=V1, v2=V2), crd("boxes", v1=V1, v2=V2), crd("cups", v1=V1)]
    Path("all.yaml").write_text("---\n".join(both))
    ran = run("all.yaml")
    assert ran.out.count("kind: Conversion") == 2
    assert ran.err == "warning: cups.ex.io has only the version v1: nothing is suggested\n"
    assert run("all.yaml", "--kind", "toys.ex.io").out.count("kind: Conversion") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["old.yaml"], 3, "toys.ex.io has only the version v1 (old.yaml)"),
        (["old.yaml", "other.yaml"], 1, "a common kind is not in old.yaml and other.yaml"),
        (["new.yaml", "--kind", "cups.ex.io"], 1, "cups.ex.io is not in new.yaml; known: toys"),
        (["cluster:"], 2, "cluster: has many kinds; name one of them with --kind"),
        (["bare.yaml"], 3, "v1 of toys.ex.io has no schema (bare.yaml:1); add its openAPIV3Schema"),
        (["nowhere.yaml"], 3, "nowhere.yaml cannot be read"),
    ],
)
def test_input_without_two_versions_of_a_kind_is_an_error(
    run: Callable[..., Ran], arguments: list[str], code: int, says: str
) -> None:
    Path("other.yaml").write_text(crd("cups", v2=V2))
    [bare] = load_manifests(crd(v1=V1, v2=V2), "x")
    found: Any = bare.value
    del found["spec"]["versions"][0]["schema"]
    Path("bare.yaml").write_text(dump_yaml(found))
    ran = run(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err


def test_a_version_with_two_schemas_has_that_of_new(run: Callable[..., Ran]) -> None:
    Path("changed.yaml").write_text(crd(v1=V1 | {"more": TEXT}))
    ran = run("changed.yaml", "new.yaml")
    assert "warning: toys.ex.io v1 differs in OLD and NEW: the schema of NEW is used" in ran.err
    assert "spec.more" not in ran.out
