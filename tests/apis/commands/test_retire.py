"""`polyver retire` at the prompt: the plan, the exit codes, and the data for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.walks.conftest import DEFINITIONS
from tests.walks.support import eventually, request
from tests.walks.test_conversions import (
    CONVERSIONS,
    NAME,
    V1,
    conversion,
    crontab,
    definition,
    is_serving,
    path,
)
from tests.walks.test_retiring import named

from polyver.app.main import main
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
Captured = pytest.CaptureFixture[str]
RETIREMENTS = "/apis/polyver.dev/v1alpha1/retirements"


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as started:
        started.request("POST", DEFINITIONS, definition())
        started.request("POST", CONVERSIONS, conversion())
        eventually(lambda: is_serving(started))
        eventually(lambda: request(started, "GET", path("v1")))
        started.request("POST", path("v1"), named(crontab("v1", **V1), "a"))
        yield started


@pytest.fixture
def server(running: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> EmbeddedServer:
    monkeypatch.setenv("KUBECONFIG", str(running.kubeconfig))
    return running


def retire(captured: Captured, *arguments: str, code: int = 0) -> tuple[str, str]:
    assert main(["retire", *arguments]) == code, captured.readouterr()
    said = captured.readouterr()
    return said.out, said.err


def test_the_plan_names_the_users_and_changes_nothing(
    server: EmbeddedServer, capsys: Captured
) -> None:
    out, _ = retire(capsys, "CronTab", "v1", "--ignore-clients")
    assert "unknown (Update) in 1 object" in out
    assert "spec.only1 in 1 object" in out
    assert "1. stop serving v1\n" in out
    assert out.endswith(f"polyver retire {NAME} v1 --confirm\n")
    assert request(server, "GET", RETIREMENTS)["items"] == []
    assert len(server.request("GET", path("v1"))["items"]) == 1


@pytest.mark.parametrize("kind", ["crontabs", "crontab", f"crontabs.{NAME.partition('.')[2]}"])
def test_the_plan_is_data_for_programs(server: EmbeddedServer, capsys: Captured, kind: str) -> None:
    out, _ = retire(capsys, kind, "v1", "--ignore-clients", "-o", "json")
    found = json.loads(out)
    assert (found["definition"], found["version"], found["objects"]) == (NAME, "v1", 1)
    assert found["steps"][0] == {"step": "StopServing", "text": "stop serving v1", "seconds": 1}
    assert {"path": "spec.only1", "objects": 1} in found["preserved"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("CronTab", "v2"), 1, "v2 is the storage version"),
        (("CronTab", "v2", "--confirm"), 1, "v2 is the storage version"),
        (("CronTab", "v7"), 1, "has no version v7; it has v1, v2, v3"),
        (("Tree", "v1"), 1, "there is no CustomResourceDefinition for 'Tree'"),
        (("CronTab", "v1", "--abort"), 1, "no retirement of v1"),
        (("CronTab", "v1", "--confirm", "--abort"), 2, "exclude each other"),
        (("CronTab", "v1", "--quiet-period", "soon"), 2, "'soon' is not a duration"),
    ],
)
def test_what_is_refused(
    server: EmbeddedServer, capsys: Captured, arguments: tuple[str, ...], code: int, said: str
) -> None:
    _, err = retire(capsys, *arguments, code=code)
    assert said in err
    assert request(server, "GET", RETIREMENTS)["items"] == []


def test_a_version_is_blocked_then_aborted_then_removed(
    server: EmbeddedServer, capsys: Captured, tmp_path: Path
) -> None:
    # An object that its own webhook refuses blocks the steps over objects: v1 is unserved by then.
    hook(server, "add")
    out, err = retire(capsys, "CronTab", "v1", "--confirm", "--ignore-clients", code=1)
    assert out.splitlines()[:2] == ["StopServing", "RewriteObjects"]
    assert "default/a: " in err
    assert request(server, "GET", path("v1")) is None
    out, _ = retire(capsys, "CronTab", "v1", "--abort")
    assert out == f"v1 of {NAME} is served again\n"
    eventually(lambda: request(server, "GET", path("v1")))
    hook(server, "remove")
    out, _ = retire(capsys, "CronTab", "v1", "--confirm", "--ignore-clients")
    assert "Completed" in out
    assert "purged spec.only1 in 1 object" in out
    assert request(server, "GET", path("v1")) is None
    _, err = retire(capsys, "CronTab", "v1", "--abort", code=1)
    assert "v1 is already dropped" in err


def hook(server: EmbeddedServer, act: str) -> None:
    """Have each write of CronTabs refused, or allow them again."""
    at = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    if act == "remove":
        server.request("DELETE", f"{at}/refuse")
        return
    rule = {
        "apiGroups": ["stable.example.com"],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["crontabs"],
    }
    webhook = {
        "name": "refuse.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9/nobody"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
    }
    about = {"apiVersion": "admissionregistration.k8s.io/v1"}
    kind = "ValidatingWebhookConfiguration"
    made = {**about, "kind": kind, "metadata": {"name": "refuse"}, "webhooks": [webhook]}
    server.request("POST", at, made)
