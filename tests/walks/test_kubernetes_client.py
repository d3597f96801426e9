"""The official Python client: typed, custom and dynamic, and its watch."""

# Its types say that everything may be missing, and a part of it has none.
# mypy: disable-error-code="arg-type,no-untyped-call,operator,union-attr"

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from tests.walks.support import Walk, definition, eventually


@pytest.fixture
def api(walk: Walk) -> Iterator[Any]:
    with config.new_client_from_config(config_file=str(walk.kubeconfig)) as made:
        yield made


@pytest.fixture
def core(api: Any) -> Any:
    return client.CoreV1Api(api)


@pytest.fixture
def custom(api: Any, widgets: Walk) -> Any:
    return client.CustomObjectsApi(api)


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Any:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, **metadata), data=data)


def refused(error: pytest.ExceptionInfo[Any]) -> tuple[int, str]:
    return error.value.status, json.loads(error.value.body)["reason"]


def test_it_finds_what_there_is(api: Any, widgets: Walk) -> None:
    assert client.VersionApi(api).get_code().major == "1"
    groups = client.ApisApi(api).get_api_versions().groups
    found = {group.name: [each.version for each in group.versions] for group in groups}
    assert found["apps"] == ["v1"]
    assert found[widgets.group] == ["v1", "v1beta1"]
    resources = client.CoreV1Api(api).get_api_resources().resources
    assert {"configmaps", "namespaces/status"} <= {each.name for each in resources}


def test_a_kind_is_defined_and_withdrawn(api: Any, walk: Walk) -> None:
    definitions = client.ApiextensionsV1Api(api)
    definitions.create_custom_resource_definition(definition(walk.group))

    def established() -> bool:
        seen = definitions.read_custom_resource_definition(walk.widgets_crd)
        conditions = seen.status.conditions or [] if seen.status else []
        return any(each.type == "Established" and each.status == "True" for each in conditions)

    eventually(established)
    with pytest.raises(ApiException) as again:
        definitions.create_custom_resource_definition(definition(walk.group))
    assert refused(again) == (409, "AlreadyExists")
    definitions.delete_custom_resource_definition(walk.widgets_crd)

    def gone() -> bool:
        listed = definitions.list_custom_resource_definition(
            field_selector=f"metadata.name={walk.widgets_crd}"
        )
        return not listed.items

    eventually(gone)


def test_built_in_objects_live_and_die(core: Any, walk: Walk) -> None:
    ns = walk.namespace
    created = core.create_namespaced_config_map(ns, config_map("m", {"k": "1"}))
    assert created.metadata.uid
    created.data["k"] = "2"
    changed = core.replace_namespaced_config_map("m", ns, created)
    assert changed.data == {"k": "2"}
    with pytest.raises(ApiException) as stale:
        core.replace_namespaced_config_map("m", ns, created)
    assert refused(stale) == (409, "Conflict")
    core.delete_namespaced_config_map("m", ns)
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_config_map("m", ns)
    assert refused(missing) == (404, "NotFound")
    with pytest.raises(ApiException) as invalid:
        core.create_namespaced_config_map(ns, config_map("Not_Valid"))
    assert refused(invalid) == (422, "Invalid")


def test_a_write_without_resource_version_wins(core: Any, api: Any, walk: Walk) -> None:
    """As Helm does it: built-in kinds allow it."""
    ns = walk.namespace
    core.create_namespaced_config_map(ns, config_map("m", {"k": "1"}))
    core.replace_namespaced_config_map("m", ns, config_map("m", {"k": "2"}))
    assert core.read_namespaced_config_map("m", ns).data == {"k": "2"}
    with pytest.raises(ApiException) as missing:
        core.replace_namespaced_config_map("n", ns, config_map("n"))
    assert refused(missing) == (404, "NotFound")
    leases = client.CoordinationV1Api(api)
    lease = client.V1Lease(metadata=client.V1ObjectMeta(name="l"), spec=client.V1LeaseSpec())
    leases.create_namespaced_lease(ns, lease)
    with pytest.raises(ApiException) as needed:
        leases.replace_namespaced_lease("l", ns, lease)
    assert refused(needed) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value: 0: must be specified" in needed.value.body
    service = {
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}},
    }
    first = core.create_namespaced_service(ns, service)
    again = core.replace_namespaced_service("s", ns, service)
    assert again.spec.cluster_ip == first.spec.cluster_ip


