"""`polyver blueprint validate`: templates that read what will not be there, and what is unknown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.app.test_cli import Ran

from polyver.kube.objects import dump_yaml

Run = Callable[..., Ran]
Object = dict[str, Any]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: Ran(capsys, *arguments)


def made(name: str, text: str = "a", **more: Any) -> Object:
    spec = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": text}}
    return {"func": "KubeOps", "name": name, "args": {"operation": "create", "spec": spec}, **more}


def told(run: Run, *phases: Object, **action: Any) -> Ran:
    blueprint = {
        "apiVersion": "cr.kanister.io/v1alpha1",
        "kind": "Blueprint",
        "metadata": {"name": "bp"},
        "actions": {"go": {"phases": [*phases], **action}},
    }
    Path("bp.yaml").write_text(dump_yaml(blueprint))
    return run("blueprint", "validate", "-f", "bp.yaml")


SECRET = {"db": {"kind": "Secret", "name": "db"}}


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        ("{{ .Nonsense }}", ".Nonsense: Nonsense is not available to templates"),
        ("{{ .Optoins.a }}", "did you mean Options?"),
        ("{{ if true }}{{ $.Nonsense }}{{ end }}", "Nonsense is not available to templates"),
        ("{{ .Phases.frist.Output.name }}", "there is no phase frist (bp.yaml:"),
        ("{{ .Phases.frist.Output.name }}", "; did you mean first?"),
        ("{{ .Phases.last.Output.name }}", ".Phases.last.Output: phase last runs later"),
        ("{{ .Phases.second.Output.name }}", "it is the output of this phase"),
        ("{{ .Phases.first.Output.nmae }}", "KubeOps v0.0.0 does not return nmae"),
        ("{{ with .Phases.first.Output }}{{ .nmae }}{{ end }}", "did you mean name?"),
        ("{{ $o := .Phases.first.Output }}{{ $o.nmae }}", "does not return nmae"),
        ("{{ .Phases.first.Secrets.dd.Data.a }}", "phase first names no Secret dd in its objects"),
        ("{{ .ArtifactsIn.dmup.KeyValue.a }}", "artifact dmup is not declared"),
        ("{{ .ArtifactsIn.dmup.KeyValue.a }}", "name it in inputArtifactNames; did you mean dump?"),
        ("{{ .ArtifactsOut.none.KeyValue.a }}", "artifact none is not declared"),
        ("{{ .ArtifactsOut.result.KeyValue.a }}", "does not exist before the end"),
        ("{{ .Secrets.other.Data.a }}", "secret other is not declared"),
        ("{{ .ConfigMaps.other.Data.a }}", "config map other is not declared"),
        ("{{ .Secrets.login.Dta.a }}", ".Secrets.login has no Dta"),
        ("{{ .Deployment.Nmae }}", ".Deployment has no Nmae"),
        ("{{ .DeferPhase.Output.name }}", "DeferPhase is not available to templates"),
        ("{{ .Profile.Location.Bucket }}", "there is no Profile"),
    ],
)
def test_a_template_that_can_never_be_rendered_is_a_mistake(
    run: Run, template: str, complaint: str
) -> None:
    ran = told(
        run,
        made("first", objects=SECRET),
        made("second", template),
        made("last"),
        inputArtifactNames=["dump"],
        secretNames=["login"],
        configMapNames=["settings"],
        outputArtifacts={"result": {"keyValue": {"a": "{{ .Phases.first.Output.name }}"}}},
    )
    assert ran.code == 1
    assert complaint in ran.err
    assert "blueprint bp, action go, phase second" in ran.err
    assert "actions.go.phases[1].args.spec.metadata.name" in ran.err
    assert "1 error in 1 blueprint" in ran.err


@pytest.mark.parametrize(
    ("action", "complaint"),
    [
        ({"outputArtifacts": {"a": {"keyValue": {"b": "{{ .Phases.no.Output }}"}}}}, "no phase no"),
        ({"outputArtifacts": {"a": {"keyValue": {"b": "{{ nonsense }}"}}}}, "not defined"),
        ({"deferPhase": made("end", "{{ .Nonsense }}")}, "phase end: .Nonsense"),
    ],
)
def test_templates_are_checked_wherever_they_stand(
    run: Run, action: Object, complaint: str
) -> None:
    ran = told(run, made("one"), **action)
    assert (ran.code, complaint in ran.err) == (1, True)


def test_objects_of_a_phase_read_what_is_there_before_the_first_phase(run: Run) -> None:
    late = {"db": {"kind": "Secret", "name": "{{ .Phases.one.Output.name }}"}}
    ran = told(run, made("one"), made("two", objects=late))
    assert (ran.code, "Phases is not available to templates" in ran.err) == (1, True)


def test_what_is_right_and_known_leaves_nothing_to_say(run: Run) -> None:
    ran = told(
        run,
        made("one", "{{ .Time | lower }}"),
        made("two", '{{ .Phases.one.Output.name }}-{{ index .Phases "one" | len }}'),
        deferPhase=made("end", "{{ .Phases.two.Output.name }}"),
        outputArtifacts={"a": {"keyValue": {"b": "{{ .DeferPhase.Output.kind }}"}}},
    )
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "1 blueprint checked, no errors\n"


def test_what_cannot_be_known_is_listed_as_unknown(run: Run) -> None:
    phases = (
        {"func": "Command", "name": "say", "args": {"command": ["echo", "{{ .Options.who }}"]}},
        made("one", "{{ .Deployment.Name }}-{{ .Phases.say.Output.size }}"),
    )
    ran = told(run, *phases)
    assert (ran.code, ran.err) == (0, "")
    first, _, *rest = ran.out.splitlines()
    assert first == "1 blueprint checked, no errors"
    assert rest[0] == "known only at run time:"
    assert [line.split()[0] for line in rest[1:]] == [
        ".Options.who",
        ".Deployment.Name",
        ".Phases.say.Output.size",
    ]
    assert rest[1].endswith(", actions.go.phases[0].args.command[1])")
    found = json.loads(run("blueprint", "validate", "-f", "bp.yaml", "-o", "json").out)
    assert [each["severity"] for each in found["findings"]] == ["unknown"] * 3


def test_conditions_of_waits_are_checked_as_far_as_they_see_the_same(run: Run) -> None:
    reference = {"resource": "namespaces", "apiVersion": "v1", "name": "{{ .Nonsense }}"}
    condition = {"condition": "{{ .status.phase }}", "objectReference": reference}
    for function, errors in (("WaitV2", [".Nonsense"]), ("Wait", [".status", ".Nonsense"])):
        args = {"conditions": {"anyOf": [condition]}}
        ran = told(run, {"func": function, "name": "w", "args": args})
        assert ran.code == 1
        assert [line.split("phase w: ")[1].split(":")[0] for line in ran.err.splitlines()[:-1]] == (
            errors
        )


def test_functions_declare_what_they_return(run: Run) -> None:
    Path("own.py").write_text(
        "from polyver import functions\n"
        "@functions.register('Closed', outputs=['size'])\n"
        "def closed(ctx): return {'size': 1}\n"
        "@functions.register('Silent')\n"
        "def silent(ctx): return {}\n"
    )
    texts = ["{{ .Phases.closed.Output.szie }}", "{{ .Phases.silent.Output.any }}"]
    phases = [{"func": name.title(), "name": name} for name in ("closed", "silent")]
    told(run, *phases, *(made(f"m{n}", text) for n, text in enumerate(texts)))
    ran = run("blueprint", "validate", "-f", "bp.yaml", "--functions", "own.py", "-o", "json")
    found = json.loads(ran.out)["findings"]
    assert [(each["severity"], each.get("hint")) for each in found] == [
        ("error", "did you mean size?"),
        ("unknown", None),
    ]
    listed = json.loads(run("functions", "list", "--functions", "own.py", "-o", "json").out)
    versions = {each["name"]: each["versions"][0] for each in listed["functions"]}
    assert (versions["Closed"]["outputs"], versions["Closed"]["furtherOutputs"]) == (
        ["size"],
        False,
    )
    assert "outputs" not in versions["Silent"]
    assert versions["Command"]["furtherOutputs"] is True


@pytest.mark.parametrize("outputs", ["'size'", "[1]", "['']"])
def test_outputs_have_to_be_names(run: Run, outputs: str) -> None:
    Path("own.py").write_text(
        "from polyver import functions\n"
        f"@functions.register('Odd', outputs={outputs})\ndef odd(ctx): ...\n"
    )
    ran = run("functions", "list", "--functions", "own.py")
    assert (ran.code, "outputs must be a list of names (own.py:2)" in ran.err) == (3, True)
