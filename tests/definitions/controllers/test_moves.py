"""Releases that do not work for some applications: who moves, who stays, and what is reported."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.app.test_cli import Ran
from tests.definitions.samples import (
    CONFIG,
    GROUP,
    SYSTEM,
    Platform,
    application,
    condition,
    definition,
    legacy,
    served,
    templated,
    versions_of,
)
from tests.editing import edited
from tests.walks.support import definition as widgets
from tests.walks.support import eventually

from polyver.kube.objects import dump_yaml
from polyver.kube.objects.status import ApiError

Object = dict[str, Any]
IMAGE = {"image": "nginx:1"}
MAPS = "/api/v1/namespaces/default/configmaps"
BROKEN = CONFIG.replace("{{ .parameter.image }}", '{{ fail "not for anybody" }}')
PICKY = CONFIG.replace(
    "{{ .parameter.image }}", '{{ if eq .parameter.image "bad" }}{{ fail "no" }}{{ end }}x'
)
NOTHING = "{{/* nothing */}}"
MORE = f"{CONFIG}---\n" + CONFIG.replace("{{ .context.name }}", "{{ .context.name }}-more")
ALLOWED = {"polyver.dev/allow-deletion": "true"}


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with served() as running:
        yield running


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for what one test publishes."""
    return f"d{zlib.crc32(request.node.name.encode())}"


def data(platform: Platform, name: str) -> Object | None:
    try:
        got: Object = platform.request("GET", f"{MAPS}/{name}")["data"]
    except ApiError as error:
        if error.code != 404:
            raise
        return None
    return got


def held(platform: Platform, app: Object, reason: str) -> Object:
    """An application once it could not take a release; it runs what it had."""
    got = platform.until(app, lambda found: condition(found, "Updated").get("reason") == reason)
    assert condition(got, "Updated")["status"] == "False"
    assert got["status"]["status"] == "running"
    assert condition(got, "Ready")["status"] == "True"
    return got


def updated(platform: Platform, app: Object, version: str) -> Object:
    got = platform.uses(app, version)
    return platform.until(got, lambda found: condition(found, "Updated").get("status") != "False")


def annotate(platform: Platform, revision: str, **annotations: str) -> None:
    path = f"/apis/{GROUP}/v1beta1/namespaces/{SYSTEM}/definitionrevisions/{revision}"

    def change(found: Object) -> None:
        found["metadata"].setdefault("annotations", {}).update(annotations)

    edited(platform.request, path, change)


def revisions(platform: Platform, app: str) -> list[list[str]]:
    """The versions in the ApplicationRevisions of an application, in their order."""
    path = f"/apis/{GROUP}/v1beta1/namespaces/default/applicationrevisions"
    found = platform.request("GET", f"{path}?labelSelector=app.oam.dev/name={app}")["items"]
    found.sort(key=lambda each: int(each["metadata"]["name"].rpartition("-v")[2]))
    return [[one["version"] for one in each["spec"]["resolutions"]] for each in found]


def deployed(platform: Platform, name: str, *versions: Object, **properties: Any) -> Object:
    """An application that runs and follows series 1."""
    platform.publish(definition(name, *versions))
    app = application(name, f"{name}@1", properties=properties or IMAGE)
    got = platform.deploy(app)
    assert got["status"]["status"] == "running", got["status"]
    return app


