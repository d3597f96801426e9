"""Actions with kubectl alone: which versions run before and after a promotion, and until when."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.functions.samples import HEAD, SEED
from tests.walks.installed import free_port
from tests.walks.kubectl import Done, newest, on_path
from tests.walks.support import PATIENCE, eventually

from polyver.kube.objects import dump_yaml
from polyver.testing import LocalCluster

POLYVER = str(Path(sys.executable).parent / "polyver")
KUBECTL = newest() or on_path()
CODE = """
    from polyver import functions

    def report(ctx, text, version):
        with open({said!r}, "a") as file:
            file.write(f"{{ctx.phase}} {{version}}\\n")
        return {{"text": f"{{text}} by {{version}}"}}

    @functions.register("Report")
    def first(ctx, text: str):
        return report(ctx, text, "v0.0.0")

    @functions.register("Report", version="v0.1.0")
    async def second(ctx, text: str):
        return report(ctx, text, "v0.1.0")
"""
CATALOGUE = """\
releases: [0.1.0]
functions:
  Report:
    versions:
      v0.0.0: {stage: stable}
      v0.1.0: {stage: candidate}
"""
BLUEPRINT = """\
apiVersion: cr.kanister.io/v1alpha1
kind: Blueprint
metadata: {name: weekly}
actions:
  tell:
    outputArtifacts:
      report: {keyValue: {text: "{{ .Phases.any.Output.text }}"}}
    phases:
    - {func: Report, funcVersion: v0.0.0, name: old, args: {text: "{{ .Options.who }}"}}
    - {func: Report, funcVersion: v0.1.0, name: new, args: {text: "{{ .Phases.old.Output.text }}"}}
    - {func: Report, name: any, args: {text: "{{ .Namespace.Name }}"}}
    deferPhase: {func: Report, funcVersion: v0.1.0, name: last, args: {text: bye}}
"""
COMMAND = """\
actions:
  echo: {phases: [{func: Command, name: say, args: {command: [echo, "hello {{ .Options.who }}"]}}]}
