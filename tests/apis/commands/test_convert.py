"""`polyver convert`, as someone types it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.apis.conversions import EVERY_RULE, SCHEMAS

from polyver.apis import DefinedVersion, Definition, Names, crd_of
from polyver.app import main
from polyver.kube.objects import dump_yaml, load_manifests

GROUP = "stable.example.com"
OLD = """
apiVersion: stable.example.com/v1
kind: CronTab
metadata:
  name: nightly
spec:
  cronSpec: '@daily'
  hostPort: db:08080
  times: 5 * 3
  image: a
  policy: Odd
  replicas: abc
  timeoutSeconds: 30
  envList:
  - name: B
    value: '1'
  - name: A
    value: '2'
    note: kept
  legacyMode:
    strict: true
  containers:
  - name: main
    cmd: run
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conversions").mkdir()
    (tmp_path / "conversions" / "crontabs.yaml").write_text(EVERY_RULE)
    (tmp_path / "old.yaml").write_text(OLD)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["convert", "--conversions", "conversions", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def value(text: str) -> Any:
    [document] = load_manifests(text, "out")
    return document.value


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_every_rule_there_and_back(
    files: Path, capsys: pytest.CaptureFixture[str], version: str
) -> None:
    code, there, _ = run(capsys, "-f", "old.yaml", "--to", f"{GROUP}/{version}")
    assert code == 0
    (files / "new.yaml").write_text(there)
    code, back, _ = run(capsys, "-f", "new.yaml", "--to", f"{GROUP}/v1")
    assert code == 0
    assert value(back) == value(OLD)


def test_edits_survive_together_with_what_is_carried(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = value(run(capsys, "-f", "old.yaml", "--to", f"{GROUP}/v3")[1])
    new["spec"]["schedule"] = "@hourly"
    new["spec"]["template"]["images"].append("b")
    new["spec"]["env"]["C"] = "3"
    (files / "new.yaml").write_text(dump_yaml(new))
    old = value(run(capsys, "-f", "new.yaml", "--to", f"{GROUP}/v1")[1])
    assert old["spec"]["cronSpec"] == "@hourly"
    assert old["spec"]["legacyMode"] == {"strict": True}
    assert [each["name"] for each in old["spec"]["envList"]] == ["B", "A", "C"]
    assert old["spec"]["envList"][1]["note"] == "kept"
    (files / "again.yaml").write_text(dump_yaml(old))
    again = value(run(capsys, "-f", "again.yaml", "--to", f"{GROUP}/v3")[1])
    assert again["spec"] == new["spec"]


def test_standard_input_lists_and_json(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [value(OLD), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, out, _ = run(capsys, "-f", "-", "--to", f"{GROUP}/v2", "-o", "json")
    assert code == 0
    found = json.loads(out)["items"]
    assert [each["apiVersion"] for each in found] == [f"{GROUP}/v2", "v1"]
    assert found[1] == items[1]


def test_what_is_carried_is_explained(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "-f", "old.yaml", "--to", f"{GROUP}/v2", "--explain")
    assert code == 0
    assert "CronTab/nightly has preserved fields of v1: " in err
    assert "spec.legacyMode" in err
    assert "has no schema for v1, v2, v3" in err


def test_preserved_fields_that_cannot_be_read_are_kept_and_explained(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, text = value(OLD), '{"format":2,"fields":[]}'
    old["metadata"]["annotations"] = {"conversion.polyver.dev/carry": text}
    (files / "old.yaml").write_text(dump_yaml(old))
    code, out, err = run(capsys, "-f", "old.yaml", "--to", f"{GROUP}/v2", "--explain")
    assert code == 0
    assert value(out)["metadata"]["annotations"]["conversion.polyver.dev/carry"] == text
    assert "has preserved fields that this release cannot read (format 2)" in err


def test_schemas_beside_the_conversion_tell_which_fields_a_version_lacks(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    versions = [DefinedVersion(name, storage=name == "v2", schema=s) for name, s in SCHEMAS.items()]
    definition = Definition(GROUP, Names("CronTab", "crontabs"), tuple(versions))
    (files / "conversions" / "crd.yaml").write_text(dump_yaml(crd_of(definition)))
    old = value(OLD)
    old["spec"]["only1"] = {"a": "b"}
    (files / "old.yaml").write_text(dump_yaml(old))
    _, out, err = run(capsys, "-f", "old.yaml", "--to", f"{GROUP}/v2", "--explain")
    assert "only1" not in value(out)["spec"]
    assert "spec.only1" in err
    assert "has no schema" not in err


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["-f", "old.yaml", "--to", f"{GROUP}/v9"], 3, "has no version v9 (old.yaml:2); known: v1"),
        (["-f", "old.yaml", "--to", "v2"], 2, "'v2' is not GROUP/VERSION (--to)"),
        (["-f", "old.yaml", "--to", "ex.io/v2"], 1, "no conversion for ex.io (--to)"),
        (["-f", "none.yaml", "--to", f"{GROUP}/v2"], 3, "none.yaml cannot be read"),
        (["-f", "text.yaml", "--to", f"{GROUP}/v2"], 3, "this is not an object (text.yaml:1)"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(
    files: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    told: str,
) -> None:
    (files / "text.yaml").write_text("just text")
    found, out, err = run(capsys, *arguments)
    assert (found, out) == (code, "")
    assert told in err


def test_nothing_says_how_to_convert(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "-f", "x.yaml", "--to", f"{GROUP}/v2"]) == 2
    assert "pass --conversions or --kinds" in capsys.readouterr().err


def test_code_that_fails_is_one_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "toys.py").write_text(
        "from polyver import apis\n"
        'toy = apis.Kind("Toy", group="ex.io")\n'
        '@toy.version("v1", storage=True)\n'
        "class One:\n    size: int\n"
        '@toy.version("v2")\n'
        "class Two:\n    size: int\n"
        "@toy.convert\n"
        "def convert(obj, version):\n    raise ValueError('no')\n"
    )
    toy = "apiVersion: ex.io/v1\nkind: Toy\nmetadata: {name: a}\nsize: 1\n"
    (files / "toy.yaml").write_text(toy)
    code = main(["convert", "-f", "toy.yaml", "--kinds", "toys.py", "--to", "ex.io/v2"])
    out, err = capsys.readouterr()
    assert (code, out) == (3, "")
    assert err == "error: the conversion to v2 failed: ValueError: no (toy.yaml:1)\n"
