"""Locks, ways back and removals by force, on control planes that run."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.definitions.controllers.test_definitions import unreviewed
from tests.definitions.samples import (
    GROUP,
    SYSTEM,
    Platform,
    application,
    collection_of,
    condition,
    definition,
    entry,
    legacy,
    path_of,
    served,
    versions_of,
)
from tests.editing import edited
from tests.walks.support import eventually

from polyver.core import Lineage
from polyver.definitions.locking import lock_data, lock_of, lock_text
from polyver.definitions.resolution import lineage_in
from polyver.kube.objects import dump_yaml
from polyver.kube.objects.status import ApiError

Object = dict[str, Any]
LOCK = "app.polyver.dev/lock"
FORCED = "definition.polyver.dev/remove-by-force"
IN_USE = "definition.polyver.dev/in-use"


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with served() as running:
        yield running


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"d{zlib.crc32(request.node.name.encode())}"


def homes(platform: Platform) -> Any:
    """What a control plane says that it has."""
    path = f"/apis/{GROUP}/v2beta1/componentdefinitions"
    known: dict[str, dict[str, Lineage]] = {}
    for each in platform.request("GET", path)["items"]:
        lineage = lineage_in(each)
        assert lineage is not None
        known.setdefault(each["metadata"]["name"], {})[each["metadata"]["namespace"]] = lineage
    return lambda kind, name: known.get(name, {}) if kind == "ComponentDefinition" else {}


def locked(platform: Platform, app: Object) -> str:
    """The lock of what an application uses."""
    [places] = lock_of([platform.get(app)], homes(platform)).lock.applications.values()
    return lock_text(places)


def failure(platform: Platform, app: Object) -> str:
    found = platform.until(app, lambda each: condition(each, "Resolved").get("status") == "False")
    assert found["status"]["status"] == "failed"
    message: str = condition(found, "Resolved")["message"]
    return message


# Locks.


def test_an_application_with_a_lock_stays_until_the_lock_goes(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, "1.0.0"))
    app, follower = application(name, f"{name}@1"), application(f"{name}-f", f"{name}@1")
    platform.deploy(app)
    platform.deploy(follower)
    app["metadata"]["annotations"][LOCK] = locked(platform, app)
    platform.write(app)
    reason = platform.until(
        app, lambda each: each["status"]["resolutions"][0]["reason"] == "locked"
    )
    assert reason["status"]["latestRevision"]["revision"] == 1
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    platform.uses(follower, "1.1.0")
    assert versions_of(platform.get(app)) == ["1.0.0"]
    del app["metadata"]["annotations"][LOCK]
    platform.write(app)
    platform.uses(app, "1.1.0")


def test_a_lock_from_elsewhere_is_what_is_used_or_the_reason_why_nothing_is(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    app = application(name, f"{name}@1")
    platform.deploy(app)
    text = locked(platform, app)
    old = text.replace("1.1.0", "1.0.0")
    app["metadata"]["annotations"][LOCK] = old
    platform.write(app)
    platform.uses(app, "1.0.0")
    for wrong, complaint in (
        (text.replace("1.1.0", "1.7.0"), f"{name} is locked to 1.7.0, which does not exist"),
        (text.replace("sha256:", "sha256:0"), "differs from what was locked"),
        ("[]", f"the lock has no entry for {name} here"),
    ):
        app["metadata"]["annotations"][LOCK] = wrong
        platform.write(app)
        platform.until(app, lambda each, it=complaint: it in condition(each, "Resolved")["message"])  # type: ignore[misc]
        assert versions_of(platform.get(app)) == ["1.0.0"], "what it had is still recorded"


def test_a_lock_that_makes_no_sense_is_refused_with_its_place(
    platform: Platform, name: str
) -> None:
    app = application(name, f"{name}@1", lock="unused")
    app["metadata"]["annotations"] = {LOCK: "- kind: Component\n  component: 5\n"}
    with pytest.raises(ApiError) as refused:
        platform.write(app)
    assert refused.value.code == 422
    assert "metadata.annotations[app.polyver.dev/lock]:2, [0].component" in refused.value.message


def test_a_locked_version_is_in_use_and_cannot_be_removed(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    app = application(name, f"{name}@1")
    platform.deploy(app)
    app["metadata"]["annotations"][LOCK] = locked(platform, app).replace("1.1.0", "1.0.0")
    platform.write(app)
    platform.uses(app, "1.0.0")
    with pytest.raises(ApiError, match=f"{name} 1.0.0 is used by Application default/{name}"):
        platform.write(definition(name, "1.1.0"))


def test_a_lock_of_a_numbered_revision_holds_it(platform: Platform, name: str) -> None:
    platform.publish(legacy(name, "one"))
    app, follower = application(name, name), application(f"{name}-f", name)
    platform.deploy(app)
    platform.deploy(follower)
    app["metadata"]["annotations"][LOCK] = locked(platform, app)
    platform.write(app)
    platform.until(app, lambda each: each["status"]["resolutions"][0]["reason"] == "locked")
    platform.publish(legacy(name, "two"))
    platform.uses(follower, "2")
    assert versions_of(platform.get(app)) == ["1"]


# Two control planes.


def test_the_same_versions_in_any_order_give_the_same_lock_to_the_byte() -> None:
    entries = {
        version: entry(version, parameters={"image": {"type": "string", "default": version}})
        for version in ("1.0.0", "1.2.1", "1.2.2", "2.2.1", "2.3.0-rc.1")
    }
    with ExitStack() as stack:
        both = [stack.enter_context(served()) for _ in range(2)]
        for seed in range(3):
            texts, lineages = [], []
            for number, platform in enumerate(both):
                texts.append(
                    _filled(platform, f"web{seed}", entries, random.Random(seed * 2 + number))
                )
                found = homes(platform)("ComponentDefinition", f"web{seed}")[SYSTEM]
                lineages.append([(each.name, each.digest) for each in found])
            assert texts[0] == texts[1], seed
            assert lineages[0] == lineages[1], seed
        assert texts[0].count("digest: sha256:") == 3 * 3


def _filled(platform: Platform, name: str, entries: dict[str, Object], order: random.Random) -> str:
    """Publish versions one by one in some order, use them, and tell the lock."""
    shuffled = order.sample([*entries], len(entries))
    for count in range(1, len(shuffled) + 1):
        platform.publish(definition(name, *(entries[each] for each in shuffled[:count])))
    types = {"exact": "1.2.1", "series": "1.2", "major": "2"}
    for each in order.sample([*types], len(types)):
        app = application(f"{name}-{each}", f"{name}@{types[each]}")
        platform.deploy(app)
    applications = platform.request("GET", f"/apis/{GROUP}/v1beta1/applications")["items"]
    found = lock_of(applications, homes(platform))
    assert not found.failures
    return dump_yaml(lock_data(found.lock))


# Removing by force.


def test_a_version_in_use_is_removed_by_force_where_that_is_said(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    exact, series = application(name, f"{name}@1.0.0"), application(f"{name}-s", f"{name}@1")
    platform.deploy(exact)
    platform.deploy(series)
    forced = {FORCED: "1.0.0"}
    before = platform.get(exact)["status"]
    found = platform.publish(definition(name, "1.1.0", **forced))
    eventually(lambda: platform.revisions(name) == [f"{name}-v1.1.0"])
    told = {each["version"]: each for each in found["status"]["versions"]}
    assert told["1.0.0"]["stage"] == "removed"
    assert told["1.0.0"]["removedFrom"] == [f"Application default/{name}"]
    events = platform.request("GET", f"/api/v1/namespaces/{SYSTEM}/events")["items"]
    messages = {each["message"]: each["reason"] for each in events}
    said = f"{name} 1.0.0 is removed by force, but is used by Application default/{name}"
    assert messages[said] == "RemovedByForce"
    assert f"{name} 1.0.0 was removed" in failure(platform, exact)
    assert platform.get(exact)["status"]["resolutions"] == before["resolutions"]
    assert versions_of(platform.get(series)) == ["1.1.0"]


def test_the_record_of_a_removal_by_force_stays(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    platform.deploy(application(name, f"{name}@1.0.0"))
    platform.publish(definition(name, "1.1.0", **{FORCED: "1.0.0"}))
    found = platform.publish(definition(name, "1.1.0", "1.2.0"))
    told = {each["version"]: each for each in found["status"]["versions"]}
    assert told["1.0.0"]["removedFrom"] == [f"Application default/{name}"]
    with pytest.raises(ApiError, match="was removed and its number is never used again"):
        platform.write(definition(name, "1.0.0", "1.1.0", "1.2.0"))


def test_force_is_for_the_versions_that_it_names(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0", "1.1.0", "1.2.0"))
    platform.deploy(application(name, f"{name}@1.0.0", f"{name}@1.1.0"))
    with pytest.raises(ApiError, match=f"{name} 1.1.0 is used by"):
        platform.write(definition(name, "1.2.0", **{FORCED: "1.0.0"}))
    with pytest.raises(ApiError) as refused:
        platform.write(definition(name, "1.0.0", "1.1.0", "1.2.0", **{FORCED: "v1.0.0"}))
    assert f"metadata.annotations[{FORCED}]" in refused.value.message
    platform.publish(definition(name, "1.0.0", "1.1.0", "1.2.0", **{FORCED: "1.0.0, 1.1.0"}))
    revision = f"/apis/{GROUP}/v1beta1/namespaces/{SYSTEM}/definitionrevisions/{name}-v1.0.0"
    with pytest.raises(ApiError, match="is used by"):
        platform.request("DELETE", revision)  # it is listed
    platform.publish(definition(name, "1.2.0", **{FORCED: "1.0.0, 1.1.0"}))
    eventually(lambda: platform.revisions(name) == [f"{name}-v1.2.0"])


def test_a_definition_whose_versions_may_go_by_force_can_be_deleted(
    platform: Platform, name: str
) -> None:
    whole = definition(name, "1.0.0", "1.1.0")
    platform.publish(whole)
    app = application(name, f"{name}@1.0.0")
    platform.deploy(app)
    platform.until(whole, lambda each: IN_USE in each["metadata"].get("finalizers", []))
    with pytest.raises(ApiError, match="is used by"):
        platform.request("DELETE", path_of(whole))
    platform.write(definition(name, "1.0.0", "1.1.0", **{FORCED: "1.0.0"}))
    platform.request("DELETE", path_of(whole))
    eventually(lambda: platform.revisions(name) == [])
    assert f"{name} 1.0.0 is removed by force" in str(
        platform.request("GET", f"/api/v1/namespaces/{SYSTEM}/events")
    )
    assert f"there is no ComponentDefinition {name}" in failure(platform, app)
    assert versions_of(platform.get(app)) == ["1.0.0"]


def test_what_no_admission_was_asked_about_is_held_or_let_go_in_the_same_way(
    tmp_path: Path,
) -> None:
    app = application("shop", "web@1.0.0", "db@1.0.0")
    for name in ("web", "db"):
        unreviewed(tmp_path, definition(name, "1.0.0", "1.1.0"))
    with served(data=tmp_path) as platform:
        platform.deploy(app)
        platform.uses(app, "1.0.0", "1.0.0")
        known = {IN_USE}
        for name in ("web", "db"):
            whole = definition(name)
            platform.until(whole, lambda each: known <= {*each["metadata"].get("finalizers", [])})
    unreviewed(tmp_path, definition("web", "1.1.0", **{FORCED: "1.0.0"}), definition("db", "1.1.0"))
    with served(data=tmp_path) as platform:
        assert "web 1.0.0 was removed" in failure(platform, app)
        eventually(lambda: platform.revisions("web") == ["web-v1.1.0"])
        reason = "InUse"
        held = platform.until(
            definition("db"), lambda each: condition(each, "Published").get("reason") == reason
        )
        assert "db 1.0.0 is used by Application default/shop" in str(held["status"]["conditions"])
        assert platform.revisions("db") == ["db-v1.0.0", "db-v1.1.0"]


def test_a_lock_that_came_another_way_and_makes_no_sense_is_told_and_can_go(
    tmp_path: Path,
) -> None:
    app = application("shop", "web@1.0.0")
    app["metadata"]["annotations"][LOCK] = "nonsense"
    unreviewed(tmp_path, definition("web", "1.0.0"), app)
    with served(data=tmp_path) as platform:
        assert "expected a list, got a string" in failure(platform, app)
        labels = {"seen": "yes"}
        edited(platform.request, path_of(app), lambda obj: obj["metadata"].update(labels=labels))
        platform.request("DELETE", path_of(app))
        eventually(lambda: not platform.request("GET", collection_of(app))["items"])
