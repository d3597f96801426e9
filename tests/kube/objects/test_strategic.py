"""Strategic merge patches: what Go's own library makes of them, and what holds for any."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.status import ApiError
from polyver.kube.objects.strategic import apply_strategic_merge
from polyver.kube.objects.type_shapes import Shape

RECORDED = json.loads(
    (Path(__file__).parents[2] / "peers" / "recorded_strategic.json").read_text(encoding="utf-8")
)["patches"]
ORIGINALS = {json.dumps(each["original"]): each for each in RECORDED}.values()
DIRECTIVES = ["$patch", "$retainKeys", "$setElementOrder/ports", "$deleteFromPrimitiveList/ports"]


def shape(recorded: dict[str, Any]) -> Shape:
    group, _, version = recorded["apiVersion"].rpartition("/")
    return shape_of(group, version, recorded["kind"])


def described(recorded: dict[str, Any]) -> str:
    return f"{recorded['kind']} {json.dumps(recorded['patch'])[:60]}"


def done(recorded: dict[str, Any]) -> dict[str, Any]:
    return apply_strategic_merge(recorded["original"], recorded["patch"], shape(recorded))


@pytest.mark.parametrize("recorded", [each for each in RECORDED if "result" in each], ids=described)
def test_a_patch_does_what_it_does_in_go(recorded: dict[str, Any]) -> None:
    assert done(recorded) == recorded["result"]


@pytest.mark.parametrize("recorded", [each for each in RECORDED if "status" in each], ids=described)
def test_a_patch_that_go_refuses_is_refused_with_its_words(recorded: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refusal:
        done(recorded)
    told = {key: refusal.value.status.get(key) for key in ("message", "code", "reason", "details")}
    assert told == {key: recorded["status"].get(key) for key in told}


@pytest.mark.parametrize("recorded", [each for each in RECORDED if "panic" in each], ids=described)
def test_a_patch_that_stops_go_is_a_bad_request(recorded: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refusal:
        done(recorded)
    assert (refusal.value.code, refusal.value.reason) == (400, "BadRequest")


def test_the_peers_were_asked_for_all_three_outcomes() -> None:
    outcomes = [{"result", "status", "panic"} & each.keys() for each in RECORDED]
    assert {name for outcome in outcomes for name in outcome} == {"result", "status", "panic"}
    assert len(RECORDED) > 300


@pytest.mark.parametrize("recorded", RECORDED, ids=described)
def test_a_patch_changes_neither_the_object_nor_itself(recorded: dict[str, Any]) -> None:
    given = copy.deepcopy(recorded)
    with suppress(ApiError):
        done(given)
    assert given == recorded


@pytest.mark.parametrize("recorded", ORIGINALS, ids=lambda each: str(each["kind"]))
def test_an_empty_patch_changes_nothing(recorded: dict[str, Any]) -> None:
    assert apply_strategic_merge(recorded["original"], {}, shape(recorded)) == recorded["original"]


def json_values(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b", "delete"])
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    )


KEYS = st.sampled_from(["ports", "name", "sub", "map", "plain", *DIRECTIVES])
SHAPE = Shape("object", name="v1.Thing")
SHAPE.fields = {
    "ports": Shape("array", items=SHAPE, merges=True, merge_key="name"),
    "plain": Shape("array", items=SHAPE),
    "name": Shape("string"),
    "sub": SHAPE,
    "map": Shape("object", values=Shape("string")),
}
OBJECTS = st.dictionaries(KEYS, json_values(KEYS), max_size=4)


@given(OBJECTS, OBJECTS)
def test_any_patch_gives_an_object_or_a_refusal(
    value: dict[str, Any], patch: dict[str, Any]
) -> None:
    before = copy.deepcopy((value, patch))
    try:
        merged = apply_strategic_merge(value, patch, SHAPE)
    except ApiError as refusal:
        merged = refusal.status
    json.dumps(merged)
    assert (value, patch) == before


@given(OBJECTS)
def test_an_empty_patch_is_identity(value: dict[str, Any]) -> None:
    assert apply_strategic_merge(value, {}, SHAPE) == value


@given(st.permutations(["a", "b", "c", "d"]), st.sets(st.sampled_from("abcdef")))
def test_what_an_order_names_comes_in_that_order(order: list[str], there: set[str]) -> None:
    items = [{"name": name} for name in sorted(there)]
    patch = {"$setElementOrder/ports": [{"name": name} for name in order]}
    if not items:
        return
    merged = apply_strategic_merge({"ports": items}, patch, SHAPE)["ports"]
    names = [item["name"] for item in merged]
    assert sorted(names) == sorted(there)
    assert [name for name in names if name in order] == [name for name in order if name in there]


def test_a_patch_nested_without_end_is_refused() -> None:
    patch: dict[str, Any] = {}
    for _ in range(100_000):
        patch = {"sub": patch}
    with pytest.raises(ApiError, match="nested too deeply"):
        apply_strategic_merge({}, patch, SHAPE)
