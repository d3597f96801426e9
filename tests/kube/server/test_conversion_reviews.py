"""Reading and writing ConversionReviews; the texts are those that the real server was seen with."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.objects.converted_metadata import InvalidMetadata, fresh, restored
from polyver.kube.objects.status import ApiError
from polyver.kube.server.conversion.reviews import ConversionRequest, review_version
from polyver.kube.server.conversion.statuses import WebhookResponse, problem_of, retry_after
from polyver.languages.values.manifests import dump_yaml

Object = dict[str, Any]
UID = "5fef9bca-fc97-440a-951c-2c370ad8220b"
SOURCE = "conversion webhook for ex.io/v2, Kind=Gadget"
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
STRUCT = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)


def gadget(**metadata: Any) -> Object:
    known = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 1}
    return {
        "apiVersion": "ex.io/v2",
        "kind": "Gadget",
        "metadata": known | {"labels": {"x": "1"}} | metadata,
        "spec": {"host": "h"},
    }


def review(version: str = "v1") -> ConversionRequest:
    return ConversionRequest(gadget(), "ex.io/v1", UID, version)


def answer(version: str = "v1") -> Object:
    item = copy.deepcopy(gadget()) | {"apiVersion": "ex.io/v1", "spec": {"hostPort": "h:80"}}
    return {
        "apiVersion": f"apiextensions.k8s.io/{version}",
        "kind": "ConversionReview",
        "response": {"uid": UID, "result": {"status": "Success"}, "convertedObjects": [item]},
    }


def refusal(body: object, version: str = "v1") -> str:
    text = body if isinstance(body, str) else json.dumps(body)
    with pytest.raises(ApiError) as refused:
        review(version).converted(text.encode())
    assert (refused.value.code, refused.value.reason) == (500, "")
    assert refused.value.details is None
    return refused.value.message


def test_a_review_is_written_as_the_real_server_writes_it() -> None:
    sent = json.loads(review().body)
    item = gadget()
    del item["metadata"]["resourceVersion"]
    assert sent == {
        "kind": "ConversionReview",
        "apiVersion": "apiextensions.k8s.io/v1",
        "request": {"uid": UID, "desiredAPIVersion": "ex.io/v1", "objects": [item]},
        "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
    }
    assert list(sent) == ["kind", "apiVersion", "request", "response"]


def test_the_object_that_is_sent_stays_as_it_is() -> None:
    asked = review()
    assert asked.body
    assert asked.obj == gadget()


def test_the_first_known_version_of_a_review_is_taken() -> None:
    assert review_version(["v9", "v1", "v1beta1"]) == "v1"
    assert json.loads(review("v1beta1").body)["apiVersion"] == "apiextensions.k8s.io/v1beta1"
    with pytest.raises(ApiError, match=r"^no supported conversion review versions$"):
        review_version(["v9"])


def test_an_answer_holds_the_object_with_its_metadata_put_back() -> None:
    good = answer()
    good["response"]["convertedObjects"][0]["metadata"] |= {
        "resourceVersion": "9",
        "generation": 5,
        "finalizers": ["ex.io/mine"],
        "labels": {"y": "2"},
        "annotations": {"a": "b"},
    }
    found = review().converted(json.dumps(good).encode())
    assert found["metadata"] == gadget(labels={"y": "2"}, annotations={"a": "b"})["metadata"]
    assert found["spec"] == {"hostPort": "h:80"}


def test_numbers_are_read_as_the_real_server_reads_them() -> None:
    good = answer()
    good["response"]["convertedObjects"][0]["spec"] = {"a": 5.0, "b": 0.5, "c": 2**53 + 1}
    found = review().converted(json.dumps(good).encode())
    assert json.dumps(found["spec"]) == '{"a": 5, "b": 0.5, "c": 9007199254740993}'


def test_an_answer_may_be_yaml() -> None:
    assert review().converted(dump_yaml(answer()).encode())["apiVersion"] == "ex.io/v1"


def test_bytes_that_are_no_text_are_replaced() -> None:
    good = json.dumps(answer()).replace("h:80", "~").encode().replace(b"~", b"\xff")
    assert review().converted(good)["spec"] == {"hostPort": "\ufffd"}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "{}",
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview,"
            " got /, Kind=",
        ),
        (
            "null",
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview,"
            " got /, Kind=",
        ),
        (
            '{"kind": "ConversionReview"}',
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview,"
            " got /, Kind=ConversionReview",
        ),
        (
            '{"apiVersion": "apiextensions.k8s.io/v1"}',
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview,"
            " got apiextensions.k8s.io/v1, Kind=",
        ),
        (
            "[]",
            "couldn't get version/kind; json parse error: json: cannot unmarshal array"
            f" into Go value of type {STRUCT}",
        ),
        (
            "not json",
            "couldn't get version/kind; json parse error: json: cannot unmarshal string"
            f" into Go value of type {STRUCT}",
        ),
        (
            "5",
            "couldn't get version/kind; json parse error: json: cannot unmarshal number"
            f" into Go value of type {STRUCT}",
        ),
        ('{"a":', "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (
            '{"a": tru}',
            "couldn't get version/kind; json parse error: invalid character '}' in literal true"
            " (expecting 'e')",
        ),
        (
            '{"kind": 5}',
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into"
            " Go struct field .kind of type string",
        ),
        (
            '{"apiVersion": "v1", "kind": "Status", "status": "Failure"}',
            "converting (v1.Status) to (v1.ConversionReview): unknown conversion",
        ),
        (
            '{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}',
            "converting (v1.CustomResourceDefinition) to (v1.ConversionReview): unknown conversion",
        ),
        (
            '{"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "ConversionReview"}',
            "converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
        ),
        (
            '{"apiVersion": "v1", "kind": "Pod"}',
            'no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
        (
            '{"apiVersion": "apiextensions.k8s.io/v2", "kind": "ConversionReview"}',
            'no kind "ConversionReview" is registered for version "apiextensions.k8s.io/v2"'
            ' in scheme "pkg/runtime/scheme.go:111"',
        ),
        (
            '{"apiVersion": "a/b/c", "kind": "ConversionReview"}',
            "unexpected GroupVersion string: a/b/c",
        ),
    ],
)
def test_what_is_no_review_is_refused(body: str, text: str) -> None:
    assert refusal(body) == f"{SOURCE} failed: {text}"


FIELD = "json: cannot unmarshal {} into Go struct field {} of type {}"


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (None, "no response provided"),
        (
            "x",
            FIELD.format("string", "ConversionReview.response", "v1.ConversionResponse"),
        ),
        ([], FIELD.format("array", "ConversionReview.response", "v1.ConversionResponse")),
        ({"uid": 5}, FIELD.format("number", "ConversionResponse.response.uid", "types.UID")),
        ({}, f'expected response.uid="{UID}", got ""'),
        ({"uid": 'a"b\n'}, f'expected response.uid="{UID}", got "a\\"b\\n"'),
        (
            {"uid": UID, "result": "x"},
            FIELD.format("string", "ConversionResponse.response.result", "v1.Status"),
        ),
        (
            {"uid": UID, "result": {"status": 5}},
            FIELD.format("number", "Status.response.result.status", "string"),
        ),
        ({"uid": UID}, "response.result.status was '', not 'Success'"),
        ({"uid": UID, "result": None}, "response.result.status was '', not 'Success'"),
        (
            {"uid": UID, "result": {"status": "success"}},
            "response.result.status was 'success', not 'Success'",
        ),
        ({"uid": UID, "result": {"message": "m"}}, "m"),
        ({"uid": UID, "result": {"status": "Failure", "message": "no", "code": 422}}, "no"),
        (
            {"uid": UID, "result": {"status": "Success"}, "convertedObjects": {}},
            FIELD.format(
                "object",
                "ConversionResponse.response.convertedObjects",
                "[]runtime.RawExtension",
            ),
        ),
    ],
)
def test_a_response_without_objects_is_refused(response: object, text: str) -> None:
    assert refusal(answer() | {"response": response}) == f"{SOURCE} failed: {text}"


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        (None, f"{SOURCE} returned 0 objects, expected 1"),
        ([], f"{SOURCE} returned 0 objects, expected 1"),
        ([{}, {}], f"{SOURCE} returned 2 objects, expected 1"),
        ([None], "unexpected end of JSON input"),
        (["x"], "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        ([5], "json: cannot unmarshal number into Go value of type map[string]interface {}"),
        ([[]], "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ([True], "json: cannot unmarshal bool into Go value of type map[string]interface {}"),
        ([{}], "Object 'Kind' is missing in '{}'"),
        ([{"kind": 5}], "Object 'Kind' is missing in '{\"kind\": 5}'"),
        (
            [{"kind": "Gadget"}],
            f"{SOURCE} returned invalid object at index 0: invalid groupVersion"
            " (expected ex.io/v1, received )",
        ),
        (
            [{"kind": "Other", "apiVersion": "v1"}],
            f"{SOURCE} returned invalid object at index 0: invalid groupVersion"
            " (expected ex.io/v1, received v1)",
        ),
        (
            [{"kind": "Other", "apiVersion": "ex.io/v1"}],
            f"{SOURCE} returned invalid object at index 0: invalid kind"
            " (expected Gadget, received Other)",
        ),
        (
            [{"kind": "Gadget", "apiVersion": "ex.io/v1", "metadata": "x"}],
            f"{SOURCE} returned invalid object: must have the same name: a != ",
        ),
    ],
)
def test_an_answer_with_other_objects_is_refused(objects: object, text: str) -> None:
    body = answer()
    body["response"]["convertedObjects"] = objects
    assert refusal(body) == text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda meta: meta.update(uid=None), "object: must have the same UID: u != "),
        (lambda meta: meta.pop("namespace"), "object: must have the same namespace: n != "),
        (
            lambda meta: meta.update(labels=[]),
            "metadata: invalid metadata.labels of type []interface {} in converted object",
        ),
        (
            lambda meta: meta.update(labels={"a": 5}),
            "metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
        (
            lambda meta: meta.update(labels={"a": None}),
            "metadata: metadata.labels[a] must be a string, but is <nil> in converted object",
        ),
        (
            lambda meta: meta.update(labels={"a": {}}),
            "metadata: metadata.labels[a] must be a string, but is map[string]interface {}"
            " in converted object",
        ),
        (
            lambda meta: meta.update(annotations={"a": True}),
            "metadata: metadata.annotations[a] must be a string, but is bool in converted object",
        ),
        (
            lambda meta: meta.update(annotations={"B b": ""}),
            f'metadata: metadata.annotation: Invalid value: "B b": {NAME_PART}',
        ),
        (
            lambda meta: meta.update(annotations={"a": "x" * 300_000}),
            "metadata: metadata.annotation: Too long: may not be more than 262144 bytes",
        ),
        (
            lambda meta: meta.update(labels={"a a": "", "b b": ""}),
            f'metadata: [metadata.labels: Invalid value: "a a": {NAME_PART},'
            f' metadata.labels: Invalid value: "b b": {NAME_PART}]',
        ),
    ],
)
def test_other_metadata_is_refused(change: Callable[[Object], object], text: str) -> None:
    body = answer()
    change(body["response"]["convertedObjects"][0]["metadata"])
    assert refusal(body) == f"{SOURCE} returned invalid {text}"


def test_labels_that_were_wrong_before_may_stay() -> None:
    wrong = {"bad label": "!"}
    assert restored({"labels": wrong}, {"labels": wrong}) == {"labels": wrong}


@pytest.mark.parametrize("left", [{}, {"kind": "ConversionReview"}])
def test_an_answer_in_v1beta1_need_not_say_what_it_is_or_which_it_answers(left: Object) -> None:
    body = answer("v1beta1")
    body["response"]["uid"] = "another"
    body = left | {"response": body["response"]}
    assert review("v1beta1").converted(json.dumps(body).encode())["apiVersion"] == "ex.io/v1"


def test_an_answer_in_v1beta1_may_not_say_that_it_is_in_v1() -> None:
    text = "converting (v1.ConversionReview) to (v1beta1.ConversionReview): unknown conversion"
    assert refusal(answer("v1"), "v1beta1") == f"{SOURCE} failed: {text}"
    assert refusal("{}", "v1beta1") == f"{SOURCE} failed: no response provided"


def test_deep_nesting_is_refused() -> None:
    body = answer()
    body["response"]["convertedObjects"][0]["spec"] = "~"
    deep = json.dumps(body).replace('"~"', "[" * 100_000 + "]" * 100_000)
    assert "exceeded max depth" in refusal(deep)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab/ !", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "labels", "uid", "status"]), inner, max_size=3)
    ),
    max_leaves=5,
)
METADATA = st.dictionaries(
    st.sampled_from(
        "name namespace uid generation ownerReferences finalizers managedFields "
        "resourceVersion deletionTimestamp labels annotations".split()
    ),
    JSON,
)
TEXTS = st.dictionaries(st.sampled_from(["a", "ex.io/b", "bad key"]), st.text("ab!", max_size=2))


@given(METADATA, METADATA, TEXTS, TEXTS)
def test_conversion_changes_no_metadata_but_labels_and_annotations(
    original: Object, converted: Object, labels: Object, annotations: Object
) -> None:
    original = original | {"labels": {"x": "1"}, "annotations": {"bad key": "1"}}
    before = copy.deepcopy(original)
    converted = converted | {"labels": labels, "annotations": annotations}
    changeable = ("labels", "annotations")
    try:
        found = restored(original, converted)
    except InvalidMetadata:
        return
    assert original == before
    rest = [{k: v for k, v in each.items() if k not in changeable} for each in (found, before)]
    assert rest[0] == rest[1]
    assert [found.get(each, {}) for each in changeable] == [labels, annotations]


@given(JSON)
def test_whatever_the_answer_is_it_is_read_or_refused(value: object) -> None:
    for place in ("", "response", "metadata"):
        body: Any = answer()
        if place == "response":
            body["response"] = value
        elif place == "metadata":
            body["response"]["convertedObjects"][0]["metadata"] = value
        else:
            body = value
        with pytest.raises(ApiError):
            review().converted(json.dumps(body).encode())


@given(st.binary(max_size=40))
def test_whatever_bytes_come_they_are_refused(body: bytes) -> None:
    for start in (b"", b'{"response":'):
        with pytest.raises(ApiError):
            review().converted(start + body)


@given(JSON)
def test_a_copy_is_equal_and_shares_nothing(value: Any) -> None:
    copied = fresh({"value": value})
    assert copied == {"value": value}
    if isinstance(value, dict | list):
        assert copied["value"] is not value


TEXT = {"content-type": "text/plain"}


@pytest.mark.parametrize(
    ("given_answer", "text"),
    [
        (WebhookResponse(200, b"{}"), ""),
        (WebhookResponse(206, b"{}"), ""),
        (
            WebhookResponse(204, b"", {"content-type": "application/json"}),
            "0-length response with status code: 204 and content type: application/json",
        ),
        (
            WebhookResponse(207, b"{}"),
            "the server responded with the status code 207 but did not return more information",
        ),
        (WebhookResponse(400, b"x", TEXT), "the server rejected our request for an unknown reason"),
        (WebhookResponse(403, b" text of 403\n", TEXT), "text of 403"),
        (WebhookResponse(403, b"{}", {"content-type": "application/json"}), "unknown"),
        (WebhookResponse(403), ""),
        (
            WebhookResponse(406, b"{}", {"content-type": "application/json"}),
            "the server was unable to respond with a content type that the client supports",
        ),
        (WebhookResponse(406, b"text of 406", TEXT), "text of 406"),
        (
            WebhookResponse(500, b"hallo"),
            'an error on the server ("hallo") has prevented the request from succeeding',
        ),
        (
            WebhookResponse(599, b"{", {"content-type": "application/json"}),
            'an error on the server ("unknown") has prevented the request from succeeding',
        ),
        (
            WebhookResponse(500, b"x" * 5000, TEXT),
            f'an error on the server ("{"x" * 2048}") has prevented the request from succeeding',
        ),
        (WebhookResponse(503, b"x", TEXT), "the server is currently unable to handle the request"),
        (
            WebhookResponse(500, b'{"kind": "Status", "status": "Failure", "message": "told"}'),
            "told",
        ),
        (
            WebhookResponse(400, b'{"status": "Failure", "message": "bare"}'),
            "the server rejected our request for an unknown reason",
        ),
    ],
)
def test_an_answer_that_is_no_success_is_told_in_the_real_clients_words(
    given_answer: WebhookResponse, text: str
) -> None:
    assert problem_of(given_answer) == text


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [(429, "1", 1), (503, "0", 0), (503, "-1", 0), (503, "x", None), (400, "1", None)],
)
def test_a_webhook_may_ask_to_be_asked_again(status: int, header: str, seconds: int | None) -> None:
    assert retry_after(WebhookResponse(status, headers={"retry-after": header})) == seconds