def test_a_release_that_fails_to_render_leaves_an_application_as_it_is(
    platform: Platform, name: str
) -> None:
    first = templated("1.0.0")
    app = deployed(platform, name, first)
    platform.publish(definition(name, first, templated("1.1.0", BROKEN)))
    got = held(platform, app, "RenderFailed")
    assert f"{name} 1.1.0 cannot be used: " in condition(got, "Updated")["message"]
    assert "not for anybody" in condition(got, "Updated")["message"]
    [resolution] = got["status"]["resolutions"]
    assert resolution["version"] == "1.0.0"
    assert resolution["reason"] == "kept: the move to 1.1.0 failed"
    assert resolution["failedMove"]["version"] == "1.1.0"
    assert revisions(platform, name) == [["1.0.0"]]
    assert data(platform, f"{name}-c0") == {"image": "nginx:1", "version": "1.0.0"}
    # It is kept as it is all the same.
    platform.request("DELETE", f"{MAPS}/{name}-c0")
    eventually(lambda: data(platform, f"{name}-c0"))
    # Nobody uses it, so it can be withdrawn, and then nothing is left to report.
    platform.publish(definition(name, first))
    updated(platform, app, "1.0.0")
    platform.publish(definition(name, first, templated("1.2.0")))
    got = updated(platform, app, "1.2.0")
    assert condition(got, "Updated")["status"] == "True"
    assert "failedMove" not in got["status"]["resolutions"][0]
    assert revisions(platform, name) == [["1.0.0"], ["1.2.0"]]


def test_a_release_that_would_delete_objects_is_held_unless_it_may(
    platform: Platform, name: str
) -> None:
    first = templated("1.0.0", MORE)
    app = deployed(platform, name, first)
    platform.publish(definition(name, first, templated("1.1.0")))
    got = held(platform, app, "WouldDelete")
    fact = f"{name} 1.1.0 would delete ConfigMap default/{name}-c0-more without replacement"
    assert condition(got, "Updated")["message"].startswith(fact)
    assert data(platform, f"{name}-c0") == {"image": "nginx:1", "version": "1.0.0"}
    annotate(platform, f"{name}-v1.1.0", **ALLOWED)
    updated(platform, app, "1.1.0")
    assert data(platform, f"{name}-c0") == {"image": "nginx:1", "version": "1.1.0"}
    assert data(platform, f"{name}-c0-more") is None


def test_the_annotation_of_a_definition_goes_to_its_releases(platform: Platform, name: str) -> None:
    first = templated("1.0.0", MORE)
    app = deployed(platform, name, first)
    versions = first, templated("1.1.0", NOTHING)
    platform.publish(definition(name, *versions))
    got = held(platform, app, "WouldDelete")
    assert (
        f"ConfigMap default/{name}-c0, ConfigMap default/{name}-c0-more"
        in (condition(got, "Updated")["message"])
    )
    platform.publish(definition(name, *versions, **ALLOWED))
    updated(platform, app, "1.1.0")
    assert data(platform, f"{name}-c0") is None


def test_an_object_that_gets_another_name_has_one_in_its_place(
    platform: Platform, name: str
) -> None:
    first = templated("1.0.0")
    app = deployed(platform, name, first)
    renamed = CONFIG.replace("{{ .context.name }}", "{{ .context.name }}-new")
    platform.publish(definition(name, first, templated("1.1.0", renamed)))
    updated(platform, app, "1.1.0")
    eventually(lambda: data(platform, f"{name}-c0") is None)
    assert data(platform, f"{name}-c0-new") is not None


def test_what_a_user_removes_is_removed_with_a_release_at_once(
    platform: Platform, name: str
) -> None:
    first = templated("1.0.0")
    platform.publish(definition(name, first))
    app = application(name, f"{name}@1", f"{name}@1", properties=IMAGE)
    platform.runs(app)
    # A release that renders nothing, and an edit that takes a component away, in either order.
    platform.publish(definition(name, first, templated("1.1.0", NOTHING)))
    held(platform, app, "WouldDelete")
    app["spec"]["components"].pop()
    platform.runs(app)
    eventually(lambda: data(platform, f"{name}-c1") is None)
    got = held(platform, app, "WouldDelete")
    assert f"{name}-c1" not in condition(got, "Updated")["message"]
    assert data(platform, f"{name}-c0") == {"image": "nginx:1", "version": "1.0.0"}


