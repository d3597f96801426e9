"""Reviews of objects that are converted quickly, beside some that are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.webhook.converters import GROUP, SECRET, asked, host

from polyver.apis.conversion import Converter, DeclaredEdge, FunctionEdge, Rules
from polyver.kube.objects import encode_json
from polyver.webhook import Reviewed, review

Object = dict[str, Any]
KIND = (GROUP, "Host")


def by_rules() -> Converter:
    rules = Rules()
    rules.split("spec.hostPort", into=("spec.host", "spec.port"), separator=":")
    rules.drop("spec.legacy")
    return Converter(GROUP, "Host", ["v1", "v2"], [DeclaredEdge("v1", "v2", rules.block())])


def by_functions(there: Callable[[Object], Object]) -> Converter:
    edge = FunctionEdge("v1", "v2", there, lambda obj: obj)
    return Converter(GROUP, "Host", ["v1", "v2"], [edge])


def answer(found: Reviewed) -> Any:
    return json.loads(found.body)["response"]


def test_quick_and_odd_objects_in_one_review_are_converted_alike() -> None:
    known = by_rules()
    carrying = json.loads(known.convert_raw(encode_json(host("v2", host="h:1")), "v1"))
    given = [
        host(hostPort="a:1"),
        host(hostPort="b:2", legacy={"x": [1, None]}),
        host("v2", host="c", port="3"),
        host(hostPort=4),
        {**host(hostPort="e:5"), "data": {"more": 1.5}},
        carrying,
        host(),
    ]
    found = review(asked(*given), {KIND: known})
    expected = [
        each if each["apiVersion"] == f"{GROUP}/v2" else known.convert(each, "v2") for each in given
    ]
    assert answer(found)["convertedObjects"] == expected
    assert found.objects == {KIND: 6}


def test_an_object_that_carries_too_much_is_named_among_quick_ones() -> None:
    large = host(name="large", legacy="x" * 300_000)
    found = review(asked(host(hostPort="a:1"), large), {KIND: by_rules()})
    message = answer(found)["result"]["message"]
    assert message.startswith("Host default/large (objects[1]) cannot be converted")
    assert "spec.legacy of v1" in message
    assert (found.failed, found.fault, found.objects) == (KIND, None, {KIND: 1})


def test_what_a_function_raises_is_for_the_log_alone() -> None:
    calls = []

    def there(obj: Object) -> Object:
        calls.append(obj["metadata"]["name"])
        raise ValueError(SECRET)

    found = review(asked(host(hostPort="a:1")), {KIND: by_functions(there)})
    assert isinstance(found.fault, ValueError)
    assert "Host default/a" in found.about
    assert SECRET.encode() not in found.body
    assert calls == ["a"]


def test_labels_that_a_function_makes_are_looked_at() -> None:
    def labelled(value: Any) -> Converter:
        return by_functions(
            lambda obj: {**obj, "metadata": {**obj["metadata"], "labels": {"a": value}}}
        )

    good = answer(review(asked(host(size=1)), {KIND: labelled("b")}))
    assert good["convertedObjects"][0]["metadata"]["labels"] == {"a": "b"}
    for bad in ("not a label!", 1):
        told = answer(review(asked(host(size=1)), {KIND: labelled(bad)}))["result"]["message"]
        assert "metadata.labels" in told


def test_what_a_function_returns_must_be_json() -> None:
    made = by_functions(lambda obj: {**obj, "spec": {"size": object()}})
    found = review(asked(host(size=1)), {KIND: made})
    assert isinstance(found.fault, TypeError)
    assert answer(found)["result"]["status"] == "Failure"
