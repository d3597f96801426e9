"""The examples of kinds and conversions do what they are there to show, and obey the law."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.apis.test_conversion_law import check_law

from polyver import apis
from polyver.apis.conversion import Converter, read_conversions
from polyver.kube.objects import load_manifests
from polyver.kube.objects.schema import check_schema
from polyver.testing.strategies import objects_from_schema

Object = dict[str, Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
BOUNDED = settings(
    max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def kind(name: str, variable: str) -> tuple[apis.Definition, Converter]:
    """A kind that is declared in Python."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / "kinds" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: apis.Kind = getattr(module, variable)
    assert found.converter is not None
    return found.definition(), found.converter


def conversion(name: str) -> tuple[apis.Definition, Converter]:
    """A Conversion, and the definition that stands beside it."""
    path = EXAMPLES / "conversions" / f"{name}.yaml"
    documents = [*load_manifests(path.read_text(), path.name)]
    [declared], [definition] = read_conversions(documents), apis.definitions_of(documents)
    assert {*declared.versions} == {version.name for version in definition.versions}
    assert (declared.name, declared.kind) == (definition.name, definition.kind)
    schemas = {each.name: each.schema for each in definition.versions if each.schema}
    converter = Converter(
        declared.group, declared.kind, declared.versions, declared.edges, schemas=schemas
    )
    return definition, converter


FOUND = {
    "crontab.py": kind("crontab", "crontab"),
    "cronjob.py": kind("cronjob", "cronjob"),
    "backups.yaml": conversion("backups"),
    "crontabs.yaml": conversion("crontabs"),
    "queues.yaml": conversion("queues"),
}


def converted(name: str, source: str, target: str, **fields: Any) -> Object:
    """What an object becomes; with what it was made from, if that comes back."""
    definition, known = FOUND[name]
    api_version = definition.api_version(source)
    obj = {"apiVersion": api_version, "kind": definition.kind, "metadata": {"name": "a"}, **fields}
    made = known.convert(obj, target)
    assert known.convert(made, source) == obj
    return made


def test_every_example_is_here() -> None:
    there = [*EXAMPLES.glob("kinds/*.py"), *EXAMPLES.glob("conversions/*.yaml")]
    assert {path.name for path in there} == FOUND.keys()


@pytest.mark.parametrize("name", FOUND)
def test_the_schemas_are_ones_for_an_api_server(name: str) -> None:
    for version in FOUND[name][0].versions:
        assert version.schema is not None
        assert check_schema(version.schema, "", status=version.status) == []


@pytest.mark.parametrize("name", FOUND)
@given(data=st.data())
@BOUNDED
def test_the_law_holds_for_every_example(name: str, data: st.DataObject) -> None:
    definition, known = FOUND[name]
    first, stop, target = (data.draw(st.sampled_from(known.versions)) for _ in range(3))
    version = definition.version(first)
    assert version is not None
    assert version.schema is not None
    api_version = definition.api_version(first)
    objects = objects_from_schema(version.schema, api_version=api_version, kind=definition.kind)
    check_law(known, data.draw(objects), stop, target)


def test_a_host_and_its_port_were_one_text() -> None:
    made = converted("crontabs.yaml", "v1beta1", "v1", hostPort="localhost:1234")
    assert (made["host"], made["port"]) == ("localhost", "1234")
    assert converted("crontabs.yaml", "v1", "v1beta1", host="a", port="2")["hostPort"] == "a:2"


def test_a_schedule_becomes_five_fields() -> None:
    spec = {"schedule": "*/5 * * * 1", "jobTemplate": {}}
    made = converted("cronjob.py", "v1", "v2", spec=spec)
    assert made["spec"]["schedule"] == {"minute": "*/5", "dayOfWeek": "1"}
    assert "annotations" not in made["metadata"]
    converted("cronjob.py", "v1", "v2", spec={**spec, "schedule": "@daily"})


def test_a_queue_goes_through_four_versions() -> None:
    old = {
        "size": "3",
        "mode": "FAST",
        "retentionDays": 2,
        "owner": "ann",
        "limits": [{"name": "b", "most": 2, "note": "x"}, {"name": "a", "most": 1}],
        "volumes": [{"name": "c", "path": "/d"}],
        "debug": {"trace": True},
    }
    made = converted("queues.yaml", "v1alpha1", "v2", spec=old)
    assert made["spec"] == {
        "mode": "fast",
        "retentionHours": 48,
        "owners": ["ann"],
        "topology": {"replicas": 3, "engine": "classic"},
        "limits": {"a": 1, "b": 2},
        "volumes": [{"name": "c", "mount": {"path": "/d"}}],
    }