def test_an_edit_holds_although_the_release_does_not_work(platform: Platform, name: str) -> None:
    first = templated("1.0.0")
    app = deployed(platform, name, first)
    platform.publish(definition(name, first, templated("1.1.0", BROKEN)))
    held(platform, app, "RenderFailed")
    app["spec"]["components"][0]["properties"] = {"image": "nginx:2"}
    platform.runs(app)
    held(platform, app, "RenderFailed")
    assert data(platform, f"{name}-c0") == {"image": "nginx:2", "version": "1.0.0"}
    # An edit that is wrong fails as ever, and what is reported stays what is applied.
    app["spec"]["components"][0]["properties"] = {"color": "red"}
    got = platform.deploy(app)
    assert (got["status"]["status"], versions_of(got)) == ("failed", ["1.0.0"])
    # An application that requests the release exactly gets it, or fails.
    app["spec"]["components"][0] |= {"type": f"{name}@1.1.0", "properties": IMAGE}
    got = platform.deploy(app)
    assert (got["status"]["status"], versions_of(got)) == ("failed", ["1.0.0"])
    assert condition(got, "Updated")["status"] == "False"
    assert data(platform, f"{name}-c0") == {"image": "nginx:2", "version": "1.0.0"}


def test_a_release_may_bring_a_kind_and_objects_of_it(platform: Platform, name: str) -> None:
    first = templated("1.0.0")
    app = deployed(platform, name, first)
    crd = dump_yaml(widgets(f"{name}.io"))
    widget = (
        f"apiVersion: {name}.io/v1\nkind: Widget\nmetadata: {{name: {name}}}\nspec: {{size: 1}}\n"
    )
    second = templated("1.1.0", f"{CONFIG}---\n{crd}---\n{widget}")
    platform.publish(definition(name, first, second))
    platform.uses(app, "1.1.0")
    platform.until(app, lambda found: found["status"]["status"] == "running")
    assert platform.request("GET", f"/apis/{name}.io/v1/namespaces/default/widgets/{name}")


def test_an_edit_can_make_a_release_work(platform: Platform, name: str) -> None:
    first = templated("1.0.0")
    app = deployed(platform, name, first, image="bad")
    platform.publish(definition(name, first, templated("1.1.0", PICKY)))
    held(platform, app, "RenderFailed")
    app["spec"]["components"][0]["properties"] = {"image": "good"}
    platform.write(app)
    updated(platform, app, "1.1.0")
    assert data(platform, f"{name}-c0") == {"image": "x", "version": "1.1.0"}


def test_what_the_server_refuses_changes_nothing(platform: Platform, name: str) -> None:
    first = templated("1.0.0", MORE)
    app = deployed(platform, name, first)
    refused = MORE.replace("-more", "-more").replace("data: {", "data: {'not a key': x, ", 2)
    refused = refused.replace("data: {'not a key': x, ", "data: {", 1)
    platform.publish(definition(name, first, templated("1.1.0", refused)))
    got = held(platform, app, "NotApplied")
    assert "data[not a key]: Invalid value" in condition(got, "Updated")["message"]
    assert data(platform, f"{name}-c0") == {"image": "nginx:1", "version": "1.0.0"}


def test_a_release_whose_kind_is_not_served_is_taken_when_it_is(
    platform: Platform, name: str
) -> None:
    first = templated("1.0.0")
    app = deployed(platform, name, first)
    widget = f"---\napiVersion: {name}.io/v1\nkind: Widget\nmetadata: {{name: {name}}}\n"
    widget += "spec: {size: 1}\n"
    platform.publish(definition(name, first, templated("1.1.0", CONFIG + widget)))
    held(platform, app, "NotServed")
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    platform.request("POST", crds, widgets(f"{name}.io"))
    updated(platform, app, "1.1.0")


def test_one_release_does_not_hold_another(platform: Platform, name: str) -> None:
    first = templated("1.0.0")
    for each in ("a", "b"):
        platform.publish(definition(f"{name}-{each}", first))
    app = application(name, f"{name}-a@1", f"{name}-b@1", properties=IMAGE)
    platform.runs(app)
    platform.publish(definition(f"{name}-a", first, templated("1.1.0", BROKEN)))
    held(platform, app, "RenderFailed")
    platform.publish(definition(f"{name}-b", first, templated("1.1.0")))
    got = platform.uses(app, "1.0.0", "1.1.0")
    assert condition(got, "Updated")["status"] == "False"
    assert got["status"]["status"] == "running"


