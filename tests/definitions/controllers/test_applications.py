"""Applications on a control plane with definitions: every scenario of the seed, by its name."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest
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

from polyver.kube.objects import load_manifests
from polyver.kube.objects.status import ApiError

Object = dict[str, Any]


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with served() as running:
        yield running


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for what one test publishes."""
    return f"d{zlib.crc32(request.node.name.encode())}"


def failure(found: Object) -> str:
    assert found["status"]["status"] == "failed", found["status"]
    assert condition(found, "Resolved")["status"] == "False"
    message: str = condition(found, "Resolved")["message"]
    return message


# User story: component version specification.


def test_a_version_denoted_by_the_component_is_listed_as_one_of_many(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, "1.0.0"))
    found = platform.publish(definition(name, "1.0.0", "1.1.0"))
    assert platform.revisions(name) == [f"{name}-v1.0.0", f"{name}-v1.1.0"]
    listed = [(each["version"], each["stage"]) for each in found["status"]["versions"]]
    assert listed == [("1.1.0", "published"), ("1.0.0", "published")]


# User story: application component version specification.


def test_scenario_1_use_the_version_specified_in_the_application(
    platform: Platform, name: str
) -> None:
    a, b = f"{name}-a", f"{name}-b"
    platform.publish(definition(a, "1.2.2", "1.2.3"))
    platform.publish(definition(b, "4.4.2", "4.5.6"))
    found = platform.deploy(application(name, f"{a}@1.2.2", f"{b}@4.4.2"))
    assert versions_of(found) == ["1.2.2", "4.4.2"]


def test_scenario_1_variant_the_newest_for_the_part_that_is_not_specified(
    platform: Platform, name: str
) -> None:
    a, b = f"{name}-a", f"{name}-b"
    platform.publish(definition(a, "1.2.2", "1.2.3"))
    platform.publish(definition(b, "4.4.2", "4.5.6"))
    found = platform.deploy(application(name, f"{a}@1.2", f"{b}@4"))
    assert versions_of(found) == ["1.2.3", "4.5.6"]


def test_scenario_2_auto_upgrade_is_disabled(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.2.3"))
    app = application(name, f"{name}@1.2.3", autoUpdate="false")
    first = platform.deploy(app)
    follower = application(f"{name}-follows", f"{name}@1.2")
    platform.deploy(follower)
    platform.publish(definition(name, "1.2.3", "1.2.5"))
    platform.uses(follower, "1.2.5")
    assert platform.get(app)["status"] == first["status"]


def test_scenario_2_variant_disabled_and_the_exact_version_is_unavailable(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, "1.2.3"))
    found = platform.deploy(application(name, f"{name}@1.2.2", autoUpdate="false"))
    assert f"{name} has no 1.2.2 (spec.components[0].type)" in failure(found)
    assert not versions_of(found)


def test_scenario_2_variant_disabled_and_a_series_is_asked_for(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, "1.2.3"))
    found = platform.deploy(application(name, f"{name}@1.2", autoUpdate="false"))
    assert "only exact versions are deterministic" in failure(found)


def test_scenario_3_auto_upgrade_is_enabled(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.2.3"))
    app = application(name, f"{name}@1.2", autoUpdate="true")
    assert versions_of(platform.deploy(app)) == ["1.2.3"]
    platform.publish(definition(name, "1.2.3", "1.2.5"))
    platform.uses(app, "1.2.5")


def test_scenario_3_variant_enabled_and_the_exact_version_is_unavailable(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, "1.2.3"))
    found = platform.deploy(application(name, f"{name}@1.2.2", autoUpdate="true"))
    assert f"{name} has no 1.2.2" in failure(found)


def test_scenario_3_variant_enabled_and_a_series_is_asked_for(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, "1.2.3"))
    found = platform.deploy(application(name, f"{name}@1.2", autoUpdate="true"))
    assert versions_of(found) == ["1.2.3"]


def test_scenario_4_consistent_versioning_across_clusters(platform: Platform, name: str) -> None:
    entries = {
        version: entry(version, parameters={"image": {"type": "string", "default": version}})
        for version in ("1.2.1", "1.2.2", "2.2.1")
    }
    app = application(name, f"{name}@1.2.2")
    with served() as other:
        for version in ("2.2.1", "1.2.2", "1.2.1"):
            known = [each for each in entries if version <= each]
            other.publish(definition(name, *(entries[each] for each in known)))
        platform.publish(definition(name, *entries.values()))
        here, there = platform.deploy(app), other.deploy(app)
    [one], [two] = here["status"]["resolutions"], there["status"]["resolutions"]
    assert (one["version"], one["digest"]) == (two["version"], two["digest"])
    assert one["version"] == "1.2.2"


# The table of selectors and autoUpdate, where it is not in the scenarios.


