"""kr8s, as a script or a notebook uses it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import kr8s
import pytest
from kr8s._async_utils import as_sync_func
from kr8s.objects import ConfigMap, CustomResourceDefinition, Deployment, Table, new_class
from tests.deadlines import HANG
from tests.walks.support import Walk, definition, eventually

pytestmark = [
    # The real server that walks are compared with is newer than what kr8s was tested with.
    pytest.mark.filterwarnings("ignore:Kubernetes version v1.37"),
    # A real server lists groups for a moment after their last kind was withdrawn.
    pytest.mark.filterwarnings("ignore:Client error '404 Not Found'"),
    # kr8s leaves connections open.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def api(walk: Walk) -> Iterator[Any]:
    made = kr8s.api(kubeconfig=str(walk.kubeconfig), namespace=walk.namespace)
    yield made
    as_sync_func(made._session.aclose)()  # type: ignore[union-attr]
    gc.collect()  # what it left is found here, and not in someone else's test


def widget_class(walk: Walk) -> Any:
    return new_class(
        kind="Widget",
        version=f"{walk.group}/v1",
        namespaced=True,
        asyncio=False,
        scalable=True,
        scalable_spec="size",
    )


def refused(error: pytest.ExceptionInfo[Any]) -> tuple[int, str]:
    status = error.value.response.json()
    return status["code"], status["reason"]


def test_it_finds_what_there_is(api: Any, widgets: Walk) -> None:
    assert api.version()["major"] == "1"
    kinds = {(each["kind"], each["version"]) for each in api.api_resources()}
    assert {("ConfigMap", "v1"), ("Deployment", "apps/v1")} <= kinds
    assert ("Widget", f"{widgets.group}/v1") in kinds
    assert api.whoami()
    assert list(api.get("wd")) == []


def test_a_kind_is_defined_and_withdrawn(api: Any, walk: Walk) -> None:
    crd: Any = CustomResourceDefinition(definition(walk.group), api=api)
    crd.create()
    # kr8s cannot wait for conditions that are null, as they are in the first moment.
    eventually(lambda: crd.refresh() or crd.status.conditions)
    crd.wait("condition=Established", timeout=HANG)
    one = eventually(lambda: _created(widget_class(walk)(walk.widget("w"), api=api)))
    assert one.spec.color == "red"  # by default
    crd.delete()
    crd.wait("delete", timeout=HANG)
    assert not one.exists()


def _created(obj: Any) -> Any:
    """A real server needs a moment for a kind that is new."""
    try:
        obj.create()
    except (kr8s.NotFoundError, kr8s.ServerError):
        return None
    return obj


def test_built_in_objects_live_and_die(api: Any, walk: Walk) -> None:
    one: Any = ConfigMap(walk.config_map("m", {"k": "1"}), api=api)
    assert not one.exists()
    one.create()
    assert one.exists()
    one.patch({"data": {"k": "2"}})
    one.patch([{"op": "add", "path": "/data/l", "value": "3"}], type="json")
    one.label(a="b")
    one.annotate({"note": "hello"})
    again: Any = ConfigMap.get("m", api=api)
    assert dict(again.data) == {"k": "2", "l": "3"}
    assert (dict(again.labels), dict(again.annotations)) == ({"a": "b"}, {"note": "hello"})
    one.remove_label("a")
    assert "a" not in one.labels
    with pytest.raises(kr8s.ServerError) as taken:
        ConfigMap(walk.config_map("m"), api=api).create()
    assert refused(taken) == (409, "AlreadyExists")
    one.delete()
    eventually(lambda: not one.exists())
    with pytest.raises(kr8s.NotFoundError):
        one.refresh()
    with pytest.raises(kr8s.NotFoundError):
        ConfigMap.get("m", api=api)


def test_lists_and_tables(api: Any, walk: Walk) -> None:
    for number in range(3):
        labels = {"odd": str(number % 2)}
        made: Any = ConfigMap(walk.config_map(f"m{number}", {}, labels=labels), api=api)
        made.create()

    def names(*which: str, **options: Any) -> list[str]:
        return [each.name for each in api.get("configmaps", *which, **options)]

    assert {"m0", "m1", "m2"} <= set(names())
    assert names("m1") == ["m1"]  # asked for with a comma at the end of the field selector
    assert names("m1", "m2") == ["m1", "m2"]
    assert names(label_selector={"odd": "0"}) == ["m0", "m2"]
    assert names(field_selector="metadata.name=m2") == ["m2"]
    assert {"m0", "m1"} <= set(names(namespace=kr8s.ALL))
    [table] = api.get("configmaps", as_object=Table)
    assert [each["name"] for each in table.raw["columnDefinitions"]] == ["Name", "Data", "Age"]


def test_a_list_longer_than_a_page(api: Any, walk: Walk) -> None:
    path = f"/api/v1/namespaces/{walk.namespace}/secrets"
    for number in range(130):  # kr8s asks for 100 at a time
        walk.request("POST", path, {"metadata": {"name": f"s{number:03}"}})
    assert [each.name for each in api.get("secrets")] == [f"s{n:03}" for n in range(130)]


def test_a_watch_tells_what_happens(api: Any, widgets: Walk) -> None:
    kind = widget_class(widgets)
    kind(widgets.widget("a"), api=api).create()
    seen = []
    for event, obj in api.watch(kind, namespace=widgets.namespace):
        seen.append((event, obj.name, obj.spec.size))
        match len(seen):
            case 1:
                kind(widgets.widget("b"), api=api).create()
            case 2:
                obj.patch({"spec": {"size": 5}})
            case 3:
                obj.delete()
            case 4:
                break
    assert seen == [("ADDED", "a", 1), ("ADDED", "b", 1), ("MODIFIED", "b", 5), ("DELETED", "b", 5)]


def test_custom_objects_have_parts(api: Any, widgets: Walk) -> None:
    one = widget_class(widgets)(widgets.widget("w"), api=api)
    one.create()
    one.scale(3)
    assert one.replicas == 3
    status = {"phase": "Ready", "conditions": [{"type": "Good", "status": "True"}]}
    one.patch({"status": status, "spec": {"size": 9}}, subresource="status")
    one.wait("condition=Good", timeout=HANG)
    one.wait("jsonpath='{.status.phase}'=Ready", timeout=HANG)
    assert one.spec.size == 3
    with pytest.raises(kr8s.ServerError) as invalid:
        one.patch({"spec": {"size": "many"}})
    assert refused(invalid) == (422, "Invalid")
    failing = [{"op": "test", "path": "/spec/size", "value": 9}]
    with pytest.raises(kr8s.ServerError) as failed:
        one.patch(failing, type="json")
    assert refused(failed) == (422, "Invalid")


def test_deletion_waits_for_finalizers_and_reaches_dependents(api: Any, walk: Walk) -> None:
    owner: Any = ConfigMap(walk.config_map("owner", {}, finalizers=["walks.dev/hold"]), api=api)
    owner.create()
    owned: Any = ConfigMap(walk.config_map("owned"), api=api)
    owned.create()
    owner.adopt(owned)
    assert owned.raw.metadata.ownerReferences[0].uid == owner.metadata.uid
    owner.delete(propagation_policy="Foreground")
    owner.refresh()
    assert owner.metadata.deletionTimestamp
    eventually(lambda: not owned.exists())
    owner.patch({"metadata": {"finalizers": None}})
    owner.wait("delete", timeout=HANG)


def test_a_deployment_is_scaled(api: Any, walk: Walk) -> None:
    labels = {"app": "d"}
    pod = {"containers": [{"name": "c", "image": "example.com/c:1"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    body = {
        "metadata": {"name": "d", "namespace": walk.namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    one: Any = Deployment(body, api=api)
    one.create()
    assert one.replicas == 1
    one.scale(4)
    one.refresh()
    assert one.replicas == 4
    assert not one.ready()  # nothing runs it
