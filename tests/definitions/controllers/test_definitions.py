"""Definitions that came another way than through admission: the controller refuses them, too."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.definitions.samples import (
    GROUP,
    SYSTEM,
    Platform,
    application,
    condition,
    definition,
    entry,
    legacy,
    path_of,
    served,
)
from tests.walks.support import eventually

from polyver.definitions.kinds import KINDS
from polyver.kube.objects.status import ApiError

Object = dict[str, Any]
IN_USE = "definition.polyver.dev/in-use"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with served() as running:
        yield running


def unreviewed(folder: Path, *objects: Object) -> None:
    """Have objects stored by a control plane that asks nobody about definitions."""
    with served(data=folder, capabilities=["apis"], kinds=KINDS) as around:
        with contextlib.suppress(ApiError):  # it may be there
            around.request("POST", "/api/v1/namespaces", NAMESPACE)
        for obj in objects:
            around.write(obj)


def told(platform: Platform, obj: Object, reason: str) -> str:
    found = platform.until(obj, lambda each: condition(each, "Published").get("reason") == reason)
    assert condition(found, "Published")["status"] == "False"
    message: str = condition(found, "Published")["message"]
    return message


def test_what_admission_would_refuse_is_not_published_and_the_status_says_why(
    tmp_path: Path,
) -> None:
    text, number = ({"image": {"type": kind}} for kind in ("string", "integer"))
    wrong = definition("wrong", "v1.0.0", "1.1.0")
    breaking = definition(
        "breaking", entry("1.0.0", parameters=text), entry("1.1.0", parameters=number)
    )
    both = legacy("both", "x", version="1.0.0", named="4.4")
    taken = definition("taken", "1.0.0", kind="TraitDefinition")
    unreviewed(tmp_path, definition("taken", "1.0.0"), wrong, breaking, both)
    with served(data=tmp_path) as around:
        assert 'a leading "v"' in told(around, wrong, "InvalidVersion")
        assert "breaks users of 1.0.0: image" in told(around, breaking, "Breaking")
        assert "has both a version and the annotation" in told(around, both, "TwoVersions")
        eventually(lambda: around.revisions("taken"))
        for name in ("wrong", "breaking", "both"):
            assert around.revisions(name) == []
    unreviewed(tmp_path, taken)
    with served(data=tmp_path) as around:
        assert "the revision of ComponentDefinition taken" in told(around, taken, "NameTaken")


def test_a_changed_or_missing_version_is_refused_after_the_fact(tmp_path: Path) -> None:
    first = definition("web", "1.0.0", "1.1.0")
    app = application("shop", "web@1.0.0")
    with served(data=tmp_path) as around:
        before = around.publish(first)["status"]["versions"]
        around.deploy(app)
    unreviewed(tmp_path, definition("web", "1.1.0", "1.2.0"))
    with served(data=tmp_path) as around:
        message = told(around, first, "InUse")
        assert "web 1.0.0 is used by Application default/shop" in message
        # Who uses it in the same way as others is named as well, and no longer when it goes.
        more = {**app, "metadata": {**app["metadata"], "name": "more"}}
        around.deploy(more)
        named = "Application default/more, Application default/shop"
        around.until(first, lambda found: named in condition(found, "Published")["message"])
        around.request("DELETE", path_of(more))
        around.until(first, lambda found: "more" not in condition(found, "Published")["message"])
        assert around.get(first)["status"]["versions"] == before
        assert around.revisions("web") == ["web-v1.0.0", "web-v1.1.0"]
    unreviewed(tmp_path, definition("web", entry("1.0.0", podSpecPath="other"), "1.1.0"))
    with served(data=tmp_path) as around:
        assert "exists with other content (sha256:" in told(around, first, "VersionTaken")
        assert around.get(app)["status"]["resolutions"][0]["version"] == "1.0.0"


def test_a_list_that_was_written_in_v1beta1_takes_nothing_away(tmp_path: Path) -> None:
    first = definition("web", "1.0.0", "1.1.0")
    with served(data=tmp_path) as around:
        around.publish(first)
    created_with = {"definition.polyver.dev/api-version": "v2beta1"}
    stored = legacy("web", "x", version="1.2.0")
    stored["metadata"]["annotations"] = created_with
    unreviewed(tmp_path, stored)
    with served(data=tmp_path) as around:
        assert "its spec is changed in v1beta1" in told(around, first, "OtherAPIVersion")
        assert around.revisions("web") == ["web-v1.0.0", "web-v1.1.0"]


def test_a_definition_from_before_says_in_which_version_it_was_written(tmp_path: Path) -> None:
    old, new = legacy("old", "x"), definition("new", "1.0.0")
    unreviewed(tmp_path, old, new)
    with served(data=tmp_path) as around:
        for obj, version in ((old, "v1beta1"), (new, "v2beta1")):
            found = around.until(obj, lambda each: bool(condition(each, "Published")))
            said = found["metadata"]["annotations"]["definition.polyver.dev/api-version"]
            assert said == version


def test_what_is_used_holds_a_finalizer_until_it_is_not(platform: Platform) -> None:
    whole = definition("held", "1.0.0", "1.1.0")
    platform.publish(whole)
    app = application("holds", "held@1.0.0")
    platform.deploy(app)
    revision = f"/apis/{GROUP}/v1beta1/namespaces/{SYSTEM}/definitionrevisions/held-v1.0.0"

    def finalizers(path: str) -> list[str]:
        found: list[str] = platform.request("GET", path)["metadata"].get("finalizers", [])
        return found

    eventually(lambda: finalizers(revision) == [IN_USE] == finalizers(path_of(whole)))
    assert finalizers(revision.replace("1.0.0", "1.1.0")) == []
    platform.request("DELETE", path_of(app))
    eventually(lambda: [] == finalizers(revision) == finalizers(path_of(whole)))


def test_a_revision_that_somebody_deletes_comes_back(platform: Platform) -> None:
    whole = definition("deleted", "1.0.0", "1.1.0")
    platform.publish(whole)
    revision = f"/apis/{GROUP}/v1beta1/namespaces/{SYSTEM}/definitionrevisions/deleted-v1.0.0"
    before = platform.request("GET", revision)
    platform.request("DELETE", revision)

    def again() -> Object | None:
        try:
            found: Object = platform.request("GET", revision)
        except ApiError:
            return None
        return found if found["metadata"]["uid"] != before["metadata"]["uid"] else None

    assert eventually(again)["spec"] == before["spec"]


def test_a_new_version_touches_those_that_it_moves_and_nobody_else(platform: Platform) -> None:
    platform.publish(definition("many", "1.0.0", "2.0.0"))
    moved = [application(f"moved-{number}", "many@1") for number in range(5)]
    stays = [application(f"stays-{number}", "many@2") for number in range(5)]
    for app in (*moved, *stays):
        platform.deploy(app)
    quiet = application("quiet", "many@2.0.0", "many@2")
    platform.deploy(quiet)
    before = {each["metadata"]["name"]: platform.get(each) for each in (*stays, quiet)}
    platform.publish(definition("many", "1.0.0", "1.1.0", "2.0.0"))
    for app in moved:
        platform.uses(app, "1.1.0")
    for name, found in before.items():
        assert (
            platform.get(found)["metadata"]["resourceVersion"]
            == (found["metadata"]["resourceVersion"])
        ), name


def test_300_versions_are_published_and_read_back_in_both_versions(platform: Platform) -> None:
    whole = definition("large", *(f"1.{number}.0" for number in range(300)))
    found = platform.publish(whole)
    assert found["spec"] == whole["spec"]
    assert len(found["status"]["versions"]) == 300
    assert len(platform.revisions("large")) == 300
    stored = platform.get(whole | {"apiVersion": f"{GROUP}/v1beta1"})
    assert stored["spec"] == entry("1.299.0")
    app = application("large", "large@1.42", "large")
    assert [each["version"] for each in platform.deploy(app)["status"]["resolutions"]] == [
        "1.42.0",
        "1.299.0",
    ]


def test_a_namespace_goes_when_nobody_uses_its_definitions_any_more(platform: Platform) -> None:
    path = "/api/v1/namespaces/going"
    platform.request("POST", "/api/v1/namespaces", {"metadata": {"name": "going"}})
    platform.publish(definition("going", "1.0.0", "1.1.0", namespace="going"))
    app = application("going", "going@1.0", namespace="going")
    platform.deploy(app)
    platform.request("DELETE", path)

    def is_gone() -> bool:
        try:
            platform.request("GET", path)
        except ApiError as error:
            return error.reason == "NotFound"
        return False

    eventually(is_gone)
