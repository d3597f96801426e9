"""What is written beside an object, and what nobody may do with it."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest
from tests.apis.conversions import check_compiled

from polyver.apis.conversion import (
    ANNOTATION,
    Converter,
    DeclaredEdge,
    FunctionEdge,
    InvalidRule,
    InvalidRules,
    NotConvertible,
    Rules,
)

Object = dict[str, Any]


def between(rules: Rules, **schemas: Object) -> Converter:
    edges = [DeclaredEdge("v1", "v2", rules.block())]
    return Converter("ex.io", "Lamp", ["v1", "v2"], edges, schemas=schemas)


def lamp(version: str, **fields: Any) -> Object:
    about = {"apiVersion": f"ex.io/{version}", "kind": "Lamp", "metadata": {"name": "a"}}
    return about | fields


def carrying(lost: Object, **fields: Any) -> Object:
    carry = msgspec.json.encode({"format": 1, "lost": {"v1": lost}}).decode()
    annotations = {ANNOTATION: carry, "b": "c"}
    return lamp("v2", **fields) | {"metadata": {"name": "a", "annotations": annotations}}


@pytest.mark.parametrize(
    "lost",
    [
        {"metadata.name": {"is": "other"}},
        {'["metadata"].uid': {"is": "other"}},
        {"kind": {"is": "Other"}},
        {"metadata.labels.a": {"is": 1}},
        {"metadata.labels": {"is": {"a": "not a label!"}}},
        {"metadata.annotations.b": {"is": ["x"]}},
        {"metadata": {"absent": True}},
    ],
)
def test_a_carry_changes_no_metadata_that_conversion_may_not_change(lost: Object) -> None:
    known = between(Rules())
    obj = carrying(lost, spec={})
    made = known.convert(obj, "v1")
    assert made == lamp("v1", spec={}) | {"metadata": {"name": "a", "annotations": {"b": "c"}}}
    check_compiled(known, obj, "v1")


@pytest.mark.parametrize(
    "entry", [{"at": "x"}, {"at": {"9" * 5000: {"in": {}, "if": ""}}}, {"by": {"a": 1}}, {"in": []}]
)
def test_a_carry_that_was_mangled_says_nothing(entry: Object) -> None:
    known = between(Rules())
    obj = carrying({"spec.a": entry}, spec={"b": 1})
    assert known.convert(obj, "v1")["spec"] == {"b": 1}
    check_compiled(known, obj, "v1")


def test_a_text_is_split_into_an_annotation_and_a_field() -> None:
    rules = Rules()
    into = ('metadata.annotations["ex.io/host"]', "spec.port")
    rules.split("spec.address", into=into, separator=":", types=["string", "integer"])
    known = between(rules)
    old = lamp("v1", spec={"address": "h:80"})
    new = known.convert(old, "v2")
    assert new["metadata"]["annotations"] == {"ex.io/host": "h"}
    assert new["spec"] == {"port": 80}
    assert known.convert(new, "v1") == old
    check_compiled(known, old, "v2")
    check_compiled(known, new, "v1")


def test_nothing_is_left_of_an_object_that_the_other_version_lacks() -> None:
    rules = Rules()
    rules.move("data.a", "spec.a")
    text = {"type": "object", "properties": {"a": {"type": "string"}}}
    known = between(
        rules,
        v1={"type": "object", "properties": {"data": text}},
        v2={"type": "object", "properties": {"spec": text}},
    )
    old = lamp("v1", data={"a": "x"})
    new = known.convert(old, "v2")
    assert new == lamp("v2", spec={"a": "x"})
    assert known.convert(new, "v1") == old
    for obj, target in ((old, "v2"), (new, "v1"), (lamp("v1", data={}), "v2")):
        check_compiled(known, obj, target)


def test_rules_leave_the_carry_alone() -> None:
    with pytest.raises(InvalidRule, match="carry"):
        Rules().drop(f'metadata.annotations["{ANNOTATION}"]')


def test_an_object_with_too_many_levels_is_refused_in_words() -> None:
    rules = Rules()
    rules.drop("spec.mode")
    inside: Any = {}
    for _ in range(5000):
        inside = {"a": inside}
    with pytest.raises(NotConvertible, match="nested too deeply"):
        between(rules).convert(lamp("v1", spec={"mode": inside}), "v2")


def test_rules_clash_with_the_first_that_has_the_field_or_something_inside_of_it() -> None:
    rules = Rules()
    rules.move("spec.a", "spec.b.c")
    rules.drop("spec.z")
    with pytest.raises(InvalidRules, match=r"rule 1 \(move\) reads spec.a already") as refused:
        rules.drop("spec.a.x")
    assert refused.value.rule == 2
    with pytest.raises(InvalidRules, match=r"rule 1 \(move\) writes spec.b.c already, and this"):
        rules.move("spec.free", "spec.b")
    with pytest.raises(InvalidRules, match=r"the rule split writes spec.d twice"):
        rules.split("spec.free", into=("spec.d", "spec.d"), separator=":")
    rules.drop("spec.free")


def test_items_with_the_same_key_get_nothing_of_what_one_of_them_lost() -> None:
    rules = Rules()
    rules.each("spec.items", key="name").drop("x")
    known = between(rules)
    old = lamp("v1", spec={"items": [{"name": "a", "x": 1}, {"name": "b", "x": 2}]})
    new = known.convert(old, "v2")
    new["spec"]["items"] = [{"name": "b"}, {"name": "a"}, {"name": "a"}]
    found = known.convert(new, "v1")["spec"]["items"]
    assert found == [{"name": "b", "x": 2}, {"name": "a"}, {"name": "a"}]


def test_a_constant_is_where_its_object_was_though_that_moved() -> None:
    rules = Rules()
    rules.move("spec", "template")
    rules.const("spec.mode", "plain")
    known = between(rules)
    for obj in (lamp("v1", spec={"a": 1}), lamp("v1", spec={}), lamp("v1")):
        check_compiled(known, obj, "v2")
        assert known.convert(known.convert(obj, "v2"), "v1") == obj


def test_what_only_whole_objects_have_is_carried_where_a_version_has_none() -> None:
    def schema(**flags: Any) -> Object:
        spec = {"type": "object", "properties": {"a": {"type": "string"}}, **flags}
        return {"type": "object", "properties": {"spec": spec}}

    embedded = schema(**{"x-kubernetes-embedded-resource": True})
    known = between(Rules(), v1=embedded, v2=schema())
    old = lamp("v1", spec={"a": "x", "kind": "Pod"})
    new = known.convert(old, "v2")
    assert new["spec"] == {"a": "x"}
    assert known.convert(new, "v1") == old
    check_compiled(known, old, "v2")


def test_an_object_where_the_other_version_has_a_text_is_carried() -> None:
    text = {"type": "object", "properties": {"spec": {"type": "string"}}}
    known = between(Rules(), v1=text)
    new = lamp("v2", spec={"a": 1})
    check_compiled(known, new, "v1")
    assert known.convert(known.convert(new, "v1"), "v2") == new


def spec_schema(**fields: Object) -> Object:
    spec = {"type": "object", "properties": fields}
    return {"type": "object", "properties": {"spec": spec}}


@pytest.mark.parametrize("spec", [{}, {"a": {}}, {"a": {"b": {}}}, {"a": {"b": {"c": 1}}}])
def test_versions_may_differ_far_inside_of_what_no_rule_names(spec: Object) -> None:
    old = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schemas = {
        version: spec_schema(a={"type": "object", "properties": {"b": inside}})
        for version, inside in (("v1", old), ("v2", {"type": "string"}))
    }
    known = between(Rules(), **schemas)
    obj = lamp("v1", spec=spec)
    check_compiled(known, obj, "v2")
    assert known.convert(known.convert(obj, "v2"), "v1") == obj


def misspelt() -> list[DeclaredEdge | FunctionEdge]:
    rules = Rules()
    rules.move("spec.watts", "spec.powr")
    block = rules.block()
    there, back = partial(block.run, back=False), partial(block.run, back=True)
    return [DeclaredEdge("v1", "v2", block), FunctionEdge("v1", "v2", there, back)]


@pytest.mark.parametrize("edge", misspelt(), ids=["rules", "functions"])
def test_what_is_written_where_a_version_has_no_field_is_carried(
    edge: DeclaredEdge | FunctionEdge,
) -> None:
    """An API server would prune it, and it would be gone."""
    watts = {"type": "integer"}
    schemas = {"v1": spec_schema(watts=watts), "v2": spec_schema(power=watts)}
    known = Converter("ex.io", "Lamp", ["v1", "v2"], [edge], schemas=schemas)
    obj = lamp("v1", spec={"watts": 5})
    made = known.convert(obj, "v2")
    assert made["spec"] == {}
    assert known.convert(made, "v1") == obj


def test_plain_objects_need_no_interpreter_where_schemas_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = Rules()
    rules.move("spec.a", "spec.b")
    rules.wrap("spec.image", "spec.images")

    def schema(**fields: Object) -> Object:
        return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}

    text = {"type": "string"}
    v1 = schema(a=text, image=text, c=text)
    v2 = schema(b=text, images={"type": "array", "items": text}, c=text)
    known = between(rules, v1=v1, v2=v2)
    monkeypatch.setattr(Converter, "interpreted", None)
    made = known.convert(lamp("v1", spec={"a": "x", "image": "y", "c": "z"}), "v2")
    assert made["spec"] == {"b": "x", "images": ["y"], "c": "z"}


def test_a_constant_is_not_missed_where_a_move_made_what_it_is_part_of() -> None:
    rules = Rules()
    rules.const("spec.engine", "cron")
    rules.move('metadata.annotations["ex.io/mode"]', "spec.mode")
    edges = [DeclaredEdge("v1", "v2", rules.block())]
    known = Converter("ex.io", "Toy", ["v1", "v2"], edges)
    metadata = {"name": "a", "annotations": {"ex.io/mode": "fast"}}
    toy = {"apiVersion": "ex.io/v1", "kind": "Toy", "metadata": metadata}
    assert known.convert(known.convert(toy, "v2"), "v1") == toy


def test_an_entry_that_says_nothing_is_not_passed_on() -> None:
    edges: list[DeclaredEdge | FunctionEdge] = [
        FunctionEdge("v1", "v2", lambda obj: obj, lambda obj: obj),
        DeclaredEdge("v1", "v3", Rules().block()),
    ]
    known = Converter("ex.io", "Lamp", ["v1", "v2", "v3"], edges)
    hollow = '{"format":1,"lost":{"v2":{"spec.b":{"lost":null},"spec.c":{"in":{"d":{}}}}}}'
    annotations = {"conversion.polyver.dev/carry": hollow}
    obj = {
        "apiVersion": "ex.io/v1",
        "kind": "Lamp",
        "metadata": {"name": "a", "annotations": annotations},
    }
    check_compiled(known, obj, "v3")
    assert known.convert(obj, "v3")["metadata"] == {"name": "a"}
