"""Which steps of which compositions count as users of a function."""

from __future__ import annotations

from typing import Any

import pytest

from polyver.compositions.decisions import check_pipeline
from polyver.compositions.packages import pipeline_of, revision_used, uses_in
from polyver.core import UNSPECIFIED, Exact, Labels

Object = dict[str, Any]


def composition_revision(name: str, composition: str, number: int, *steps: Object) -> Object:
    return {
        "metadata": {"name": name, "labels": {"crossplane.io/composition-name": composition}},
        "spec": {"revision": number, "mode": "Pipeline", "pipeline": [*steps]},
    }


def step(function: str, **more: Any) -> Object:
    return {"step": function, "functionRef": {"name": function}, **more}


def test_a_step_asks_by_name_by_labels_or_for_nothing() -> None:
    by_labels = {"matchLabels": {"release-channel": "alpha"}}
    found = pipeline_of(
        composition_revision(
            "shop-0123456",
            "shop",
            3,
            step("a", functionRevisionRef={"name": "a-0123456789ab"}),
            step("b", functionRevisionSelector=by_labels),
            step("c"),
            step("d", functionRevisionRef={"name": "d-1"}, functionRevisionSelector=by_labels),
        )
    )
    assert [(use.function, use.selector) for use in found.uses] == [
        ("a", Exact("a-0123456789ab")),
        ("b", Labels.of({"release-channel": "alpha"})),
        ("c", UNSPECIFIED),
        ("d", Exact("d-1")),
    ]
    assert found.uses[1].dependent.name == "CompositionRevision shop-0123456"
    assert found.uses[1].dependent.at == "spec.pipeline[1]"


def test_the_newest_of_a_composition_counts_and_what_somebody_uses() -> None:
    pipelines = [
        pipeline_of(composition_revision(f"{name}-{number}", name, number, step(f"{name}{number}")))
        for name in ("a", "b")
        for number in (9, 10, 11)
    ]
    assert [use.function for use in uses_in(pipelines, {"b-9", "gone-1"})] == ["a11", "b9", "b11"]


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {"pipeline": "x"},
        {"pipeline": [None, 1, {"functionRef": "x"}, {"functionRef": {"name": 1}}]},
        {"revision": "x", "pipeline": [{}]},
        {"revision": -1},
    ],
)
def test_what_makes_no_sense_asks_for_nothing(spec: object) -> None:
    found = pipeline_of({"metadata": {"name": "x"}, "spec": spec})
    assert (found.composition, found.number, found.uses) == ("x", 1, ())


def test_without_the_feature_a_step_that_chooses_is_refused_with_its_place() -> None:
    composition = composition_revision(
        *("shop-1", "shop", 1),
        step("a"),
        step("b", functionRevisionSelector={"matchLabels": {"channel": "alpha"}}),
        step("c", functionRevisionRef={"name": "c-0123456789ab"}),
    )
    assert [(each.reason, each.at) for each in check_pipeline(composition)] == [
        ("FeatureOff", "spec.pipeline[1].functionRevisionSelector"),
        ("FeatureOff", "spec.pipeline[2].functionRevisionRef"),
    ]
    assert check_pipeline(composition_revision("shop-1", "shop", 1, step("a"))) == []


def test_a_composite_resource_says_what_it_uses_in_one_of_two_places() -> None:
    reference = {"compositionRevisionRef": {"name": "shop-0123456"}}
    assert revision_used({"spec": reference}) == "shop-0123456"
    assert revision_used({"spec": {"crossplane": reference}}) == "shop-0123456"
    assert revision_used({"spec": {"compositionRevisionRef": "x"}}) == ""
