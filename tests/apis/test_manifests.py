"""CustomResourceDefinitions, read and written: v1beta1 and v1 give the same values."""

from __future__ import annotations

from typing import Any

import pytest

from polyver import apis
from polyver.kube.objects import InvalidManifest, dump_yaml, load_manifests

V1 = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
  labels: {team: shop}
  annotations: {note: kept}
spec:
  group: stable.example.com
  names: {kind: CronTab, plural: crontabs, shortNames: [ct]}
  scope: Cluster
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1, v1beta1]
      clientConfig:
        service: {namespace: shop, name: hooks, path: /convert, port: 8443}
        caBundle: Cg==
  versions:
  - name: v1
    served: true
    storage: false
    deprecated: true
    deprecationWarning: use v2
    schema: {openAPIV3Schema: {type: object}}
  - name: v2
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {colour: {type: string}}}}
    subresources: {status: {}, scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.a}}
    additionalPrinterColumns: [{name: Colour, type: string, jsonPath: .spec.colour}]
    selectableFields: [{jsonPath: .spec.colour}]
"""

BETA = """
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  names: {kind: CronTab, plural: crontabs}
  scope: Namespaced
  preserveUnknownFields: false
  version: v1
  versions:
  - {name: v1, served: true, storage: true}
  - name: v1beta1
    served: true
    storage: false
    additionalPrinterColumns: [{name: Other, type: integer, JSONPath: .spec.other}]
  validation:
    openAPIV3Schema: {type: object, properties: {spec: {type: object}}}
  subresources: {status: {}}
  additionalPrinterColumns: [{name: Age, type: date, JSONPath: .metadata.creationTimestamp}]
  conversion:
    strategy: Webhook
    webhookClientConfig: {url: "https://hooks.example.com"}
"""


def read(text: str) -> apis.Definition:
    [found] = apis.definitions_of(load_manifests(text, "crd.yaml"))
    return found


def test_a_definition_is_read_as_values() -> None:
    found = read(V1)
    assert (found.name, found.kind, found.scope) == (
        "crontabs.stable.example.com",
        "CronTab",
        "Cluster",
    )
    assert [version.name for version in found.versions] == ["v2", "v1"]
    assert found.storage == "v2"
    assert found.webhook == apis.Webhook(
        "shop", "hooks", 8443, "/convert", ca_bundle="Cg==", reviews=("v1", "v1beta1")
    )
    v2, v1 = found.versions
    assert (v1.deprecated, v1.warning, v1.status) == (True, "use v2", False)
    assert (v2.status, v2.scale) == (True, apis.Scale(".spec.a", ".status.a"))
    assert v2.columns == (apis.Column("Colour", ".spec.colour"),)
    assert v2.selectable == (".spec.colour",)
    assert found.place == "crd.yaml:2"


def test_what_was_read_is_written_with_everything_it_said() -> None:
    written = apis.crd_of(read(V1))
    assert read(dump_yaml(written)) == read(V1)
    assert written["metadata"] == {
        "name": "crontabs.stable.example.com",
        "labels": {"team": "shop"},
        "annotations": {"note": "kept"},
    }
    [document] = load_manifests(V1, "crd.yaml")
    value: Any = document.value
    assert written["spec"]["conversion"] == value["spec"]["conversion"]


def test_v1beta1_says_once_what_v1_says_for_each_version() -> None:
    written = apis.crd_of(read(BETA))
    assert written["apiVersion"] == "apiextensions.k8s.io/v1"
    assert written["spec"].keys() == {"group", "names", "scope", "conversion", "versions"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    assert written["spec"]["versions"] == [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": schema,
            "subresources": {"status": {}},
            "additionalPrinterColumns": [
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
            ],
        },
        {
            "name": "v1beta1",
            "served": True,
            "storage": False,
            "schema": schema,
            "subresources": {"status": {}},
            "additionalPrinterColumns": [
                {"name": "Other", "type": "integer", "jsonPath": ".spec.other"}
            ],
        },
    ]
    assert written["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"url": "https://hooks.example.com"},
            "conversionReviewVersions": ["v1beta1"],
        },
    }


def test_v1beta1_keeps_unknown_fields_unless_it_says_otherwise() -> None:
    found = read(BETA.replace("  preserveUnknownFields: false\n", "")).versions[0].schema
    keep = {"x-kubernetes-preserve-unknown-fields": True}
    assert found == {
        "type": "object",
        "properties": {"spec": {"type": "object", **keep}},
        **keep,
    }


def test_a_version_alone_and_without_a_schema_keeps_everything() -> None:
    text = BETA.split("  version:", maxsplit=1)[0] + "  version: v3\n"
    [version] = apis.crd_of(read(text))["spec"]["versions"]
    assert version == {
        "name": "v3",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
            }
        },
    }


def test_a_kind_that_was_read_has_hooks_on_plain_data_and_no_new_versions() -> None:
    [crontab] = apis.read_kinds(V1, "crd.yaml")
    assert not crontab.is_ours
    assert (crontab.hub, crontab.versions) == ("v2", {})
    assert crontab.definition() == read(V1)

    @crontab.default("v1")
    def paint(obj: dict[str, Any]) -> None:
        obj["colour"] = "red"

    assert crontab.defaulted("v1", {})["colour"] == "red"
    with pytest.raises(apis.InvalidKind, match=r"CronTab was read from crd.yaml:2, so versions"):
        crontab.version("v3")(type("V3", (), {"__annotations__": {"a": str}}))
    with pytest.raises(apis.NotAsDeclared, match=r"CronTab was read from crd.yaml:2, so it has no"):
        crontab.from_object({"apiVersion": "stable.example.com/v1", "kind": "CronTab"})


def test_versions_are_written_in_kube_order() -> None:
    seed = "v10 v2 v1 v11beta2 v10beta3 v3beta1 v12alpha1 v11alpha2 foo1 foo10".split()
    toy = apis.Kind("Toy", group="ex.io", strategy="None")
    for name in sorted(seed):
        toy.version(name, storage=name == "v2")(type("Toy", (), {"__annotations__": {"a": str}}))
    written = apis.crd_of(toy.definition(), apis.Webhook(url="https://hooks.example.com"))
    assert [version["name"] for version in written["spec"]["versions"]] == seed
    assert written["spec"]["conversion"] == {"strategy": "None"}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("storage: true", "storage: false", "CronTab has no storage version among v2, v1 (crd.ya"),
        ("storage: false", "storage: true", "CronTab has two storage versions, v2, v1 (crd.yaml"),
        ("name: v2", "name: v 2", "(crd.yaml:26, spec.versions[1].name)"),
        ("scope: Cluster", "scope: cluster", "invalid enum value 'cluster' (crd.yaml:11, spec.sco"),
        ("served: true", "served: 5", "expected a boolean, got an integer (crd.yaml:21"),
        (
            "service: {",
            "other: {",
            "the webhook has neither a service nor a url (crd",
        ),
        ("plural: crontabs, ", "plural: 5, ", "expected a string, got an integer (crd.yaml:10"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_line(old: str, new: str, says: str) -> None:
    with pytest.raises(InvalidManifest) as caught:
        read(V1.replace(old, new))
    assert says in str(caught.value)


def test_the_first_version_of_v1beta1_is_the_one_that_stands_alone() -> None:
    text = BETA.replace("version: v1\n", "version: v2\n", 1)
    with pytest.raises(InvalidManifest, match=r"v2 is not the first of the versions .* that is v1"):
        read(text)
