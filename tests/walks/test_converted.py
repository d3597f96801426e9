"""Clients in several versions of one kind at once, on polyver's server and on a real one.

Here a Conversion is applied and served in process; there `polyver serve` is asked about the same.
"""

from __future__ import annotations

import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.apis.conversions import EVERY_RULE, SCHEMAS
from tests.deadlines import HANG
from tests.editing import edited
from tests.walks.conftest import DEFINITIONS, withdraw
from tests.walks.support import PATIENCE, Walk, eventually
from tests.walks.test_serve import served

from polyver.apis.conversion import ANNOTATION
from polyver.kube.objects import dump_yaml, load_manifests
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
VERSIONS = ("v1", "v2", "v3")
CONVERSIONS = "/apis/polyver.dev/v1alpha1/conversions"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
V1: Object = {
    "cronSpec": "@daily",
    "hostPort": "h:08080",
    "image": "x",
    "policy": "Odd",
    "only1": {"a": "b"},
    "containers": [{"name": "one", "cmd": "run", "debug": "yes"}],
}


@dataclass(frozen=True)
class Answer:
    code: int
    body: Any

    @property
    def spec(self) -> Object:
        assert self.code < 300, self.body
        found: Object = self.body["spec"]
        return found


@dataclass
class Widgets:
    """The Widgets of a walk, asked for in any version."""

    walk: Walk

    def ask(self, method: str, path: str, body: object = None, media: str = "") -> Answer:
        try:
            with self._open(method, path, body, media) as answer:
                return Answer(answer.status, json.loads(answer.read()))
        except urllib.error.HTTPError as error:
            told = error.read()
            return Answer(error.code, json.loads(told) if told[:1] == b"{" else told.decode())

    def _open(self, method: str, path: str, body: object = None, media: str = "") -> Any:
        server = self.walk.server
        context = ssl.create_default_context(cafile=str(server.ca_file))
        headers = {"Authorization": f"Bearer {server.token}", "User-Agent": "walker/1"}
        headers["Content-Type"] = media or "application/json"
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(server.url + path, data, headers, method=method)
        return urllib.request.urlopen(asked, timeout=PATIENCE, context=context)

    def path(self, version: str, name: str = "") -> str:
        at = f"/apis/{self.walk.group}/{version}/namespaces/{self.walk.namespace}/widgets"
        return f"{at}/{name}" if name else at

    def body(self, version: str, name: str, spec: Object, **metadata: Any) -> Object:
        about = {"apiVersion": f"{self.walk.group}/{version}", "kind": "Widget"}
        return {**about, "metadata": {"name": name, **metadata}, "spec": spec}

    def create(self, version: str, name: str, spec: Object, **metadata: Any) -> Object:
        answer = self.ask("POST", self.path(version), self.body(version, name, spec, **metadata))
        assert answer.code == 201, answer
        found: Object = answer.body
        return found

    def get(self, version: str, name: str = "a") -> Object:
        answer = self.ask("GET", self.path(version, name))
        assert answer.code == 200, answer
        found: Object = answer.body
        return found

    def spec(self, version: str, name: str = "a") -> Object:
        found: Object = self.get(version, name)["spec"]
        return found

    def merge(self, version: str, change: Object, name: str = "a") -> Answer:
        return self.ask("PATCH", self.path(version, name), change, MERGE)

    def apply(
        self, version: str, manager: str, spec: Object, *, force: bool = False, **metadata: Any
    ) -> Answer:
        at = f"{self.path(version, 'a')}?fieldManager={manager}&force={str(force).lower()}"
        return self.ask("PATCH", at, self.body(version, "a", spec, **metadata), APPLY)

    def crd(self) -> Object:
        found: Object = self.walk.request("GET", f"{DEFINITIONS}/{self.walk.widgets_crd}")
        return found

    def edit_crd(self, change: Callable[[Object], object]) -> None:
        edited(self.walk.request, f"{DEFINITIONS}/{self.walk.widgets_crd}", change)

    @contextmanager
    def watched(self, version: str) -> Iterator[list[Object]]:
        """The events in a version from now on, as they come."""
        since = self.ask("GET", self.path(version)).body["metadata"]["resourceVersion"]
        query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={since}&timeoutSeconds=20"
        events: list[Object] = []
        with self._open("GET", self.path(version) + query) as stream:

            def read() -> None:
                for line in stream:
                    events.append(json.loads(line))
                    if events[-1]["type"] == "DELETED":
                        return

            reading = threading.Thread(target=read, daemon=True)
            reading.start()
            yield events
            reading.join(PATIENCE)


