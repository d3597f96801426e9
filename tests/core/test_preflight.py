"""Reports of what a release would change: counted, grouped by shape, and without secrets."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.core.preflight import (
    MOST_FIELDS,
    MOST_VARIANTS,
    HiddenText,
    Preflight,
    PreflightReport,
    identity_of,
    lost_objects,
)

Object = dict[str, Any]


def deployment(name: str, image: str, **more: Any) -> Object:
    spec = {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": spec | more,
    }


def config(name: str, kind: str = "ConfigMap", **data: Any) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data}


def lines(report: PreflightReport) -> list[str]:
    return [str(each) for each in report.groups]


def test_the_same_change_of_many_dependents_is_one_group() -> None:
    preflight = Preflight()
    for number in range(412):
        name = f"app-{number:03}"
        preflight.compare(name, [deployment(name, "nginx:1.27")], [deployment(name, "nginx:1.28")])
    preflight.compare("same", [config("x", a="1")], [config("x", a="1")])
    found = preflight.report()
    image = "spec.template.spec.containers[0].image nginx:1.27 → nginx:1.28"
    assert lines(found) == [f"412 Deployments: {image}"]
    assert str(found.counts) == "1 unchanged, 412 changed, 0 would lose objects, 0 would fail"
    [group] = found.groups
    assert len(group.dependents) == 412
    assert group.example.dependent == "app-000"


@pytest.mark.parametrize("number", [MOST_VARIANTS, MOST_VARIANTS + 1])
def test_few_different_values_are_told_apart_and_many_become_one_group(number: int) -> None:
    preflight = Preflight()
    for each in range(number):
        before, after = config("x", own=f"a{each}", all="1"), config("x", own=f"b{each}", all="2")
        preflight.compare(f"app-{each:02}", [before], [after])
    found = lines(preflight.report())
    if number <= MOST_VARIANTS:
        assert found[0] == "1 ConfigMap: data.all 1 → 2, data.own a0 → b0"
        assert len(found) == number
    else:
        assert found == [f"{number} ConfigMaps: data.all 1 → 2, data.own with different values"]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"a": 1}, {"a": True}, "data.a 1 → true"),
        ({"a": None}, {}, "data.a removed: null"),
        ({}, {"a": {"b": [1]}}, 'data.a added: {"b": [1]}'),
        ({"a": "x\ny"}, {"a": ""}, 'data.a "x\\ny" → ""'),
        ({"a": [1, 2]}, {"a": [1]}, "data.a[1] removed: 2"),
        ({"a.b/c": 1}, {"a.b/c": 2}, "data[a.b/c] 1 → 2"),
        (
            {"a": [{"name": "x", "v": 1}, {"name": "y", "v": 1}]},
            {"a": [{"name": "y", "v": 2}]},
            'data.a[name=x] removed: {"name": "x", "v": 1}, data.a[name=y].v 1 → 2',
        ),
    ],
)
def test_fields_are_named_with_both_values(before: Object, after: Object, told: str) -> None:
    preflight = Preflight()
    preflight.compare("a", [config("x") | {"data": before}], [config("x") | {"data": after}])
    assert lines(preflight.report()) == [f"1 ConfigMap: {told}"]


def test_an_object_with_many_changed_fields_names_some_and_counts_the_rest() -> None:
    data = {f"k{number:03}": "1" for number in range(MOST_FIELDS + 3)}
    preflight = Preflight()
    preflight.compare("a", [config("x", **data)], [config("x", **dict.fromkeys(data, "2"))])
    [group] = preflight.report().groups
    assert (len(group.fields), group.more_fields) == (MOST_FIELDS, 3)
    assert str(group).endswith("k049 1 → 2, and 3 more fields")


def test_an_object_in_another_api_version_is_the_same_object() -> None:
    old = deployment("a", "x") | {"apiVersion": "apps/v1beta1"}
    preflight = Preflight()
    assert preflight.compare("a", [old], [deployment("a", "x")]) == "changed"
    assert lines(preflight.report()) == ["1 Deployment: apiVersion apps/v1beta1 → apps/v1"]


def test_objects_that_go_are_lost_unless_one_comes_in_their_place() -> None:
    before = [config("a"), config("b", kind="Service")]
    for after, outcome, groups in (
        ([], "loses", ["1 ConfigMap lost", "1 Service lost"]),
        ([config("c")], "loses", ["1 Service lost", "1 ConfigMap added", "1 ConfigMap removed"]),
        ([*before, config("c")], "changed", ["1 ConfigMap added"]),
    ):
        preflight = Preflight()
        assert preflight.compare("x", before, after) == outcome
        assert lines(preflight.report()) == groups


def test_an_object_is_replaced_by_one_of_the_same_kind_or_name_and_the_same_source() -> None:
    def lost(before: list[Object], after: list[Object], **sources: str) -> set[str]:
        was, will_be = ([identity_of(each) for each in side] for side in (before, after))
        made_by = {each: sources[each[3]] for each in (*was, *will_be) if each[3] in sources}
        return {each[3] for each in lost_objects(was, will_be, made_by)}

    a, b, c = map(config, "abc")
    assert lost([a, b, c], [b, config("d")]) == {"c"}, "each replaces one"
    assert lost([a], [config("a", kind="Secret")]) == set()
    assert lost([a], [config("b", kind="Secret")]) == {"a"}
    assert lost([a], [b], a="web", b="db") == {"a"}
    assert lost([a, b], [a, b]) == set()


def test_values_of_secrets_never_appear() -> None:
    old = config("x", kind="Secret", password="tiger-1", same="tiger-2")
    new = config("x", kind="Secret", password="tiger-3", same="tiger-2", added="tiger-4")
    wrapped = [{"kind": "Object", "metadata": {"name": "x"}, "spec": each} for each in (old, new)]
    preflight = Preflight()
    preflight.compare("a", [old, wrapped[0]], [new, wrapped[1]])
    preflight.compare("b", [old], [config("y", kind="Secret", token="tiger-5")])
    preflight.compare("c", [config("z")], [config("z", inside=new)])
    found = preflight.report()
    assert "tiger" not in repr(found)
    assert "1 Secret: data.added added, data.password changed" in lines(found)
    [group] = [each for each in found.groups if each.change == "changed" and each.kind == "Secret"]
    assert group.example.after is not None
    assert group.example.after["data"] == {
        "password": "(changed)",
        "same": "(secret)",
        "added": "(secret)",
    }


def test_hidden_text_is_treated_as_the_data_of_a_secret() -> None:
    def made(number: int) -> Object:
        text = HiddenText(f"tiger-{number}")
        data: Object = {
            "url": text,
            "same": HiddenText("tiger"),
            "list": [{"name": text}],
            "plain": "x",
        }
        return config("x", **data | ({"new": {"inside": text}} if number == 2 else {}))

    preflight = Preflight()
    preflight.compare("a", [made(1)], [made(2)])
    preflight.compare("b", [], [made(1)])
    found = preflight.report()
    assert "tiger" not in repr(found)
    assert lines(found) == [
        "1 ConfigMap added",
        "1 ConfigMap: data.list[0].name changed, "
        'data.new added: {"inside": "(secret)"}, data.url changed',
    ]
    assert found.groups[1].example.after is not None
    assert found.groups[1].example.after["data"]["url"] == "(changed)"


def test_failures_are_grouped_by_message_and_each_dependent_counts_once() -> None:
    preflight = Preflight()
    for number in range(30):
        preflight.fail(f"app-{number:02}", ["size is missing (spec.size)", "no colour"])
    for number in range(MOST_VARIANTS + 1):
        preflight.fail(f"other-{number:02}", [f'"v{number}" is no colour'])
    found = preflight.report()
    assert found.counts.fails == 30 + MOST_VARIANTS + 1
    assert [(each.message, len(each.dependents), each.is_varied) for each in found.failures] == [
        ("no colour", 30, False),
        ("size is missing (spec.size)", 30, False),
        ('"v0" is no colour', MOST_VARIANTS + 1, True),
    ]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2)
    ),
    max_leaves=5,
)
_OBJECTS = st.lists(
    st.builds(
        lambda name, kind, data: config(name, kind) | {"data": data},
        *(st.sampled_from(each) for each in (["a", "b"], ["ConfigMap", "Secret"])),
        _VALUES,
    ),
    max_size=3,
    unique_by=lambda obj: (obj["kind"], obj["metadata"]["name"]),
)


@given(st.lists(st.tuples(_OBJECTS, _OBJECTS), max_size=25), st.randoms(use_true_random=False))
def test_the_order_of_dependents_makes_no_difference(
    pairs: list[tuple[list[Object], list[Object]]], mixed: random.Random
) -> None:
    numbered = [*enumerate(pairs)]
    reports = []
    for _ in range(2):
        preflight = Preflight()
        for number, (before, after) in numbered:
            preflight.compare(f"app-{number:02}", before, after)
        reports.append(preflight.report())
        mixed.shuffle(numbered)
    assert reports[0] == reports[1]


@given(_OBJECTS, _OBJECTS)
def test_a_dependent_is_unchanged_exactly_if_its_objects_are_the_same(
    before: list[Object], after: list[Object]
) -> None:
    outcome = Preflight().compare("a", before, after)
    sides = [sorted(json.dumps(each, sort_keys=True) for each in side) for side in (before, after)]
    assert (outcome == "unchanged") is (sides[0] == sides[1])
    assert (outcome == "loses") is bool(
        lost_objects(map(identity_of, before), map(identity_of, after))
    )
