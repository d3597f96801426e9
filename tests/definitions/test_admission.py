"""Definitions before they are stored: what is refused, with which reason, and what is free."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.definitions.samples import (
    GROUP,
    SYSTEM,
    Platform,
    application,
    definition,
    entry,
    legacy,
    path_of,
    served,
)
from tests.editing import edited

from polyver.apis import Webhook
from polyver.apis.admission.kinds import wanted_by
from polyver.definitions.admission import DEFINITIONS_WANTED
from polyver.definitions.kinds import KINDS
from polyver.kube.objects.status import ApiError
from polyver.webhook.configurations import configurations

Object = dict[str, Any]
TEXT = {"image": {"type": "string"}}
NUMBER = {"image": {"type": "integer"}}


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with served() as running:
        yield running


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"d{zlib.crc32(request.node.name.encode())}"


def refusal(platform: Platform, obj: Object) -> str:
    with pytest.raises(ApiError) as error:
        platform.write(obj)
    assert error.value.code in (403, 422), error.value
    return error.value.message


@pytest.mark.parametrize(
    ("version", "complaint"),
    [
        ("v1.0.0", '"v1.0.0" is published with a leading "v"; omit it'),
        (">1.2.0", '">1.2.0" is not a semantic version'),
        ("1.0.0-RC.1", "is published with uppercase letters"),
        ("1.0.0+linux", "is published with build metadata"),
        ("", '"" is not a semantic version'),
        ("1.2.3.4", '"1.2.3.4" is not a semantic version'),
    ],
)
@pytest.mark.parametrize("api_version", ["v1beta1", "v2beta1"])
def test_what_is_no_version_is_refused_with_the_reason(
    platform: Platform, name: str, version: str, complaint: str, api_version: str
) -> None:
    listed = definition(name, version) if api_version == "v2beta1" else None
    message = refusal(platform, listed or legacy(name, "x", version=version))
    at = "spec.versions[0].version" if listed else "spec.version"
    assert f"{at}: Invalid value: " in message
    assert complaint in message


def test_versions_that_complete_to_the_same_collide(platform: Platform, name: str) -> None:
    message = refusal(platform, definition(name, "3.4", "3.4.0"))
    assert "spec.versions[1].version" in message
    assert "it is the same version as 3.4.0" in message


def test_a_version_together_with_the_annotation_is_refused(platform: Platform, name: str) -> None:
    message = refusal(platform, legacy(name, "x", version="1.0.0", named="4.4"))
    assert "has both a version and the annotation definitionrevision.oam.dev/name" in message


def test_a_version_is_missing_in_a_list(platform: Platform, name: str) -> None:
    assert "a version is missing" in refusal(platform, definition(name, "1.0.0", entry(None)))


def test_a_name_that_cannot_be_a_label_is_refused(platform: Platform) -> None:
    assert "its name cannot be a label" in refusal(platform, definition("a" * 64, "1.0.0"))


def test_a_published_version_is_immutable_and_the_digest_is_named(
    platform: Platform, name: str
) -> None:
    found = platform.publish(definition(name, "1.0.0"))
    message = refusal(platform, definition(name, entry("1.0.0", podSpecPath="other")))
    assert found["status"]["versions"][0]["digest"] in message
    assert "publish a new version" in message
    platform.publish(definition(name, "1.0.0", entry("1.0.1", podSpecPath="other")))


def test_a_deprecation_is_no_change_of_content(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    old = entry("1.0.0", deprecated={"since": "1.1.0", "use": "1.1"})
    found = platform.publish(definition(name, old, "1.1.0"))
    said = found["status"]["versions"][1]
    assert (said["stage"], said["since"], said["use"]) == ("deprecated", "1.1.0", "1.1")


def test_the_name_of_a_revision_belongs_to_one_definition(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0"))
    message = refusal(platform, definition(name, "1.0.0", kind="TraitDefinition"))
    assert f"{name}-v1.0.0, which is the revision of ComponentDefinition {name}" in message
    platform.publish(definition(name, "2.0.0", kind="TraitDefinition"))


def test_a_lineage_has_one_kind_of_version(platform: Platform, name: str) -> None:
    platform.publish(legacy(name, "one"))
    message = refusal(platform, legacy(name, "two", version="1.0.0"))
    assert "mixes revision numbers" in message
    assert "publish it under another name" in message


def test_a_spec_is_changed_in_the_version_that_created_it_alone(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    old = {"apiVersion": f"{GROUP}/v1beta1"}
    stored = platform.get(definition(name) | old)
    assert stored["spec"]["version"] == "1.1.0"
    message = refusal(platform, stored | {"spec": entry("1.2.0")})
    assert "was created in v2beta1, but its spec is changed in v1beta1" in message


def test_labels_and_annotations_are_free_in_both(platform: Platform, name: str) -> None:
    whole = definition(name, "1.0.0", "1.1.0")
    platform.publish(whole)
    for version in ("v1beta1", "v2beta1"):
        path = path_of(whole | {"apiVersion": f"{GROUP}/{version}"})
        edited(platform.request, path, partial(_describe, version))
    found = platform.get(whole)
    assert found["spec"] == whole["spec"]
    assert found["metadata"]["labels"] == {"via": "v2beta1"}
    assert found["metadata"]["annotations"]["definition.polyver.dev/api-version"] == "v2beta1"


def _describe(version: str, obj: Object) -> None:
    obj["metadata"] |= {"labels": {"via": version}, "annotations": {"via": version}}


def test_a_legacy_definition_is_not_changed_in_v2beta1(platform: Platform, name: str) -> None:
    platform.publish(legacy(name, "one"))
    message = refusal(platform, definition(name, "1.0.0"))
    assert "was created in v1beta1, but its spec is changed in v2beta1" in message


def test_a_legacy_definition_may_have_nothing_but_its_name(platform: Platform, name: str) -> None:
    bare = legacy(name, "") | {"kind": "PolicyDefinition", "spec": {}}
    platform.publish(bare)
    assert platform.revisions(name) == [f"{name}-v1"]
    del bare["spec"]
    bare["metadata"]["name"] = f"{name}-bare"
    found = platform.publish(bare)
    assert [each["version"] for each in found["status"]["versions"]] == ["1"]


def test_removing_a_version_that_is_used_is_refused_naming_the_applications(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, "1.0.0", "1.1.0", "2.0.0"))
    platform.deploy(application(f"{name}-a", f"{name}@1.0.0"))
    platform.deploy(application(f"{name}-b", f"{name}@1.0"))
    message = refusal(platform, definition(name, "1.1.0", "2.0.0"))
    users = f"Application default/{name}-a, Application default/{name}-b"
    assert (
        f"{name} 1.0.0 is used by {users}; keep it in the list until it is no longer used"
        in message
    )
    platform.publish(definition(name, "1.0.0", "2.0.0"))
    assert platform.revisions(name) == [f"{name}-v1.0.0", f"{name}-v2.0.0"]


def test_a_removed_number_is_never_used_again(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0", "1.1.0"))
    platform.publish(definition(name, "1.1.0"))
    message = refusal(platform, definition(name, "1.0.0", "1.1.0"))
    assert "1.0.0 was removed and its number is never used again" in message


def test_a_version_that_was_removed_by_hand_is_not_published_again(
    platform: Platform, name: str
) -> None:
    platform.publish(legacy(name, "one", version="1.0.0"))
    later = legacy(name, "two", version="1.1.0")
    platform.publish(later)
    path = f"/apis/{GROUP}/v1beta1/namespaces/{SYSTEM}/definitionrevisions/{name}-v1.0.0"
    platform.request("DELETE", path)
    stages = ["published", "removed"]
    platform.until(later, lambda found: [e["stage"] for e in found["status"]["versions"]] == stages)
    message = refusal(platform, legacy(name, "one", version="1.0.0"))
    assert "its number is never used again" in message


def test_what_is_used_is_not_deleted(platform: Platform, name: str) -> None:
    whole = definition(name, "1.0.0")
    platform.publish(whole)
    app = application(name, name)
    platform.deploy(app)
    revision = f"/apis/{GROUP}/v1beta1/namespaces/{SYSTEM}/definitionrevisions/{name}-v1.0.0"
    for path in (path_of(whole), revision):
        with pytest.raises(ApiError, match=f"1.0.0 is used by Application default/{name}"):
            platform.request("DELETE", path)
    platform.request("DELETE", path_of(app))
    platform.request("DELETE", path_of(whole))


def test_a_revision_never_changes(platform: Platform, name: str) -> None:
    platform.publish(definition(name, "1.0.0"))
    path = f"/apis/{GROUP}/v1beta1/namespaces/{SYSTEM}/definitionrevisions/{name}-v1.0.0"

    def change(found: Object) -> None:
        found["spec"]["componentDefinition"]["spec"]["podSpecPath"] = "other"

    with pytest.raises(ApiError, match="a revision is immutable"):
        edited(platform.request, path, change)


# The semver gate.


@pytest.mark.parametrize(
    ("known", "new", "is_refused"),
    [
        ("1.0.0", "1.0.1", True),
        ("1.0.0", "1.1.0", True),
        ("1.1.0", "1.0.0", True),
        ("1.0.0", "2.0.0", False),
        ("0.1.0", "0.1.1", True),
        ("0.1.0", "0.2.0", False),
        ("1.0.0", "1.1.0-rc.1", False),
    ],
)
def test_a_breaking_change_needs_a_new_major_version(
    platform: Platform, name: str, known: str, new: str, is_refused: bool
) -> None:
    one, two = entry(known, parameters=TEXT), entry(new, parameters=NUMBER)
    platform.publish(definition(name, one))
    if not is_refused:
        platform.publish(definition(name, one, two))
        return
    message = refusal(platform, definition(name, one, two))
    assert "spec.versions[1].schematic.gotemplate.parameters" in message
    assert "breaks users of" in message
    assert ": image: " in message


def test_a_version_is_compared_with_both_neighbours(platform: Platform, name: str) -> None:
    one, three = entry("1.0.0", parameters=TEXT), entry("1.2.0", parameters=TEXT)
    platform.publish(definition(name, one, three))
    more = {**TEXT, "size": {"type": "integer"}}
    message = refusal(platform, definition(name, one, entry("1.1.0", parameters=more), three))
    assert f"{name} 1.2.0 breaks users of 1.1.0: size: " in message


def test_a_compatible_change_is_published(platform: Platform, name: str) -> None:
    more = {**TEXT, "size": {"type": "integer", "default": 1}}
    one, two = entry("1.0.0", parameters=TEXT), entry("1.1.0", parameters=more)
    platform.publish(definition(name, one, two))


def test_parameters_that_cannot_be_read_are_warned_about(platform: Platform, name: str) -> None:
    cue = {"schematic": {"cue": {"template": "parameter: {}"}}}
    found = platform.publish(definition(name, entry("1.0.0", **cue), entry("1.1.0", **cue)))
    [said] = [each for each in found["status"]["conditions"] if each["type"] == "Compatible"]
    assert said["status"] == "Unknown"
    assert (
        f"the parameters of {name} 1.0.0, 1.1.0 are in cue, and cannot be compared"
        in said["message"]
    )


def test_a_schema_that_is_none_is_refused(platform: Platform, name: str) -> None:
    message = refusal(platform, definition(name, entry("1.0.0", parameters={"a": {"type": "x"}})))
    assert "spec.versions[0].schematic.gotemplate.parameters.properties[a].type" in message


def test_webhooks_ask_about_both_versions_as_they_are_written() -> None:
    wanted = [*DEFINITIONS_WANTED, *(each for kind in KINDS for each in wanted_by(kind))]
    found = configurations(wanted, Webhook("shop", "hooks"))
    names = [each["name"] for one in found for each in one["webhooks"]]
    assert len(set(names)) == len(names)
    hooks = {each["name"]: each for one in found for each in one["webhooks"]}
    records = hooks[f"records.componentdefinitions.{GROUP}"]
    assert records["matchPolicy"] == "Exact"
    assert records["rules"][0]["apiVersions"] == ["v1beta1", "v2beta1"]
    for name in ("checks.componentdefinitions", "checks.applications", "removals.traitdefinitions"):
        assert f"{name}.{GROUP}" in hooks


def test_a_warning_policy_publishes_what_breaks_and_says_so() -> None:
    with served(semver_gate="warn") as platform:
        one, two = entry("1.0.0", parameters=TEXT), entry("1.1.0", parameters=NUMBER)
        found = platform.publish(definition("web", one, two))
        assert [each["version"] for each in found["status"]["versions"]] == ["1.1.0", "1.0.0"]
        [said] = [each for each in found["status"]["conditions"] if each["type"] == "Compatible"]
        assert "web 1.1.0 breaks users of 1.0.0: image: " in said["message"]
