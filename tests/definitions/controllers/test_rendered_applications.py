"""What applications render: applied, owned, pruned, put back, and never taken from others."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.definitions.samples import (
    CONFIG,
    Platform,
    application,
    condition,
    definition,
    path_of,
    served,
    templated,
)
from tests.editing import edited
from tests.walks.support import definition as widgets
from tests.walks.support import eventually

from polyver.kube.objects.status import ApiError

Object = dict[str, Any]
IMAGE = {"image": "nginx:1"}
MAPS = "/api/v1/namespaces/default/configmaps"
ELSEWHERE = """\
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .context.appName }}", namespace: kube-public}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{{ .context.appName }}"}
"""


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    with served() as running:
        yield running


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for what one test publishes."""
    return f"d{zlib.crc32(request.node.name.encode())}"


def found(platform: Platform, path: str) -> Object | None:
    try:
        got: Object = platform.request("GET", path)
    except ApiError as error:
        if error.code != 404:
            raise
        return None
    return got


def data(platform: Platform, name: str) -> Object | None:
    got = found(platform, f"{MAPS}/{name}")
    return got["data"] if got is not None else None


def running(platform: Platform, app: Object) -> Object:
    """Deploy an application that is to run."""
    got = platform.deploy(app)
    assert got["status"]["status"] == "running", got["status"]
    return got


def failed(platform: Platform, app: Object, kind: str) -> Object:
    """Deploy an application that is to fail; the condition that says why."""
    got = platform.deploy(app)
    assert got["status"]["status"] == "failed", got["status"]
    assert condition(got, "Ready")["status"] == condition(got, kind)["status"] == "False"
    return condition(got, kind)


def counts(platform: Platform) -> dict[str, int]:
    """How many were rendered and applied, as /metrics tells."""
    text = platform.text("/metrics")
    lines = [line for line in text.splitlines() if line.startswith("polyver_controller_done_total")]
    mine = [line for line in lines if 'controller="applications"' in line]
    return {line.split('what="')[1].split('"')[0]: int(float(line.split()[-1])) for line in mine}


# Applying.


def test_what_a_component_renders_is_applied_and_moves_with_a_new_version(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, templated("1.2.3")))
    app = application(name, f"{name}@1.2", properties=IMAGE)
    got = running(platform, app)
    assert data(platform, f"{name}-c0") == {"image": "nginx:1", "version": "1.2.3"}
    assert [condition(got, each)["status"] for each in ("Rendered", "Applied", "Ready")] == [
        "True"
    ] * 3
    [service] = got["status"]["services"]
    assert (service["name"], service["healthy"]) == ("c0", True)
    platform.publish(definition(name, templated("1.2.3"), templated("1.2.4")))
    platform.uses(app, "1.2.4")
    assert data(platform, f"{name}-c0") == {"image": "nginx:1", "version": "1.2.4"}


def test_what_is_applied_says_whose_it_is(platform: Platform, name: str) -> None:
    platform.publish(definition(name, templated("1.0.0")))
    app = running(platform, application(name, name, properties=IMAGE))
    metadata = platform.request("GET", f"{MAPS}/{name}-c0")["metadata"]
    [owner] = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Application", app["metadata"]["uid"])
    assert metadata["labels"]["app.oam.dev/name"] == name
    assert metadata["labels"]["app.oam.dev/component"] == "c0"
    [applied] = app["status"]["appliedResources"]
    assert (applied["kind"], applied["name"], applied["component"]) == (
        "ConfigMap",
        f"{name}-c0",
        "c0",
    )


def test_only_what_a_release_moves_is_rendered_anew(platform: Platform, name: str) -> None:
    platform.publish(definition(name, templated("1.0.0"), templated("2.0.0")))
    asked = [f"{name}@1", f"{name}@1.0.0", f"{name}@2", f"{name}@2", name]
    apps = [application(f"{name}-{n}", each, properties=IMAGE) for n, each in enumerate(asked)]
    for app in apps:
        running(platform, app)
    before = counts(platform)
    versions = [templated(version) for version in ("1.0.0", "2.0.0", "2.1.0")]
    platform.publish(definition(name, *versions))
    for app in apps[2:4]:
        platform.uses(app, "2.1.0")
    after = counts(platform)
    assert {what: after[what] - before[what] for what in after} == {"rendered": 2, "applied": 2}
    shown = [(data(platform, f"{name}-{n}-c0") or {})["version"] for n in range(len(apps))]
    assert shown == ["1.0.0", "1.0.0", "2.1.0", "2.1.0", "2.0.0"]


