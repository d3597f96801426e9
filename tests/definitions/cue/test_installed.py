"""Engines of other packages are found, and one that is broken costs its own templates alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.definitions.rendered import Platform, component, uses

from polyver.definitions.cue import engines

ENGINE = """\
from polyver.definitions.rendering import TemplateDocument, TemplateOutput


class Echo:
    def render(self, schematic, given):
        obj = {"apiVersion": "v1", "kind": schematic["kind"], "data": dict(given.parameters)}
        return TemplateOutput(TemplateDocument(obj, "the whole"))


class Broken:
    def render(self, schematic, given):
        return schematic["nope"]


class Ending:
    def render(self, schematic, given):
        raise SystemExit(3)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with three engines."""
    (tmp_path / "echoing.py").write_text(ENGINE)
    about = tmp_path / "echoing-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: echoing\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[polyver.engines]\necho = echoing:Echo\nbroken = echoing:Broken\ngone = echoing:Gone\n"
        "ending = echoing:Ending\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("package")
def test_an_engine_of_an_installed_package_renders_its_field() -> None:
    platform = Platform(component("web", {"echo": {"kind": "Thing"}}), engines=engines())
    assert platform.objects(uses("x", "web", {"a": 1})) == [
        {
            "apiVersion": "v1",
            "kind": "Thing",
            "metadata": {"name": "x", "namespace": "default"},
            "data": {"a": 1},
        }
    ]


@pytest.mark.usefixtures("package")
def test_an_engine_that_fails_is_told_with_its_place() -> None:
    platform = Platform(
        component("one", {"broken": {}}),
        component("two", {"gone": {}}),
        component("three", {"ending": {}}),
        engines=engines(),
    )
    errors = platform.errors(uses("x", "one"), uses("y", "two"), uses("z", "three"))
    assert errors == [
        "the engine broken (echoing:Broken) failed: KeyError: 'nope' (spec.components[0])",
        "the engine gone (echoing:Gone) failed: AttributeError: "
        "module 'echoing' has no attribute 'Gone' (spec.components[1])",
        "the engine ending (echoing:Ending) failed: SystemExit: 3 (spec.components[2])",
    ]


def test_polyver_has_two_of_its_own() -> None:
    assert {*engines()} == {"gotemplate", "cue"}
