"""Whatever class is declared: its schema is one for an API server, and objects go both ways."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.declared import kinds

from polyver import apis
from polyver.kube.objects import dump_yaml, load_manifests
from polyver.kube.objects.schema import check_schema
from polyver.languages.values.strings import same
from polyver.testing.strategies import objects_from_schema

SLOW = settings(
    max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@given(kinds())
@SLOW
def test_every_schema_is_one_for_an_api_server(kind: apis.Kind) -> None:
    for version in kind.definition().versions:
        assert version.schema is not None
        assert check_schema(version.schema, "", status=version.status) == []


@given(kinds())
@SLOW
def test_a_manifest_is_read_as_what_it_was_written_from(kind: apis.Kind) -> None:
    written = apis.crd_of(kind.definition())
    text = dump_yaml(written)
    [read] = apis.definitions_of(load_manifests(text, "x.yaml"))
    assert apis.crd_of(read) == written
    assert dump_yaml(apis.crd_of(kind.definition())) == text


@given(kinds(most=1), st.data())
@SLOW
def test_objects_go_both_ways(kind: apis.Kind, data: st.DataObject) -> None:
    definition = kind.definition()
    version = definition.versions[0]
    assert version.schema is not None
    objects = objects_from_schema(
        version.schema, api_version=definition.api_version(version.name), kind=kind.kind
    )
    obj = data.draw(objects)
    found = apis.to_object(kind.from_object(obj))
    assert same(found, _known(obj, version.schema))


def _known(value: Any, schema: Any) -> Any:
    """What a class knows of a value: the fields that its schema names."""
    if isinstance(value, list):
        return [_known(each, schema["items"]) for each in value] if "items" in schema else value
    if not isinstance(value, dict):
        return value
    inside = schema.get("additionalProperties")
    if inside:
        return {key: _known(each, inside) for key, each in value.items()}
    fields = schema.get("properties")
    if fields is None or schema is fields.get("metadata"):
        return value
    return {key: _known(each, fields[key]) for key, each in value.items() if key in fields}