# Pruning.


def test_what_a_removed_component_rendered_is_deleted(platform: Platform, name: str) -> None:
    platform.publish(definition(name, templated("1.0.0")))
    app = application(name, name, name, properties=IMAGE)
    running(platform, app)
    app["spec"]["components"].pop(0)
    got = running(platform, app)
    assert data(platform, f"{name}-c0") is None
    assert data(platform, f"{name}-c1") is not None
    assert [each["name"] for each in got["status"]["appliedResources"]] == [f"{name}-c1"]


def test_what_a_removed_trait_rendered_is_deleted(platform: Platform, name: str) -> None:
    template = CONFIG.replace("context.name", "context.name }}-{{ .parameter.image")
    trait = definition(f"{name}-t", templated("1.0.0", template), kind="TraitDefinition")
    platform.publish(definition(name, templated("1.0.0")))
    platform.publish(trait)
    app = application(name, name, properties=IMAGE)
    app["spec"]["components"][0]["traits"] = [{"type": f"{name}-t", "properties": {"image": "x"}}]
    running(platform, app)
    assert data(platform, f"{name}-c0-x") == {"image": "x", "version": "1.0.0"}
    del app["spec"]["components"][0]["traits"]
    running(platform, app)
    assert data(platform, f"{name}-c0-x") is None


def test_what_a_new_version_renders_no_longer_is_deleted(platform: Platform, name: str) -> None:
    more = CONFIG + "---\n" + CONFIG.replace("context.name", "context.name }}-more{{ print ``")
    platform.publish(definition(name, templated("1.0.0", more)))
    app = application(name, f"{name}@1", properties=IMAGE)
    running(platform, app)
    assert data(platform, f"{name}-c0-more") is not None
    allowed = {"polyver.dev/allow-deletion": "true"}
    platform.publish(definition(name, templated("1.0.0", more), templated("1.1.0"), **allowed))
    platform.uses(app, "1.1.0")
    assert data(platform, f"{name}-c0-more") is None
    assert data(platform, f"{name}-c0") is not None


def test_fields_that_are_rendered_no_longer_go(platform: Platform, name: str) -> None:
    less = CONFIG.replace(', version: "{{ .context.version }}"', "")
    platform.publish(definition(name, templated("1.0.0"), templated("1.1.0", less)))
    app = application(name, f"{name}@1.0", properties=IMAGE)
    running(platform, app)
    app["spec"]["components"][0]["type"] = f"{name}@1.1"
    running(platform, app)
    assert data(platform, f"{name}-c0") == {"image": "nginx:1"}


def test_everything_goes_with_its_application_wherever_it_is(platform: Platform, name: str) -> None:
    platform.publish(definition(name, templated("1.0.0", CONFIG + ELSEWHERE)))
    app = application(name, name, properties=IMAGE)
    running(platform, app)
    paths = [
        f"{MAPS}/{name}-c0",
        f"/api/v1/namespaces/kube-public/configmaps/{name}",
        f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}",
    ]
    assert all(found(platform, path) for path in paths)
    platform.request("DELETE", path_of(app))
    eventually(lambda: not any(found(platform, path) for path in [path_of(app), *paths]))


# Failing.


