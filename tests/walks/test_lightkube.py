"""lightkube, which polyver itself talks to real clusters with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource, create_resources_from_crd
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.core_v1 import EventSource, ObjectReference
from lightkube.models.meta_v1 import ObjectMeta, OwnerReference
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import ConfigMap, Event, Namespace, Secret
from lightkube.types import CascadeType, PatchType
from tests.walks.support import Walk, definition, eventually


@pytest.fixture
def client(walk: Walk) -> Iterator[Any]:
    kubeconfig = KubeConfig.from_file(walk.kubeconfig)
    with Client(config=kubeconfig, namespace=walk.namespace, field_manager="walk") as made:
        yield made


def widget_class(walk: Walk) -> Any:
    return create_namespaced_resource(walk.group, "v1", "Widget", "widgets")


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Any:
    return ConfigMap(metadata=ObjectMeta(name=name, **metadata), data=data)


def refused(error: pytest.ExceptionInfo[ApiError]) -> tuple[int | None, str | None]:
    return error.value.status.code, error.value.status.reason


def test_a_kind_is_defined_and_withdrawn(client: Any, walk: Walk) -> None:
    crd: Any = CustomResourceDefinition.from_dict(definition(walk.group))
    client.create(crd)
    name = walk.widgets_crd
    client.wait(CustomResourceDefinition, name, for_conditions=["Established"])
    create_resources_from_crd(crd)
    kind = widget_class(walk)
    assert eventually(lambda: _listed(client, kind)) == ["nothing"]
    client.delete(CustomResourceDefinition, name)
    assert eventually(lambda: _gone(client, name))


def _gone(client: Any, name: str) -> bool:
    return not list(client.list(CustomResourceDefinition, fields={"metadata.name": name}))


def _listed(client: Any, kind: Any) -> list[str] | None:
    """A real server needs a moment for a kind that is new."""
    try:
        return [each.metadata.name for each in client.list(kind)] or ["nothing"]
    except ApiError:
        return None


def test_built_in_objects_live_and_die(client: Any, walk: Walk) -> None:
    made = client.create(config_map("m", {"k": "1"}))
    made.data["k"] = "2"
    client.replace(made)
    with pytest.raises(ApiError) as stale:
        client.replace(made)
    assert refused(stale) == (409, "Conflict")
    with pytest.raises(ApiError) as taken:
        client.create(config_map("m"))
    assert refused(taken) == (409, "AlreadyExists")
    with pytest.raises(ApiError) as invalid:
        client.create(config_map("m", labels={"a": "not valid"}, generateName="x"))
    assert refused(invalid)[0] == 422
    assert client.get(ConfigMap, "m").data == {"k": "2"}
    client.delete(ConfigMap, "m", dry_run=True)
    client.delete(ConfigMap, "m")
    with pytest.raises(ApiError) as missing:
        client.get(ConfigMap, "m")
    assert refused(missing) == (404, "NotFound")


def test_patches_of_every_type(client: Any, widgets: Walk) -> None:
    client.create(config_map("m", {"k": "1"}))
    client.patch(ConfigMap, "m", {"data": {"k": "2"}})
    client.patch(ConfigMap, "m", {"data": {"l": "3"}}, patch_type=PatchType.MERGE)
    ops = [{"op": "remove", "path": "/data/k"}]
    patched = client.patch(ConfigMap, "m", ops, patch_type=PatchType.JSON)
    assert patched.data == {"l": "3"}
    kind = widget_class(widgets)
    client.create(kind(widgets.widget("w")))
    with pytest.raises(ApiError) as strategic:
        client.patch(kind, "w", {"spec": {"size": 2}})
    assert strategic.value.status.code == 415
    merged = client.patch(kind, "w", {"spec": {"size": 2}}, patch_type=PatchType.MERGE)
    assert merged["spec"]["size"] == 2


def test_fields_have_owners(client: Any, widgets: Walk) -> None:
    kind = widget_class(widgets)
    one, two = {"name": "one", "weight": 1}, {"name": "two"}
    client.apply(kind(widgets.widget("w", parts=[one])), field_manager="first")
    second = widgets.widget("w", parts=[two])
    applied = client.apply(kind(second), field_manager="second")
    assert applied["spec"]["parts"] == [one, two]
    with pytest.raises(ApiError) as conflict:
        client.apply(kind(widgets.widget("w", size=5)), field_manager="second")
    assert refused(conflict) == (409, "Conflict")
    assert 'conflict with "first"' in str(conflict.value)
    forced = client.apply(kind(widgets.widget("w", size=5)), field_manager="second", force=True)
    assert forced["spec"] == {"size": 5, "color": "red", "parts": [one]}
    client.apply(config_map("m", {"k": "v"}))
    client.apply(config_map("m", {"l": "w"}))
    assert client.get(ConfigMap, "m").data == {"l": "w"}
    managers = {each.manager for each in client.get(ConfigMap, "m").metadata.managedFields}
    assert managers == {"walk"}


def test_parts_of_objects(client: Any, widgets: Walk) -> None:
    kind = widget_class(widgets)
    client.create(kind(widgets.widget("w")))
    status = {"phase": "Ready", "conditions": [{"type": "Good", "status": "True"}]}
    client.patch(kind.Status, "w", {"status": status}, patch_type=PatchType.MERGE)
    assert client.wait(kind, "w", for_conditions=["Good"]).status["phase"] == "Ready"
    scale = client.get(kind.Scale, "w")
    scale.spec = ScaleSpec(replicas=7)
    client.replace(scale, "w")
    assert client.get(kind, "w")["spec"]["size"] == 7
    labels = {"app": "d"}
    pod = {"containers": [{"name": "c", "image": "example.com/c:1"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    client.create(Deployment.from_dict({"metadata": {"name": "d"}, "spec": spec}))
    client.patch(Deployment.Scale, "d", {"spec": {"replicas": 3}}, patch_type=PatchType.MERGE)
    assert client.get(Deployment, "d").spec.replicas == 3
    client.patch(Deployment.Status, "d", {"status": {"observedGeneration": 2}})
    assert client.get(Deployment, "d").status.observedGeneration == 2


def test_lists_are_selected_and_cut(client: Any, walk: Walk) -> None:
    for number in range(5):
        labels = {"odd": str(number % 2)}
        client.create(Secret(metadata=ObjectMeta(name=f"s{number}", labels=labels)))

    def names(**options: Any) -> list[str]:
        return [each.metadata.name for each in client.list(Secret, **options)]

    assert names(chunk_size=2) == ["s0", "s1", "s2", "s3", "s4"]
    assert names(labels={"odd": "1"}) == ["s1", "s3"]
    assert names(labels={"odd": ["0", "2"]}) == ["s0", "s2", "s4"]
    assert names(fields={"metadata.name": "s3"}) == ["s3"]
    assert {"s0", "s1"} <= set(names(namespace="*"))
    client.deletecollection(Secret)
    assert names() == []
    assert walk.namespace in [each.metadata.name for each in client.list(Namespace)]


def test_a_watch_goes_on_where_it_stopped(client: Any, walk: Walk) -> None:
    first = client.create(config_map("a", labels={"w": "1"}))
    client.create(config_map("b", labels={"w": "1"}))
    client.delete(ConfigMap, "a")
    seen = []
    version = first.metadata.resourceVersion
    # The server ends each watch after a second, and the client goes on where it was.
    for event, obj in client.watch(
        ConfigMap, labels={"w": "1"}, resource_version=version, server_timeout=1
    ):
        seen.append((event, obj.metadata.name))
        if len(seen) == 2:
            client.patch(ConfigMap, "b", {"data": {"k": "v"}})
        if len(seen) == 3:
            break
    assert seen == [("ADDED", "b"), ("DELETED", "a"), ("MODIFIED", "b")]


def test_deletion_reaches_as_far_as_it_is_told(client: Any, walk: Walk) -> None:
    for cascade in CascadeType:
        name = cascade.value.lower()
        owner = client.create(config_map(name))
        reference = OwnerReference(
            apiVersion="v1",
            kind="ConfigMap",
            name=name,
            uid=owner.metadata.uid,
            blockOwnerDeletion=True,
        )
        client.create(config_map(f"{name}-owned", ownerReferences=[reference]))
        client.delete(ConfigMap, name, cascade=cascade)

    def left() -> set[str]:
        found = {each.metadata.name for each in client.list(ConfigMap)}
        return found - {"kube-root-ca.crt"}

    eventually(lambda: left() == {"orphan-owned"})
    assert not client.get(ConfigMap, "orphan-owned").metadata.ownerReferences


def test_leases_and_events(client: Any, walk: Walk) -> None:
    lease = client.create(
        Lease(
            metadata=ObjectMeta(name="l"), spec=LeaseSpec(holderIdentity="me", leaseTransitions=0)
        )
    )
    lease.spec.holderIdentity = "you"
    assert client.replace(lease).spec.holderIdentity == "you"
    event = Event(
        metadata=ObjectMeta(generateName="l-", namespace=walk.namespace),
        involvedObject=ObjectReference(kind="Lease", name="l", namespace=walk.namespace),
        reason="Walked",
        message="hello",
        type="Normal",
        source=EventSource(component="walk"),
    )
    client.create(event)
    found = client.list(Event, fields={"involvedObject.kind": "Lease", "involvedObject.name": "l"})
    assert [each.message for each in found] == ["hello"]