def definition(walk: Walk, stored: str = "v2") -> Object:
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == stored,
            "schema": {"openAPIV3Schema": schema},
        }
        for name, schema in SCHEMAS.items()
    ]
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": walk.group, "scope": "Namespaced", "names": names, "versions": versions}
    about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**about, "metadata": {"name": walk.widgets_crd}, "spec": spec}


def conversion(walk: Walk) -> Object:
    text = EVERY_RULE.replace("crontabs.stable.example.com", walk.widgets_crd)
    text = text.replace("stable.example.com", walk.group).replace("CronTab", "Widget")
    [found] = load_manifests(text, "conversion.yaml")
    assert isinstance(found.value, dict)
    return found.value


@pytest.fixture
def widgets(walk: Walk, tmp_path: Path) -> Iterator[Widgets]:
    """Widgets with the rules of the reference."""
    crd, rules = definition(walk), conversion(walk)
    asked: AbstractContextManager[tuple[str, str] | None] = nullcontext()
    if not isinstance(walk.server, EmbeddedServer):
        (tmp_path / "conversions.yaml").write_text(dump_yaml(rules) + "---\n" + dump_yaml(crd))
        asked = served(tmp_path)
    with asked as webhook:
        if webhook:
            client = {"url": webhook[0], "caBundle": webhook[1]}
            hook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
            crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": hook}
        walk.request("POST", DEFINITIONS, crd)
        if not webhook:
            walk.request("POST", CONVERSIONS, rules)
        found = Widgets(walk)
        eventually(lambda: is_converted(found))
        yield found
        withdraw(walk)
        if not webhook:
            walk.request("DELETE", f"{CONVERSIONS}/{walk.widgets_crd}")


def is_converted(widgets: Widgets) -> bool:
    """Whether an object that is written in one version is there in all, with what it lost."""
    found = [widgets.ask("GET", widgets.path(version)).code for version in VERSIONS]
    if found != [200] * 3:
        return False
    asked = widgets.path("v1") + "?dryRun=All"
    spec = widgets.ask("POST", asked, widgets.body("v1", "probe", {"cronSpec": "x"})).body
    crd = widgets.crd()
    return "spec" in spec and crd["spec"]["conversion"]["strategy"] == "Webhook"


def visible(widgets: Widgets) -> Object:
    spec = widgets.spec("v1")
    return {name: spec.get(name) for name in V1}


def test_two_who_apply_in_two_versions_meet_at_the_same_fields(widgets: Widgets) -> None:
    assert widgets.apply("v1", "old", V1).code == 201
    refused = widgets.apply("v3", "new", {"host": "i", "only3": [{"name": "z"}]})
    assert refused.code == 409
    text = 'Apply failed with 1 conflict: conflict with "old": .spec.hostPort'
    assert refused.body["message"] == text
    assert widgets.apply("v3", "new", {"only3": [{"name": "z"}]}).code == 200
    assert visible(widgets) == V1
    assert widgets.apply("v3", "new", {"host": "i"}, force=True).spec["host"] == "i"
    assert visible(widgets) == V1 | {"hostPort": "i:8080"}


def test_what_is_applied_no_longer_goes_in_all_versions_and_the_rest_stays(
    widgets: Widgets,
) -> None:
    widgets.apply("v1", "old", V1)
    widgets.apply("v3", "new", {"only3": [{"name": "z"}], "schedule": "@daily"})
    less = {name: value for name, value in V1.items() if name != "image"}
    assert widgets.apply("v1", "old", less).code == 200
    assert visible(widgets) == less | {"image": None}
    third = widgets.spec("v3")
    assert "template" not in third
    assert third["only3"] == [{"name": "z"}]