def test_a_wrong_parameter_is_named_and_what_was_applied_stays(
    platform: Platform, name: str
) -> None:
    platform.publish(definition(name, templated("1.0.0")))
    running(platform, application(name, name, properties=IMAGE))
    wrong = application(name, name, properties={"image": 3, "color": "red"})
    message = failed(platform, wrong, "Rendered")["message"]
    assert "spec.components[0].properties.image" in message
    assert f"{name} 1.0.0 has no parameter color" in message
    assert data(platform, f"{name}-c0") == {"image": "nginx:1", "version": "1.0.0"}
    running(platform, application(name, name, properties={"image": "nginx:2"}))
    assert data(platform, f"{name}-c0") == {"image": "nginx:2", "version": "1.0.0"}


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        ("{{ range until 100000 }}{{ range until 100000 }}x{{ end }}{{ end }}", "more than"),
        ('a: "{{ repeat 100000000 .parameter.image }}"', "grows past"),
    ],
    ids=["loops", "grows"],
)
def test_a_template_that_takes_too_much_fails_and_others_go_on(
    platform: Platform, name: str, template: str, complaint: str
) -> None:
    platform.publish(definition(f"{name}-bad", templated("1.0.0", template)))
    platform.publish(definition(name, templated("1.0.0")))
    bad = application(f"{name}-bad", f"{name}-bad", properties=IMAGE)
    platform.write(bad)
    running(platform, application(name, name, properties=IMAGE))
    message = failed(platform, bad, "Rendered")["message"]
    assert complaint in message
    assert "spec.components[0]" in message


def test_what_the_server_refuses_is_told_with_the_object(platform: Platform, name: str) -> None:
    template = CONFIG.replace("data: {image", "data: {'not a key': x, image")
    platform.publish(definition(name, templated("1.0.0", template)))
    told = failed(platform, application(name, name, properties=IMAGE), "Applied")
    assert told["reason"] == "Invalid"
    assert f"ConfigMap default/{name}-c0 (spec.components[0])" in told["message"]
    assert "data[not a key]: Invalid value" in told["message"]


def test_a_kind_that_comes_later_is_found_at_once_and_missed_when_it_goes(
    platform: Platform, name: str
) -> None:
    crd = widgets(f"{name}.io")
    template = (
        f'apiVersion: {name}.io/v1\nkind: Widget\nmetadata: {{name: "{{{{ .context.name }}}}"}}\n'
        "spec: {size: 1}\n"
    )
    platform.publish(definition(name, templated("1.0.0", template)))
    app = application(name, name, properties={})
    app["spec"]["components"][0]["properties"] = IMAGE
    told = failed(platform, app, "Applied")
    assert told["reason"] == "NotServed"
    assert f"no {name}.io/v1 Widget is served" in told["message"]
    platform.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    platform.until(app, lambda got: got["status"]["status"] == "running")
    assert found(platform, f"/apis/{name}.io/v1/namespaces/default/widgets/c0")
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    platform.request("DELETE", f"{path}/widgets.{name}.io")
    platform.until(app, lambda got: condition(got, "Applied")["reason"] == "NotServed")


# Others.


def test_what_somebody_else_made_is_not_taken(platform: Platform, name: str) -> None:
    mine = {"metadata": {"name": f"{name}-c0"}, "data": {"mine": "yes"}}
    before = platform.request("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", **mine})
    platform.publish(definition(name, templated("1.0.0")))
    app = application(name, name, properties=IMAGE)
    told = failed(platform, app, "Applied")
    assert told["reason"] == "Taken"
    assert f"ConfigMap default/{name}-c0 (spec.components[0])" in told["message"]
    assert "belongs to another owner" in told["message"]
    platform.request("DELETE", path_of(app))
    eventually(lambda: found(platform, path_of(app)) is None)
    assert found(platform, f"{MAPS}/{name}-c0") == before


def test_what_another_application_made_is_not_taken(platform: Platform, name: str) -> None:
    template = CONFIG.replace("{{ .context.appName }}", name)
    platform.publish(definition(name, templated("1.0.0", template)))
    running(platform, application(f"{name}-one", name, properties=IMAGE))
    two = application(f"{name}-two", name, properties={"image": "other"})
    assert f"belongs to Application {name}-one" in failed(platform, two, "Applied")["message"]
    assert data(platform, f"{name}-c0") == {"image": "nginx:1", "version": "1.0.0"}
    platform.request("DELETE", path_of(two))
    eventually(lambda: found(platform, path_of(two)) is None)
    assert data(platform, f"{name}-c0") is not None