def test_a_first_rendering_that_fails_uses_nothing(platform: Platform, name: str) -> None:
    first = templated("1.0.0")
    platform.publish(definition(name, first, templated("1.1.0", BROKEN)))
    app = application(name, name, properties=IMAGE)
    got = platform.deploy(app)
    assert (got["status"]["status"], versions_of(got)) == ("failed", ["1.1.0"])
    platform.publish(definition(name, first))
    got = platform.uses(app, "1.0.0")
    platform.until(app, lambda found: found["status"]["status"] == "running")


def test_a_definition_without_versions_is_followed_in_the_same_way(
    platform: Platform, name: str
) -> None:
    def numbered(template: str) -> Object:
        content = {k: v for k, v in templated("", template).items() if k != "version"}
        return legacy(name, "") | {"spec": content}

    platform.publish(numbered(CONFIG))
    app = application(name, name, properties=IMAGE)
    platform.runs(app)
    for template, reason in ((BROKEN, "RenderFailed"), (NOTHING, "WouldDelete")):
        platform.publish(numbered(template))
        got = held(platform, app, reason)
        assert versions_of(got) == ["1"]
    counts = {"followers": 1, "updated": 0, "held": 1, "failing": 0}
    eventually(lambda: adopted(platform, name, "3") == counts)
    platform.publish(numbered(CONFIG + "# fixed\n"))
    updated(platform, app, "4")


def test_a_trait_is_followed_in_the_same_way(platform: Platform, name: str) -> None:
    config = CONFIG.replace("{{ .context.name }}", "{{ .context.name }}-trait")
    first = {k: v for k, v in templated("1.0.0", config).items() if k != "workload"}
    broken = {k: v for k, v in templated("1.1.0", BROKEN).items() if k != "workload"}
    trait = f"{name}-trait"
    platform.publish(definition(trait, first, kind="TraitDefinition"))
    platform.publish(definition(name, templated("1.0.0")))
    app = application(name, f"{name}@1", properties=IMAGE)
    app["spec"]["components"][0]["traits"] = [{"type": f"{trait}@1", "properties": IMAGE}]
    platform.runs(app)
    platform.publish(definition(trait, first, broken, kind="TraitDefinition"))
    got = held(platform, app, "RenderFailed")
    assert versions_of(got) == ["1.0.0", "1.0.0"]
    assert data(platform, f"{name}-c0-trait") is not None


# Many.


def all_of(platform: Platform, name: str) -> list[Object]:
    path = f"/apis/{GROUP}/v1beta1/namespaces/default/applications"
    found: list[Object] = platform.request("GET", path)["items"]
    return [each for each in found if each["metadata"]["name"].startswith(name)]


def stand(apps: list[Object]) -> dict[tuple[str, str, str], int]:
    """How many applications are in which state, with which version, and updated or not."""
    found: dict[tuple[str, str, str], int] = {}
    for app in apps:
        updated_ = condition(app, "Updated").get("status", "")
        key = app.get("status", {}).get("status", ""), ",".join(versions_of(app)), updated_
        found[key] = found.get(key, 0) + 1
    return found


def adopted(platform: Platform, name: str, version: str) -> Object:
    obj = definition(name)
    [entry] = [
        each for each in platform.get(obj)["status"]["versions"] if each["version"] == version
    ]
    found: Object = entry.get("adoption") or {}
    return found


def events_about(platform: Platform, version: str) -> list[str]:
    found = platform.request("GET", f"/api/v1/namespaces/{SYSTEM}/events")["items"]
    return [each["reason"] for each in found if f"web {version}: " in each["message"]]


