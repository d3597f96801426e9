"""Patches are put onto objects by their strategies; what only cue can know is asked."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.core import PolyverError
from polyver.definitions.cue._patches import CuePatcher, Tags, UnificationQuery

Object = dict[str, Any]
NAMED: Tags = {("c",): {"patchKey": "name"}}


def merged(base: Object, patch: Object, tags: Tags | None = None) -> Any:
    """What becomes of an object when there is nothing to ask."""
    merging = CuePatcher(tags or {})
    made = merging.merge(base, patch)
    assert not merging.questions
    return made


def asked(base: Object, patch: Object, tags: Tags | None = None) -> list[str]:
    """What has to be asked, in CUE."""
    merging = CuePatcher(tags or {})
    merging.merge(base, patch)
    return [each.expression("p") for each in merging.questions]


def test_fields_are_added_and_equal_ones_stay() -> None:
    assert merged({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": [3]}) == {
        "a": {"b": 1, "c": 2},
        "d": [3],
    }


def test_what_differs_is_a_question() -> None:
    assert asked({"a": 1}, {"a": 2}) == ["p & 1"]
    assert asked({"a": 1}, {"a": True}) == ["p & 1"]
    assert asked({"a": {"x": 1}}, {"a": [2]}) == ['p & {"x":1}']


def test_an_answer_takes_the_place_of_both() -> None:
    merging = CuePatcher({}, {("a",): 7})
    assert merging.merge({"a": 1}, {"a": 2}) == {"a": 7}
    assert not merging.questions


def test_items_with_the_same_name_are_merged_and_others_come_behind() -> None:
    base = {"c": [{"name": "a", "x": 1}, {"name": "b"}]}
    patch = {"c": [{"name": "z"}, {"name": "b", "y": 2}]}
    assert merged(base, patch, NAMED) == {
        "c": [{"name": "a", "x": 1}, {"name": "b", "y": 2}, {"name": "z"}]
    }


def test_the_name_of_items_holds_for_the_lists_inside() -> None:
    base = {"c": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]}
    patch = {"c": [{"name": "a", "env": [{"name": "Y"}], "args": ["x"]}]}
    assert merged(base, patch, NAMED) == {
        "c": [{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y"}], "args": ["x"]}]
    }


def test_a_name_may_be_further_inside_or_one_of_several() -> None:
    base = {"c": [{"meta": {"id": 1}}, {"ip": "x"}]}
    patch = {"c": [{"meta": {"id": 1}, "y": 2}, {"ip": "x", "z": 3}]}
    tags: Tags = {("c",): {"patchKey": "meta.id,ip"}}
    assert merged(base, patch, tags) == {"c": [{"meta": {"id": 1}, "y": 2}, {"ip": "x", "z": 3}]}


def test_an_item_without_the_name_is_refused() -> None:
    with pytest.raises(PolyverError, match=r"an item of patch\.c has no name"):
        merged({"c": [{"name": "a"}]}, {"c": [{"name": "a"}, {"y": 2}]}, NAMED)


@pytest.mark.parametrize(
    ("strategy", "base", "patch", "made"),
    [
        ("replace", [1, 2], [3], [3]),
        ("retainKeys", {"a": 1, "b": 2}, {"c": 3}, {"c": 3}),
        ("retainKeys", 1, 2, 2),
    ],
)
def test_what_a_strategy_says_wins(strategy: str, base: Any, patch: Any, made: Any) -> None:
    tags: Tags = {("f",): {"patchStrategy": strategy}}
    assert merged({"f": base, "g": 1}, {"f": patch}, tags) == {"f": made, "g": 1}


def test_items_are_replaced_whole_where_their_keys_are_retained() -> None:
    tags: Tags = {("c",): {"patchKey": "name", "patchStrategy": "retainKeys"}}
    base = {"c": [{"name": "a", "x": 1}, {"name": "b", "x": 1}]}
    made = merged(base, {"c": [{"name": "a", "y": 2}]}, tags)
    assert made == {"c": [{"name": "a", "y": 2}, {"name": "b", "x": 1}]}


def test_whether_a_shorter_list_says_more_is_a_question() -> None:
    base = {"c": [{"x": 1}, {"x": 2}]}
    assert asked(base, {"c": [{"y": 1}]}) == ["(p & [_, _, ...]) != _|_"]
    closed = CuePatcher({}, {("c",): False})
    with pytest.raises(PolyverError, match=r"patch\.c has 1 of the 2 items of the object"):
        closed.merge(base, {"c": [{"y": 1}]})
    known = CuePatcher({}, {("c",): True})
    known.merge(base, {"c": [{"y": 1}]})
    assert [*map(_told, known.questions)] == [
        (("c",), '(p & [_, _, ...])[1] & {"x":2}'),
    ]
    answered = CuePatcher({}, {("c",): True, ("c", 1): {"x": 2, "y": 9}})
    assert answered.merge(base, {"c": [{"y": 1}]}) == {"c": [{"x": 1, "y": 1}, {"x": 2, "y": 9}]}


def _told(question: UnificationQuery) -> tuple[object, str]:
    return question.asked, question.expression("p")


KEYS = st.sampled_from("abc")
VALUES = st.recursive(
    st.integers(0, 2) | st.booleans() | st.none() | st.sampled_from("xy"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=3)


@given(OBJECTS)
def test_an_object_that_is_its_own_patch_stays(base: Object) -> None:
    assert merged(base, base) == base


@given(OBJECTS, OBJECTS)
def test_what_was_patched_is_not_changed_by_the_same_patch(base: Object, patch: Object) -> None:
    before = copy.deepcopy((base, patch))
    merging = CuePatcher({})
    made = merging.merge(base, patch)
    assert (base, patch) == before
    if not merging.questions:
        assert all(name in made for name in {*base, *patch})
        again = CuePatcher({})
        assert again.merge(made, patch) == made


@given(
    st.lists(st.sampled_from("abcd"), unique=True), st.lists(st.sampled_from("abcd"), unique=True)
)
def test_no_named_item_is_lost_or_doubled(mine: list[str], theirs: list[str]) -> None:
    base = {"c": [{"name": each, "mine": 1} for each in mine]}
    patch = {"c": [{"name": each, "theirs": 1} for each in theirs]}
    merging = CuePatcher(NAMED, {("c",): False})
    made = merging.merge(base, patch)["c"]
    assert [each["name"] for each in made] == [*mine, *(e for e in theirs if e not in mine)]
    assert {each["name"] for each in made if "theirs" in each} == {*theirs}
