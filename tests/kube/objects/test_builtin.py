"""Built-in kinds and types: facts of one release of Kubernetes, found when they are asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from tests.kube.record import transcript

from polyver.kube.objects.builtin import builtin_kinds, shape_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.type_shapes import Shape

KINDS = builtin_kinds()


def kind_of(name: str) -> ResourceKind:
    return next(kind for kind in KINDS if kind.kind == name)


def shapes(shape: Shape, seen: set[int] | None = None) -> Iterator[Shape]:
    """A shape and all that it is made of, each once."""
    seen = set() if seen is None else seen
    if id(shape) in seen:
        return
    seen.add(id(shape))
    yield shape
    inside = (*shape.fields.values(), shape.values, shape.items, *shape.inlined.values())
    for each in inside:
        if each is not None:
            yield from shapes(each, seen)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.api_version} {kind.kind}")
def test_every_kind_has_a_shape(kind: ResourceKind) -> None:
    shape = shape_of(kind.group, kind.version, kind.kind)
    assert shape.name == f"{kind.version}.{kind.kind}"
    assert shape.fields["metadata"].name == "v1.ObjectMeta"
    assert {"apiVersion", "kind"} <= shape.fields.keys()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.api_version} {kind.kind}")
def test_every_field_has_one_number_in_protobuf(kind: ResourceKind) -> None:
    for shape in shapes(shape_of(kind.group, kind.version, kind.kind)):
        inlined = {name for part in shape.inlined.values() for name in part.fields}
        numbered = set(shape.numbers.values())
        assert len(numbered) == len(shape.numbers)
        assert not numbered & inlined
        assert not shape.numbers.keys() & shape.inlined.keys()
        assert shape.fields.keys() - numbered - inlined <= {"apiVersion", "kind"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.api_version} {kind.kind}")
def test_facts_name_fields_that_there_are(kind: ResourceKind) -> None:
    for shape in shapes(shape_of(kind.group, kind.version, kind.kind)):
        named = {*shape.required, *shape.omits, *shape.absent, *shape.retained}
        assert named <= shape.fields.keys()
        assert not shape.omits & shape.absent.keys()
        if shape.items is not None and shape.list_type == "map":
            assert shape.keys
            assert set(shape.keys) <= shape.items.fields.keys()
        if shape.merge_key:
            assert shape.items is not None
            assert shape.merge_key in shape.items.fields


def test_what_patches_need_to_know_of_a_pod() -> None:
    pod = shape_of("", "v1", "Pod").fields["spec"]
    containers = pod.fields["containers"]
    assert containers.name == "[]v1.Container"
    assert (containers.list_type, containers.keys) == ("map", ("name",))
    assert (containers.merges, containers.merge_key) == (True, "name")
    assert containers.items is not None
    ports = containers.items.fields["ports"]
    assert (ports.keys, ports.merge_key) == (("containerPort", "protocol"), "containerPort")
    assert ports.key_defaults == {"protocol": "TCP"}
    assert pod.fields["nodeSelector"].atomic
    assert "volumes" in pod.retained


def test_a_strategic_merge_patch_replaces_what_a_budget_selects() -> None:
    assert (
        shape_of("policy", "v1", "PodDisruptionBudget").fields["spec"].fields["selector"].replaces
    )


def test_fields_of_a_message_within_stand_among_the_others_in_json() -> None:
    volume = shape_of("", "v1", "Pod").fields["spec"].fields["volumes"].items
    assert volume is not None
    assert volume.numbers == {1: "name"}
    assert volume.inlined[2].name == "v1.VolumeSource"
    assert volume.inlined[2].fields["emptyDir"] is volume.fields["emptyDir"]


def test_what_replies_always_have() -> None:
    assert shape_of("", "v1", "Service").absent == {
        "metadata": {},
        "spec": {},
        "status": {"loadBalancer": {}},
    }
    assert shape_of("rbac.authorization.k8s.io", "v1", "Role").absent == {
        "metadata": {},
        "rules": None,
    }


def test_a_schema_holds_itself() -> None:
    definition = shape_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    versions = definition.fields["spec"].fields["versions"].items
    assert versions is not None
    schema = versions.fields["schema"].fields["openAPIV3Schema"]
    assert schema.fields["properties"].values is schema
    assert schema.fields["additionalProperties"].values is schema
    assert schema.fields["not"] is schema


def test_kinds_share_their_types() -> None:
    metadata = {
        id(shape_of(kind.group, kind.version, kind.kind).fields["metadata"]) for kind in KINDS
    }
    assert len(metadata) == 1


def test_options_and_status_are_found_where_clients_put_them() -> None:
    assert shape_of("", "v1", "DeleteOptions") is shape_of("meta.k8s.io", "v1", "DeleteOptions")
    assert shape_of("", "v1", "Status").fields["code"].format == "int32"
    assert (
        shape_of("autoscaling", "v1", "Scale").fields["spec"].fields["replicas"].type == "integer"
    )


def test_kinds_are_those_that_discovery_lists() -> None:
    listed: dict[tuple[str, str], Any] = {}
    for answer in transcript("discovery-of-built-in-kinds") or []:
        group = answer["step"].removeprefix("GET ").removeprefix("/apis/").removeprefix("/api/")
        resources = [*answer["body"].get("resources", [])]
        resources += [
            value for key, value in answer["body"].items() if key.startswith("resources[")
        ]
        listed |= {(group, resource["name"]): resource for resource in resources}
    found = {(kind.api_version, kind.plural): kind for kind in KINDS}
    compared = [key for key in listed if key in found]
    assert len(compared) >= 6
    for key in compared:
        kind, resource = found[key], listed[key]
        assert kind.kind == resource["kind"]
        assert kind.singular == resource["singularName"]
        assert kind.namespaced == resource["namespaced"]
        assert list(kind.verbs) == resource["verbs"]
        assert list(kind.short_names) == resource.get("shortNames", [])
        assert list(kind.categories) == resource.get("categories", [])


def test_parts_that_need_no_node_have_paths() -> None:
    parts = {part.name: part for part in kind_of("Deployment").subresources}
    assert parts.keys() == {"scale", "status"}
    assert (parts["scale"].group, parts["scale"].kind) == ("autoscaling", "Scale")
    assert [part.name for part in kind_of("Pod").subresources] == ["status"]
    finalize = kind_of("Namespace").subresource("finalize")
    assert finalize is not None
    assert finalize.verbs == ("update",)


def test_namespaces_are_deleted_one_by_one() -> None:
    assert "deletecollection" not in kind_of("Namespace").verbs


def test_nothing_is_read_before_somebody_asks() -> None:
    program = (
        "import polyver.kube.objects.builtin._types as types;"
        "import polyver.kube.objects.builtin._kinds as kinds;"
        "print(types._encoded_types.cache_info().currsize,"
        "kinds.builtin_kinds.cache_info().currsize)"
    )
    asked = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert asked.stdout == "0 0\n"


def test_types_are_facts_without_sentences() -> None:
    facts = json.loads(files("polyver.kube.objects.builtin").joinpath("types.json").read_text())

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            for key, inner in value.items():
                yield key
                yield from texts(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from texts(inner)
        elif isinstance(value, str):
            yield value

    assert {text for text in texts(facts) if " " in text} == {"empty zero"}
