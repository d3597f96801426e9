"""Objects that are JSON are converted as plain data are, however odd they are written."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.apis.conversion import Converter, DeclaredEdge, FunctionEdge, NotConvertible, Rules
from polyver.apis.conversion.schemas import pruner, strip
from polyver.kube.objects.schema.structure import StructuralSchema
from polyver.languages.values.strings import same

Object = dict[str, Any]
NAMES = st.sampled_from(["a", "b", "kind", "metadata", "other"])


def crontabs() -> Converter:
    rules = Rules()
    rules.move("spec.cronSpec", "spec.schedule")
    rules.cast("spec.replicas", "string", "integer")
    rules.drop("spec.legacy")
    rules.each("spec.containers", key="name").move("cmd", "command")
    rules.keyed("spec.envList", "spec.env", key="name", value="value")
    return Converter("ex.io", "CronTab", ["v1", "v2"], [DeclaredEdge("v1", "v2", rules.block())])


KNOWN = crontabs()
HEAD = '"apiVersion":"ex.io/v1","kind":"CronTab"'


@pytest.mark.parametrize(
    "rest",
    [
        "",
        ',"spec":null',
        ',"spec":7',
        ',"spec":"{\\"cronSpec\\":\\"*\\"}"',
        ',"spec":[{"cronSpec":"*"}]',
        ',"spec":{"cronSpec":"*","cronSpec":"again"}',
        ',"spec":{"cron\\u0053pec":"*"}',
        ',"spec":{"cronSpec":"*"},"data":{"a":1},"more":[1,null],"size":3',
        ',"spec":{"replicas":"007","legacy":{"a":null}}',
        ',"spec":{"containers":[{"name":"a","cmd":"x"},{"name":"b","cmd":1,"command":2}]}',
        ',"spec":{"containers":"[{\\"cmd\\":1}]"}',
        ',"spec":{"envList":[{"name":"b","value":"1"},{"name":"a","value":null}]}',
        ',"spec":{"envList":[{"name":"","value":"1"},{"name":"a","value":[1]}]}',
        ',"metadata":null,"spec":{"legacy":1}',
        ',"metadata":"{\\"annotations\\":{}}","spec":{"legacy":1}',
        ',"metadata":{"annotations":null},"spec":{"legacy":1}',
        ',"metadata":{"annotations":{}},"spec":{"legacy":1}',
        ',"metadata":{"name":"conversion.polyver.dev/carry"},"spec":{"legacy":1}',
        ',"metadata":{"annotations":{"conversion.polyver.dev/carry":"none"}},"spec":{"legacy":1}',
    ],
)
def test_whatever_is_written_is_converted_as_plain_data_are(rest: str) -> None:
    text = f"{{{HEAD}{rest}}}"
    made = json.loads(KNOWN.convert_raw(text.encode(), "v2"))
    assert same(made, KNOWN.convert(json.loads(text), "v2"))
    again = json.loads(KNOWN.convert_raw(json.dumps(made).encode(), "v1"))
    assert same(again, KNOWN.convert(made, "v1"))


def test_what_no_rule_looks_into_is_copied_to_the_letter() -> None:
    odd = b'"size":1.50,"huge":1e999,"spec":{"whole":100000000000000000000000001, "cronSpec":"*"}'
    made = KNOWN.convert_raw(b"{" + HEAD.encode() + b"," + odd + b"}", "v2")
    assert b'"size":1.50,"huge":1e999' in made
    assert b"100000000000000000000000001" in made
    assert b'"schedule":"*"' in made


@pytest.mark.parametrize("text", [b"", b"[]", b"3", b'"{}"', b'{"apiVersion":', b'{"kind":3}'])
def test_what_is_no_object_is_told_so(text: bytes) -> None:
    with pytest.raises(NotConvertible):
        KNOWN.convert_raw(text, "v2")


# What functions make.


def _v1_v2(obj: Object) -> Object:
    spec = obj["spec"]
    made = {"size": spec.pop("width", 0)}
    spec.clear()  # what a function is given is its own
    return {**obj, "spec": made}


def _v2_v1(obj: Object) -> Object:
    width = obj["spec"]["size"]
    obj["metadata"]["managedFields"] = []
    return {**obj, "spec": {"width": width} if width else {}}


BOXES = Converter("ex.io", "Box", ["v1", "v2"], [FunctionEdge("v1", "v2", _v1_v2, _v2_v1)])


@given(
    st.dictionaries(
        st.sampled_from(["width", "depth"]), st.sampled_from([0, 1, 1.0, True, None, "1", [1.0]])
    )
)
def test_what_functions_lose_comes_back_with_its_type(spec: Object) -> None:
    metadata = {"name": "a", "managedFields": [{"manager": "kubectl"}]}
    obj = {"apiVersion": "ex.io/v1", "kind": "Box", "metadata": metadata, "spec": spec}
    before = copy.deepcopy(obj)
    there = BOXES.convert(obj, "v2")
    assert same(obj, before)
    assert there["metadata"]["managedFields"] == metadata["managedFields"]
    assert same(BOXES.convert(there, "v1"), obj)
    raw = BOXES.convert_raw(json.dumps(obj).encode(), "v2")
    assert same(json.loads(raw), there)
    assert same(json.loads(BOXES.convert_raw(raw, "v1")), obj)


STRUCTURES: st.SearchStrategy[StructuralSchema] = st.recursive(
    st.builds(StructuralSchema, preserves=st.booleans()),
    lambda inner: st.builds(
        StructuralSchema,
        fields=st.dictionaries(NAMES, inner, max_size=3),
        values=st.none() | inner,
        takes_any_key=st.booleans(),
        items=st.none() | inner,
        preserves=st.booleans(),
        embedded=st.booleans(),
    ),
    max_leaves=6,
)
PLAIN = st.recursive(
    st.integers(0, 1),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


@given(STRUCTURES, PLAIN)
def test_what_a_schema_lacks_is_taken_away_as_the_interpreter_does(
    place: StructuralSchema, value: Any
) -> None:
    expected, found = copy.deepcopy(value), copy.deepcopy(value)
    strip(expected, None, place)
    prune = pruner(place)
    if prune is not None:
        prune(found)
    assert same(found, expected)
