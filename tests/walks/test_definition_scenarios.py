"""The scenarios of the proposal with kubectl alone, beside `polyver up` and `polyver run`.

All of them are walked at once, each with names of its own, and told one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.definitions.samples import (
    GROUP,
    SYSTEM,
    Platform,
    application,
    definition,
    entry,
    served,
    versions_of,
)
from tests.walks.kubectl import Kubectl, installed, newest, on_path
from tests.walks.replicas import Balancer, replicas
from tests.walks.seeded import printed_definition, printed_objects
from tests.walks.support import Walk, eventually
from tests.walks.test_definitions import is_registered, prepare

from polyver.app import main
from polyver.kube.objects import digest
from polyver.testing import EmbeddedServer, LocalCluster

Object = dict[str, Any]
LOCK = "app.polyver.dev/lock"


@pytest.fixture(scope="module", params=["up", pytest.param("kubernetes", marks=pytest.mark.kube)])
def platform(request: pytest.FixtureRequest) -> Iterator[Platform]:
    if request.param == "up":
        with served() as running:
            yield running
        return
    balancer = Balancer()
    with LocalCluster() as server:
        prepare(server)
        with replicas(server, balancer, 1, "--capabilities", "apis,definitions"):
            eventually(lambda: is_registered(server))
            running = Platform(server)
            yield running
            running.close()
    balancer.close()


@pytest.fixture(scope="module")
def kubectl(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    program = newest() or on_path()
    if program is None:
        pytest.skip("there is no kubectl on this machine, so NO scenario was walked: `make kube`")
    home = tmp_path_factory.mktemp("home")
    return installed(program, Walk(platform.server, "default", GROUP), home)


@dataclass(frozen=True)
class Scenes:
    """Applications as they were first, and after new versions had been released."""

    first: dict[str, Object]
    later: dict[str, Object]
    revisions: set[str]

    def versions(self, name: str) -> list[str]:
        return versions_of(self.first[name])

    def failure(self, name: str) -> str:
        status = self.first[name]["status"]
        assert status["status"] == "failed"
        assert not status.get("resolutions")
        [said] = [each for each in status["conditions"] if each["type"] == "Resolved"]
        message: str = said["message"]
        return message


DISABLED, ENABLED = {"autoUpdate": "false"}, {"autoUpdate": "true"}
COMPONENT_VERSIONS = {
    "story": ("1.0.0", "1.1.0"),
    "a1": ("1.2.2", "1.2.3"),
    "b1": ("4.4.2", "4.5.6"),
    "a2": ("1.2.3",),
    "a3": ("1.2.3",),
    "a4": ("1.2.1", "1.2.2", "2.2.1"),
}
APPLICATIONS = [
    application("one", "a1@1.2.2", "b1@4.4.2"),
    application("one-variant", "a1@1.2", "b1@4"),
    application("two", "a2@1.2.3", **DISABLED),
    application("two-missing", "a2@1.2.2", **DISABLED),
    application("two-series", "a2@1.2", **DISABLED),
    application("three", "a3@1.2", **ENABLED),
    application("three-missing", "a3@1.2.2", **ENABLED),
    application("three-series", "a3@1.2", **ENABLED),
    application("four", "a4@1.2.2"),
]


def whole(*objects: Object) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": [*objects]}


def content(version: str) -> Object:
    return entry(version, parameters={"image": {"type": "string", "default": version}})


@pytest.fixture(scope="module")
def scenes(platform: Platform, kubectl: Kubectl) -> Scenes:
    """All scenarios at once: what is given, and what is released later."""
    if isinstance(platform.server, EmbeddedServer):
        # There it is served from the start, and is replaced by what is printed.
        kubectl("replace", "-f", "-", given=printed_definition())
    given = [definition(n, *map(content, v)) for n, v in COMPONENT_VERSIONS.items()]
    kubectl("apply", "-f", "-", given=whole(*given, *APPLICATIONS, *printed_objects()))
    names = [each["metadata"]["name"] for each in (*APPLICATIONS, printed_objects()[1])]
    told = {name: _resolved(kubectl, name) for name in names}
    new = [definition(each, content("1.2.3"), content("1.2.5")) for each in ("a2", "a3")]
    kubectl("apply", "-f", "-", given=whole(*new))
    moved = "jsonpath={.status.resolutions[0].version}=1.2.5"
    kubectl("wait", "application/three", "application/three-series", f"--for={moved}")
    later = {each["metadata"]["name"]: each for each in kubectl.get("applications")["items"]}
    revisions = kubectl.get("definitionrevisions", "-n", SYSTEM)["items"]
    return Scenes(told, later, {each["metadata"]["name"] for each in revisions})


def _resolved(kubectl: Kubectl, name: str) -> Object:
    """An application that has been dealt with, or fails; it may have come before its component."""

    def look() -> Object | None:
        found: Object = kubectl.get("application", name)
        status = found.get("status") or {}
        message = str(status.get("conditions"))
        return found if status and "there is no ComponentDefinition" not in message else None

    return eventually(look)


def test_story_a_version_is_listed_as_one_of_many(scenes: Scenes) -> None:
    assert {"story-v1.0.0", "story-v1.1.0"} <= scenes.revisions


def test_scenario_1_the_version_that_the_application_specifies(scenes: Scenes) -> None:
    assert scenes.versions("one") == ["1.2.2", "4.4.2"]


def test_scenario_1_variant_the_newest_for_what_is_not_specified(scenes: Scenes) -> None:
    assert scenes.versions("one-variant") == ["1.2.3", "4.5.6"]


def test_scenario_2_disabled_it_continues_to_use_what_it_has(scenes: Scenes) -> None:
    assert scenes.versions("two") == ["1.2.3"]
    assert "a2-v1.2.5" in scenes.revisions
    assert versions_of(scenes.later["two"]) == ["1.2.3"]


def test_scenario_2_variant_disabled_and_unavailable_fails(scenes: Scenes) -> None:
    assert "a2 has no 1.2.2 (spec.components[0].type)" in scenes.failure("two-missing")


def test_scenario_2_variant_disabled_and_a_series_fails(scenes: Scenes) -> None:
    assert "only exact versions are deterministic" in scenes.failure("two-series")


def test_scenario_3_enabled_it_updates(scenes: Scenes) -> None:
    assert scenes.versions("three") == ["1.2.3"]
    assert versions_of(scenes.later["three"]) == ["1.2.5"]


def test_scenario_3_variant_enabled_and_unavailable_fails(scenes: Scenes) -> None:
    assert "a3 has no 1.2.2" in scenes.failure("three-missing")


def test_scenario_3_variant_enabled_and_a_series_is_used(scenes: Scenes) -> None:
    assert scenes.versions("three-series") == ["1.2.3"]


def test_scenario_4_every_cluster_has_the_same_content(scenes: Scenes) -> None:
    [found] = scenes.first["four"]["status"]["resolutions"]
    wanted = {key: value for key, value in content("1.2.2").items() if key != "version"}
    assert (found["version"], found["digest"]) == ("1.2.2", digest(wanted))


def test_the_manifests_that_the_proposal_prints_run(scenes: Scenes) -> None:
    assert {"my-component-v2.0.0", "my-component-v3.4.0"} <= scenes.revisions
    assert scenes.versions("app-with-comp-versioning") == ["3.4.0"]


# Plans, ways back and locks, beside kubectl.


def test_a_plan_tells_what_kubectl_would_be_told(
    kubectl: Kubectl,
    scenes: Scenes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{kubectl.home}/config")
    file = kubectl.home / "plan.yaml"
    for versions, code, told in (
        (("4.4.2", "4.5.6", "4.6.0"), 0, "4.5.6   4.6.0   newest in series 4"),
        (("4.4.2", "4.6.0"), 1, "b1 4.5.6 is used by Application default/one-variant"),
        (("4.4.2", "4.5.6", "v5"), 1, 'a leading "v"'),
    ):
        new = definition("b1", *map(content, versions))
        file.write_text(json.dumps(new))
        assert main(["plan", "-f", str(file)]) == code
        assert told in capsys.readouterr().out
        kubectl("apply", "--dry-run=server", "-f", str(file), code=code)
    file.write_text(json.dumps(definition("b1", content("4.4.2")) | {"spec": {"versions": []}}))
    assert main(["plan", "-f", str(file)]) == 1
    assert scenes.versions("one-variant") == ["1.2.3", "4.5.6"]


def test_who_applies_goes_on_after_a_way_back(
    kubectl: Kubectl, scenes: Scenes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{kubectl.home}/config")
    first, second = application("ours", "story@1.0.0"), application("ours", "story@1.1.0")
    first["spec"]["workflow"] = {"mode": {"steps": "DAG"}}
    for name, options in (("client", ()), ("server", ("--server-side",))):
        for each in (first, second):
            each["metadata"] = {"name": name}
            kubectl("apply", *options, "-f", "-", given=each)
            wanted = each["spec"]["components"][0]["type"].partition("@")[2]
            _uses(kubectl, name, wanted)
        assert "workflow" not in kubectl.get("application", name)["spec"]
        assert main(["app", "rollback", name]) == 0
        _uses(kubectl, name, "1.0.0")
        found = kubectl.get("application", name)
        assert found["spec"] == first["spec"]
        kubectl("annotate", "application", name, f"{LOCK}-")
        kubectl("apply", *options, "-f", "-", given=second)
        found = _uses(kubectl, name, "1.1.0")
        assert found["spec"] == second["spec"], "nothing of the way back is left"


def _uses(kubectl: Kubectl, name: str, version: str) -> Object:
    at = "jsonpath={.status.resolutions[0].version}"
    kubectl("wait", f"application/{name}", f"--for={at}={version}")
    found: Object = kubectl.get("application", name)
    return found


def test_a_lock_and_a_removal_by_force_with_kubectl(
    kubectl: Kubectl, scenes: Scenes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{kubectl.home}/config")
    assert main(["app", "lock", "three-series"]) == 0
    wrong = json.dumps([{"kind": "Component"}])
    refused = kubectl("annotate", "application", "one", f"{LOCK}={wrong}", code=1)
    assert "is missing" in refused.err
    force = "definition.polyver.dev/remove-by-force=1.2.3"
    less = definition("a3", content("1.2.5"))
    del less["metadata"]["annotations"]
    kubectl("apply", "-f", "-", given=application("uses", "a3@1.2.3"))
    _uses(kubectl, "uses", "1.2.3")
    assert "is used by" in kubectl("apply", "-f", "-", given=less, code=1).err
    kubectl("annotate", "-n", SYSTEM, "componentdefinition", "a3", force)
    warned = kubectl("apply", "-f", "-", given=less)
    assert "a3 1.2.3 is removed by force" in warned.err
    kubectl("wait", "application/uses", "--for=condition=Resolved=false")
    status = kubectl.get("application", "uses")["status"]
    assert "a3 1.2.3 was removed" in str(status["conditions"])
    assert status["resolutions"][0]["version"] == "1.2.3"
    assert "a3-v1.2.3" not in kubectl("get", "definitionrevisions", "-n", SYSTEM).out
