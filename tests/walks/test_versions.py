"""One kind in three versions, converted by a webhook: written, read, watched and applied in any."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes import client
from tests.kube.webhook import Webhook
from tests.walks.widgets import Widgets, widgets_by_webhook

if TYPE_CHECKING:
    from tests.walks.support import Walk

VERSIONS = ("v1alpha1", "v1beta1", "v1")
# The same thing, as each version says it.
SHOWN: dict[str, Any] = {
    "v1alpha1": {"disk": "10"},
    "v1beta1": {"size": 10},
    "v1": {"storage": {"size": 10}},
}
FIELDS: dict[str, Any] = {
    "v1alpha1": {"disk": {"type": "string"}},
    "v1beta1": {"size": {"type": "integer"}},
    "v1": {"storage": {"type": "object", "properties": {"size": {"type": "integer"}}}},
}


def size_of(spec: dict[str, Any]) -> int | None:
    if "disk" in spec:
        return int(spec["disk"])
    found = spec.get("storage", spec).get("size")
    return None if found is None else int(found)


def convert(item: dict[str, Any], wanted: str) -> dict[str, Any]:
    """Everything but the size is called the same in all versions."""
    spec = dict(item.get("spec") or {})
    size = size_of(spec)
    for name in ("disk", "size", "storage"):
        spec.pop(name, None)
    if size is not None:
        version = wanted.rpartition("/")[2]
        as_said: dict[str, dict[str, Any]] = {
            "v1alpha1": {"disk": str(size)},
            "v1beta1": {"size": size},
        }
        spec |= as_said.get(version, {"storage": {"size": size}})
    return item | {"apiVersion": wanted} | ({"spec": spec} if "spec" in item else {})


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook(convert) as running:
        yield running


@pytest.fixture
def widgets(walk: Walk, webhook: Webhook) -> Iterator[Widgets]:
    color = {"color": {"type": "string"}}
    schemas = {
        name: {"type": "object", "properties": fields | color} for name, fields in FIELDS.items()
    }
    with widgets_by_webhook(walk, webhook.url, webhook.ca, schemas, storage="v1beta1") as widgets:
        yield widgets


@pytest.mark.parametrize("written", VERSIONS)
def test_what_is_written_in_one_version_is_read_in_all(widgets: Widgets, written: str) -> None:
    widgets.create(written, "a", color="red", **SHOWN[written])
    for version in VERSIONS:
        expected = {"color": "red"} | SHOWN[version]
        assert widgets.get(version, "a")["spec"] == expected
        assert [each["spec"] for each in widgets.list(version)["items"]] == [expected]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_watch_shows_its_own_version(widgets: Widgets, version: str) -> None:
    since = widgets.list(version)["metadata"]["resourceVersion"]
    for written in VERSIONS:
        widgets.create(written, f"of-{written}", **SHOWN[written])
    events = widgets.watched(version, since, most=3)
    assert [event["type"] for event in events] == ["ADDED"] * 3
    assert [event["object"]["spec"] for event in events] == [SHOWN[version]] * 3


def test_two_appliers_in_two_versions_share_an_object(widgets: Widgets) -> None:
    widgets.apply("v1", "a", "one", **SHOWN["v1"])
    widgets.apply("v1alpha1", "a", "two", color="red")
    assert widgets.get("v1beta1", "a")["spec"] == {"color": "red", "size": 10}
    with pytest.raises(client.ApiException) as refused:
        widgets.apply("v1alpha1", "a", "two", color="red", disk="20")
    assert refused.value.status == 409
    assert 'conflict with "one"' in json.loads(str(refused.value.body))["message"]
    widgets.apply("v1", "a", "one")
    assert widgets.get("v1beta1", "a")["spec"] == {"color": "red"}, "nobody wants a size any more"


@pytest.mark.parametrize("behaviour", ["status-500", "not-json", "failure", "changed-name"])
def test_a_webhook_that_fails_costs_only_what_needs_it(
    widgets: Widgets, webhook: Webhook, behaviour: str
) -> None:
    widgets.create("v1beta1", "a", **SHOWN["v1beta1"])
    webhook.behaviour = behaviour
    with pytest.raises(client.ApiException) as refused:
        widgets.get("v1", "a")
    assert refused.value.status == 500
    assert "conversion webhook" in str(refused.value.body)
    with pytest.raises(client.ApiException):
        widgets.create("v1", "b", **SHOWN["v1"])
    assert widgets.get("v1beta1", "a")["spec"] == SHOWN["v1beta1"]
    assert [each["metadata"]["name"] for each in widgets.list("v1beta1")["items"]] == ["a"]
    webhook.behaviour = "ok"
    assert widgets.get("v1", "a")["spec"] == SHOWN["v1"]
