"""What functions want to see is found among objects that are there."""

from __future__ import annotations

from typing import Any

import pytest

from polyver.capability import Refusal
from polyver.compositions.messages import Requirements, ResourceSelector, SchemaSelector
from polyver.compositions.pipeline import found_among


def item(name: str, namespace: str = "", **labels: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": labels}
    metadata |= {"namespace": namespace} if namespace else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


THERE = [item("b", "shop", a="1"), item("a", "shop", a="1", b="2"), item("a", "other", a="1")]


def names(selector: ResourceSelector) -> list[tuple[str, str]]:
    found = found_among(Requirements(resources={"them": selector}), THERE).resources["them"]
    metadata = [each.resource["metadata"] for each in found]
    return [(each["namespace"], each["name"]) for each in metadata]


def test_objects_are_found_by_name_or_by_all_labels_in_the_order_of_names() -> None:
    of_kind = ("v1", "ConfigMap")
    every = [("other", "a"), ("shop", "a"), ("shop", "b")]
    assert names(ResourceSelector(*of_kind, match_labels={"a": "1"})) == every
    assert names(ResourceSelector(*of_kind, match_labels={})) == every
    assert names(ResourceSelector(*of_kind, match_labels={"a": "1", "b": "2"})) == [("shop", "a")]
    assert names(ResourceSelector(*of_kind, "a", namespace="shop")) == [("shop", "a")]
    assert names(ResourceSelector("v1", "Secret", "a")) == []


def test_who_asks_for_nothing_in_particular_is_refused() -> None:
    with pytest.raises(Refusal, match='"them" has neither a name nor labels'):
        names(ResourceSelector("v1", "ConfigMap"))


def test_a_schema_is_that_of_a_definition_in_the_version_that_is_asked_for() -> None:
    versions = [
        {"name": name, "schema": {"openAPIV3Schema": {"type": "object", "title": name}}}
        for name in ("v1", "v2")
    ]
    definition = {
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "carts.ex.io"},
        "spec": {"group": "ex.io", "names": {"kind": "Cart"}, "versions": versions},
    }
    asked = {name: SchemaSelector(f"ex.io/{name}", "Cart") for name in ("v2", "v3")}
    found = found_among(Requirements(schemas=asked), [definition]).schemas
    assert found == {"v2": {"type": "object", "title": "v2"}, "v3": {}}