def test_a_custom_object_needs_its_resource_version(custom: Any, widgets: Walk) -> None:
    place = (widgets.group, "v1", widgets.namespace, "widgets")
    custom.create_namespaced_custom_object(*place, widgets.widget("w"))
    with pytest.raises(ApiException) as needed:
        custom.replace_namespaced_custom_object(*place, "w", widgets.widget("w", size=2))
    assert refused(needed) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value: 0: must be specified" in needed.value.body
    current = custom.get_namespaced_custom_object(*place, "w")
    current["spec"]["size"] = 2
    changed = custom.replace_namespaced_custom_object(*place, "w", current)
    assert (changed["spec"]["size"], changed["metadata"]["generation"]) == (2, 2)


def test_patches_and_parts_of_custom_objects(custom: Any, widgets: Walk) -> None:
    place = (widgets.group, "v1", widgets.namespace, "widgets")
    custom.create_namespaced_custom_object(*place, widgets.widget("w"))
    ops = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
    as_json_patch = {"_content_type": "application/json-patch+json"}
    custom.patch_namespaced_custom_object(*place, "w", ops, **as_json_patch)
    status = custom.patch_namespaced_custom_object_status(
        *place, "w", {"status": {"phase": "Ready"}}
    )
    assert (status["status"]["phase"], status["metadata"]["generation"]) == ("Ready", 1)
    scale = custom.get_namespaced_custom_object_scale(*place, "w")
    assert scale["spec"]["replicas"] == 1
    scale["spec"]["replicas"] = 4
    custom.replace_namespaced_custom_object_scale(*place, "w", scale)
    whole = custom.get_namespaced_custom_object(*place, "w")
    assert (whole["spec"]["size"], whole["metadata"]["labels"]) == (4, {"a": "b"})
    with pytest.raises(ApiException) as invalid:
        custom.create_namespaced_custom_object(*place, widgets.widget("x", size=-1))
    assert refused(invalid) == (422, "Invalid")
    failing = [{"op": "test", "path": "/spec/size", "value": 9}]
    with pytest.raises(ApiException) as failed:
        custom.patch_namespaced_custom_object(*place, "w", failing, **as_json_patch)
    assert refused(failed) == (422, "Invalid")


def test_lists_are_selected_and_cut(core: Any, walk: Walk) -> None:
    ns = walk.namespace
    for number in range(5):
        labels = {"odd": str(number % 2)}
        core.create_namespaced_secret(ns, {"metadata": {"name": f"s{number}", "labels": labels}})

    def names(**options: Any) -> list[str]:
        return [each.metadata.name for each in core.list_namespaced_secret(ns, **options).items]

    assert names(label_selector="odd=1") == ["s1", "s3"]
    assert names(field_selector="metadata.name=s2") == ["s2"]
    first = core.list_namespaced_secret(ns, limit=2)
    assert first.metadata.remaining_item_count == 3
    second = core.list_namespaced_secret(ns, limit=2, _continue=first.metadata._continue)
    assert [each.metadata.name for each in second.items] == ["s2", "s3"]
    assert second.metadata.resource_version == first.metadata.resource_version
    with pytest.raises(ApiException) as invalid:
        names(label_selector="a in b")
    assert refused(invalid) == (400, "BadRequest")


def test_a_watch_goes_on_where_it_stopped(core: Any, walk: Walk) -> None:
    ns = walk.namespace
    core.create_namespaced_config_map(ns, config_map("a", labels={"w": "1"}))
    stream = watch.Watch()
    seen: list[tuple[str, str]] = []
    options = {"label_selector": "w=1", "timeout_seconds": 20}
    for event in stream.stream(core.list_namespaced_config_map, ns, **options):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 1:
            core.create_namespaced_config_map(ns, config_map("b", labels={"w": "1"}))
        else:
            stream.stop()
    version = stream.resource_version
    core.patch_namespaced_config_map("a", ns, {"data": {"k": "v"}})
    core.patch_namespaced_config_map("b", ns, {"metadata": {"labels": {"w": "2"}}})
    core.delete_namespaced_config_map("a", ns)
    resumed = watch.Watch()
    for event in resumed.stream(
        core.list_namespaced_config_map, ns, resource_version=version, **options
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 5:
            resumed.stop()
    assert seen == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
        ("DELETED", "a"),
    ]


