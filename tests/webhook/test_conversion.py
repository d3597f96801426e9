"""Reviews: whatever is asked, and whatever user code does, there is an answer that is right."""

from __future__ import annotations

import gc
import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.webhook.converters import GROUP, SECRET, Hosts, asked, host, served

from polyver.webhook import Converters, Reviewed, review

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def answered(body: bytes, converters: Converters | None = None) -> Any:
    found = review(body, served() if converters is None else converters)
    assert found.status == 200, found.body
    return json.loads(found.body)


def objects(body: bytes, converters: Converters | None = None) -> Any:
    response = answered(body, converters)["response"]
    assert response["result"] == {"status": "Success"}
    return response["convertedObjects"]


def failure(body: bytes, converters: Converters | None = None) -> str:
    response = answered(body, converters)["response"]
    assert response["result"]["status"] == "Failure"
    assert response["convertedObjects"] == []
    return str(response["result"]["message"])


def refusal(body: bytes, code: int = 400) -> str:
    found = review(body, served())
    told = json.loads(found.body)
    assert (found.status, told["kind"], told["code"]) == (code, "Status", code)
    return str(told["message"])


# What is converted.


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_review_is_answered_in_its_own_version(version: str) -> None:
    found = answered(asked(host(hostPort="h:80"), review=version, uid="abc-1"))
    assert found["apiVersion"] == f"apiextensions.k8s.io/{version}"
    assert found["kind"] == "ConversionReview"
    assert found["response"]["uid"] == "abc-1"
    assert found["response"]["convertedObjects"] == [host("v2", host="h", port="80")]
    assert "request" not in found


def test_five_hundred_objects_in_mixed_versions_keep_their_order() -> None:
    given_ones = [
        host("v1", f"n{number}", hostPort=f"h{number}:1")
        if number % 3
        else host("v2", f"n{number}", host=f"h{number}", port="1")
        for number in range(500)
    ]
    found = objects(asked(*given_ones))
    assert [each["metadata"]["name"] for each in found] == [f"n{n}" for n in range(500)]
    assert [each["spec"] for each in found] == [{"host": f"h{n}", "port": "1"} for n in range(500)]


def test_what_is_in_the_version_already_comes_back_byte_for_byte() -> None:
    odd = b'{ "kind":"Host",\n"spec" : {"a":1.50,"a":1e2, "\\u00e9":"\xc3\xa9"},"apiVersion":"%b"}'
    odd %= f"{GROUP}/v2".encode()
    found = review(asked(msgspec.Raw(odd)), {})
    assert b'"convertedObjects":[' + odd + b"]" in found.body


def test_several_kinds_in_one_review() -> None:
    route = host(hostPort="r:2") | {"kind": "Route"}
    found = objects(asked(host(hostPort="h:1"), route), served(Hosts(), Hosts("Route")))
    assert [(each["kind"], each["spec"]["host"]) for each in found] == [
        ("Host", "h"),
        ("Route", "r"),
    ]


@pytest.mark.parametrize("left", [["metadata"], []])
def test_partial_objects_convert(left: list[str]) -> None:
    partial = {key: value for key, value in host().items() if key in ("apiVersion", "kind", *left)}
    assert objects(asked(partial)) == [partial | {"apiVersion": f"{GROUP}/v2"}]


@pytest.mark.parametrize("body", [asked(), asked().replace(b"[]", b"null")])
def test_no_objects_are_none_in_the_answer(body: bytes) -> None:
    assert objects(body) == []


def test_the_collector_runs_again_afterwards() -> None:
    assert gc.isenabled()
    review(asked(host(raises=True)), served())
    assert gc.isenabled()


# What is not.


def test_one_object_that_fails_fails_the_review_and_is_named() -> None:
    text = failure(asked(host(), host(name="b", wrong=True), host(name="c")))
    assert text == (
        f"Host default/b (objects[1]) cannot be converted to {GROUP}/v2: "
        "hosts have no such port (spec.hostPort); choose 80"
    )


def test_what_user_code_raises_is_for_the_log_alone() -> None:
    found = review(asked(*(host(name=f"n{n}", raises=n == 250) for n in range(500))), served())
    assert isinstance(found.fault, ValueError)
    assert "n250" in found.about
    assert SECRET.encode() not in found.body
    message = json.loads(found.body)["response"]["result"]["message"]
    assert message.startswith("Host default/n250 (objects[250])")
    assert message.endswith("the conversion failed; see the log of the webhook")


def test_kinds_that_are_not_served_are_told_what_is() -> None:
    text = failure(asked(host() | {"kind": "Other"}))
    assert f"Other.{GROUP} is not served here; known: Host.{GROUP} (v1, v2)" in text
    assert "known: nothing" in failure(asked(host()), {})


def test_versions_that_are_not_served_are_told_what_is() -> None:
    assert f"Host.{GROUP} has no version v9; known: v1, v2" in failure(asked(host(), version="v9"))
    assert f"Host.{GROUP} has no version v7; known: v1, v2" in failure(asked(host("v7")))


def test_an_object_does_not_change_its_group() -> None:
    text = failure(asked(host() | {"apiVersion": "other.example.com/v1"}))
    assert "it is of the group other.example.com" in text


@pytest.mark.parametrize("given_one", [1, None, "a", [], {}, {"kind": 1}, {"kind": "Host"}])
def test_what_is_no_object_is_told_so(given_one: Any) -> None:
    assert "(objects[0]) cannot be converted" in failure(asked(given_one))


