"""A data folder of an earlier release is served: stored names and formats do not change.

The store was made by `polyver up` before the modules of each capability moved into one folder, with
examples/many-versions, examples/rollout/stable and examples/conversions/backups.yaml loaded, and a
Backup in v1alpha1.
"""

from __future__ import annotations

import copy
import json
import lzma
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.compositions.controllers.installing import MemoryRuntime
from tests.editing import edited
from tests.walks.support import eventually

from polyver.app.capabilities import NAMES
from polyver.testing import EmbeddedServer

STORE = Path(__file__).with_name("earlier") / "store.db.xz"
OAM = "/apis/core.oam.dev"
APPLICATIONS = f"{OAM}/v1beta1/namespaces/checkout/applications"
BACKUP = "/apis/shop.example.com/{}/namespaces/default/backups/orders"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "store").mkdir(parents=True)
    (folder / "store" / "store.db").write_bytes(lzma.decompress(STORE.read_bytes()))
    return folder


@pytest.fixture
def stored(data: Path) -> dict[str, Any]:
    """All objects that the earlier release stored, by their keys."""
    query = "select key, value from log join current using (key, revision)"
    with sqlite3.connect(data / "store" / "store.db") as store:
        return {key: json.loads(value) for key, value in store.execute(query)}


@pytest.fixture
def server(stored: dict[str, Any], data: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(data=data, capabilities=NAMES, runtime=MemoryRuntime()) as running:
        yield running


def release(definition: dict[str, Any]) -> None:
    """Add the version 1.2.5, with the template of 1.2.4."""
    versions = definition["spec"]["versions"]
    if not any(each["version"] == "1.2.5" for each in versions):
        template = next(each for each in versions if each["version"] == "1.2.4")
        versions.append(copy.deepcopy(template) | {"version": "1.2.5"})


def version_of(server: EmbeddedServer, name: str) -> str:
    found = server.request("GET", f"{APPLICATIONS}/{name}")
    return str(found["status"]["resolutions"][0]["version"])


def test_applications_go_on_from_where_they_were(
    server: EmbeddedServer, stored: dict[str, Any]
) -> None:
    assert version_of(server, "cart") == "1.2.4"
    definition = f"{OAM}/v2beta1/namespaces/vela-system/componentdefinitions/webservice"
    edited(server.request, definition, release)
    eventually(lambda: version_of(server, "cart") == "1.2.5")
    # The pinned one had nothing to do: the same object, with the same field managers. A release
    # may word a message of the status anew, which writes the status once.
    pinned = server.request("GET", f"{APPLICATIONS}/payments")
    before = stored["/core.oam.dev/applications/checkout/payments"]
    assert lasting(pinned["metadata"]) == lasting(before["metadata"])
    assert pinned["status"]["appliedDigest"] == before["status"]["appliedDigest"]


def lasting(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata without the fields that every write changes."""
    managers = [{**each, "time": ""} for each in metadata["managedFields"]]
    return {**metadata, "resourceVersion": "", "managedFields": managers}


def test_objects_are_converted_as_before(server: EmbeddedServer, stored: dict[str, Any]) -> None:
    old = server.request("GET", BACKUP.format("v1alpha1"))
    assert old["spec"] == {
        "cron": "@daily",
        "keepDays": "7",
        "target": "db:5432",
        "verbose": True,
        "volume": "fast",
    }
    conversion = stored["/polyver.dev/conversions/backups.shop.example.com"]
    found = server.request("GET", "/apis/polyver.dev/v1alpha1/conversions/backups.shop.example.com")
    assert found["metadata"]["finalizers"] == conversion["metadata"]["finalizers"]


def test_composite_resources_and_actions_are_as_they_were(
    server: EmbeddedServer, stored: dict[str, Any]
) -> None:
    path = "/apis/cr.kanister.io/v1alpha1/namespaces/checkout/actionsets/tidy-up-1"
    assert server.request("GET", path)["status"]["state"] == "complete"
    found = server.request("GET", "/apis/custom-api.example.org/v1alpha1/acmebuckets/my-bucket")
    before = stored["/custom-api.example.org/acmebuckets/my-bucket"]
    assert found["spec"] == before["spec"]
    composed = server.request("GET", "/api/v1/namespaces/default/configmaps/my-bucket")
    kept = stored["//configmaps/default/my-bucket"]["metadata"]
    assert composed["metadata"]["ownerReferences"] == kept["ownerReferences"]
    managers = [each["manager"] for each in composed["metadata"]["managedFields"]]
    assert managers == [each["manager"] for each in kept["managedFields"]]
