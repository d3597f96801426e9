"""A quick look at an object never changes what a schema says of it, and is enough for most."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.objects.schema import Schema, compile_schema
from polyver.kube.objects.schema._quick import Quick

NAMES = st.sampled_from(["a", "b", "c-d", "$ref", "class"])
SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 1, "maxLength": 2},
        {"type": "string", "pattern": "^x"},
        {"type": "string", "format": "date"},
        {"type": "string", "enum": ["x", "y"]},
        {"type": "string", "enum": ["x"], "nullable": True},
        {"type": "string", "default": "x"},
        {"type": "boolean"},
        {"type": "integer"},
        {"type": "integer", "minimum": 0, "maximum": 3},
        {"type": "integer", "minimum": 0.5},
        {"type": "integer", "exclusiveMinimum": True, "minimum": 0},
        {"type": "integer", "format": "int32", "default": 7},
        {"type": "number"},
        {"type": "number", "multipleOf": 0.5},
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "additionalProperties": True},
        {"type": "string", "anyOf": [{"minLength": 2}, {"pattern": "^y"}]},
    ]
)


def _objects(places: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def made(fields: dict[str, Any], rest: tuple[bool, bool, bool]) -> dict[str, Any]:
        needs, preserves, nullable = rest
        more: dict[str, Any] = {"required": sorted(fields)[:1]} if needs and fields else {}
        more |= {"x-kubernetes-preserve-unknown-fields": True} if preserves else {}
        more |= {"nullable": True} if nullable else {}
        return {"type": "object", "properties": fields, **more}

    return st.builds(
        made, st.dictionaries(NAMES, places, max_size=3), st.tuples(*[st.booleans()] * 3)
    )


def _containers(places: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    lists = places.map(lambda each: {"type": "array", "items": each, "maxItems": 2})
    maps = places.map(
        lambda each: {"type": "object", "additionalProperties": each, "minProperties": 1}
    )
    return _objects(places) | lists | maps


SCHEMAS = st.dictionaries(
    st.sampled_from(["spec", "status", "other"]), st.recursive(SCALARS, _containers, max_leaves=6)
).map(lambda fields: {"type": "object", "properties": fields})
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 4) | st.just(2**64) | st.just(1.0) | st.just(0.5)
    | st.sampled_from(["", "x", "xy", "y", "2026-01-01", "é€"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
USUAL: dict[str | None, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["x", "xy", "y"]),
    "boolean": st.booleans(),
    "integer": st.integers(0, 3),
    "number": st.sampled_from([0, 1, 0.5]),
    None: st.sampled_from([1, "x"]),
}


@st.composite
def values(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    """Mostly what a schema asks for, and now and then something else."""
    if draw(st.integers(0, 19)) == 7:
        return draw(ODD)
    match schema.get("type"):
        case "object":
            fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
            found = {
                name: draw(values(each))
                for name, each in fields.items()
                if name in schema.get("required", ()) or draw(st.integers(0, 3))
            }
            if isinstance(others, dict):
                found["one"] = draw(values(others))
            if not draw(st.integers(0, 19)):
                found["unknown"] = draw(ODD)
            return found
        case "array":
            return [draw(values(schema["items"])) for _ in range(draw(st.integers(0, 2)))]
        case other:
            return draw(USUAL[other])


class Never(Quick):
    """Has nothing to say at once."""

    def fits(self, obj: dict[str, Any]) -> bool:
        return False


def slowly(source: dict[str, Any]) -> Schema:
    schema = compile_schema(source)
    schema.__dict__["_quick"] = Never(source)
    return schema


def said(schema: Schema, obj: dict[str, Any], old: dict[str, Any], *, drop: bool) -> Any:
    """All that a schema does to an object that replaces another, and says of it."""
    obj = copy.deepcopy(obj)
    before = schema.validate(obj)
    dropped = schema.conform(obj, drop_nulls=drop)
    conformed = copy.deepcopy(obj)
    schema.default(obj, drop_nulls=False)
    return dropped, conformed, obj, before, schema.validate(obj), schema.validate_update(obj, old)


@given(st.data())
def test_a_quick_look_changes_nothing(data: st.DataObject) -> None:
    source = data.draw(SCHEMAS)
    named = {"apiVersion": "ex.io/v1", "kind": "Thing", "metadata": {"name": "a"}}
    obj, old = ({**data.draw(values(source).filter(_is_object)), **named} for _ in range(2))
    drop = data.draw(st.booleans())
    quick, slow = compile_schema(source), slowly(source)
    assert said(quick, obj, old, drop=drop) == said(slow, obj, old, drop=drop)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


ORDINARY = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 0},
        "policy": {"type": "string", "enum": ["Always", "Never"], "default": "Always"},
        "image": {"type": "string", "pattern": "^[a-z]+$"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "port": {"x-kubernetes-int-or-string": True},
                },
            },
        },
    },
}
SPEC = {"size": 1, "image": "web", "labels": {"a": "b"}, "ports": [{"name": "web", "port": "http"}]}


def ordinary() -> Quick:
    return Quick({"type": "object", "properties": {"spec": ORDINARY}})


def test_an_ordinary_object_needs_no_more_than_a_quick_look() -> None:
    assert ordinary().fits({"apiVersion": "v1", "kind": "A", "metadata": {}, "spec": SPEC})


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": None},
        {"size": True},
        {"size": -1},
        {"size": 2**63},
        {"policy": "Sometimes"},
        {"image": "Web"},
        {"colour": "red"},
        {"labels": {"a": 1}},
        {"ports": [{"port": 1}]},
        {"ports": [{"name": "web", "port": {}}]},
    ],
)
def test_what_may_be_wrong_is_looked_at_again(wrong: dict[str, Any]) -> None:
    assert not ordinary().fits({"spec": SPEC | wrong})
