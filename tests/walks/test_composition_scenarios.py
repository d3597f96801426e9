"""The scenarios of the proposal, one by one, on control planes with functions that really run.

All are there at once, each composite resource with a composition of its own, so that whoever gets
nothing stands beside those that get something.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.walks.composing import (
    COMPOSITIONS,
    PACKAGES,
    Platform,
    composing,
    composing_on_kubernetes,
    condition,
    stamping,
)
from tests.walks.support import eventually

from polyver.kube.objects.status import ApiError

Object = dict[str, Any]
GROUP = "scenes.example.org"
SCENES = f"/apis/{GROUP}/v1/scenes"
RESIZE = {f"xpkg.example.org/resize:v{each}": str(each) for each in (1, 2, 3)}
OTHERS = {"xpkg.example.org/other:v1": "other", "xpkg.example.org/paused:v1": "paused"}


@pytest.fixture(scope="module", params=["up", pytest.param("kubernetes", marks=pytest.mark.kube)])
def platform(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("functions")
    file = stamping(folder, RESIZE | OTHERS)
    if request.param == "up":
        with composing(file) as running:
            yield running
    else:
        with composing_on_kubernetes(folder, "--packages", str(file)) as running:
            yield running


def function(name: str, version: int = 1, *, labels: Object | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"package": f"xpkg.example.org/{name}:v{version}", **spec},
    }


LIMITS: Object = {"revisionHistoryLimit": 4, "activeRevisionLimit": 2}


@pytest.fixture(scope="module")
def resize(platform: Platform) -> list[Object]:
    """Three revisions of one function, of which two are active."""
    path = f"{PACKAGES}/functions"
    platform.write(path, function("resize", 1, labels={"channel": "old"}, **LIMITS))
    platform.settled("resize", "Active")
    labels = {"channel": "stable", "team": "a"}
    platform.write(path, function("resize", 2, labels=labels, **LIMITS))
    platform.settled("resize", "Active", "Active")
    labels = {"channel": "alpha", "team": "a"}
    platform.write(path, function("resize", 3, labels=labels, **LIMITS))
    return platform.settled("resize", "Inactive", "Active", "Active")


DEFINITION: Object = {
    "apiVersion": "apiextensions.crossplane.io/v1",
    "kind": "CompositeResourceDefinition",
    "metadata": {"name": f"scenes.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": "Scene", "plural": "scenes"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "referenceable": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer", "default": 1}},
                            }
                        },
                    }
                },
            }
        ],
    },
}


def composition(name: str, called: str, **step: Any) -> Object:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": name},
        "spec": {
            "compositeTypeRef": {"apiVersion": f"{GROUP}/v1", "kind": "Scene"},
            "mode": "Pipeline",
            "pipeline": [{"step": "compose", "functionRef": {"name": called}, **step}],
        },
    }


def scene(name: str) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Scene",
        "metadata": {"name": name},
        "spec": {"compositionRef": {"name": name}},
    }


def named(revision: Object) -> Object:
    return {"functionRevisionRef": {"name": revision["metadata"]["name"]}}


def labelled(**labels: str) -> Object:
    return {"functionRevisionSelector": {"matchLabels": labels}}


def asked(resize: list[Object], other: Object) -> dict[str, Object]:
    """What each scene's composition asks for."""
    first, second, _ = resize
    unknown = {"functionRevisionRef": {"name": "resize-000000000000"}}
    return {
        "named": composition("named", "resize", **named(second)),
        "labelled": composition("labelled", "resize", **labelled(channel="stable")),
        "labels-of-several": composition("labels-of-several", "resize", **labelled(team="a")),
        "nothing": composition("nothing", "resize"),
        "only-one-active": composition("only-one-active", "other"),
        "both": composition("both", "resize", **named(second), **labelled(channel="alpha")),
        "none-active": composition("none-active", "paused"),
        "named-inactive": composition("named-inactive", "resize", **named(first)),
        "named-of-another": composition("named-of-another", "resize", **named(other)),
        "named-unknown": composition("named-unknown", "resize", **unknown),
        "labels-of-none": composition("labels-of-none", "resize", **labelled(channel="beta")),
        "labels-of-inactive": composition(
            "labels-of-inactive", "resize", **labelled(channel="old")
        ),
        "not-installed": composition("not-installed", "missing"),
    }


