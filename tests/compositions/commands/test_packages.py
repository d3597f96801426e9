"""`polyver packages`, `why package/…` and `impact package/…`, beside a control plane that runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.app.test_cli import Ran
from tests.compositions.controllers.installing import MemoryRuntime, condition
from tests.compositions.samples import digest_of, function, package
from tests.editing import edited
from tests.walks.support import PATIENCE, eventually

from polyver.compositions.names import FORCED, revision_name
from polyver.testing import EmbeddedServer

GROUP = "/apis/pkg.crossplane.io/v1"
COMPOSITIONS = "/apis/apiextensions.crossplane.io/v1/compositionrevisions"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def name_of(version: str) -> str:
    return revision_name("resize", digest_of(package(version)))


def definition(group: str, plural: str, kind: str, *categories: str) -> dict[str, Any]:
    """A kind whose objects are what somebody writes."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "categories": [*categories]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Cluster", "names": names, "versions": [version]},
    }


def composition_revision(name: str, number: int, **step: Any) -> dict[str, Any]:
    composition = name.rpartition("-")[0]
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "CompositionRevision",
        "metadata": {"name": name, "labels": {"crossplane.io/composition-name": composition}},
        "spec": {
            "revision": number,
            "compositeTypeRef": {"apiVersion": "shop.example/v1", "kind": "Cart"},
            "pipeline": [{"step": "run", "functionRef": {"name": "resize"}, **step}],
        },
    }


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    """Two revisions, of which users decide, and compositions that call them."""
    with EmbeddedServer(capabilities=["apis", "compositions"], runtime=MemoryRuntime()) as running:
        running.request("POST", CRDS, definition("shop.example", "carts", "Cart", "composite"))
        spec: dict[str, Any] = {"revisionActivationPolicy": "Manual", "revisionHistoryLimit": 0}
        write(running, function(version="v1", labels={"channel": "stable"}, **spec))
        write(running, function(version="v2", labels={"channel": "alpha"}, **spec))
        yield running


def write(server: EmbeddedServer, obj: dict[str, Any]) -> dict[str, Any]:
    """Have a Function say something, and wait until it is current."""
    name, path = obj["metadata"]["name"], f"{GROUP}/functions"
    there = {each["metadata"]["name"]: each for each in server.request("GET", path)["items"]}
    if name not in there:
        server.request("POST", path, obj)
    else:

        def change(found: dict[str, Any]) -> None:
            found["metadata"]["labels"] = obj["metadata"]["labels"]
            found["spec"] = obj["spec"]

        edited(server.request, f"{path}/{name}", change)

    def current() -> dict[str, Any] | None:
        found: dict[str, Any] = server.request("GET", f"{path}/{name}")
        is_so = (found.get("status") or {}).get("currentIdentifier") == obj["spec"]["package"]
        return found if is_so else None

    return eventually(current)


@pytest.fixture(autouse=True)
def _kubeconfig(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))


def state_of(server: EmbeddedServer, version: str) -> dict[str, Any]:
    found: dict[str, Any] = server.request("GET", f"{GROUP}/functionrevisions/{name_of(version)}")
    return found


def test_functions_and_revisions_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    done = Ran(capsys, "packages", "list")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()] == ["NAME", "resize"]
    assert name_of("v2") in done.out
    done = Ran(capsys, "packages", "show", "resize")
    assert "Manual, 1 active of all" in done.out
    assert [line.split()[:2] for line in done.out.splitlines()[-2:]] == [
        ["2", name_of("v2")],
        ["1", name_of("v1")],
    ]
    shown = json.loads(Ran(capsys, "packages", "show", "resize@1", "-o", "json").out)
    assert [each["name"] for each in shown["revisions"]] == [name_of("v1")]
    assert shown["revisions"][0]["labels"] == {"channel": "stable"}