def test_what_only_one_version_has_stays_while_others_apply_in_versions_without_it(
    widgets: Widgets,
) -> None:
    # Servers compare in every owner's version, and nobody owns the carry: see the reference.
    widgets.apply("v1", "old", V1)
    widgets.apply("v3", "new", {"only3": [{"name": "z"}], "schedule": "@daily"})
    less = {name: value for name, value in V1.items() if name != "only1"}
    assert widgets.apply("v1", "old", less).code == 200
    assert visible(widgets) == V1
    assert widgets.merge("v1", {"spec": {"only1": None}}).code == 200
    assert visible(widgets) == V1 | {"only1": None}


def test_who_applies_in_another_version_takes_back_what_was_applied_before(
    widgets: Widgets,
) -> None:
    widgets.apply("v1", "one", V1)
    applied = widgets.apply("v3", "one", {"schedule": "@weekly"})
    assert ANNOTATION not in applied.body["metadata"].get("annotations", {})
    expected = dict.fromkeys(V1) | {"cronSpec": "@weekly", "hostPort": visible(widgets)["hostPort"]}
    assert visible(widgets) == expected
    owners = widgets.get("v2")["metadata"]["managedFields"]
    about = [(each["manager"], each["apiVersion"].rpartition("/")[2]) for each in owners]
    assert about == [("one", "v3")]


def test_a_merge_patch_in_an_old_version_keeps_what_it_cannot_see(widgets: Widgets) -> None:
    images = {"images": ["x", "y"]}
    widgets.create("v3", "a", {"schedule": "s", "template": images, "only3": [{"name": "z"}]})
    assert widgets.merge("v1", {"spec": {"cronSpec": "t", "image": "w"}}).code == 200
    third = widgets.spec("v3")
    assert (third["schedule"], third["only3"]) == ("t", [{"name": "z"}])
    assert third["template"] == {"images": ["w", "y"]}
    assert widgets.merge("v1", {"spec": {"image": None}}).code == 200
    assert "template" not in widgets.spec("v3")


def test_watchers_each_see_their_own_version_to_the_end(widgets: Widgets) -> None:
    with (
        widgets.watched("v1") as first,
        widgets.watched("v2") as second,
        widgets.watched("v3") as third,
    ):
        widgets.create("v1", "a", V1, finalizers=["walks.dev/held"])
        widgets.merge("v3", {"spec": {"schedule": "n"}})
        widgets.ask("DELETE", widgets.path("v2", "a"))
        widgets.merge("v1", {"metadata": {"finalizers": None}})
    types = ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    for version, events in zip(VERSIONS, (first, second, third), strict=True):
        events[:] = [each for each in events if each["type"] != "BOOKMARK"]
        assert [each["type"] for each in events] == types
        wanted = f"{widgets.walk.group}/{version}"
        assert {each["object"]["apiVersion"] for each in events} == {wanted}
    schedules = {
        tuple(each["object"]["spec"][name] for each in events)
        for name, events in (("cronSpec", first), ("schedule", second), ("schedule", third))
    }
    assert schedules == {("@daily", "n", "n", "n")}
    assert first[-1]["object"]["spec"]["hostPort"] == "h:08080"
    assert "deletionTimestamp" in third[-1]["object"]["metadata"]


def test_another_version_is_stored_and_objects_are_what_they_were(widgets: Widgets) -> None:
    widgets.create("v1", "a", V1)
    before = {version: widgets.spec(version) for version in VERSIONS}
    for stored in ("v3", "v1"):
        widgets.edit_crd(partial(_store, stored))
        eventually(partial(_is_stored, widgets, stored))
        eventually(lambda: all(widgets.ask("GET", widgets.path(v)).code == 200 for v in VERSIONS))
        assert {version: widgets.spec(version) for version in VERSIONS} == before
        # Written again without a change, it is stored anew.
        revision = widgets.get("v2")["metadata"]["resourceVersion"]
        eventually(partial(_is_stored_anew, widgets, revision))
        assert visible(widgets) == V1
        before = {version: widgets.spec(version) for version in VERSIONS}
    assert widgets.crd()["status"]["storedVersions"] == ["v2", "v3", "v1"]


def _store(version: str, crd: Object) -> None:
    for each in crd["spec"]["versions"]:
        each["storage"] = each["name"] == version