def test_the_future_is_not_known(core: Any, walk: Walk) -> None:
    with pytest.raises(ApiException) as future:
        core.list_namespaced_config_map(walk.namespace, resource_version="99999999999")
    assert refused(future) == (504, "Timeout")


def test_deletion_waits_for_finalizers_and_reaches_dependents(core: Any, walk: Walk) -> None:
    ns = walk.namespace
    held = core.create_namespaced_config_map(ns, config_map("held", finalizers=["walks.dev/hold"]))
    going = core.delete_namespaced_config_map(
        "held", ns, body=client.V1DeleteOptions(propagation_policy="Foreground")
    )
    assert going
    seen = core.read_namespaced_config_map("held", ns)
    assert seen.metadata.deletion_timestamp
    assert "walks.dev/hold" in seen.metadata.finalizers
    core.patch_namespaced_config_map("held", ns, {"metadata": {"finalizers": None}})
    eventually(lambda: not _names(core, ns, "metadata.name=held"))
    assert held.metadata.uid == seen.metadata.uid

    owner = core.create_namespaced_config_map(ns, config_map("owner"))
    reference = client.V1OwnerReference(
        api_version="v1", kind="ConfigMap", name="owner", uid=owner.metadata.uid
    )
    core.create_namespaced_config_map(ns, config_map("owned", owner_references=[reference]))
    wrong = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="wrong"))
    with pytest.raises(ApiException) as other:
        core.delete_namespaced_config_map("owner", ns, body=wrong)
    assert refused(other) == (409, "Conflict")
    core.delete_namespaced_config_map("owner", ns)
    eventually(lambda: not _names(core, ns, "metadata.name=owned"))
    core.delete_collection_namespaced_secret(ns)
    assert core.list_namespaced_secret(ns).items == []


def _names(core: Any, namespace: str, selector: str) -> list[str]:
    found = core.list_namespaced_config_map(namespace, field_selector=selector).items
    return [each.metadata.name for each in found]


def test_leases_are_renewed_by_one_holder(api: Any, walk: Walk) -> None:
    leases = client.CoordinationV1Api(api)
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)
    spec = client.V1LeaseSpec(holder_identity="one", lease_duration_seconds=15, renew_time=now)
    lease = client.V1Lease(metadata=client.V1ObjectMeta(name="leader"), spec=spec)
    mine = leases.create_namespaced_lease(walk.namespace, lease)
    assert mine.spec.renew_time == now
    theirs = leases.read_namespaced_lease("leader", walk.namespace)
    mine.spec.renew_time = now + datetime.timedelta(seconds=10)
    leases.replace_namespaced_lease("leader", walk.namespace, mine)
    theirs.spec.holder_identity = "two"
    with pytest.raises(ApiException) as late:
        leases.replace_namespaced_lease("leader", walk.namespace, theirs)
    assert refused(late) == (409, "Conflict")


def test_events_are_one_store_with_two_doors(api: Any, core: Any, walk: Walk) -> None:
    ns = walk.namespace
    now = datetime.datetime.now(datetime.UTC)
    involved = client.V1ObjectReference(kind="ConfigMap", name="m", namespace=ns)
    event = client.CoreV1Event(
        metadata=client.V1ObjectMeta(generate_name="m."),
        involved_object=involved,
        reason="Walked",
        message="hello",
        type="Normal",
        source=client.V1EventSource(component="walk"),
        event_time=now,
        action="Walk",
        reporting_component="walks.dev/walk",
        reporting_instance="walk-1",
        first_timestamp=now,
        last_timestamp=now,
        count=1,
    )
    made = core.create_namespaced_event(ns, event)
    assert made.metadata.name.startswith("m.")
    found = core.list_namespaced_event(ns, field_selector="involvedObject.name=m,reason=Walked")
    assert [each.message for each in found.items] == ["hello"]
    newer = client.EventsV1Api(api).read_namespaced_event(made.metadata.name, ns)
    assert (newer.note, newer.regarding.name) == ("hello", "m")


