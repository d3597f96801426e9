"""What a schema does to objects, one fact at a time; the recorded answers are in other files."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.cases import load_given
from tests.kube.record import transcript

from polyver.kube.objects.schema import (
    MalformedMetadata,
    Schema,
    check_schema,
    compile_schema,
    is_valid,
)
from polyver.kube.objects.status import Cause
from polyver.testing.strategies import objects_from_schema

TEXT = {"type": "string"}


def kind(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}


def fields_of(schema: Schema, spec: Any) -> list[str]:
    return [cause.field for cause in schema.validate({"spec": spec})]


def given_schema(name: str) -> dict[str, Any]:
    [document] = load_given(name)
    crd: Any = document.value
    found: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def test_pruning_keeps_what_every_object_has() -> None:
    found: dict[str, Any] = {"apiVersion": "v1", "kind": "A", "metadata": {"zzz": 1}, "b": 1}
    assert compile_schema({"type": "object"}).prune(found) == ["b"]
    assert found == {"apiVersion": "v1", "kind": "A", "metadata": {"zzz": 1}}


def test_pruning_empties_what_additional_properties_without_a_schema_hold() -> None:
    schema = compile_schema(kind(map={"type": "object", "additionalProperties": True}))
    found = {"spec": {"map": {"a": {"b": 1}, "c": [{"d": 1}]}}}
    assert schema.prune(found) == ["spec.map.a.b", "spec.map.c[0].d"]
    assert found == {"spec": {"map": {"a": {}, "c": [{}]}}}


def test_defaults_are_not_shared_between_objects() -> None:
    schema = compile_schema(kind(list={"type": "array", "items": TEXT, "default": ["a"]}))
    one: dict[str, Any] = {"spec": {}}
    other: dict[str, Any] = {"spec": {}}
    schema.default(one)
    one["spec"]["list"].append("b")
    schema.default(other)
    assert other == {"spec": {"list": ["a"]}}


def test_a_schema_is_not_changed_by_whoever_made_it() -> None:
    source = kind(size={"type": "integer", "default": 1})
    schema = compile_schema(source)
    source["properties"]["spec"]["properties"]["size"]["default"] = 2
    found: dict[str, Any] = {"spec": {}}
    schema.default(found)
    assert found == {"spec": {"size": 1}}


def test_mistakes_in_a_status_are_told_of_without_its_name_in_the_text() -> None:
    schema = compile_schema(given_schema("widgets"))
    recorded = (transcript("status-patch") or [])[4]["body"]["details"]["causes"][0]
    causes = schema.validate_status({"status": {"replicas": "many"}}, {"status": {}})
    assert [cause.as_detail for cause in causes] == [recorded]


def test_a_status_may_keep_the_mistakes_that_it_had() -> None:
    schema = compile_schema(given_schema("widgets"))
    wrong = {"replicas": "many"}
    assert schema.validate_status({"status": wrong}, {"status": dict(wrong)}) == []
    assert schema.validate_status({"status": wrong}, {}) != []
    assert schema.validate_status({"spec": 1}, {}) == []


def test_the_shape_has_what_server_side_apply_asks_for() -> None:
    shape = compile_schema(given_schema("widgets")).shape
    spec = shape.fields["spec"]
    assert shape.embedded
    assert spec.fields["ports"].list_type == "map"
    assert spec.fields["ports"].keys == ("name",)
    assert spec.fields["tags"].list_type == "set"
    assert spec.fields["args"].list_type == "atomic"
    assert spec.fields["frozen"].atomic
    assert spec.fields["size"].int_or_string
    assert spec.fields["extra"].preserves
    assert spec.fields["template"].embedded
    assert spec.fields["limits"].values is not None


def test_metadata_of_a_whole_object_inside_must_be_readable() -> None:
    schema = compile_schema(given_schema("widgets"))
    broken: dict[str, Any] = {"spec": {"template": {"kind": 5}}}
    with pytest.raises(MalformedMetadata, match=r"spec.template.kind: Invalid value: 5: must be"):
        schema.prune(broken)
    broken = {"spec": {"template": {"metadata": [1]}}}
    with pytest.raises(MalformedMetadata, match="cannot unmarshal array into Go value of type"):
        schema.prune(broken)
    broken = {"spec": {"template": {"metadata": {"finalizers": ["a", 1.5]}}}}
    with pytest.raises(MalformedMetadata, match=r"number 1.5 into Go struct field ObjectMeta.fin"):
        schema.prune(broken)


def test_an_update_may_keep_a_mistake_in_an_item_that_its_keys_tell_apart() -> None:
    items = {
        "type": "object",
        "required": ["k"],
        "properties": {"k": TEXT, "v": {"type": "integer", "maximum": 5}},
    }
    ports: dict[str, Any] = {"type": "array", "items": items}
    plain = compile_schema(kind(ports=ports))
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    known = compile_schema(kind(ports=ports | keyed))
    old = {"spec": {"ports": [{"k": "a", "v": 9}]}}
    new = {"spec": {"ports": [{"k": "b", "v": 1}, {"k": "a", "v": 9}]}}
    assert known.validate_update(new, old) == []
    assert [cause.field for cause in plain.validate_update(new, old)] == ["spec.ports[1].v"]
    new["spec"]["ports"][1]["v"] = 8
    assert [cause.field for cause in known.validate_update(new, old)] == ["spec.ports[1].v"]


def test_a_list_that_had_something_twice_may_keep_it() -> None:
    tags = {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}
    schema = compile_schema(kind(tags=tags))
    twice, once = {"spec": {"tags": ["a", "a"]}}, {"spec": {"tags": ["a"]}}
    assert schema.validate_update(twice, twice) == []
    assert [cause.field for cause in schema.validate_update(twice, once)] == ["spec.tags[1]"]


def test_one_true_and_one_are_different_members_of_a_set() -> None:
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    tags = {"type": "array", "items": anything, "x-kubernetes-list-type": "set"}
    schema = compile_schema(kind(tags=tags))
    assert fields_of(schema, {"tags": [1, True, 1.0, "1"]}) == []
    assert fields_of(schema, {"tags": [{"a": 1}, {"a": True}, {"a": 1}]}) == ["spec.tags[2]"]


def test_a_pattern_that_cannot_be_read_refuses_every_text() -> None:
    schema = compile_schema(kind(name={"type": "string", "pattern": "(?=a)"}))
    assert fields_of(schema, {"name": "a"}) == ["spec.name"]


def test_the_root_may_say_less_with_a_status() -> None:
    schema = {"type": "object", "oneOf": [{"required": ["spec"]}], "properties": {"spec": TEXT}}
    assert check_schema(schema, "s") == []
    [cause] = check_schema(schema, "s", status=True)
    assert cause.field == "s"
    assert cause.message.startswith('Invalid value: {"ID":"","Schema":"","Ref":null,')
    assert "fields are allowed at the root of the schema if the status" in cause.message


def test_a_default_in_embedded_metadata_must_be_valid_there() -> None:
    metadata = {"type": "object", "properties": {"name": {"type": "string", "default": "a/b"}}}
    inside = {"type": "object", "x-kubernetes-embedded-resource": True}
    inside |= {"properties": {"metadata": metadata, "spec": TEXT}}
    [cause] = check_schema(kind(inside=inside), "s")
    place = "s.properties[spec].properties[inside].properties[metadata].properties[name].default"
    assert cause == Cause(
        place,
        'Invalid value: "a/b": must result in valid metadata: metadata.name: Invalid value: "a/b": '
        "may not contain '/'",
    )


def test_defaults_are_not_for_the_metadata_of_the_kind_itself() -> None:
    schema = {"type": "object", "properties": {"kind": {"type": "string", "default": "A"}}}
    [cause] = check_schema(schema, "s")
    assert cause.field == "s.properties[kind].default"
    assert cause.message == "Forbidden: must not be set in top-level kind"


def test_checking_a_schema_leaves_it_as_it_is() -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True}
    embedded |= {"x-kubernetes-preserve-unknown-fields": True}
    default = {"apiVersion": "v1", "kind": "A", "metadata": {"zzz": 1}}
    schema = kind(inside=embedded | {"default": default})
    before = copy.deepcopy(schema)
    check_schema(schema, "s")
    assert schema == before


def test_what_is_unknown_in_metadata_inside_of_a_map_is_named_by_its_key() -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True}
    schema = compile_schema(kind(pods={"type": "object", "additionalProperties": embedded}))
    found = {"spec": {"pods": {"a": {"apiVersion": "v1", "kind": "A", "metadata": {"zzz": 1}}}}}
    assert schema.prune(found) == ["spec.pods[a].metadata.zzz"]


SCHEMAS = [given_schema(name) for name in ("widgets", "b-checks", "b-defaults", "b-rules")]


COMPILED = [compile_schema(schema) for schema in SCHEMAS]
NUMBERED = st.integers(0, len(SCHEMAS) - 1)


@given(st.data())
def test_drawn_objects_are_valid_and_lose_nothing(data: st.DataObject) -> None:
    number = data.draw(NUMBERED)
    found = data.draw(objects_from_schema(SCHEMAS[number], api_version="ex.io/v1", kind="A"))
    before = copy.deepcopy(found)
    assert COMPILED[number].prune(found) == []
    assert found == before
    assert COMPILED[number].validate(found) == []
    assert found["kind"] == "A"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner),
)


@given(NUMBERED, values)
def test_whatever_is_sent_gets_an_answer(number: int, spec: Any) -> None:
    found = {"spec": copy.deepcopy(spec)}
    schema = COMPILED[number]
    schema.prune(found)
    schema.default(found)
    once = copy.deepcopy(found)
    assert schema.prune(found) == []
    schema.default(found)
    assert found == once
    assert isinstance(schema.validate(found), list)


@given(values, values)
def test_what_was_valid_stays_so_however_it_was_before(spec: Any, old: Any) -> None:
    for schema in COMPILED:
        if not schema.validate({"spec": spec}):
            assert schema.validate_update({"spec": spec}, {"spec": old}) == []


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"type": "integer", "maximum": 5}, 5, 6),
        ({"type": "integer", "format": "int32"}, 2**31 - 1, 2**31),
        ({"type": "integer"}, 5.0, 5.5),
        ({"type": "number", "multipleOf": 0.1}, 0.3, 0.35),
        ({"type": "string", "nullable": True}, None, 1),
        ({"enum": [5]}, 5.5, 6),  # the real server cuts a number to compare it
        ({"enum": ["a"]}, 97, 98),  # and makes a character of it
        ({"type": "string", "maxLength": 1}, "ä", "ab"),
        ({"not": {"required": ["a"]}}, {"b": 1}, {"a": 1}),
    ],
)
def test_a_value_is_right_or_wrong(schema: dict[str, Any], right: Any, wrong: Any) -> None:
    assert is_valid(schema)(right)
    assert not is_valid(schema)(wrong)
