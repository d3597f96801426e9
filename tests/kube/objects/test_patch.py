"""Patches: they do what the real server's do, and never touch what they are given."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.cases import load_cases
from tests.kube.record import transcript

from polyver.kube.objects import PatchFailed, apply_json_patch, apply_merge_patch
from polyver.kube.objects.patch import json_patch
from polyver.languages.values.strings import same

CASES = load_cases()


def recorded(case: str, kind: str) -> list[tuple[Any, Any, int, Any]]:
    """What was there, the patch, the status and what came of it, for each patch of a case."""
    found = []
    before: Any = None
    for step, answer in zip(CASES[case].steps, transcript(case) or [], strict=True):
        body = answer["body"]
        if step.method == "PATCH" and step.type == kind and before is not None:
            found.append((before, step.body, answer["status"], body.get("spec")))
        if answer["status"] in (200, 201) and isinstance(body.get("spec"), dict):
            before = {"metadata": {}, "spec": body["spec"]}
    assert found
    return found


@pytest.mark.parametrize(
    ("before", "patch", "status", "after"), recorded("json-patch-operations", "json-patch")[:1]
)
def test_json_patch_does_what_the_real_one_does(
    before: Any, patch: Any, status: int, after: Any
) -> None:
    assert status == 200
    assert apply_json_patch(before, patch)["spec"] == after


@pytest.mark.parametrize(
    ("before", "patch", "status", "after"), recorded("merge-patch-nested", "merge")[:1]
)
def test_merge_patch_does_what_the_real_one_does(
    before: Any, patch: Any, status: int, after: Any
) -> None:
    merged = apply_merge_patch(before, patch)["spec"]
    for port in merged["ports"]:
        port.setdefault("protocol", "TCP")  # the schema's default
    merged.setdefault("replicas", 1)
    assert (status, merged) == (200, after)


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        ({"op": "add", "path": "/b", "value": 1}, {"a": {"c": [1, 2]}, "b": 1}),
        ({"op": "add", "path": "/a/c/0", "value": 0}, {"a": {"c": [0, 1, 2]}}),
        ({"op": "add", "path": "/a/c/2", "value": 3}, {"a": {"c": [1, 2, 3]}}),
        ({"op": "add", "path": "/a/c/-", "value": 3}, {"a": {"c": [1, 2, 3]}}),
        ({"op": "add", "path": "", "value": 3}, 3),
        ({"op": "add", "path": "/x~1y~0z", "value": 1}, {"a": {"c": [1, 2]}, "x/y~z": 1}),
        ({"op": "remove", "path": "/a/c/1"}, {"a": {"c": [1]}}),
        ({"op": "remove", "path": "/a"}, {}),
        ({"op": "replace", "path": "/a/c", "value": None}, {"a": {"c": None}}),
        ({"op": "replace", "path": "/a/new", "value": 1}, {"a": {"c": [1, 2], "new": 1}}),
        ({"op": "move", "from": "/a/c/0", "path": "/b"}, {"a": {"c": [2]}, "b": 1}),
        ({"op": "copy", "from": "/a/c", "path": "/b"}, {"a": {"c": [1, 2]}, "b": [1, 2]}),
        ({"op": "copy", "from": "/a/none", "path": "/b"}, {"a": {"c": [1, 2]}, "b": None}),
        ({"op": "test", "path": "/a/c", "value": [1, 2]}, {"a": {"c": [1, 2]}}),
    ],
)
def test_each_operation(operation: Any, after: Any) -> None:
    assert apply_json_patch({"a": {"c": [1, 2]}}, [operation]) == after


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/none"},
        {"op": "remove", "path": "/a/c/2"},
        {"op": "remove", "path": "/a/c/-"},
        {"op": "add", "path": "/none/x", "value": 1},
        {"op": "add", "path": "/a/c/3", "value": 1},
        {"op": "add", "path": "/a/c/01", "value": 1},
        {"op": "add", "path": "/a/c/0/x", "value": 1},
        {"op": "add", "path": "/b"},
        {"op": "add"},
        {"op": "move", "from": "/none", "path": "/b"},
        {"op": "test", "path": "/a/c", "value": [1]},
        {"op": "test", "path": "/a/c/0", "value": True},
        {"op": "test", "path": "/none", "value": None},
        {"op": "destroy", "path": "/a"},
        {"path": "/a"},
    ],
)
def test_what_cannot_be_done_is_refused(operation: Any) -> None:
    with pytest.raises(PatchFailed):
        apply_json_patch({"a": {"c": [1, 2]}}, [operation])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner),
    max_leaves=8,
)
operations = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
            "path": st.lists(st.sampled_from(["a", "b", "0", "-"]), max_size=3).map(
                lambda steps: "".join(f"/{step}" for step in steps)
            ),
            "from": st.sampled_from(["/a", "/b/0", "/a/a"]),
            "value": json_values,
        }
    ),
    max_size=4,
)


@given(json_values, operations)
def test_a_json_patch_never_touches_what_it_is_given(value: Any, patch: Any) -> None:
    before = copy.deepcopy((value, patch))
    with suppress(PatchFailed):
        apply_json_patch(value, patch)
    assert (value, patch) == before


@given(json_values, json_values)
def test_a_merge_patch_never_touches_what_it_is_given_and_comes_to_an_end(
    value: Any, patch: Any
) -> None:
    before = copy.deepcopy((value, patch))
    merged = apply_merge_patch(value, patch)
    assert (value, patch) == before
    # A list that took the place of a mapping loses its nulls only when it is sent again.
    again = apply_merge_patch(merged, patch)
    assert apply_merge_patch(again, patch) == again
    if "null" not in json.dumps(patch):
        assert again == merged


@given(json_values.filter(lambda value: isinstance(value, dict)))
def test_an_empty_merge_patch_changes_nothing(value: Any) -> None:
    assert apply_merge_patch(value, {}) == value


def test_what_stands_before_the_first_slash_of_a_path_is_lost() -> None:
    assert apply_json_patch({}, [{"op": "add", "path": "spec/x", "value": 1}]) == {"x": 1}


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ({}, {"a": [{"b": None, "c": [{"d": None}, None]}]}, {"a": [{"c": [{}, None]}]}),
        ({"a": [1]}, {"a": [{"b": None}]}, {"a": [{}]}),
        ({"a": {"x": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
        ({"a": "x"}, {"a": {"b": None, "c": [{"d": None}]}}, {"a": {"c": [{}]}}),
    ],
)
def test_mappings_in_lists_lose_their_nulls_unless_they_replace_a_mapping(
    before: Any, patch: Any, after: Any
) -> None:
    assert apply_merge_patch(before, patch) == after


KEYS = st.sampled_from(["a", "b", "a/b", "~", "~1", "", "0", "-"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([1.0, "", "x"]),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(KEYS, inside, max_size=4),
    max_leaves=12,
)
MAPPINGS = st.dictionaries(KEYS, VALUES, max_size=4)


@given(before=MAPPINGS, after=MAPPINGS)
def test_the_patch_between_two_values_makes_one_of_the_other(before: Any, after: Any) -> None:
    given_before, given_after = copy.deepcopy(before), copy.deepcopy(after)
    made = apply_json_patch(before, json_patch(before, after))
    assert same(made, after)
    assert (before, after) == (given_before, given_after)


@given(value=MAPPINGS)
def test_there_is_nothing_to_patch_between_equal_values(value: Any) -> None:
    assert json_patch(value, copy.deepcopy(value)) == []


@given(items=st.lists(st.integers(), unique=True, min_size=1, max_size=8), data=st.data())
def test_one_item_more_or_less_is_one_operation(items: list[int], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(items) - 1))
    fewer = items[:place] + items[place + 1 :]
    assert json_patch(items, fewer) == [{"op": "remove", "path": f"/{place}"}]
    added = {"op": "add", "path": f"/{place}", "value": items[place]}
    assert json_patch(fewer, items) == [added]