def becomes(platform: Platform, version: str, counts: Object, reason: str, **states: int) -> None:
    """Wait until many applications are in some states, and the definition reports it."""
    wanted = {tuple(state.split("_")): number for state, number in states.items()}

    def is_so() -> bool:
        found = {(*key[:2], key[2] or "True"): n for key, n in stand(all_of(platform, "a")).items()}
        return {
            tuple(each.replace(".", "") for each in key): n for key, n in found.items()
        } == wanted

    eventually(is_so, every=0.5)
    counts = {"followers": MANY, **dict.fromkeys(("updated", "held", "failing"), 0), **counts}
    eventually(lambda: adopted(platform, "web", version) == counts, every=0.2)
    told = condition(platform.get(definition("web")), "Adopted")
    assert told["reason"] == reason
    assert told["status"] == ("True" if reason == "Adopted" else "False")
    maps = platform.request("GET", f"{MAPS}?labelSelector=app.oam.dev/name")["items"]
    assert len(maps) == MANY
    assert events_about(platform, version) == ["Adopted" if reason == "Adopted" else "NotAdopted"]


MANY, SOME = 200, 20


def test_bad_releases_leave_many_applications_as_they_are(tmp_path: Path) -> None:
    first = templated("1.0.0")
    with served(data=tmp_path) as platform:
        platform.publish(definition("web", first))
        for number in range(MANY):
            image = {"image": "bad" if number < SOME else "good"}
            platform.write(application(f"a{number}", "web@1", properties=image))
        becomes(platform, "1.0.0", {"updated": MANY}, "Adopted", running_100_True=MANY)
        platform.publish(definition("web", first, templated("1.1.0", BROKEN)))
        becomes(platform, "1.1.0", {"failing": MANY}, "Failing", running_100_False=MANY)
        platform.publish(definition("web", first))
        becomes(platform, "1.0.0", {"updated": MANY}, "Adopted", running_100_True=MANY)
        platform.publish(definition("web", first, templated("1.2.0", NOTHING)))
        becomes(platform, "1.2.0", {"held": MANY}, "Held", running_100_False=MANY)
    with served(data=tmp_path) as platform:
        becomes(platform, "1.2.0", {"held": MANY}, "Held", running_100_False=MANY)
        picky = templated("1.3.0", PICKY)
        platform.publish(definition("web", first, picky))
        states = {"running_130_True": MANY - SOME, "running_100_False": SOME}
        counts = {"updated": MANY - SOME, "failing": SOME}
        becomes(platform, "1.3.0", counts, "Failing", **states)
        fixed = templated("1.3.1")
        with pytest.raises(ApiError, match=r"1\.3\.0 is used by"):
            platform.write(definition("web", first, fixed))
        platform.publish(definition("web", first, picky, fixed))
        becomes(platform, "1.3.1", {"updated": MANY}, "Adopted", running_131_True=MANY)


def test_commands_tell_what_an_application_runs_and_what_it_could_not_take(
    platform: Platform,
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(platform.server.kubeconfig))
    first = templated("1.0.0")
    app = deployed(platform, name, first)
    platform.publish(definition(name, first, templated("1.1.0", BROKEN)))
    held(platform, app, "RenderFailed")
    why = Ran(capsys, "why", f"app/{name}", "-n", "default")
    assert "1.0.0     kept: the move to 1.1.0 failed" in why.out
    assert f"{name} 1.1.0 cannot be used" in why.err
    told = json.loads(Ran(capsys, "why", f"app/{name}", "-n", "default", "-o", "json").out)
    [resolution] = told["resolutions"]
    assert (resolution["version"], resolution["failedMove"]["version"]) == ("1.0.0", "1.1.0")
    history = Ran(capsys, "app", "history", name, "-n", "default")
    assert (f"{name} 1.0.0" in history.out, "1.1.0" in history.out) == (True, False)
    assert f"{name} 1.0.0" in Ran(capsys, "app", "lock", name, "-n", "default").out
    got = platform.until(app, lambda found: condition(found, "Updated").get("status") == "True")
    assert versions_of(got) == ["1.0.0"]
