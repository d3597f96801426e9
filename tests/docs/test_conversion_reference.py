"""The reference of rules: in YAML and in Python they do what its tables say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from polyver.apis.conversion import ANNOTATION, Converter, DeclaredEdge, Rules, read_conversions
from polyver.kube.objects import load_manifests
from polyver.languages.values.strings import same

Object = dict[str, Any]
PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "conversion.md").read_text()
SECTIONS = dict(
    re.findall(r"^### (\w+)\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL),
)
ROW = re.compile(r"^\| `(.*?)` \| ([⇄→←]) \| `(.*?)` \| (.*?) ?\|$", re.MULTILINE)
HEAD = "apiVersion: polyver.dev/v1alpha1\nkind: Conversion\nspec:\n  group: ex.io\n  kind: Toy\n"
HEAD += "  versions: [v1, v2]\n  edges:\n  - from: v1\n    to: v2\n    rules:\n    - "


def block(section: str, language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)\n```$", section, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def in_yaml(section: str) -> Converter:
    indented = block(section, "yaml").replace("\n", "\n      ")
    [found] = read_conversions(load_manifests(HEAD + indented, "page"))
    return Converter(found.group, found.kind, found.versions, found.edges)


def in_python(section: str) -> Converter:
    rules = Rules()
    exec(block(section, "text"), {"e": rules})
    return Converter("ex.io", "Toy", ["v1", "v2"], [DeclaredEdge("v1", "v2", rules.block())])


def toy(version: str, spec: str) -> Object:
    [document] = load_manifests(f"spec: {spec}", "page")
    assert isinstance(document.value, dict)
    return {"apiVersion": f"ex.io/{version}", "kind": "Toy", **document.value}


def carried(obj: Object) -> list[str]:
    text = obj.get("metadata", {}).get("annotations", {}).get(ANNOTATION, '{"lost": {}}')
    return [path for lost in json.loads(text)["lost"].values() for path in lost]


def test_every_rule_has_a_section() -> None:
    rules = {name for name, each in vars(Rules).items() if name[0] != "_" and callable(each)}
    assert SECTIONS.keys() == rules - {"block"}


@pytest.mark.parametrize("rule", SECTIONS)
def test_a_rule_does_what_its_table_says(rule: str) -> None:
    rows = ROW.findall(SECTIONS[rule])
    assert len(rows) + 2 == SECTIONS[rule].count("\n|")
    forms = [in_python(SECTIONS[rule])]
    if rule != "convert":  # functions exist only in Python
        forms.append(in_yaml(SECTIONS[rule]))
    for known in forms:
        for old, arrow, new, lost in rows:
            pair = [toy("v1", old), toy("v2", new)]
            for source, target in [pair] * (arrow != "←") + [pair[::-1]] * (arrow != "→"):
                made = known.convert(source, target["apiVersion"].rpartition("/")[2])
                assert same(made["spec"], target["spec"])
                assert carried(made) == lost.replace("`", "").split()
                assert same(known.convert(made, known.version_of(source)), source)