def _is_stored(widgets: Widgets, version: str) -> bool:
    return version in widgets.crd()["status"]["storedVersions"]


def _is_stored_anew(widgets: Widgets, before: str) -> bool:
    """Whether a write without a change is one: the server stores in another version by now."""
    answer = widgets.ask("PUT", widgets.path("v2", "a"), widgets.get("v2"))
    assert answer.code == 200
    return bool(answer.body["metadata"]["resourceVersion"] != before)


def test_an_object_is_held_and_let_go_in_whatever_version(widgets: Widgets) -> None:
    owner = widgets.create("v1", "a", V1, finalizers=["walks.dev/held"])
    reference = {
        "apiVersion": f"{widgets.walk.group}/v1",
        "kind": "Widget",
        "name": "a",
        "uid": owner["metadata"]["uid"],
    }
    widgets.create("v3", "child", {"schedule": "x"}, ownerReferences=[reference])
    assert widgets.ask("DELETE", widgets.path("v1", "a")).code == 200
    assert "deletionTimestamp" in widgets.get("v3")["metadata"]
    refused = widgets.merge("v2", {"metadata": {"finalizers": ["walks.dev/held", "a.b/c"]}})
    assert refused.code == 422
    assert widgets.merge("v2", {"spec": {"schedule": "late"}}).code == 200
    assert visible(widgets) == V1 | {"cronSpec": "late"}
    assert widgets.merge("v3", {"metadata": {"finalizers": []}}).code == 200
    assert widgets.ask("GET", widgets.path("v1", "a")).code == 404
    # A real collector hears of new kinds only now and then.
    gone = widgets.path("v2", "child")
    eventually(lambda: widgets.ask("GET", gone).code == 404, patience=HANG)


def _drop_v3(crd: Object) -> None:
    crd["spec"]["versions"] = [v for v in crd["spec"]["versions"] if v["name"] != "v3"]


def test_a_version_that_is_gone_stops_applies_until_its_owners_are_forgotten(
    widgets: Widgets,
) -> None:
    widgets.create("v2", "a", {"schedule": "s"})
    widgets.apply("v3", "new", {"host": "h"})
    if isinstance(widgets.walk.server, EmbeddedServer):
        # It looks, and does not let it come to that.
        with pytest.raises(ApiError, match="managedFields name v3, of new") as refused:
            widgets.edit_crd(_drop_v3)
        assert refused.value.code == 422
        assert widgets.apply("v2", "new", {"host": "i"}).code == 200
        return
    widgets.edit_crd(_drop_v3)
    eventually(lambda: widgets.ask("GET", widgets.path("v3")).code == 404)
    text = f"request to convert CR to an invalid group/version: {widgets.walk.group}/v3"
    eventually(lambda: widgets.apply("v2", "new", {"host": "i"}).code == 500)
    assert widgets.apply("v2", "new", {"host": "i"}).body["message"] == text
    owners = widgets.get("v2")["metadata"]["managedFields"]
    assert widgets.merge("v2", {"spec": {"schedule": "t"}}).code == 200
    assert widgets.get("v2")["metadata"]["managedFields"] == owners
    assert widgets.merge("v2", {"metadata": {"managedFields": [{}]}}).code == 200
    assert widgets.apply("v2", "new", {"host": "i"}, force=True).spec["host"] == "i"


def test_deep_and_large_objects_make_their_way(widgets: Widgets) -> None:
    inside: Any = "end"
    for _ in range(197):
        inside = {"d": inside}
    widgets.create("v1", "a", {"legacyMode": inside, "cronSpec": "x" * 1_000_000})
    assert widgets.merge("v3", {"spec": {"port": 3}}).code == 200
    found = widgets.spec("v1")
    assert found["legacyMode"] == inside
    assert len(found["cronSpec"]) == len(widgets.spec("v2")["schedule"]) == 1_000_000
    many = [{"name": f"n{number}", "cmd": "c", "debug": "d"} for number in range(300)]
    widgets.create("v1", "many", {"containers": many})
    assert widgets.spec("v3", "many")["containers"][299] == {"name": "n299", "command": "c"}
    assert widgets.spec("v1", "many")["containers"] == many
