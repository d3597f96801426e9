"""ActionSets over HTTP: how far one that failed has got, and edits of one that runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.editing import edited
from tests.walks.support import eventually

from polyver.functions.loading import load_functions
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
GROUP = "cr.kanister.io/v1alpha1"
INSIDE = f"/apis/{GROUP}/namespaces/default"
MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def creating(name: str, **more: Any) -> Object:
    return {"func": "KubeOps", "name": name, "args": {"operation": "create", **more}}


def waiting(name: str) -> Object:
    reference = {"apiVersion": "v1", "resource": "configmaps", "name": name}
    condition = {"condition": "true", "objectReference": reference}
    return {"func": "Wait", "name": name, "args": {"conditions": {"anyOf": [condition]}}}


ACTIONS: Object = {
    "half": {
        "phases": [
            creating("right", spec=config_map("made")),
            creating("wrong", spec={"apiVersion": "v1", "kind": "Nothing"}),
            creating("never", spec=config_map("never")),
        ],
        "deferPhase": creating("last", spec=config_map("last")),
    },
    "artifact": {
        "outputArtifacts": {"a": {"keyValue": {"b": "{{ fail .Phases.right.Output.name }}"}}},
        "phases": [creating("right", spec=config_map("artifact"))],
    },
    "wait": {"phases": [waiting("awaited")]},
    "option": {
        "phases": [
            creating("first", spec=config_map("before-the-option")),
            creating("second", spec=config_map("{{ .Options.name }}")),
        ]
    },
    "backup": {
        "outputArtifacts": {"dump": {"keyValue": {"path": "{{ .Phases.dump.Output.path }}"}}},
        "phases": [{"func": "Dump", "name": "dump", "args": {"path": "/a"}}],
    },
    "restore": {
        "inputArtifactNames": ["dump"],
        "phases": [
            {
                "func": "Dump",
                "name": "load",
                "args": {"path": "{{ .ArtifactsIn.dump.KeyValue.path }}"},
            }
        ],
    },
}


DUMPING = """
from polyver import functions

@functions.register("Dump", version="v1.4.0", stable=True, outputs=["path"])
@functions.register("Dump", version="v2.0.0", outputs=["path"])
def dump(ctx, path: str = ""):
    return {"path": path}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    code = tmp_path_factory.mktemp("functions") / "dumping.py"
    code.write_text(DUMPING)
    functions = load_functions([str(code)], [])
    with EmbeddedServer(capabilities=["functions"], functions=functions) as running:
        about = {"apiVersion": GROUP, "kind": "Blueprint", "metadata": {"name": "bp"}}
        running.request("POST", f"{INSIDE}/blueprints", about | {"actions": ACTIONS})
        yield running


def action_set(name: str, action: str, **more: Any) -> Object:
    about = {"apiVersion": GROUP, "kind": "ActionSet", "metadata": {"name": name}}
    return about | {"spec": {"actions": [{"name": action, "blueprint": "bp", **more}]}}


def started(server: EmbeddedServer, name: str, action: str, *states: str, **more: Any) -> Object:
    """An ActionSet that was created, as soon as it is in one of the states."""
    server.request("POST", f"{INSIDE}/actionsets", action_set(name, action, **more))

    def found() -> Object | None:
        obj: Object = server.request("GET", f"{INSIDE}/actionsets/{name}")
        return obj if (obj.get("status") or {}).get("state") in states else None

    return eventually(found)


def test_a_failed_action_set_tells_how_far_it_got_and_why(
    server: EmbeddedServer, capfd: pytest.CaptureFixture[str]
) -> None:
    status = started(server, "half", "half", "failed")["status"]
    assert status["progress"]["percentCompleted"] == "50"  # two of four
    phases = [*status["actions"][0]["phases"], status["actions"][0]["deferPhase"]]
    assert [each["state"] for each in phases] == ["complete", "failed", "pending", "complete"]
    # The version is explained for each, beside the failure.
    assert {each["resolvedReason"] for each in phases} == {"stable version"}
    assert "v1 Nothing is not served here" in phases[1]["reason"]
    events = server.request("GET", "/api/v1/namespaces/default/events")["items"]
    [told] = [each for each in events if each["involvedObject"]["name"] == "half"]
    assert (told["reason"], told["type"]) == ("ActionSetFailed", "Warning")
    assert told["message"].startswith("ActionSet default/half failed: blueprint bp, action half")
    lines = [line for line in capfd.readouterr().err.splitlines() if "ActionSet failed" in line]
    assert any("actionset=default/half" in line and "Nothing" in line for line in lines), lines


