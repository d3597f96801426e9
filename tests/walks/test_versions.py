"""One kind in three versions, converted by a webhook: written, read, watched and applied in any."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from kubernetes import client, config, watch
from tests.kube.webhook import Webhook
from tests.walks.conftest import DEFINITIONS
from tests.walks.support import Walk, eventually

VERSIONS = ("v1alpha1", "v1beta1", "v1")
APPLY = "application/apply-patch+yaml"
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


def definition(walk: Walk, webhook: Webhook) -> dict[str, Any]:
    color = {"color": {"type": "string"}}
    return {
        "metadata": {"name": walk.widgets_crd},
        "spec": {
            "group": walk.group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": {"url": webhook.url, "caBundle": webhook.ca},
                },
            },
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == "v1beta1",
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": FIELDS[name] | color}
                            },
                        }
                    },
                }
                for name in VERSIONS
            ],
        },
    }


class Widgets:
    """The widgets of a walk, in any version."""

    def __init__(self, walk: Walk, api: Any) -> None:
        self.walk = walk
        self._objects = client.CustomObjectsApi(api)

    def _place(self, version: str) -> tuple[str, str, str, str]:
        return self.walk.group, version, self.walk.namespace, "widgets"

    def body(self, version: str, name: str, **spec: Any) -> dict[str, Any]:
        named = {"apiVersion": f"{self.walk.group}/{version}", "kind": "Widget"}
        return named | {"metadata": {"name": name}, "spec": spec}

    def create(self, version: str, name: str, **spec: Any) -> Any:
        return self._objects.create_namespaced_custom_object(
            *self._place(version), self.body(version, name, **spec)
        )

    def get(self, version: str, name: str) -> Any:
        return self._objects.get_namespaced_custom_object(*self._place(version), name)

    def list(self, version: str) -> Any:
        return self._objects.list_namespaced_custom_object(*self._place(version))

    def apply(self, version: str, name: str, manager: str, **spec: Any) -> Any:
        return self._objects.patch_namespaced_custom_object(
            *self._place(version),
            name,
            self.body(version, name, **spec),
            field_manager=manager,
            _content_type=APPLY,
        )

    def watched(self, version: str, since: str, *, most: int) -> Any:
        """The first events after a revision."""
        events: list[Any] = []
        watching: Any = watch
        stream = watching.Watch()
        for event in stream.stream(
            self._objects.list_namespaced_custom_object,
            *self._place(version),
            resource_version=since,
            timeout_seconds=20,
        ):
            events.append(event)
            if len(events) == most:
                stream.stop()
        return events


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook(convert) as running:
        yield running


@pytest.fixture
def widgets(walk: Walk, webhook: Webhook) -> Iterator[Widgets]:
    walk.request("POST", DEFINITIONS, definition(walk, webhook))
    for version in VERSIONS:
        eventually(partial(walk.request, "GET", f"/apis/{walk.group}/{version}/widgets"))
    loaded: Any = config
    with loaded.new_client_from_config(str(walk.kubeconfig)) as api:
        yield Widgets(walk, api)


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
