"""Conditions about requests: what they know, and what is told when they are wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.languages.cel import (
    AuthorizationQuery,
    ConditionFailed,
    ConditionVariables,
    MatchCondition,
    Uncompilable,
)

REQUEST: dict[str, Any] = {
    "object": {"spec": {"color": "red", "sizes": [1, 2]}, "note": None},
    "oldObject": None,
    "operation": "CREATE",
    "dryRun": False,
    "name": "a",
    "userInfo": {"username": "jane", "groups": ["devs"], "extra": {"k": ["v"]}},
    "options": {"kind": "CreateOptions"},
}
ASKED = AuthorizationQuery(group="ex.io", resource="widgets", namespace="n", name="a")


def holds(text: str, request: dict[str, Any] | None = None, *allowed: AuthorizationQuery) -> bool:
    facts = ConditionVariables(request or REQUEST, lambda question: question in allowed, ASKED)
    return MatchCondition.compile(text).holds(facts)


@pytest.mark.parametrize(
    "text",
    [
        'object.spec.color == "red" && object.note == null',
        "object.spec.sizes.all(size, size > 0) && size(object.spec.sizes) == 2",
        "oldObject == null && !has(object.spec.missing)",
        'request.operation == "CREATE" && !request.dryRun',
        '"devs" in request.userInfo.groups && request.userInfo.extra["k"][0] == "v"',
        'request.options.kind == "CreateOptions" && !has(request.namespace)',
        'object.?spec.?missing.orValue("x") == "x"',
    ],
)
def test_a_condition_sees_the_object_and_the_request(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            'authorizer.requestResource.check("update").allowed()',
            AuthorizationQuery("update", "ex.io", "widgets", namespace="n", name="a"),
        ),
        (
            'authorizer.group("apps").resource("deployments").namespace("m").check("get").allowed()',
            AuthorizationQuery("get", "apps", "deployments", namespace="m"),
        ),
        (
            'authorizer.group("").resource("pods").subresource("log").name("p")'
            '.check("get").allowed()',
            AuthorizationQuery("get", "", "pods", "log", name="p"),
        ),
        (
            'authorizer.path("/healthz").check("get").allowed()',
            AuthorizationQuery("get", path="/healthz"),
        ),
        (
            'authorizer.serviceAccount("n", "bot").path("/x").check("get").allowed()',
            AuthorizationQuery("get", path="/x", account=("n", "bot")),
        ),
    ],
)
def test_a_condition_asks_what_a_user_may_do(text: str, wanted: AuthorizationQuery) -> None:
    assert holds(text, REQUEST, wanted)
    assert not holds(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("object.", "Syntax error"),
        ("1 + 1", "must evaluate to bool but got int"),
        ("object.spec", "must evaluate to bool but got dyn"),
        ("self == 1", "undeclared reference to 'self'"),
        ("request.uid == 'x'", "undefined field 'uid'"),
        ("request.dryRun == 'x'", "found no matching overload for '_==_'"),
        ("object.a.matches('(')", "invalid matches argument"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(text: str, problem: str) -> None:
    with pytest.raises(Uncompilable) as caught:
        MatchCondition.compile(text)
    assert problem in str(caught.value)


def test_a_condition_that_nobody_can_tell_says_why() -> None:
    with pytest.raises(ConditionFailed) as caught:
        holds("object.spec.missing == 1")
    expected = "expression 'object.spec.missing == 1' resulted in error: no such key: missing"
    assert str(caught.value) == expected


TEXTS = st.text(max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(VALUES, VALUES)
def test_objects_are_equal_to_conditions_if_they_are_equal(one: Any, other: Any) -> None:
    request = {"object": {"a": one}, "oldObject": {"a": other}}
    assert holds("object.a == oldObject.a", request) is _same(one, other)


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)
