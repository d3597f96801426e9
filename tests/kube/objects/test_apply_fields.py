"""Sets of fields: what holds for sets holds for them, and JSON keeps them."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.objects.apply import fields_of
from polyver.kube.objects.apply._fields import (
    Fields,
    InvalidFields,
    common,
    difference,
    has,
    leaves,
    path_text,
    paths,
    read_fields,
    union,
    without,
)
from polyver.kube.objects.type_shapes import Shape

Path = tuple[str, ...]
elements = st.sampled_from(
    ["f:a", "f:b", "f:c-d", 'k:{"name":"x"}', 'k:{"id":9}', 'k:{"id":10}', 'v:"x"', "v:1", "i:0"]
)
all_paths = st.lists(elements, min_size=1, max_size=4).map(tuple)
path_sets = st.frozensets(all_paths, max_size=8)


def _fields(found: frozenset[Path]) -> Fields:
    fields: Fields = {}
    for path in found:
        single: Fields = {}
        for element in reversed(path):
            single = {element: single}
        fields = union(fields, single)
    return fields


@given(path_sets)
def test_a_set_holds_what_was_put_in(found: frozenset[Path]) -> None:
    fields = _fields(found)
    assert set(paths(fields)) == found
    assert all(has(fields, path) for path in found)
    assert not has(fields, ())


@given(path_sets, path_sets)
def test_union_difference_and_intersection_are_those_of_sets(
    one: frozenset[Path], other: frozenset[Path]
) -> None:
    assert union(_fields(one), _fields(other)) == _fields(one | other)
    assert difference(_fields(one), _fields(other)) == _fields(one - other)
    assert common(_fields(one), _fields(other)) == _fields(one & other)


@given(path_sets, path_sets)
def test_what_is_below_others_can_be_left_out_too(
    one: frozenset[Path], other: frozenset[Path]
) -> None:
    def is_below(path: Path) -> bool:
        return any(path[:end] in other for end in range(1, len(path) + 1))

    left = frozenset(path for path in one if not is_below(path))
    assert without(_fields(one), _fields(other)) == _fields(left)


@given(path_sets)
def test_leaves_have_nothing_below_them(found: frozenset[Path]) -> None:
    inner = {path[:end] for path in found for end in range(1, len(path))}
    assert set(paths(leaves(_fields(found)))) == found - inner


@given(path_sets, st.randoms(use_true_random=False))
def test_json_keeps_a_set_in_whatever_order_it_comes(
    found: frozenset[Path], shuffle: random.Random
) -> None:
    def shuffled(fields: Fields) -> Fields:
        items = [(key, shuffled(node)) for key, node in fields.items()]
        shuffle.shuffle(items)
        return dict(items)

    fields = _fields(found)
    read = read_fields(json.loads(json.dumps(shuffled(fields))))
    assert read == fields
    assert json.dumps(read) == json.dumps(fields)


@given(path_sets, path_sets)
def test_what_goes_into_an_operation_stays_as_it_is(
    one: frozenset[Path], other: frozenset[Path]
) -> None:
    first, second = _fields(one), _fields(other)
    before = json.dumps([first, second])
    for operation in (union, difference, common, without):
        operation(first, second)
    assert json.dumps([first, second]) == before


def test_places_come_by_level_and_numbers_in_their_order() -> None:
    fields = _fields(frozenset({("f:b", "f:z"), ("f:c",), ('k:{"id":10}',), ('k:{"id":9}',)}))
    assert list(map(path_text, paths(fields))) == [".c", "[id=9]", "[id=10]", ".b.z"]


def test_places_are_named_as_the_real_server_names_them() -> None:
    path = ("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', "f:tags", 'v:"a\\u0001"', "i:2")
    assert path_text(path) == r'.spec.ports[port=80,protocol="TCP"].tags[="a\x01"][2]'


def test_what_a_client_writes_is_read_into_its_one_proper_form() -> None:
    written: Fields = {"f:a": {'k:{ "z":1.0, "b":"<"}': {}, "q:new": {}}, "f:b": {"q:new": {}}}
    assert read_fields(written) == {"f:a": {'k:{"b":"\\u003c","z":1}': {}}, "f:b": {}}


@pytest.mark.parametrize(
    "wrong", [1, None, {"f:a": 1}, {"a": {}}, {"": {}}, {"k:{": {}}, {"k:1": {}}, {"i:x": {}}]
)
def test_what_is_no_set_of_fields_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidFields):
        read_fields(wrong)


def test_fields_are_owned_by_their_shape() -> None:
    text = Shape("string")
    item = Shape("object", fields={"name": text, "port": Shape("integer")})
    shape = Shape(
        "object",
        fields={
            "struct": Shape("object", fields={"a": text, "b": text}),
            "map": Shape("object", values=text),
            "empty": Shape("object", values=text),
            "whole": Shape("object", values=text, atomic=True),
            "list": Shape("array", items=text),
            "set": Shape("array", items=text, list_type="set"),
            "none": Shape("array", items=text, list_type="set"),
            "items": Shape("array", items=item, list_type="map", keys=("name",)),
            "null": text,
            "any": Shape(preserves=True),
        },
    )
    value = {
        "struct": {"a": "1"},
        "map": {"x": "1"},
        "empty": {},
        "whole": {"x": "1"},
        "list": ["x"],
        "set": ["x"],
        "none": [],
        "items": [{"name": "x", "port": 1}],
        "null": None,
        "any": {"x": {"y": [1]}},
    }
    assert fields_of(value, shape) == {
        "f:struct": {"f:a": {}},
        "f:map": {"f:x": {}},
        "f:empty": {},
        "f:whole": {},
        "f:list": {},
        "f:set": {'v:"x"': {}},
        "f:items": {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:port": {}}},
        "f:null": {},
        "f:any": {"f:x": {".": {}, "f:y": {}}},
    }


def test_a_key_that_is_left_out_is_its_default() -> None:
    item = Shape("object", fields={"port": Shape("integer"), "protocol": Shape("string")})
    keys = ("port", "protocol")
    ports = Shape("array", items=item, list_type="map", keys=keys, key_defaults={"protocol": "TCP"})
    shape = Shape("object", fields={"ports": ports})
    assert fields_of({"ports": [{"port": 80}]}, shape) == {
        "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}
    }