"""


def action_set(name: str, action: str = "tell", blueprint: str = "weekly") -> dict[str, Any]:
    spec = {"name": action, "blueprint": blueprint, "options": {"who": "ann"}}
    spec["object"] = {"kind": "Namespace", "name": "default"}
    return {
        "apiVersion": "cr.kanister.io/v1alpha1",
        "kind": "ActionSet",
        "metadata": {"name": name},
        "spec": {"actions": [spec]},
    }


class Place:
    """Somewhere with an API server, and polyver beside it, which can be started again."""

    kubeconfig: Path

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Have polyver run with the functions and the catalogue as they are now."""
        told = ["--functions", "code.py", "--catalogue", "catalogue.yaml", "--allow-command"]
        self.process = subprocess.Popen(
            [POLYVER, *self._command(), "--kubeconfig", str(self.kubeconfig), *told],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        ready = self.process.stdout.readline() and self.process.stdout.readline()
        assert ready, self.stop()

    def _command(self) -> list[str]:
        raise NotImplementedError

    def stop(self) -> str:
        """What it has said."""
        if self.process is None:
            return ""
        process, self.process = self.process, None
        process.terminate()
        return process.communicate(timeout=PATIENCE)[1]


class Up(Place):
    """`polyver up`: both in one process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.kubeconfig = folder / "kubeconfig"

    def _command(self) -> list[str]:
        return ["up", "--port", "0", "--data", str(self.folder / "data")]


class Cluster(Place):
    """`polyver run` beside a real API server, on which polyver was installed."""

    def __init__(self, folder: Path, cluster: LocalCluster) -> None:
        super().__init__(folder)
        self.kubeconfig = cluster.kubeconfig
        self.port = free_port()
        wanted = ["--image", "a:1", "--capabilities", "apis,functions"]
        made = polyver(self, "install", "--dry-run", *wanted)
        kubectl(self, "apply", "-f", "-", given=made)
        for name in ("blueprints", "actionsets"):
            crd = f"crd/{name}.cr.kanister.io"
            kubectl(self, "wait", "--for=condition=Established", crd)

    def _command(self) -> list[str]:
        at = ["--host", "127.0.0.1", "--port", str(self.port)]
        told = ["--namespace", "polyver-system", "--linger", "0"]
        return ["run", *told, *at, "--webhook-url", f"https://127.0.0.1:{self.port}"]

    def start(self) -> None:
        super().start()
        # Until the server was told whom to ask, nobody has a say.
        eventually(lambda: "blueprints" in kubectl(self, "get", HOOKS, "-o", "yaml").out)


HOOKS = "validatingwebhookconfigurations"


@contextmanager
def place_at(where: str, folder: Path) -> Iterator[Place]:
    (folder / "code.py").write_text(textwrap.dedent(CODE.format(said=str(folder / "said"))))
    (folder / "catalogue.yaml").write_text(CATALOGUE)
    (folder / "said").touch()
    with ExitStack() as undo:
        place: Place = (
            Up(folder) if where == "up" else Cluster(folder, undo.enter_context(LocalCluster()))
        )
        undo.callback(place.stop)
        yield place


@pytest.fixture(params=["up", pytest.param("kubernetes", marks=pytest.mark.kube)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if KUBECTL is None:
        pytest.skip("there is no kubectl on this machine, so NO action was walked: `make kube`")
    with place_at(request.param, tmp_path) as found:
        yield found


def kubectl(place: Place, *arguments: str, given: str = "", code: int = 0) -> Done:
    assert KUBECTL is not None
    where = ["--kubeconfig", str(place.kubeconfig)]
    command = [str(KUBECTL), *where, *arguments]
    ran = subprocess.run(
        command, input=given, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert ran.returncode == code, f"kubectl {' '.join(arguments)}: {ran}"
    return Done(ran.returncode, ran.stdout, ran.stderr)


def polyver(place: Place, *arguments: str) -> str:
    ran = subprocess.run(
        [POLYVER, *arguments], cwd=place.folder, check=True, capture_output=True, text=True
    )
    return ran.stdout


def ended(place: Place, obj: dict[str, Any], state: str) -> Any:
    """The status of an ActionSet that was applied, when it is over."""
    kubectl(place, "apply", "-f", "-", given=dump_yaml(obj))
    name = f"actionset/{obj['metadata']['name']}"

    def over() -> Any:
        found = kubectl(place, "get", name, "-o", "json").json().get("status") or {}
        return found if found.get("state") in ("complete", "failed") else None

    status = eventually(over)
    assert status["state"] == state, status
    return status


def versions(status: Any) -> list[tuple[str, str]]:
    [action] = status["actions"]
    calls = [*action["phases"], action["deferPhase"]]
    return [(each["resolvedVersion"], each["state"]) for each in calls]


def said(place: Place) -> list[str]:
    """What has run since this was asked last."""
    file = place.folder / "said"
    lines = file.read_text().splitlines()
    file.write_text("")
    return lines


def test_versions_of_phases_before_and_after_a_promotion_and_after_the_end(place: Place) -> None:
    place.start()
    kubectl(place, "apply", "-f", "-", given=BLUEPRINT)
    first = ended(place, action_set("first"), "complete")
    old, new = ("v0.0.0", "complete"), ("v0.1.0", "complete")
    assert versions(first) == [old, new, old, new]
    assert said(place) == ["old v0.0.0", "new v0.1.0", "any v0.0.0", "last v0.1.0"]
    [action] = first["actions"]
    assert action["phases"][1]["output"] == {"text": "ann by v0.0.0 by v0.1.0"}
    makers = [{"name": "Report", "version": version} for version in ("v0.0.0", "v0.1.0")]
    made = {"keyValue": {"text": "default by v0.0.0"}, "functions": makers}
    assert action["artifacts"] == {"report": made}
    assert "warnings" not in first
    assert first["progress"]["percentCompleted"] == "100"
    place.stop()

    polyver(place, "functions", "promote", "Report@v0.1.0")
    place.start()
    second = ended(place, action_set("second"), "complete")
    assert versions(second) == [old, new, new, new]
    warning = (
        "blueprint default/weekly, action tell, phase old: Report v0.0.0 is deprecated since 0.1.0 "
        "and will be removed in 0.3.0; use v0.1.0"
    )
    assert second["warnings"] == [warning]
    events = kubectl(place, "get", "events", "-o", "json").json()["items"]
    mine = [each for each in events if each["involvedObject"]["name"] == "second"]
    assert (warning, "Warning") in [(each["message"], each["type"]) for each in mine]
    assert ("ActionSetComplete", "Normal") in [(each["reason"], each["type"]) for each in mine]
    assert warning in place.stop()

    said(place)
    for release in ("0.2.0", "0.3.0"):
        polyver(place, "catalogue", "release", release)
    place.start()
    third = ended(place, action_set("third"), "failed")
    gone = "phase old: Report v0.0.0 was removed in 0.3.0 (actions.tell.phases[0].funcVersion)"
    assert gone in third["error"]["message"]
    assert "use v0.1.0" in third["error"]["message"]
    assert said(place) == []


def test_a_version_that_never_was_is_refused_with_those_that_are(place: Place) -> None:
    place.start()
    wrong = BLUEPRINT.replace("funcVersion: v0.0.0", "funcVersion: v0.7.0")
    told = "phase old: Report has no 0.7.0"
    refused = kubectl(place, "apply", "-f", "-", given=wrong, code=1)
    assert told in refused.err
    assert "known: v0.0.0, v0.1.0" in refused.err
    # What the seed prints is taken, and gets the version that it says.
    kubectl(place, "apply", "-f", "-", given=f"{HEAD.replace(', namespace: kanister', '')}{SEED}")
    run = action_set("tail", "tail", "times")
    status = ended(place, run, "failed")
    [phase] = status["actions"][0]["phases"]
    assert (phase["resolvedVersion"], phase["state"]) == ("v0.1.0", "failed")
    assert phase["reason"] == "there is no pod default/timer"
    # Programs run where whoever has started the controller allows it.
    here = BLUEPRINT.partition("actions:")[0] + COMMAND
    kubectl(place, "apply", "-f", "-", given=here)
    status = ended(place, action_set("echo", "echo"), "complete")
    [phase] = status["actions"][0]["phases"]
    assert phase["output"] == {"stdout": "hello ann\n", "stderr": ""}