def test_no_work_is_done_for_who_has_gone() -> None:
    times = iter([False, False, True])
    found = review(asked(*[host()] * 5), served(), late=lambda: next(times))
    message = json.loads(found.body)["response"]["result"]["message"]
    assert message.endswith("the timeout is over with 2 of 5 objects converted")


# What a conversion may change.


def changed(**metadata: Any) -> Converters:
    return served(Hosts(change=lambda item: item["metadata"].update(metadata)))


def test_labels_and_annotations_may_change() -> None:
    found = objects(asked(host()), changed(labels={"a": "b"}, annotations={"a/b": "any {text}"}))
    assert found[0]["metadata"]["labels"] == {"a": "b"}


def test_empty_and_absent_are_the_same() -> None:
    sent = host()
    sent["metadata"]["creationTimestamp"] = None
    assert objects(asked(sent), changed(creationTimestamp=None, finalizers=[]))


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"name": "other"}, "must have the same name: a != other"),
        ({"namespace": "other"}, "must have the same namespace: default != other"),
        ({"uid": "other"}, "must have the same UID: uid-of-a != other"),
        ({"finalizers": ["x/y"]}, "may only change labels and annotations (metadata.finalizers)"),
        ({"labels": {"bad key": "x"}}, "metadata.labels: Invalid value"),
        ({"labels": {"a": 1}}, "metadata.labels[a] must be a string"),
        ({"annotations": {"a": "x" * 300_000}}, "Too long"),
        ({"annotations": []}, "invalid metadata.annotations"),
    ],
)
def test_what_the_api_server_would_refuse_is_refused(metadata: Any, told: str) -> None:
    assert told in failure(asked(host()), changed(**metadata))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"metadata": None}, "must have the same name: a != "),
        ({"metadata": "text"}, "must have the same name: a != "),
        ({"kind": "Other"}, f"the conversion returned Other of {GROUP}/v2"),
        ({"apiVersion": f"{GROUP}/v1"}, f"the conversion returned Host of {GROUP}/v1"),
        (
            {"kind": 3},
            "the result of the conversion is not an object with an apiVersion and a kind",
        ),
    ],
)
def test_what_is_another_object_is_refused(change: Any, told: str) -> None:
    converters = served(Hosts(change=lambda item: item.update(change)))
    assert told in failure(asked(host()), converters)


def test_what_a_conversion_returns_must_be_json() -> None:
    class Broken(Hosts):
        def convert_raw(self, raw: bytes | msgspec.Raw, version: str) -> bytes:
            return b'{"apiVersion": "x'

    assert "the result of the conversion is not JSON" in failure(asked(host()), served(Broken()))


# What is no review.


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "the body is not JSON"),
        (b"not json", "the body is not JSON"),
        (b'{"a": "\xff"}', "the body is not JSON"),
        (b'{"a":' * 100_000, "the body is nested too deeply"),
        (b"[]", "the body is not an object"),
        (b"3", "the body is not an object"),
        (b"{}", "the body is nothing of nothing, not a ConversionReview"),
        (asked().replace(b"/v1", b"/v9", 1), "ConversionReview of apiextensions.k8s.io/v9, not"),
        (asked().replace(b"ConversionReview", b"AdmissionReview"), "the body is AdmissionReview"),
        (asked().replace(b"request", b"other"), "the ConversionReview has no request"),
        (asked().replace(b'"1"', b"1"), "Expected `str`, got `int` - at `$.request.uid`"),
        (asked().replace(b"desiredAPIVersion", b"x"), "missing required field `desiredAPIVersion`"),
    ],
)
def test_what_is_no_review_is_told_why(body: bytes, told: str) -> None:
    assert told in refusal(body)


def test_deep_objects_are_refused() -> None:
    deep = msgspec.Raw(b"[" * 100_000 + b"]" * 100_000)
    assert "nested too deeply" in refusal(asked(deep))


# Whatever is sent.


def valid(found: Reviewed) -> Any:
    assert found.status in (200, 400)
    return json.loads(found.body.decode())


@given(st.binary(max_size=200))
def test_bytes_are_answered(body: bytes) -> None:
    valid(review(body, served()))


@given(JSON, JSON, JSON)
def test_json_is_answered(request: Any, kind: Any, anything: Any) -> None:
    for body in (
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request},
        {"apiVersion": anything, "kind": kind, "request": request},
    ):
        valid(review(json.dumps(body).encode(), served()))


@given(st.lists(JSON | JSON.map(lambda spec: host(anything=spec)), max_size=4), JSON, JSON)
def test_reviews_of_anything_are_answered(given_ones: Any, metadata: Any, kind: Any) -> None:
    odd = host() | {"metadata": metadata, "kind": kind}
    found = valid(review(asked(*given_ones, host() | {"metadata": metadata}, odd), served()))
    response = found["response"]
    if response["result"]["status"] == "Success":
        assert len(response["convertedObjects"]) == len(given_ones) + 2
    else:
        assert response["convertedObjects"] == []


@given(st.binary(max_size=20), st.integers(0, 400))
@example(b"1", 83)  # a number where a text belongs, and then no JSON any more
def test_reviews_that_were_damaged_are_answered(noise: bytes, place: int) -> None:
    body = asked(host(hostPort="h:1"), host("v2", host="é"))
    valid(review(body[:place] + noise + body[place + len(noise) :], served()))