@pytest.mark.parametrize(
    ("name", "action", "percent"),
    [("unknown", "unknown", "0"), ("artifact", "artifact", "99")],
)
def test_what_failed_is_never_complete(
    server: EmbeddedServer, name: str, action: str, percent: str
) -> None:
    status = started(server, name, action, "failed")["status"]
    assert status["progress"]["percentCompleted"] == percent


def test_the_spec_of_a_running_action_set_cannot_be_changed(server: EmbeddedServer) -> None:
    started(server, "waits", "wait", "running")
    path = f"{INSIDE}/actionsets/waits"
    other = {"spec": action_set("waits", "half")["spec"]}
    with pytest.raises(ApiError) as refused:
        edited(server.request, path, lambda found: found.update(other))
    assert refused.value.code == 403
    assert "it is running: its spec is immutable" in refused.value.message
    edited(server.request, path, lambda found: found["metadata"].update(labels={"a": "b"}))
    server.request("POST", MAPS, config_map("awaited"))
    over = eventually(
        lambda: (
            found
            if (found := server.request("GET", path))["status"]["state"] == "complete"
            else None
        )
    )
    assert over["status"]["progress"]["percentCompleted"] == "100"
    # It is over: an edit is taken, and changes nothing.
    edited(server.request, path, lambda found: found.update(other))


# Templates are checked before anything runs.


def test_a_blueprint_with_a_template_that_cannot_be_rendered_is_refused(
    server: EmbeddedServer,
) -> None:
    phases = [creating("one", spec=config_map("{{ .Phases.tow.Output.name }}")), creating("two")]
    about = {"apiVersion": GROUP, "kind": "Blueprint", "metadata": {"name": "wrong"}}
    wrong = about | {"actions": {"go": {"phases": phases}}}
    with pytest.raises(ApiError) as refused:
        server.request("POST", f"{INSIDE}/blueprints", wrong)
    assert refused.value.code == 422
    assert "actions.go.phases[0].args.spec.metadata.name" in refused.value.message
    assert "there is no phase tow; did you mean two?" in refused.value.message


def test_an_option_that_is_not_given_fails_the_action_before_its_first_phase(
    server: EmbeddedServer,
) -> None:
    status = started(server, "option", "option", "failed", options={"nmae": "a"})["status"]
    assert status["error"]["message"] == (
        "blueprint bp, action option: .Options.name: option name is not given "
        "(actions.option.phases[1].args.spec.metadata.name); set it in options of the ActionSet"
    )
    names = [each["metadata"]["name"] for each in server.request("GET", MAPS)["items"]]
    assert "before-the-option" not in names
    given = started(server, "given", "option", "complete", options={"name": "by-option"})
    assert given["status"]["actions"][0]["phases"][1]["output"]["name"] == "by-option"


def test_artifacts_say_what_made_them_and_another_major_version_is_warned_about(
    server: EmbeddedServer,
) -> None:
    backup = started(server, "backup", "backup", "complete")["status"]["actions"][0]
    makers = [{"name": "Dump", "version": "v1.4.0"}]
    assert backup["artifacts"] == {"dump": {"keyValue": {"path": "/a"}, "functions": makers}}
    # A user who restores a backup passes its artifacts to the restore action.
    given = {"artifacts": backup["artifacts"]}
    same = started(server, "same", "restore", "complete", **given)["status"]
    assert "warnings" not in same
    other = started(server, "other", "restore", "complete", preferredVersion="v2.0.0", **given)[
        "status"
    ]
    assert other["warnings"] == [
        "spec.actions[0].artifacts.dump was made by Dump v1.4.0, and phase load of action restore "
        "calls v2.0.0, another major version, which may not be able to read it"
    ]
    events = server.request("GET", "/api/v1/namespaces/default/events")["items"]
    mine = [each for each in events if each["involvedObject"]["name"] == "other"]
    assert ("FunctionWarning", other["warnings"][0]) in [(e["reason"], e["message"]) for e in mine]
