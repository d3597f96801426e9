"""Plans compute the same object as `kubectl apply` would store."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from polyver.capability.planning import applied_to

Object = dict[str, Any]
LAST = "kubectl.kubernetes.io/last-applied-configuration"
labels = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["1", "2"]))


def obj(spec: int, **metadata: Any) -> Object:
    return {"metadata": {"name": "x", **metadata}, "spec": {"size": spec}}


@given(labels, labels, labels)
def test_labels_of_others_stay_and_those_that_a_user_removed_go(
    others: dict[str, str], before: dict[str, str], now: dict[str, str]
) -> None:
    noted = {LAST: json.dumps(obj(1, labels=before))}
    live = obj(1, labels={**others, **before}, annotations=noted, uid="7")
    found = applied_to(live, obj(2, labels=now))
    theirs = {key: text for key, text in others.items() if key not in before}
    assert found["metadata"]["labels"] == {**theirs, **now}
    assert (found["metadata"]["uid"], found["spec"]) == ("7", {"size": 2})
    assert applied_to(found, obj(2, labels=now))["spec"] == found["spec"]


def test_a_new_object_and_one_that_kubectl_never_applied_are_taken_as_they_are() -> None:
    assert applied_to(None, obj(1, labels={"a": "1"})) == obj(1, labels={"a": "1"})
    for noted in ("", "{", "[]"):
        live = obj(1, labels={"a": "1"}, annotations={LAST: noted})
        assert applied_to(live, obj(1))["metadata"]["labels"] == {"a": "1"}