GET = {
    "named": "2",
    "labelled": "2",
    "labels-of-several": "3",
    "nothing": "3",
    "only-one-active": "other",
    "both": "2",
}
FAIL = {
    "none-active": ("NoActiveRevision", "function paused has no active revision"),
    "named-inactive": ("RevisionInactive", "{first} is inactive"),
    "named-of-another": ("OtherFunctionsRevision", "{other} is a revision of other, not of resize"),
    "named-unknown": ("RevisionNotFound", "function resize has no revision resize-000000000000"),
    "labels-of-none": ("NoRevisionMatches", "function resize has no revision with channel=beta"),
    "labels-of-inactive": (
        "MatchingRevisionsInactive",
        "function resize has no active revision with channel=old",
    ),
    "not-installed": ("FunctionNotInstalled", "function missing has no revisions"),
}


@dataclass(frozen=True)
class Scenes:
    """All composite resources after all is settled, and what they were told about."""

    resize: list[Object]
    other: Object
    objects: dict[str, Object]
    events: list[Object]

    def told(self, name: str) -> list[Object]:
        return [each for each in self.events if _about(each) == ("Scene", name)]


@pytest.fixture(scope="module")
def scenes(platform: Platform, resize: list[Object]) -> Scenes:
    path = f"{PACKAGES}/functions"
    platform.write(path, function("other"))
    platform.write(path, function("paused", revisionActivationPolicy="Manual"))
    [other] = platform.settled("other", "Active")
    platform.settled("paused", "Inactive")
    platform.request("POST", f"{COMPOSITIONS}/compositeresourcedefinitions", DEFINITION)
    wanted = asked(resize, other)
    for each in wanted.values():
        platform.request("POST", f"{COMPOSITIONS}/compositions", each)
    eventually(lambda: _is_served(platform))
    for name in wanted:
        platform.request("POST", SCENES, scene(name))

    def settled() -> dict[str, Object] | None:
        found = platform.items(SCENES)
        good = all(is_ready(found[each]) for each in GET)
        # A reason may be another one first, such as that a composition has no revision yet.
        bad = all(is_refused(found[each], reason) for each, (reason, _) in FAIL.items())
        return found if good and bad else None

    objects = eventually(settled, every=0.1)
    events = eventually(lambda: _events(platform))
    return Scenes(resize, other, objects, events)


def is_ready(obj: Object) -> bool:
    return condition(obj, "Ready").get("status") == "True"


def is_refused(obj: Object, reason: str) -> bool:
    synced = condition(obj, "Synced")
    return (synced.get("status"), synced.get("reason")) == ("False", reason)


def _is_served(platform: Platform) -> bool:
    try:
        platform.request("GET", SCENES)
    except ApiError:
        return False
    return True


def _events(platform: Platform) -> list[Object] | None:
    """All events, once each scene that fails has been told why."""
    found: list[Object] = platform.request("GET", "/api/v1/events")["items"]
    told = {(_about(each), each["reason"]) for each in found}
    wanted = {(("Scene", name), reason) for name, (reason, _) in FAIL.items()}
    return found if wanted <= told else None


def _about(event: Object) -> tuple[str, str]:
    """The kind and name of the object of an Event; an API server's own may have neither."""
    about = event.get("involvedObject") or {}
    return about.get("kind", ""), about.get("name", "")


# How the function of a step is found.


def made_by(platform: Platform, name: str) -> str:
    path = f"/api/v1/namespaces/default/configmaps/{name}"
    stamp: str = platform.request("GET", path)["data"]["compose"]
    return stamp


@pytest.mark.parametrize("name", GET)
def test_each_is_composed_by_the_revision_that_it_says(
    platform: Platform, scenes: Scenes, name: str
) -> None:
    assert made_by(platform, name) == GET[name]
    revisions = [*scenes.resize, scenes.other]
    packages = {each["metadata"]["name"]: each["spec"]["image"] for each in revisions}
    digests = {each["metadata"]["name"]: each["spec"]["digest"] for each in revisions}
    [record] = scenes.objects[name]["status"]["pipeline"]
    assert record["step"] == "compose"
    assert (RESIZE | OTHERS)[packages[record["revision"]]] == GET[name]
    assert record["digest"] == digests[record["revision"]]


def revision_of(scenes: Scenes, name: str) -> str:
    [record] = scenes.objects[name]["status"]["pipeline"]
    found: str = record["revision"]
    return found


def test_1_a_revision_is_fetched_directly_by_its_name(scenes: Scenes) -> None:
    assert revision_of(scenes, "named") == scenes.resize[1]["metadata"]["name"]


