"""Every field that an application or a definition can have is executed, refused or documented."""

from __future__ import annotations

from inspect import get_annotations
from pathlib import Path
from typing import Any

import pytest

from polyver.definitions.kinds import _applications as applications
from polyver.definitions.kinds import _definitions as definitions
from polyver.definitions.support import unsupported, unsupported_fields

Object = dict[str, Any]
PAGE = Path(__file__).parents[2] / "docs/reference/definitions.md"
TABLES = PAGE.read_text().partition("## Which fields are executed")[2]
PARTS = [
    applications.Component,
    applications.Trait,
    applications.ApplicationSpec,
    applications.Workflow,
    definitions.ComponentSpec,
    definitions.TraitSpec,
    definitions.DefinitionHealth,
]


def fields_of(part: type) -> list[str]:
    found = [name for each in part.__mro__ for name in get_annotations(each)]
    return sorted({name.rstrip("_") for name in found if not name.startswith("__")})


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_field_is_in_the_tables(part: type) -> None:
    fields = fields_of(part)
    assert fields
    words = {word.strip("`.,:[]|") for word in TABLES.replace(".", " ").replace("[]", " ").split()}
    assert [name for name in fields if name not in words] == []


def application(spec: Object, **annotations: str) -> Object:
    return {"metadata": {"name": "a", "annotations": annotations}, "spec": spec}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"components": [{"name": "c", "type": "web", "properties": {}, "traits": []}]},
        {"components": [{"name": "c", "type": "web", "dependsOn": [], "inputs": None}]},
        {"policies": [], "workflow": {}},
        {"workflow": {"steps": [], "ref": "", "mode": None}},
    ],
)
def test_fields_that_say_nothing_are_no_reason_to_refuse(spec: Object) -> None:
    assert unsupported_fields(application(spec, **{"app.oam.dev/autoUpdate": "true"})) == []


def test_every_policy_and_every_step_is_named() -> None:
    spec = {
        "policies": [{"type": "topology"}, {"type": "override"}],
        "workflow": {"steps": [{"type": "suspend"}, {"type": "deploy"}]},
    }
    assert [*map(str, unsupported_fields(application(spec)))] == [
        "policy topology is not executed (spec.policies[0])",
        "policy override is not executed (spec.policies[1])",
        "workflow step suspend is not executed (spec.workflow.steps[0])",
        "workflow step deploy is not executed (spec.workflow.steps[1])",
    ]


def test_a_revision_that_is_missing_is_left_to_rendering() -> None:
    resolution = {"definition": "vela-system/web", "revision": "web-v1", "version": "1", "at": "x"}
    assert unsupported(application({}), [resolution], {}) == []