def test_workloads_are_kept_with_their_defaults(api: Any, walk: Walk) -> None:
    apps = client.AppsV1Api(api)
    labels = {"app": "d"}
    pod = {"containers": [{"name": "c", "image": "example.com/c:1"}]}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    made = apps.create_namespaced_deployment(
        walk.namespace, {"metadata": {"name": "d"}, "spec": spec}
    )
    assert (made.spec.replicas, made.spec.strategy.type) == (1, "RollingUpdate")
    assert made.spec.template.spec.containers[0].image_pull_policy == "IfNotPresent"
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x:2"}]}}}}
    merged = apps.patch_namespaced_deployment("d", walk.namespace, patch)
    assert [each.image for each in merged.spec.template.spec.containers] == ["x:2"]
    scaled = apps.patch_namespaced_deployment_scale("d", walk.namespace, {"spec": {"replicas": 3}})
    assert scaled.spec.replicas == 3
    body = {"status": {"replicas": 3, "observedGeneration": 3}}
    status = apps.patch_namespaced_deployment_status("d", walk.namespace, body)
    assert (status.status.replicas, status.metadata.generation) == (3, 3)


def test_access_is_reviewed(api: Any, walk: Walk) -> None:
    review = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(
            resource_attributes=client.V1ResourceAttributes(verb="create", resource="pods")
        )
    )
    answer = client.AuthorizationV1Api(api).create_self_subject_access_review(review)
    assert answer.status.allowed is True
    who = client.AuthenticationV1Api(api).create_self_subject_review(client.V1SelfSubjectReview())
    assert who.status.user_info.username


def test_the_dynamic_client_walks_too(api: Any, widgets: Walk, tmp_path: Path) -> None:
    found = dynamic.DynamicClient(api, cache_file=str(tmp_path / "cache"))
    kind = found.resources.get(api_version=f"{widgets.group}/v1", kind="Widget")
    ns = widgets.namespace
    made = kind.create(body=widgets.widget("w", parts=[{"name": "x", "weight": 1}]), namespace=ns)
    assert made.metadata.generation == 1
    merge = {"content_type": "application/merge-patch+json", "namespace": ns}
    kind.patch(name="w", body={"metadata": {"labels": {"a": "b"}}}, **merge)
    assert [each.metadata.name for each in kind.get(namespace=ns, label_selector="a=b").items] == [
        "w"
    ]
    kind.status.patch(name="w", body={"status": {"phase": "Ready"}}, **merge)
    assert kind.get(name="w", namespace=ns).status.phase == "Ready"
    with pytest.raises(dynamic.exceptions.DynamicApiError) as strategic:
        kind.patch(name="w", body={"spec": {"size": 2}}, namespace=ns)  # what it sends by default
    assert strategic.value.status == 415
    applied = found.server_side_apply(
        kind, body=widgets.widget("w", size=6), name="w", namespace=ns,
        field_manager="walk", force_conflicts=True,
    )  # fmt: skip
    assert applied.spec.size == 6
    with pytest.raises(dynamic.exceptions.ConflictError):
        found.server_side_apply(
            kind, body=widgets.widget("w", size=7), name="w", namespace=ns, field_manager="other"
        )
    events = kind.watch(namespace=ns, timeout=20, resource_version=made.metadata.resourceVersion)
    assert next(events)["object"].metadata.labels.a == "b"
    events.close()
    kind.delete(name="w", namespace=ns)
    with pytest.raises(dynamic.exceptions.NotFoundError):
        kind.get(name="w", namespace=ns)
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(body=widgets.config_map("m"), namespace=ns)
    maps.patch(name="m", body={"data": {"k": "v"}}, namespace=ns)
    assert maps.get(name="m", namespace=ns).data.k == "v"
