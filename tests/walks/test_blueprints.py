"""Blueprints and ActionSets, as their definitions come: a server takes what is printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.functions.samples import HEAD, SEED
from tests.walks.conftest import DEFINITIONS
from tests.walks.support import Walk, eventually

from polyver import apis
from polyver.functions.kinds import ACTION_SETS, BLUEPRINTS
from polyver.kube.objects import load_manifests

GROUP = "/apis/cr.kanister.io/v1alpha1"
REFERENCE = {
    "apiVersion": "v1",
    "group": "apps",
    "resource": "deployments",
    "kind": "Deployment",
    "name": "db",
    "namespace": "shop",
}
ARTIFACTS = {"dump": {"keyValue": {"path": "/a/b"}, "kopiaSnapshot": "{}"}}
ACTION = {
    "name": "tail",
    "object": REFERENCE,
    "blueprint": "times",
    "artifacts": ARTIFACTS,
    "configMaps": {"settings": REFERENCE},
    "secrets": {"login": REFERENCE},
    "profile": REFERENCE,
    "podOverride": {"containers": [{"name": "container", "image": "x"}]},
    "options": {"day": "monday"},
    "preferredVersion": "v0.1.0",
    "podLabels": {"a": "b"},
    "podAnnotations": {"a": "b"},
}
PHASE = {"name": "tail", "state": "complete", "output": {"lines": [1, {"a": None}]}}
STATUS = {
    "state": "running",
    "progress": {"runningPhase": "tail", "percentCompleted": "50"},
    "actions": [
        {
            "name": "tail",
            "object": REFERENCE,
            "blueprint": "times",
            "phases": [PHASE | {"resolvedVersion": "v0.1.0", "reason": "stable version"}],
            "deferPhase": {"name": "last", "state": "pending"},
            "artifacts": ARTIFACTS,
        }
    ],
    "warnings": ["use v0.2.0"],
    "error": {"message": "no"},
}


@pytest.fixture
def kinds(walk: Walk) -> Iterator[Walk]:
    for kind in (BLUEPRINTS, ACTION_SETS):
        crd = apis.crd_of(kind.definition())
        walk.request("POST", f"{DEFINITIONS}?fieldValidation=Strict", crd)
        eventually(lambda kind=kind: walk.request("GET", f"{GROUP}/{kind.names.plural}"))  # type: ignore[misc]
    yield walk
    for kind in (BLUEPRINTS, ACTION_SETS):
        walk.request("DELETE", f"{DEFINITIONS}/{kind.definition().name}")
    eventually(lambda: walk.request("GET", GROUP) is None)


def created(walk: Walk, plural: str, obj: Any) -> Any:
    obj = {**obj, "metadata": {"name": obj["metadata"]["name"]}}
    path = f"{GROUP}/namespaces/{walk.namespace}/{plural}"
    return walk.request("POST", f"{path}?fieldValidation=Strict", obj)


def test_what_the_seed_prints_and_what_kanister_knows_is_taken(kinds: Walk) -> None:
    [document] = load_manifests(HEAD + SEED, "seed.yaml")
    found = created(kinds, "blueprints", document.value)
    assert found["actions"]["tail"]["phases"][0]["funcVersion"] == "v0.1.0"
    about = {"apiVersion": "cr.kanister.io/v1alpha1", "kind": "ActionSet"}
    run = about | {"metadata": {"name": "now"}, "spec": {"actions": [ACTION]}}
    made = created(kinds, "actionsets", run)
    assert made["spec"]["actions"] == [ACTION]
    path = f"{GROUP}/namespaces/{kinds.namespace}/actionsets/now/status?fieldValidation=Strict"
    assert kinds.request("PUT", path, made | {"status": STATUS})["status"] == STATUS