def test_users_activate_and_deactivate_and_nobody_loses_what_they_select(
    capsys: pytest.CaptureFixture[str], server: EmbeddedServer
) -> None:
    done = Ran(capsys, "why", "package/resize")
    assert done.code == 1
    assert "has no highest-numbered active revision" in done.err
    for revision in ("1", name_of("v2")):
        assert Ran(capsys, "packages", "activate", f"resize@{revision}").code == 0
    assert "already active" in Ran(capsys, "packages", "activate", "resize@1").out
    eventually(lambda: condition(state_of(server, "v1"), "Healthy").get("status") == "True")
    by_label = {"matchLabels": {"channel": "stable"}}
    for obj in (
        composition_revision("shop-1", 1, functionRevisionRef={"name": name_of("v2")}),
        composition_revision("shop-2", 2, functionRevisionSelector=by_label),
    ):
        server.request("POST", COMPOSITIONS, obj)
    done = Ran(capsys, "impact", "package/resize@1")
    assert done.code == 0
    assert "CompositionRevision shop-2" in done.out
    assert "channel=stable" in done.out
    assert Ran(capsys, "impact", "package/resize@2").out == "not used\n"
    cart = {"apiVersion": "shop.example/v1", "kind": "Cart", "metadata": {"name": "one"}}
    using = {"compositionRevisionRef": {"name": "shop-1"}}
    server.request("POST", "/apis/shop.example/v1/carts", {**cart, "spec": using})
    assert "CompositionRevision shop-1" in Ran(capsys, "impact", "package/resize@2").out
    done = Ran(capsys, "packages", "deactivate", "resize@1")
    assert done.code == 1
    assert "is selected by CompositionRevision shop-2; make them" in done.err
    assert state_of(server, "v1")["spec"]["desiredState"] == "Active"
    done = Ran(capsys, "packages", "deactivate", "resize@1", "--force")
    assert done.code == 0
    assert "CompositionRevision shop-2 can no longer use" in done.err
    found = state_of(server, "v1")
    assert found["spec"]["desiredState"] == "Inactive"
    assert found["metadata"]["annotations"][FORCED].startswith("Inactive 20")
    done = Ran(capsys, "why", "package/resize", "--explain", "-o", "json")
    told = {each["who"]: each for each in json.loads(done.out)["uses"]}
    assert told["a new step"]["gets"] == name_of("v2")
    assert told["a new step"]["rejected"] == [{"revision": name_of("v1"), "why": "inactive"}]
    assert "gets" not in told["CompositionRevision shop-2"]
    assert f"{name_of('v1')} is inactive" in told["CompositionRevision shop-2"]["why"]


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("packages", "show", "none"), 1, "there is no function none; known: resize"),
        (
            ("packages", "show", "resize@9"),
            1,
            f"resize has no revision 9; known: 1 ({name_of('v1')}",
        ),
        (("packages", "show", "resize@"), 2, "write NAME, or NAME@REVISION"),
        (("packages", "activate", "resize"), 2, "write NAME@REVISION"),
        (("packages", "deactivate", "automatic@1"), 1, "set revisionActivationPolicy: Manual"),
        (("packages", "logs", "resize", "--data", "nowhere"), 1, "there is no log of resize-"),
        (("impact", "package/resize", "-f", "x.yaml"), 2, "read from one cluster"),
        (("up", "--capabilities", "compositions"), 2, "write apis,compositions"),
        (("up", "--allow-packages"), 2, "need the capability compositions"),
        (("up", "--package-memory", "lots"), 2, "is not an amount of memory (--package-memory)"),
        (("up", "--feature", "Wings=true"), 2, "known: FunctionRevisions"),
        (("up", "--feature", "FunctionRevisions=no"), 2, "write NAME=true or NAME=false"),
    ],
)
def test_what_is_wrong_is_told(
    capsys: pytest.CaptureFixture[str],
    server: EmbeddedServer,
    arguments: tuple[str, ...],
    code: int,
    complaint: str,
) -> None:
    if "automatic@1" in arguments:
        write(server, function("automatic"))
    done = Ran(capsys, *arguments)
    server_has = server.request("GET", f"{GROUP}/functions")["items"]
    if len(server_has) > 1:
        server.request("DELETE", f"{GROUP}/functions/automatic")
    assert (done.code, complaint in done.err) == (code, True), done.err


def test_where_functions_are_not_served_that_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedServer() as other:
        monkeypatch.setenv("KUBECONFIG", str(other.kubeconfig))
        for command in (("packages", "list"), ("packages", "show", "resize")):
            done = Ran(capsys, *command)
            assert done.code == 3
            assert "polyver up --capabilities apis,compositions serves them" in done.err


def test_what_a_process_printed_is_shown_and_followed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    logs = tmp_path / "packages" / "logs"
    logs.mkdir(parents=True)
    (logs / f"{name_of('v2')}.log.1").write_bytes(b"one\n")
    current = logs / f"{name_of('v2')}.log"
    current.write_bytes("zwei \N{SNOWMAN}\n".encode())
    for wanted in ("resize", "resize@2", f"resize@{name_of('v2')[-12:]}"):
        done = Ran(capsys, "packages", "logs", wanted, "--data", str(tmp_path))
        assert (done.code, done.out) == (0, "one\nzwei \N{SNOWMAN}\n")
    command = [sys.executable, "-m", "polyver", "packages", "logs", "resize", "--follow"]
    with subprocess.Popen(
        [*command, "--data", str(tmp_path)], stdout=subprocess.PIPE, text=True, env=os.environ
    ) as following:
        assert following.stdout is not None
        # A line that never comes must not hold up the whole test run.
        stop = threading.Timer(PATIENCE, following.kill)
        stop.start()
        try:
            assert [following.stdout.readline() for _ in range(2)] == [
                "one\n",
                "zwei \N{SNOWMAN}\n",
            ]
            with current.open("a") as file:
                file.write("three\n")
            assert following.stdout.readline() == "three\n"
            with current.open("a") as file:
                file.write("last words\n")
            current.replace(f"{current}.1")
            current.write_text("four\n")
            assert following.stdout.readline() == "last words\n"
            assert following.stdout.readline() == "four\n"
        finally:
            stop.cancel()
            following.kill()
