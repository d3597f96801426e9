"""Comparing: what is noise is gone, what is not is explained in one line."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.cases import load_cases
from tests.kube.explain import differences
from tests.kube.leeway import leeway
from tests.kube.paths import omit, pick
from tests.kube.record import transcript
from tests.kube.stable import Stable

CONFLICT = "update-with-a-stale-version-conflicts"


def explained(change: Any) -> list[str]:
    """A real transcript against the same one after a change."""
    expected = transcript(CONFLICT)
    assert expected is not None
    got = copy.deepcopy(expected)
    change(got)
    return [str(difference) for difference in differences(CONFLICT, expected, got)]


def test_equal_transcripts_have_nothing_to_explain() -> None:
    assert explained(lambda got: None) == []


def test_a_difference_names_the_case_the_step_the_field_and_both_values() -> None:
    [line] = explained(lambda got: got[1]["body"]["metadata"].update(generation=1))
    assert line == (
        f"{CONFLICT}, step 2 (PUT /apis/$group/v1/namespaces/$ns/widgets/a): "
        "body.metadata.generation: the real server says 2, got 1"
    )


@pytest.mark.parametrize(
    ("change", "explanation"),
    [
        (lambda got: got[2].update(status=200), "status: the real server says 409, got 200"),
        (
            lambda got: got[2]["body"].pop("reason"),
            'body.reason: the real server says "Conflict", got nothing',
        ),
        (
            lambda got: got[2]["body"]["details"].update(more=1),
            "body.details.more: the real server says nothing, got 1",
        ),
        (
            lambda got: got[0]["headers"].update(Warning=["299 - x"]),
            'headers.Warning: the real server says nothing, got ["299 - x"]',
        ),
        (
            lambda got: got[0]["body"]["metadata"]["managedFields"].append({}),
            "body.metadata.managedFields[1]: the real server says nothing, got {}",
        ),
        (lambda got: got[0]["body"]["spec"].update(replicas=True), "says 1, got true"),
        (lambda got: got[0]["body"]["spec"].update(replicas="1"), 'says 1, got "1"'),
        (lambda got: got.pop(), "steps: the real server says 3 steps, got 2"),
    ],
)
def test_each_kind_of_difference_is_explained(change: Any, explanation: str) -> None:
    [line] = explained(change)
    assert line.endswith(explanation)


def test_the_status_is_named_before_what_follows_from_it() -> None:
    def another_error(got: Any) -> None:
        got[2] = {**got[2], "status": 404, "body": {"code": 404, "message": "not found"}}

    [line] = explained(another_error)
    assert "status: the real server says 409, got 404" in line


def test_each_step_that_differs_is_named_once() -> None:
    def everything(got: Any) -> None:
        for answer in got:
            answer["status"] = 500

    assert len(explained(everything)) == 3


def stable(*values: Any, **known: str) -> list[Any]:
    names = Stable({text: name for name, text in known.items()})
    return [names.value(value) for value in values]


UID = "0f0e5b0c-3c52-4d0e-9b1d-6d4d0c3f1a01"
OTHER = "0f0e5b0c-3c52-4d0e-9b1d-6d4d0c3f1a02"


def test_equal_things_get_equal_names() -> None:
    first, again, other = stable({"uid": UID}, {"uid": UID}, {"uid": OTHER})
    assert first == again == {"uid": "<uid-1>"}
    assert other == {"uid": "<uid-2>"}
    assert stable({"resourceVersion": "7"}, {"resourceVersion": "9"}, {"resourceVersion": "7"}) == [
        {"resourceVersion": "<rv-1>"},
        {"resourceVersion": "<rv-2>"},
        {"resourceVersion": "<rv-1>"},
    ]


def test_a_list_does_not_use_up_a_name() -> None:
    listed, item = stable(
        {"items": [], "metadata": {"resourceVersion": "5"}}, {"resourceVersion": "7"}
    )
    assert listed["metadata"]["resourceVersion"] == "<list-rv>"
    assert item["resourceVersion"] == "<rv-1>"


def test_a_uid_in_a_message_is_the_one_of_the_object() -> None:
    _, message = stable({"uid": UID}, f"UID in object meta: {UID}")
    assert message == "UID in object meta: <uid-1>"


def test_a_resource_version_in_a_text_is_the_one_of_the_object() -> None:
    assert stable(
        {"resourceVersion": "412"},
        'object {"metadata":{"resourceVersion":"412"}}',
        'metadata:\n  resourceVersion: "412"',
        "does not match the ResourceVersion in record (412).",
    )[1:] == [
        'object {"metadata":{"resourceVersion":"<rv-1>"}}',
        'metadata:\n  resourceVersion: "<rv-1>"',
        "does not match the ResourceVersion in record (<rv-1>).",
    ]


def test_generated_names_times_addresses_and_tokens_are_named() -> None:
    assert stable(
        {"generateName": "a-", "name": "a-x7k2p"},
        'configmaps "a-x7k2p" not found',
        "2026-11-15T10:00:00Z",
        "2026-11-15T10:00:00.123456Z",
        "dial tcp 127.0.0.1:34567",
        {"continue": "eyJ2IjoibWV0YS5rOHMuaW8vdjEi"},
        {"continue": ""},
        "Too large resource version: 999999, current: 412",
        server="127.0.0.1:34567",
    ) == [
        {"generateName": "a-", "name": "a-<suffix>"},
        'configmaps "a-<suffix>" not found',
        "<time>",
        "<time>",
        "dial tcp <server>",
        {"continue": "<continue>"},
        {"continue": ""},
        "Too large resource version: 999999, current: <rv>",
    ]


def test_what_was_printed_loses_its_ages_and_widths() -> None:
    printed = Stable({}).printed("NAME    AGE\na       12s\nlonger  1m3s \n")
    assert printed == ["NAME  AGE", "a  <age>", "longer  <age>"]


def test_managed_fields_are_sorted_by_who_and_not_by_when() -> None:
    entries = [{"manager": "b", "operation": "Update"}, {"manager": "a", "operation": "Update"}]
    assert stable({"managedFields": entries}) == stable({"managedFields": entries[::-1]})


@given(st.dictionaries(st.text("ab", min_size=1), st.integers() | st.text("xyz")))
def test_what_is_no_noise_stays(value: dict[str, Any]) -> None:
    assert stable(value) == [value]


OBJECT = {"items": [{"name": "a", "ports": [1, 2]}, {"name": "b", "x.y/z": {"k": 1}}]}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("items[0].name", "a"),
        ("items[name=b].name", "b"),
        ("items[0].ports[1]", 2),
        ('items[1]."x.y/z".k', 1),
        ("items[9].name", None),
        ("items[name=c].name", None),
        ("nothing.at.all", None),
    ],
)
def test_paths_pick(path: str, found: object) -> None:
    assert pick(OBJECT, path) == found


def test_paths_omit_from_each_item() -> None:
    value = copy.deepcopy(OBJECT)
    omit(value, "items.name")
    omit(value, "items.ports")
    omit(value, "not.there")
    assert value == {"items": [{}, {"x.y/z": {"k": 1}}]}


def test_there_are_cases_for_each_kind_of_step() -> None:
    steps = [step for case in load_cases().values() for step in case.steps]
    assert {step.method for step in steps} >= {"GET", "POST", "PUT", "PATCH", "DELETE"}
    assert any(step.kubectl for step in steps)
    assert any(step.watch for step in steps)


def test_prose_is_kept_as_being_there() -> None:
    words, none, short = stable(
        {"description": "Says what it is for."}, {"type": "string"}, {"description": "OK"}
    )
    assert (words, none, short) == (
        {"description": "<words>"},
        {"type": "string"},
        {"description": "OK"},
    )


def test_of_what_kubectl_explains_the_fields_stay_and_the_words_are_named() -> None:
    printed = "FIELDS:\n  kind\t<string>\n    What it is,\n    in a word.\n\n  spec\t<Object>\n"
    assert Stable({}).explained(f"{printed}    <no description>\n\n") == [
        "FIELDS:",
        "  kind\t<string>",
        "  <words>",
        "",
        "  spec\t<Object>",
        "  <no description>",
        "",
    ]


def test_a_version_is_told_without_its_build() -> None:
    given = {"minor": "37", "gitVersion": "v1.37.1+mine", "goVersion": "go1.26", "platform": "x"}
    [version] = stable(given)
    assert (version["minor"], version["gitVersion"]) == ("37", "v1.37.1")
    assert version["goVersion"] == version["platform"] == "<build>"
    assert stable({"platform": "x"}) == [{"platform": "x"}]


def left(field: str, theirs: Any, ours: Any) -> list[str]:
    """What is still a difference, with the leeway that the embedded server has."""
    one, other = [{field: theirs}], [{field: ours} if ours is not None else {}]
    return [str(each) for each in differences("x", one, other, leeway=leeway)]


@pytest.mark.parametrize(
    ("ours", "enough"),
    [
        (["v1", "v2"], True),
        (["v1", "v1", "v2"], True),
        (["v2", "v1"], False),
        (["v1"], False),
        (["v1", "v2", "v2"], False),
        (["v1", "v2", "v1"], False),
        ([], False),
    ],
)
def test_a_webhook_is_asked_all_that_is_needed_in_order(ours: list[str], enough: bool) -> None:
    assert (left("calls", ["v1", "v1", "v1", "v2"], ours) == []) is enough


def test_calls_that_are_not_repeated_are_compared_as_they_are() -> None:
    assert left("calls", ["v2"], ["v2"]) == []
    assert left("calls", ["v2"], []) != []
    assert left("calls", [], ["v2"]) != []
    assert left("calls", ["v2"], None) != []


def test_only_the_protobuf_form_of_an_answer_may_be_missing() -> None:
    def responses(*media: str) -> Any:
        return {"200": {"content": {each: {} for each in media}}}

    protobuf = "application/vnd.kubernetes.protobuf"
    theirs = responses("application/json", protobuf)
    assert left("patch.responses", theirs, responses("application/json")) == []
    assert left("patch.responses", theirs, responses(protobuf)) != []
    assert left("patch.requestBody", theirs, responses("application/json")) != []
    assert left("patch.responses", responses("application/json"), theirs) != []