def test_2_labels_are_matched_in_addition_to_the_package(scenes: Scenes) -> None:
    assert revision_of(scenes, "labelled") == scenes.resize[1]["metadata"]["name"]


def test_3_of_several_that_match_the_highest_numbered_active_one_is_used(scenes: Scenes) -> None:
    assert revision_of(scenes, "labels-of-several") == scenes.resize[2]["metadata"]["name"]


def test_3_without_a_selector_the_highest_numbered_active_one_is_used(scenes: Scenes) -> None:
    assert revision_of(scenes, "nothing") == scenes.resize[2]["metadata"]["name"]


def test_with_only_one_active_revision_and_none_specified_nothing_changes(scenes: Scenes) -> None:
    assert revision_of(scenes, "only-one-active") == scenes.other["metadata"]["name"]


def test_a_ref_wins_over_a_selector_beside_it_and_that_is_told(scenes: Scenes) -> None:
    assert revision_of(scenes, "both") == scenes.resize[1]["metadata"]["name"]
    said = [each["message"] for each in scenes.told("both") if each["type"] == "Warning"]
    assert any("functionRevisionSelector has no effect" in each for each in said)


# Who gets none.


@pytest.mark.parametrize("name", FAIL)
def test_without_an_active_revision_the_pipeline_fails_with_a_condition_and_an_event(
    scenes: Scenes, name: str
) -> None:
    reason, message = FAIL[name]
    first, other = scenes.resize[0]["metadata"]["name"], scenes.other["metadata"]["name"]
    synced = condition(scenes.objects[name], "Synced")
    assert (synced["status"], synced["reason"]) == ("False", reason)
    assert message.format(first=first, other=other) in synced["message"]
    assert "spec.pipeline[0]" in synced["message"]
    told = [each for each in scenes.told(name) if each["reason"] == reason]
    assert {each["type"] for each in told} == {"Warning"}
    assert not (scenes.objects[name].get("status") or {}).get("pipeline")
    assert not scenes.objects[name]["spec"].get("resourceRefs")


def test_whoever_gets_none_does_not_hold_up_others(scenes: Scenes) -> None:
    assert {n for n, each in scenes.objects.items() if is_ready(each)} == GET.keys()


def test_it_is_composed_as_soon_as_a_revision_is_active(platform: Platform, scenes: Scenes) -> None:
    [paused] = platform.revisions("paused")
    path = f"{PACKAGES}/functionrevisions"
    spec = {**paused["spec"], "desiredState": "Active"}
    platform.write(path, {**paused, "metadata": {"name": paused["metadata"]["name"]}, "spec": spec})
    eventually(lambda: is_ready(platform.items(SCENES)["none-active"]))
    assert not condition(platform.items(SCENES)["none-active"], "Synced").get("message")
    assert made_by(platform, "none-active") == "paused"


# What the package manager does.


def test_labels_are_copied_from_the_package_to_its_revision(resize: list[Object]) -> None:
    found = [each["metadata"]["labels"].get("channel") for each in resize]
    assert found == ["old", "stable", "alpha"]


def test_a_new_revision_deactivates_the_active_one_with_the_lowest_number(
    resize: list[Object],
) -> None:
    states = [(each["spec"]["revision"], each["spec"]["desiredState"]) for each in resize]
    assert states == [(1, "Inactive"), (2, "Active"), (3, "Active")]


def test_each_active_revision_has_an_endpoint_of_its_own(resize: list[Object]) -> None:
    found = {(each.get("status") or {}).get("endpoint") for each in resize[1:]}
    assert len(found) == 2
    assert all(found)


def test_with_manual_activation_the_limit_is_ignored(platform: Platform, scenes: Scenes) -> None:
    assert len(platform.revisions("paused")) == 1  # and it began inactive, as `scenes` waited for


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (
            function("more", **{**LIMITS, "activeRevisionLimit": 5}),
            "more than revisionHistoryLimit",
        ),
        (
            {**function("more", **LIMITS), "kind": "Provider"},
            "only functions may have several",
        ),
        (
            {**function("more", **LIMITS), "kind": "Configuration"},
            "only functions may have several",
        ),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(
    platform: Platform, scenes: Scenes, wrong: Object, complaint: str
) -> None:
    with pytest.raises(ApiError, match=complaint):
        platform.request("POST", f"{PACKAGES}/{wrong['kind'].lower()}s", wrong)
