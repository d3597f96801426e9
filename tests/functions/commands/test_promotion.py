"""`polyver functions promote`: what would break users that follow the stable version."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.app.test_cli import Ran

from polyver.kube.objects import load_manifests
from polyver.testing import EmbeddedServer

Run = Callable[..., Ran]
CODE = """
from polyver import functions

@functions.register("Say", outputs=["text"])
def say(ctx, text: str, loud: bool = False): return {"text": text}

@functions.register("Say", version="v0.1.0", outputs=["text"])
def say_010(ctx, text: str, tone: str): return {"text": text}

@functions.register("Say", version="v0.2.0", outputs=["text"])
def say_020(ctx, text: str, tone: str = ""): return {"text": text}

@functions.register("Say", version="v0.3.0", outputs=["words"])
def say_030(ctx, text: str, loud: bool = False): return {"words": text}
"""
CATALOGUE = """\
releases: [0.1.0]
functions:
  Say:
    versions:
      v0.0.0: {stage: stable}
      v0.1.0: {stage: candidate}
      v0.2.0: {stage: candidate}
      v0.3.0: {stage: candidate}
"""
BLUEPRINTS = """\
apiVersion: cr.kanister.io/v1alpha1
kind: Blueprint
metadata: {name: greet}
actions:
  go:
    phases:
    - {func: Say, name: plain, args: {text: hello}}
    - {func: Say, name: pinned, funcVersion: v0.0.0, args: {text: hello, loud: true}}
  loudly:
    phases:
    - {func: Say, name: shout, args: {text: hello, loud: true}}
  read:
    phases:
    - {func: Say, name: first, args: {text: hello}}
    - {func: Say, name: second, args: {text: "{{ .Phases.first.Output.text }}"}}
"""
WITH = ("--functions", "own.py")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    for name, text in (("own.py", CODE), ("catalogue.yaml", CATALOGUE), ("bp.yaml", BLUEPRINTS)):
        Path(name).write_text(text)
    return lambda *arguments: Ran(capsys, *arguments)


@pytest.mark.parametrize(
    ("version", "complaints"),
    [
        (
            "v0.1.0",
            [
                "action go, phase plain: Say v0.1.0: the argument tone is missing",
                "action loudly, phase shout: Say v0.1.0: the argument tone is missing",
                "action read, phase first: Say v0.1.0: the argument tone is missing",
                "bp.yaml:7, actions.go.phases[0].args",
            ],
        ),
        ("v0.2.0", ["action loudly, phase shout: Say v0.2.0: there is no argument loud"]),
        ("v0.3.0", ["action read, phase second: .Phases.first.Output.text: Say v0.3.0 does not"]),
    ],
)
def test_a_promotion_that_breaks_blueprints_is_refused(
    run: Run, version: str, complaints: list[str]
) -> None:
    ran = run("functions", "promote", f"Say@{version}", "-f", "bp.yaml", *WITH)
    assert ran.code == 1
    assert "Say cannot be promoted: it would break blueprints" in ran.err
    for each in complaints:
        assert each in ran.err
    assert "phase pinned" not in ran.err
    assert Path("catalogue.yaml").read_text() == CATALOGUE
    dry = run("functions", "promote", f"Say@{version}", "-f", "bp.yaml", *WITH, "--dry-run")
    assert dry.code == 1
    forced = run("functions", "promote", f"Say@{version}", "-f", "bp.yaml", *WITH, "--force")
    assert forced.code == 0
    for each in complaints:
        assert each in forced.err
    assert f"{version}: {{stage: stable}}" in Path("catalogue.yaml").read_text()


def test_who_gives_what_the_new_version_takes_is_not_in_the_way(run: Run) -> None:
    Path("bp.yaml").write_text(BLUEPRINTS.partition("  loudly:")[0])
    ran = run("functions", "promote", "Say@v0.2.0", "-f", "bp.yaml", *WITH)
    assert (ran.code, ran.err) == (0, "")


def test_what_changes_is_told_where_no_blueprint_is_named(run: Run) -> None:
    ran = run("functions", "promote", "Say@v0.1.0", *WITH)
    assert ran.code == 0
    assert (
        "Say v0.1.0 needs the argument tone, Say v0.1.0 does not take the argument loud" in ran.err
    )
    assert "blueprints were not checked" in ran.err
    without = run("functions", "promote", "Say@v0.2.0", "--dry-run")
    assert (without.code, "no code registers Say" in without.err) == (0, True)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    from polyver.functions.registering import Registry, known_functions

    registry = Registry()

    @registry.register("Say")
    def say(ctx: object, text: str, loud: bool = False) -> None: ...

    registry.register("Say", version="v0.1.0")(say)
    with EmbeddedServer(capabilities=["functions"], functions=known_functions(registry)) as running:
        [document] = load_manifests(BLUEPRINTS, "bp.yaml")
        group = "/apis/cr.kanister.io/v1alpha1/namespaces/default"
        running.request("POST", f"{group}/blueprints", document.value)
        yield running


def test_blueprints_of_a_server_count(
    run: Run, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    ran = run("functions", "promote", "Say@v0.1.0", "-f", "cluster:", *WITH)
    assert ran.code == 1
    assert "blueprint default/greet, action go, phase plain" in ran.err
    assert "default/blueprints/greet" in ran.err