@pytest.mark.parametrize(
    ("annotations", "after"),
    [({}, "1.0.0"), ({"autoUpdate": "true"}, "1.1.0"), ({"autoUpdate": "false"}, "1.0.0")],
    ids=["absent", "enabled", "disabled"],
)
def test_nothing_asked_for_is_pinned_at_creation_unless_it_follows(
    platform: Platform, name: str, annotations: dict[str, str], after: str
) -> None:
    platform.publish(definition(name, "1.0.0"))
    app = application(name, name, **annotations)
    assert versions_of(platform.deploy(app)) == ["1.0.0"]
    follower = application(f"{name}-follows", f"{name}@1")
    platform.deploy(follower)
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    platform.uses(follower, "1.1.0")
    platform.uses(app, after)


def test_a_version_with_a_leading_v_is_the_same(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "2", "3.4"))
    found = platform.deploy(application(name, f"{name}@v3.4"))
    assert versions_of(found) == ["3.4.0"]
    [said] = found["status"]["resolutions"]
    assert said["definition"] == f"{SYSTEM}/{name}"
    assert (said["kind"], said["component"]) == ("Component", "c0")
    assert (said["requested"], said["reason"]) == ("v3.4", "newest in series 3.4")


def test_a_range_is_not_a_version(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.2.3"))
    found = platform.deploy(application(name, f"{name}@>1.2.0"))
    assert '">1.2.0" is not a version or a series' in failure(found)


def test_a_definition_that_comes_later_is_found_at_once(platform: Platform, name: str) -> None:
    app = application(name, f"{name}@1")
    found = platform.deploy(app)
    assert f"there is no ComponentDefinition {name}" in failure(found)
    platform.publish(definition(name, "1.0.0"))
    platform.uses(app, "1.0.0")


def test_a_definition_of_the_own_namespace_comes_first(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0"))
    app = application(name, name)
    platform.deploy(app)
    platform.publish(definition(name, "0.1.0", namespace="default"))
    found = platform.uses(app, "0.1.0")
    assert found["status"]["resolutions"][0]["definition"] == f"default/{name}"


def test_one_place_that_fails_moves_none(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0"))
    app = application(name, f"{name}@1", f"{name}@9")
    assert "has no release in series 9" in failure(platform.deploy(app))
    assert not versions_of(platform.get(app))


def test_traits_policies_and_steps_are_resolved_wherever_they_are_named(
    platform: Platform, name: str
) -> None:
    kinds = ("ComponentDefinition", "TraitDefinition", "PolicyDefinition", "WorkflowStepDefinition")
    for number, kind in enumerate(kinds):
        platform.publish(definition(f"{name}-{number}", "1.0.0", "1.1.0", kind=kind))
    app = application(name, f"{name}-0@1.0")
    app["spec"]["components"][0]["traits"] = [{"type": f"{name}-1@1.0.0"}]
    app["spec"]["policies"] = [{"name": "p", "type": f"{name}-2@1"}]
    app["spec"]["workflow"] = {"steps": [{"name": "s", "type": f"{name}-3"}]}
    found = platform.deploy(app)["status"]["resolutions"]
    assert [(each["kind"], each["component"], each["version"]) for each in found] == [
        ("Component", "c0", "1.0.0"),
        ("Trait", "c0", "1.0.0"),
        ("Policy", "p", "1.1.0"),
        ("WorkflowStep", "s", "1.1.0"),
    ]


# Legacy lineages.


def test_a_legacy_definition_is_followed_by_name_and_found_by_serial(
    platform: Platform, name: str
) -> None:
    platform.publish(legacy(name, "one"))
    follower = application(name, name)
    platform.deploy(follower)
    platform.publish(legacy(name, "two"))
    platform.uses(follower, "2")
    platform.publish(legacy(name, "three"))
    platform.uses(follower, "3")
    found = platform.deploy(application(f"{name}-2", f"{name}@v2"))
    assert found["status"]["resolutions"][0]["revision"] == f"{name}-v2"


def test_a_named_revision_is_found_by_its_name_and_is_no_series(
    platform: Platform, name: str
) -> None:
    platform.publish(legacy(name, "one", named="4.4"))
    assert platform.revisions(name) == [f"{name}-v4.4"]
    found = platform.deploy(application(name, f"{name}@v4.4"))
    assert found["status"]["resolutions"][0]["revision"] == f"{name}-v4.4"
    assert f"{name} has no" in failure(platform.deploy(application(f"{name}-4", f"{name}@v4")))


def test_a_v2beta1_definition_is_never_referred_to_by_serial(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0"))
    found = platform.deploy(application(name, f"{name}@v2"))
    assert f"{name} has no release in series 2" in failure(found)


# publishVersion.


def test_with_publish_version_it_moves_only_when_that_changes(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, "1.0.0"))
    app = application(name, f"{name}@1", publishVersion="one")
    follower = application(f"{name}-follows", f"{name}@1")
    platform.deploy(app)
    platform.deploy(follower)
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    platform.uses(follower, "1.1.0")
    assert versions_of(platform.get(app)) == ["1.0.0"]
    platform.write(application(name, f"{name}@1", publishVersion="two"))
    platform.uses(app, "1.1.0")


def test_publish_version_together_with_auto_update_is_refused(
    platform: Platform, name: str
) -> None:
    with pytest.raises(ApiError) as refused:
        platform.write(application(name, name, publishVersion="one", autoUpdate="true"))
    assert "remove one of them" in refused.value.message


def test_an_annotation_that_nobody_understands_is_refused(platform: Platform, name: str) -> None:
    with pytest.raises(ApiError) as refused:
        platform.write(application(name, name, autoUpdate="yes"))
    assert 'expected "true" or "false"' in refused.value.message


# Records.


def test_the_pin_is_in_a_revision_that_never_changes(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0"))
    app = application(name, name)
    found = platform.deploy(app)
    latest = found["status"]["latestRevision"]
    assert (latest["name"], latest["revision"]) == (f"{name}-v1", 1)
    path = f"/apis/{GROUP}/v1beta1/namespaces/default/applicationrevisions/{name}-v1"
    revision = platform.request("GET", path)
    assert [each["version"] for each in revision["spec"]["resolutions"]] == ["1.0.0"]

    def change(found: Object) -> None:
        found["spec"]["resolutions"][0]["version"] = "2.0.0"

    with pytest.raises(ApiError, match="a revision is immutable"):
        edited(platform.request, path, change)


def test_the_pin_survives_the_loss_of_the_status(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0"))
    app = application(name, name)
    platform.deploy(app)
    platform.publish(definition(name, "1.0.0", "2.0.0"))
    path = f"/apis/{GROUP}/v1beta1/namespaces/default/applications/{name}/status"
    edited(platform.request, path, lambda found: found.update(status={}))
    platform.uses(app, "1.0.0")


def test_the_pin_survives_a_restore_on_another_cluster(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0"))
    app = application(name, name)
    latest = platform.deploy(app)["status"]["latestRevision"]["name"]
    path = f"/apis/{GROUP}/v1beta1/namespaces/default/applicationrevisions"
    backup = platform.request("GET", f"{path}/{latest}")
    kept = ("name", "namespace", "labels", "annotations")
    backup["metadata"] = {each: backup["metadata"][each] for each in kept}
    with served() as other:
        other.publish(definition(name, "1.0.0", "2.0.0"))
        other.request("POST", path, backup)
        assert versions_of(other.deploy(app)) == ["1.0.0"]
        other.request("DELETE", path_of(app))
        eventually(lambda: not other.request("GET", path)["items"])
        eventually(lambda: not other.request("GET", collection_of(app))["items"])
        assert versions_of(other.deploy(app)) == ["2.0.0"]


def test_a_deprecated_version_warns_those_who_use_it(platform: Platform, name: str) -> None:
    old = entry("1.0.0", deprecated={"since": "1.1", "use": "1.1"})
    platform.publish(definition(name, old, "1.1.0"))
    found = platform.deploy(application(name, f"{name}@1.0"))
    [said] = found["status"]["resolutions"]
    assert said["warnings"] == [f"{name} 1.0.0 is deprecated since 1.1.0; use 1.1"]


def test_components_that_change_places_keep_their_pins(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0"))
    app = application(name, name)
    platform.deploy(app)
    platform.publish(definition(name, "1.0.0", "2.0.0"))
    both = application(name, name, name)
    assert versions_of(platform.deploy(both)) == ["1.0.0", "2.0.0"]
    both["spec"]["components"].reverse()
    assert versions_of(platform.deploy(both)) == ["2.0.0", "1.0.0"]


def test_the_manifests_of_the_seed_run(platform: Platform) -> None:
    text = """
apiVersion: core.oam.dev/v2beta1
kind: ComponentDefinition
metadata:
  annotations: {}
  name: my-component
  namespace: vela-system
spec:
  versions:
  - version: "2"
    schematic: {cue: {template: "output: {}"}}
    workload: {definition: {apiVersion: apps/v1, kind: Deployment}}
  - version: "3.4"
    schematic: {cue: {template: "output: {}"}}
    workload: {definition: {apiVersion: apps/v1, kind: Deployment}}
---
apiVersion: core.oam.dev/v1beta1
kind: Application
metadata:
    name: app-with-comp-versioning
    namespace: default
spec:
    components:
        - name: backend
          type: my-component@v3.4
"""
    component, app = (document.value for document in load_manifests(text, "seed.yaml"))
    assert isinstance(component, dict)
    assert isinstance(app, dict)
    platform.publish(component)
    assert platform.revisions("my-component") == ["my-component-v2.0.0", "my-component-v3.4.0"]
    assert versions_of(platform.deploy(app)) == ["3.4.0"]