def test_what_is_deleted_or_changed_by_hand_is_put_back(platform: Platform, name: str) -> None:
    platform.publish(definition(name, templated("1.0.0")))
    app = application(name, name, properties=IMAGE)
    running(platform, app)
    wanted = data(platform, f"{name}-c0")
    platform.request("DELETE", f"{MAPS}/{name}-c0")
    eventually(lambda: data(platform, f"{name}-c0") == wanted)
    mine = {"image": "mine", "more": "stays"}
    path = f"{MAPS}/{name}-c0?fieldManager=editor"
    edited(platform.request, path, lambda found: found.update(data=mine))
    eventually(lambda: data(platform, f"{name}-c0") == {**(wanted or {}), "more": "stays"})
    got = platform.until(app, lambda got: "reverted" in condition(got, "Applied")["message"])
    assert 'conflict with "editor" using v1: .data.image' in condition(got, "Applied")["message"]
    assert got["status"]["status"] == "running"


# Health.


def test_an_application_is_ready_when_its_objects_are(platform: Platform, name: str) -> None:
    labels = "{a: b}"
    template = f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: "{{{{ .context.appName }}}}"}}
spec:
  selector: {{matchLabels: {labels}}}
  template: {{metadata: {{labels: {labels}}}, spec: {{containers: [{{name: a, image: b}}]}}}}
"""
    platform.publish(definition(name, templated("1.0.0", template)))
    app = application(name, name, properties=IMAGE)
    got = running(platform, app)
    assert condition(got, "Ready")["status"] == "False"
    [service] = got["status"]["services"]
    assert service["message"] == f"Deployment default/{name} 0 of 1 replicas are up to date"
    path = f"/apis/apps/v1/namespaces/default/deployments/{name}/status"
    numbers = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), 1)
    status = {"observedGeneration": 1, **numbers}
    edited(platform.request, path, lambda found: found.update(status=status))
    got = platform.until(app, lambda got: condition(got, "Ready")["status"] == "True")
    assert got["status"]["services"][0]["healthy"] is True


# publishVersion, restarts.


def test_what_is_held_is_rendered_as_it_was_published(platform: Platform, name: str) -> None:
    platform.publish(definition(name, templated("1.0.0")))
    app = application(name, f"{name}@1", properties=IMAGE, publishVersion="one")
    running(platform, app)
    edited = application(name, f"{name}@1", properties={"image": "new"}, publishVersion="one")
    platform.write(edited)
    platform.request("DELETE", f"{MAPS}/{name}-c0")
    eventually(lambda: data(platform, f"{name}-c0") == {"image": "nginx:1", "version": "1.0.0"})
    edited["metadata"]["annotations"]["app.oam.dev/publishVersion"] = "two"
    platform.write(edited)
    eventually(lambda: data(platform, f"{name}-c0") == {"image": "new", "version": "1.0.0"})


def test_after_a_restart_only_what_has_changed_is_rendered(tmp_path: Path) -> None:
    apps = [application(f"a{number}", "web", properties=IMAGE) for number in range(3)]
    with served(data=tmp_path) as first:
        first.publish(definition("web", templated("1.0.0")))
        for app in apps:
            running(first, app)
    with served(data=tmp_path, capabilities=["apis"]) as meanwhile:
        meanwhile.request("DELETE", f"{MAPS}/a1-c0")
    with served(data=tmp_path) as second:
        eventually(lambda: data(second, "a1-c0"))
        eventually(lambda: counts(second) == {"rendered": 1, "applied": 1})
        running(second, application("a2", "web", properties={"image": "nginx:2"}))
        assert counts(second) == {"rendered": 2, "applied": 2}


def test_templates_know_which_server_they_are_rendered_for(platform: Platform, name: str) -> None:
    asked = CONFIG.replace("{{ .parameter.image }}", "{{ .context.clusterVersion.minor }}")
    platform.publish(definition(name, templated("1.0.0", asked)))
    platform.runs(application(name, name, properties={"image": "any"}))
    told = platform.request("GET", "/version")
    assert data(platform, f"{name}-c0") == {"image": told["minor"], "version": "1.0.0"}
