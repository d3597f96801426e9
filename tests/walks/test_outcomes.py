"""What controllers in Python want to be there: made, kept, and taken away when wanted no more.

On polyver's own server, which is what runs them.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.editing import edited
from tests.walks.conftest import DEFINITIONS
from tests.walks.support import eventually

from polyver import apis
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
GROUP = "racks.example.com"
RACKS = f"/apis/{GROUP}/v1/namespaces/default/racks"
MAPS = "/api/v1/namespaces/default/configmaps"
BOXES = "/apis/boxes.example.com/v1/namespaces/default/boxes"
NOTE = "polyver.dev/applied"

rack = apis.Kind("Rack", group=GROUP)


@rack.version("v1")
class Rack(apis.Fields):
    """Has a ConfigMap for each shelf, and a Box for each box."""

    class Spec(apis.Fields):
        shelves: list[str] | None = None
        boxes: list[str] | None = None

    class Status(apis.Fields):
        shelves: list[str]

    metadata: dict[str, Any]
    spec: Spec
    status: Status | None = None


@rack.reconcile
def furnish(obj: Rack) -> apis.Outcome:
    name = obj.metadata["name"]
    shelves, boxes = obj.spec.shelves, obj.spec.boxes or []
    made = [part("v1", "ConfigMap", f"{name}-{each}") for each in shelves or ()]
    made += [part("boxes.example.com/v1", "Box", f"{name}-{each}") for each in boxes]
    status = {"shelves": shelves or []}
    return apis.Outcome(status=status, objects=None if shelves is None else made)


def part(api_version: str, kind: str, name: str) -> Object:
    content = {"data": {"name": name}} if kind == "ConfigMap" else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **content}


def create(server: EmbeddedServer, **spec: Any) -> Object:
    body = part(f"{GROUP}/v1", "Rack", "r") | {"spec": spec}
    return settled(server, server.request("POST", RACKS, body))


def change(server: EmbeddedServer, **spec: Any) -> Object:
    return settled(server, put(server, **spec))


def put(server: EmbeddedServer, at: str = f"{RACKS}/r", **spec: Any) -> Object:
    found: Object = edited(server.request, at, lambda each: each.update(spec=spec))
    return found


def settled(server: EmbeddedServer, obj: Object) -> Object:
    """The object once its controller is done with what it says: the status is written last."""
    wanted = obj["spec"].get("shelves") or []

    def done() -> Any:
        found = server.request("GET", f"{RACKS}/r")
        return found if found.get("status", {}).get("shelves") == wanted else None

    found: Object = eventually(done)
    return found


def shelves(server: EmbeddedServer) -> list[str]:
    items = server.request("GET", MAPS)["items"]
    names = [each["metadata"]["name"] for each in items]
    return [each for each in names if each != "kube-root-ca.crt"]


def note(obj: Object) -> Any:
    text = obj["metadata"].get("annotations", {}).get(NOTE)
    return text and [each[1:] for each in json.loads(text)]


@pytest.fixture(scope="module")
def furnished() -> Any:
    with EmbeddedServer(kinds=[rack]) as server:
        yield server


@pytest.fixture
def server(furnished: EmbeddedServer) -> Any:
    yield furnished
    furnished.request("DELETE", f"{RACKS}/r")
    eventually(lambda: not shelves(furnished))


def is_gone(server: EmbeddedServer, at: str) -> bool:
    try:
        server.request("GET", at)
    except ApiError as error:
        return error.code == 404
    return False


def test_what_is_wanted_no_longer_goes(server: EmbeddedServer) -> None:
    made = create(server, shelves=["a", "b"])
    assert shelves(server) == ["r-a", "r-b"]
    assert note(made) == [["ConfigMap", "default", "r-a"], ["ConfigMap", "default", "r-b"]]
    uid = server.request("GET", f"{MAPS}/r-b")["metadata"]["uid"]
    made = change(server, shelves=["b", "c"])
    assert shelves(server) == ["r-b", "r-c"]
    assert server.request("GET", f"{MAPS}/r-b")["metadata"]["uid"] == uid
    assert note(made) == [["ConfigMap", "default", "r-b"], ["ConfigMap", "default", "r-c"]]
    change(server, shelves=[])
    assert shelves(server) == []
    assert note(server.request("GET", f"{RACKS}/r")) is None


def test_who_says_nothing_of_objects_leaves_them(server: EmbeddedServer) -> None:
    create(server, shelves=["a"])
    change(server)
    assert shelves(server) == ["r-a"]
    change(server, shelves=["b"])
    assert shelves(server) == ["r-b"]


def test_what_has_another_owner_too_is_not_deleted(server: EmbeddedServer) -> None:
    create(server, shelves=["b", "c"])
    body = {"metadata": {"name": "r-other"}}
    uid = server.request("POST", MAPS, body)["metadata"]["uid"]
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "r-other", "uid": uid}
    path = f"{MAPS}/r-b"
    edited(server.request, path, lambda each: each["metadata"]["ownerReferences"].append(other))
    change(server, shelves=[])
    assert "r-b" in shelves(server)
    assert "r-c" not in shelves(server)
    assert note(server.request("GET", f"{RACKS}/r")) is None
    for name in ("r-b", "r-other"):
        server.request("DELETE", f"{MAPS}/{name}")


def test_an_object_that_somebody_deletes_is_restored(server: EmbeddedServer) -> None:
    create(server, shelves=["a"])
    for _ in range(3):
        uid = server.request("GET", f"{MAPS}/r-a")["metadata"]["uid"]
        server.request("DELETE", f"{MAPS}/r-a")
        eventually(partial(is_made_again, server, "r-a", uid))
    assert server.request("GET", f"{MAPS}/r-a")["data"] == {"name": "r-a"}


def test_a_field_that_somebody_edits_is_restored(server: EmbeddedServer) -> None:
    create(server, shelves=["a"])
    edit = {"data": {"name": "mine", "more": "kept"}}
    for _ in range(3):
        edited(server.request, f"{MAPS}/r-a", lambda found: found.update(edit))
        eventually(lambda: server.request("GET", f"{MAPS}/r-a")["data"]["name"] == "r-a")
    assert server.request("GET", f"{MAPS}/r-a")["data"] == {"name": "r-a", "more": "kept"}


def test_an_owner_reference_that_somebody_removes_is_restored(server: EmbeddedServer) -> None:
    create(server, shelves=["a"])
    edited(server.request, f"{MAPS}/r-a", lambda found: found["metadata"].pop("ownerReferences"))
    eventually(lambda: server.request("GET", f"{MAPS}/r-a")["metadata"].get("ownerReferences"))


def is_made_again(server: EmbeddedServer, name: str, uid: str) -> bool:
    items = server.request("GET", MAPS)["items"]
    uids = [each["metadata"]["uid"] for each in items if each["metadata"]["name"] == name]
    return bool(uids) and uids != [uid]


def test_objects_are_not_taken_from_another_owner(server: EmbeddedServer) -> None:
    create(server, shelves=["a-b"])
    before = server.request("GET", f"{MAPS}/r-a-b")
    at = f"{RACKS}/r-a"
    other = part(f"{GROUP}/v1", "Rack", "r-a") | {"spec": {"shelves": ["z", "b"]}}
    server.request("POST", RACKS, other)
    eventually(lambda: "r-a-z" in shelves(server))
    # When this is done, so is what came before it.
    put(server, at, shelves=["z"])
    eventually(lambda: server.request("GET", at).get("status") == {"shelves": ["z"]})
    assert server.request("GET", f"{MAPS}/r-a-b") == before
    server.request("DELETE", at)
    eventually(lambda: shelves(server) == ["r-a-b"])
    assert server.request("GET", f"{MAPS}/r-a-b") == before


@pytest.mark.parametrize("text", ["", "no JSON", '[["a"]]', '[["", "ConfigMap", "x", "never"]]'])
def test_a_note_that_says_nothing_true_is_put_right(server: EmbeddedServer, text: str) -> None:
    create(server, shelves=["a"])
    noted = {NOTE: text}
    edited(server.request, f"{RACKS}/r", lambda obj: obj["metadata"]["annotations"].update(noted))
    made = change(server, shelves=["a", "b"])
    assert note(made) == [["ConfigMap", "default", "r-a"], ["ConfigMap", "default", "r-b"]]
    assert shelves(server) == ["r-a", "r-b"]


def test_what_is_wanted_no_longer_goes_after_a_restart(tmp_path: Path) -> None:
    with EmbeddedServer(data=tmp_path, kinds=[rack]) as server:
        create(server, shelves=["a", "b"])
    with EmbeddedServer(data=tmp_path) as server:
        put(server, shelves=["b"])
        assert shelves(server) == ["r-a", "r-b"]
    with EmbeddedServer(data=tmp_path, kinds=[rack]) as server:
        eventually(lambda: shelves(server) == ["r-b"])


def test_a_kind_that_is_not_served_is_no_obstacle_and_not_forgotten(
    server: EmbeddedServer,
) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "boxes", "kind": "Box"}
    spec = {"group": "boxes.example.com", "scope": "Namespaced", "names": names}
    crd = {"metadata": {"name": "boxes.boxes.example.com"}, "spec": spec | {"versions": [version]}}
    server.request("POST", DEFINITIONS, crd)
    at = f"{DEFINITIONS}/boxes.boxes.example.com"
    eventually(lambda: not is_gone(server, BOXES))
    create(server, shelves=["a"], boxes=["1"])
    assert not is_gone(server, f"{BOXES}/r-1")
    serve(server, at, served=False)
    eventually(lambda: is_gone(server, BOXES))
    made = change(server, shelves=["b"])
    assert shelves(server) == ["r-b"]
    assert note(made) == [["ConfigMap", "default", "r-b"], ["Box", "default", "r-1"]]
    serve(server, at, served=True)
    eventually(lambda: not is_gone(server, BOXES))
    made = change(server, shelves=["c"])
    assert is_gone(server, f"{BOXES}/r-1")
    assert note(made) == [["ConfigMap", "default", "r-c"]]
    server.request("DELETE", at)


def serve(server: EmbeddedServer, at: str, *, served: bool) -> None:
    edited(server.request, at, lambda crd: crd["spec"]["versions"][0].update(served=served))
