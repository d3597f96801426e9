"""What comes of a pipeline: resources, references, and what the composite resource says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compositions.composing import bucket, composite, definition
from tests.compositions.running import (
    adding,
    applied,
    as_observed,
    config,
    outcome_of,
    passing,
    resources,
    step,
    wanting,
)

from polyver.capability import Refusal
from polyver.compositions.decisions import Secret, read_definition
from polyver.compositions.messages import (
    Condition,
    Ready,
    Request,
    Resource,
    Response,
    State,
    Status,
)
from polyver.compositions.names import COMPOSITE, RESOURCE, composed_name
from polyver.compositions.pipeline import (
    PipelineOutcome,
    composite_conditions,
    connection_secret,
    observe,
    published_details,
    published_to,
    refused,
)

Object = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"

# What is composed.


def test_a_composed_resource_is_named_labelled_and_owned() -> None:
    [made] = outcome_of(adding("settings", config(size="3"))).apply
    metadata = made.obj["metadata"]
    assert metadata["name"] == composed_name("my-bucket", "7d3a", "settings")
    assert metadata["labels"] == {COMPOSITE: "my-bucket"}
    assert metadata["annotations"] == {RESOURCE: "settings"}
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "custom-api.example.org/v1alpha1",
            "kind": "AcmeBucket",
            "name": "my-bucket",
            "uid": "7d3a",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert not made.exists


def test_what_a_composite_resource_is_composed_of_is_named_after_the_outermost() -> None:
    inner = bucket(labels={COMPOSITE: "whole-shop"})
    [made] = outcome_of(adding("a", config()), obj=inner).apply
    assert made.obj["metadata"]["name"].startswith("whole-shop-")
    assert made.obj["metadata"]["labels"] == {COMPOSITE: "whole-shop"}


def test_names_fit_where_names_and_labels_must() -> None:
    name = composed_name("x" * 49 + "-" * 5 + "y" * 200, "u", "r")
    assert len(name) <= 63
    assert "--" not in name


def test_what_exists_keeps_its_name_and_what_the_server_owns_is_left_out() -> None:
    there = config("older-name", size="3")
    there["metadata"] |= {"annotations": {RESOURCE: "a"}, "uid": "u1", "managedFields": [{}]}
    observed = observe(bucket(), [(there, {})])
    [made] = outcome_of(
        adding("a", {**there, "metadata": {**there["metadata"], "name": "new"}}), observed=observed
    ).apply
    assert (made.obj["metadata"]["name"], made.exists) == ("older-name", True)
    assert not made.obj["metadata"].keys() & {"uid", "managedFields"}


def test_what_is_wanted_no_longer_is_removed_and_what_is_wanted_is_referred_to() -> None:
    before = outcome_of(adding("a", config()), adding("b", config()))
    found = outcome_of(adding("b", config()), adding("c", config()), observed=as_observed(before))
    assert [each.name for each in found.remove] == ["a"]
    assert [name for name, _ in applied(found)] == ["b", "c"]
    assert dict(applied(before))["b"] == dict(applied(found))["b"]
    assert found.references == tuple(
        sorted(
            (
                {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name}
                for _, name in applied(found)
            ),
            key=lambda each: each["name"],
        )
    )


def test_a_resource_of_another_kind_takes_the_place_of_the_old_one() -> None:
    before = outcome_of(adding("a", config("x")))
    found = outcome_of(adding("a", config("x", kind="Secret")), observed=as_observed(before))
    assert [each.obj["kind"] for each in found.apply] == ["Secret"]
    assert [each.obj["kind"] for each in found.remove] == ["ConfigMap"]


def test_what_somebody_else_controls_is_not_observed() -> None:
    obj = config("x")
    obj["metadata"] |= {
        "annotations": {RESOURCE: "a"},
        "ownerReferences": [{"uid": "other", "controller": True}],
    }
    assert observe(bucket(), [(obj, {})]) == {}
    del obj["metadata"]["ownerReferences"]
    assert observe(bucket(), [(obj, {"k": b"v"})])["a"].connection_details == {"k": b"v"}
    del obj["metadata"]["annotations"]
    with pytest.raises(Refusal, match="ConfigMap shop/x has no name"):
        observe(bucket(), [(obj, {})])


CONTROLLED = {**config("x"), "metadata": {"ownerReferences": [{"uid": "o", "controller": True}]}}


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ({"": config("x")}, "a desired resource has no name in the pipeline"),
        ({"a": {}}, 'the desired resource "a" is invalid: it has no apiVersion'),
        ({"a": {"apiVersion": "v1", "kind": 3}}, "it has no kind (kind)"),
        ({"a": {**config(), "metadata": "x"}}, "it is not a mapping (metadata)"),
        ({"a": {**config(), "metadata": {"labels": []}, "x": 1}}, None),
        ({"a": {**config(), "metadata": {"labels": ["x"]}}}, "not a mapping (metadata.labels)"),
        ({"a": {**config(), "metadata": {"name": 3}}}, "it is not a string (metadata.name)"),
        ({"a": {**config(), "metadata": {"name": 0}}}, "it is not a string (metadata.name)"),
        ({"a": {**config(), "metadata": {"ownerReferences": ["x"]}}}, "not a list of mappings"),
        ({"a": CONTROLLED}, '"a" has another controller'),
        ({"a": config("x"), "b": config("x")}, '"b" is the same object as "a": ConfigMap shop/x'),
        ({"a": bucket()}, '"a" is the same object as the composite resource itself'),
    ],
)
def test_what_cannot_be_applied_is_an_error_and_nothing_is_done(
    resources: Object, told: str | None
) -> None:
    found = outcome_of(lambda request: passing(request, desired=wanting(**resources)))
    if told is None:
        assert found.failure is None
        return
    assert found.failure is not None
    assert found.failure.reason == "InvalidDesired"
    assert told in found.failure.message
    assert found.apply == ()


def test_what_a_composite_resource_in_a_namespace_is_composed_of_is_there_too() -> None:
    here = bucket(namespace="shop")
    plain: Object = {"apiVersion": "v1", "kind": "ConfigMap"}
    [made] = outcome_of(adding("a", plain), obj=here).apply
    assert made.obj["metadata"]["namespace"] == "shop"
    found = outcome_of(adding("a", config(namespace="other")), obj=here)
    assert found.failure is not None
    assert "in the namespace other" in found.failure.message


# What the composite resource says.


def test_it_is_ready_when_all_that_it_is_composed_of_is() -> None:
    assert outcome_of(passing).ready
    both = adding("a", config(), ready=Ready.TRUE), adding("b", config(), ready=Ready.UNSPECIFIED)
    found = outcome_of(*both)
    assert (found.ready, found.unready) == (False, ("b",))
    assert outcome_of(both[0]).ready


@pytest.mark.parametrize(("said", "ready"), [(Ready.TRUE, True), (Ready.FALSE, False)])
def test_what_a_function_says_of_the_whole_counts(said: Ready, ready: bool) -> None:
    other = Ready.FALSE if ready else Ready.TRUE

    def says(request: Request) -> Response:
        composite_ = replace(request.desired.composite, ready=said)
        return passing(request, desired=replace(request.desired, composite=composite_))

    assert outcome_of(adding("a", config(), ready=other), says).ready is ready


def test_the_status_has_what_functions_want_and_which_revisions_they_were() -> None:
    def says(request: Request) -> Response:
        status = {"url": "s3://x", "pipeline": "mine", "conditions": [{"type": "Ready"}]}
        whole = Resource({"spec": {"size": 9}, "status": status}, {"password": b"x", "user": b"y"})
        return passing(request, desired=State(whole))

    found = outcome_of(says, passing)
    assert found.status == {
        "url": "s3://x",
        "pipeline": [step("s0").record, step("s1").record],
    }
    assert found.status["pipeline"][0]["revision"] == "function-s0-0123456789ab"
    keys = read_definition(definition(connectionSecretKeys=["user"]))
    assert published_details(found, keys) == {"user": b"y"}
    assert published_details(found, read_definition(definition())).keys() == {"password", "user"}


def test_connection_details_are_published_where_somebody_says() -> None:
    revision: Object = {"spec": {"writeConnectionSecretsToNamespace": "secrets"}}
    reference = {"name": "mine", "namespace": "shop"}
    asked = composite(bucket(writeConnectionSecretToRef=reference))
    assert published_to(asked, revision) == Secret("shop", "mine")
    assert published_to(composite(), revision) == Secret("secrets", "7d3a")
    assert published_to(composite(), {"spec": {}}) is None
    assert connection_secret(bucket()) is None


def conditions(found: PipelineOutcome, before: Object | None = None, **more: Any) -> Object:
    obj = {**bucket(), "status": {"conditions": [*(before or {}).values()]}}
    return {each["type"]: each for each in composite_conditions(obj, found, now=NOW, **more)}


def test_conditions_say_whether_it_is_composed_and_ready() -> None:
    found = conditions(outcome_of(adding("b", config()), adding("a", config())))
    assert (found["Synced"]["status"], found["Synced"]["reason"]) == ("True", "ReconcileSuccess")
    assert (found["Ready"]["status"], found["Ready"]["message"]) == ("False", "not ready: a, b")
    again = conditions(outcome_of(adding("a", config(), ready=Ready.TRUE)), found)
    assert (again["Ready"]["status"], again["Ready"]["reason"]) == ("True", "Available")
    wrong = conditions(outcome_of(passing), unsynced=["b", "a"])
    assert (wrong["Synced"]["status"], wrong["Synced"]["message"]) == (
        "False",
        "not accepted: a, b",
    )


def test_a_failure_says_why_and_leaves_alone_whether_it_is_ready() -> None:
    def tells(request: Request) -> Response:
        return passing(request, conditions=(Condition("Queued", Status.TRUE, "Yes"),))

    before = conditions(outcome_of(tells))
    refusal = Refusal(
        "NoActiveRevision", "function a has no active revision", at="spec.pipeline[0]"
    )
    found = refused(refusal)
    after = conditions(found, before)
    assert (after["Synced"]["status"], after["Synced"]["reason"]) == ("False", "NoActiveRevision")
    assert after["Synced"]["message"] == "function a has no active revision (spec.pipeline[0])"
    assert after["Ready"] == before["Ready"]
    assert (after["Queued"]["status"], after["Queued"]["reason"]) == ("Unknown", "FatalError")
    assert [(each.type, each.reason) for each in found.events] == [("Warning", "NoActiveRevision")]


# Whatever functions want.


@given(resources, st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_steps_that_pass_on_what_they_get_want_nothing_to_change(
    wanted: dict[str, Resource], length: int
) -> None:
    first = outcome_of(lambda request: passing(request, desired=State(resources=wanted)))
    observed = as_observed(first)
    same = {name: replace(each, ready=wanted[name].ready) for name, each in observed.items()}
    nothing = outcome_of(*[passing] * length)
    assert (nothing.apply, nothing.remove) == ((), ())
    found = outcome_of(
        lambda request: passing(request, desired=State(resources=same)),
        *[passing] * length,
        observed=observed,
    )
    assert found.remove == ()
    assert found.references == first.references
    assert [replace(each, exists=False) for each in found.apply] == [*first.apply]


scalars: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, 1.5, "", "x", [], {}, ["x"], {"x": "y"}, [{}]]
)
metadata = st.dictionaries(
    st.sampled_from(
        ["name", "namespace", "labels", "annotations", "ownerReferences", "uid", "generateName"]
    ),
    scalars,
)
objects = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.one_of(st.just("v1"), scalars),
        "kind": st.one_of(st.just("ConfigMap"), scalars),
        "metadata": st.one_of(metadata, scalars),
        "status": scalars,
    },
)


@given(st.dictionaries(st.sampled_from(["", "a", "b"]), objects), objects)
@settings(max_examples=200, deadline=None)
def test_whatever_a_function_wants_is_done_or_refused_as_a_whole(
    wanted: dict[str, Object], whole: Object
) -> None:
    desired = State(Resource(whole), {name: Resource(obj) for name, obj in wanted.items()})
    found = outcome_of(lambda request: passing(request, desired=desired))
    if found.failure is not None:
        assert (found.apply, found.references, found.status) == ((), (), {})
        return
    assert {each.name for each in found.apply} == wanted.keys()
    for each in found.apply:
        about = each.obj["metadata"]
        assert about["name"]
        assert about["annotations"][RESOURCE] == each.name
        assert [own["uid"] for own in about["ownerReferences"] if own.get("controller")] == ["7d3a"]
