"""Rendered objects as parts of an application, and whose an object is."""

from __future__ import annotations

from typing import Any

import pytest

from polyver.definitions.rendered_objects import (
    MOST,
    UnknownKind,
    fields_digest,
    inputs_digest,
    is_prunable,
    place_all,
    stranger,
)
from polyver.definitions.rendering import RenderedObject
from polyver.kube.objects.kinds import ResourceKind

Object = dict[str, Any]
APP: Object = {"metadata": {"name": "shop", "namespace": "default", "uid": "1"}, "spec": {}}
KINDS = {
    ("v1", "ConfigMap"): ResourceKind("", "v1", "ConfigMap", "configmaps", "configmap", True),
    ("v1", "Namespace"): ResourceKind("", "v1", "Namespace", "namespaces", "namespace", False),
    ("ex.io/v1", "Toy"): ResourceKind("ex.io", "v1", "Toy", "toys", "toy", True),
    ("ex.io/v2", "Toy"): ResourceKind("ex.io", "v2", "Toy", "toys", "toy", True),
}


def output(
    kind: str, name: str = "a", at: str = "spec.components[0]", **metadata: Any
) -> RenderedObject:
    version, _, kind = kind.rpartition(" ")
    about = {"name": name, "namespace": "default", **metadata}
    return RenderedObject(
        {"apiVersion": version, "kind": kind, "metadata": about}, "web", at, "web"
    )


def placed(*outputs: RenderedObject) -> tuple[list[Object], list[str]]:
    found, errors = place_all(APP, outputs, lambda *named: KINDS.get(named))
    return [each.object for each in found], [*map(str, errors)]


def test_what_is_in_the_applications_namespace_is_owned_and_what_is_elsewhere_is_labelled() -> None:
    found, errors = placed(
        output("v1 Namespace"), output("v1 ConfigMap"), output("v1 ConfigMap", namespace="other")
    )
    assert not errors
    nowhere, here, there = found
    assert [each["uid"] for each in here["metadata"]["ownerReferences"]] == ["1"]
    for each in (there, nowhere):
        assert "ownerReferences" not in each["metadata"]
        assert each["metadata"]["labels"]["app.oam.dev/namespace"] == "default"
    assert "namespace" not in nowhere["metadata"]


def test_what_others_need_is_applied_first() -> None:
    found, _ = placed(output("v1 ConfigMap"), output("v1 Namespace", "b"))
    assert [each["kind"] for each in found] == ["Namespace", "ConfigMap"]


def test_the_same_object_in_two_versions_is_rendered_twice() -> None:
    one, two = output("ex.io/v1 Toy"), output("ex.io/v2 Toy", at="spec.components[1]")
    [error] = placed(one, two)[1]
    assert error.startswith("Toy default/a is rendered twice (spec.components[1])")
    assert "spec.components[0] also renders it" in error


def test_a_kind_that_is_not_served_is_left_out_and_told() -> None:
    found, errors = place_all(
        APP, [output("v1 ConfigMap"), output("no.io/v1 Toy")], lambda *named: KINDS.get(named)
    )
    assert len(found) == 1
    assert [type(each) for each in errors] == [UnknownKind]
    assert "no no.io/v1 Toy is served (spec.components[0])" in str(errors[0])


def test_too_many_objects_are_refused() -> None:
    found, errors = placed(*(output("v1 ConfigMap", f"a{number}") for number in range(MOST + 1)))
    assert (found, errors) == ([], ["501 objects are rendered, and at most 500 are allowed"])


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "a/status"},
        {"name": ".."},
        {"name": "a?force=true"},
        {"name": "a b"},
        {"namespace": "x/y"},
        {"namespace": 3},
        {"labels": "red"},
        {"labels": ["a"]},
    ],
    ids=str,
)
def test_what_could_be_the_address_of_something_else_is_refused(metadata: Object) -> None:
    found, errors = placed(output("v1 ConfigMap", **{"name": "a", **metadata}))
    assert not found
    [error] = errors
    assert "(spec.components[0])" in error


MINE = {"app.oam.dev/name": "shop", "app.oam.dev/namespace": "default"}
OTHERS = {"app.oam.dev/name": "other", "app.oam.dev/namespace": "default"}
OWNED = {"kind": "Application", "name": "shop", "uid": "1", "controller": True}
APPLIED = {"manager": "polyver-applications", "operation": "Apply", "fieldsV1": {"f:data": {}}}


@pytest.mark.parametrize(
    ("metadata", "whose"),
    [
        ({"labels": MINE, "ownerReferences": [OWNED]}, ""),
        ({"labels": MINE}, ""),
        ({"ownerReferences": [OWNED]}, ""),
        ({}, "another owner"),
        ({"labels": OTHERS}, "Application default/other"),
        ({"labels": MINE, "ownerReferences": [OWNED | {"uid": "2"}]}, "Application shop"),
        (
            {"labels": MINE, "ownerReferences": [OWNED | {"uid": "2", "kind": "Toy"}]},
            "Toy shop",
        ),
    ],
)
def test_whose_an_object_is(metadata: Object, whose: str) -> None:
    assert stranger({"metadata": metadata}, APP) == whose


@pytest.mark.parametrize(
    ("metadata", "goes"),
    [
        ({"labels": MINE, "ownerReferences": [OWNED], "managedFields": [APPLIED]}, True),
        ({"labels": MINE, "managedFields": [APPLIED]}, True),
        ({"labels": MINE}, False),
        ({"labels": OTHERS, "managedFields": [APPLIED]}, False),
        (
            {
                "labels": MINE,
                "ownerReferences": [OWNED, {"uid": "2", "kind": "Toy", "name": "t"}],
                "managedFields": [APPLIED],
            },
            False,
        ),
    ],
)
def test_only_what_was_applied_and_is_nobody_elses_is_deleted(metadata: Object, goes: bool) -> None:
    assert is_prunable({"metadata": metadata}, APP) is goes


def test_whoever_takes_a_field_over_is_noticed_and_whoever_adds_one_is_not() -> None:
    other = {"manager": "x", "operation": "Update", "fieldsV1": {"f:spec": {}}}
    before, added, taken = (
        fields_digest({"metadata": {"managedFields": entries}})
        for entries in ([APPLIED], [other, APPLIED], [other, APPLIED | {"fieldsV1": {}}])
    )
    assert before == added != taken
    assert fields_digest({"metadata": {}}) == ""


def test_notes_of_what_was_done_are_no_reason_to_render_anew() -> None:
    revision = {"name": "shop-v1", "revisionHash": "x"}

    def of(**annotations: str) -> str:
        return inputs_digest(
            {"metadata": {**APP["metadata"], "annotations": annotations}}, revision
        )

    notes = {
        "polyver.dev/applied": "[]",
        "app.polyver.dev/applying": "y",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    assert of() == of(**notes)
    assert of() != of(color="red")
