"""Blueprints on a control plane with functions: what could never run is refused, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.functions.samples import HEAD, SEED, known, phase

from polyver.functions.registering import known_functions
from polyver.kube.objects import load_manifests
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

PATH = "/apis/cr.kanister.io/v1alpha1/namespaces/default"


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(capabilities=["functions"], functions=known()) as running:
        yield running


def sent(text: str, name: str) -> Any:
    [document] = load_manifests(HEAD + text, "bp.yaml")
    assert isinstance(document.value, dict)
    return document.value | {"metadata": {"name": name}}


def refused(server: EmbeddedServer, text: str) -> str:
    with pytest.raises(ApiError) as error:
        server.request("POST", f"{PATH}/blueprints", sent(text, "wrong"))
    assert error.value.code == 422
    return error.value.message


def test_the_blueprint_of_the_seed_is_stored(server: EmbeddedServer) -> None:
    made = server.request("POST", f"{PATH}/blueprints", sent(SEED, "seed"))
    assert made["actions"]["tail"]["phases"][0]["func"] == "KubeExec"


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        (phase("KubeExce"), ["phases[0].func", "no function KubeExce; did you mean KubeExec?"]),
        (
            phase("KubeExec", "v0.9.0"),
            ["phases[0].funcVersion", "has no 0.9.0; known: v0.0.0, v0.1.0, v0.2.0"],
        ),
        (phase("Report", "v0.0.9"), ["Report v0.0.9 was removed in 0.3.0; use v0.1.0"]),
        (phase("Report", args="{txet: a}"), ["phases[0].args.txet", "did you mean text?"]),
        (phase("Report", "one"), ['"one" is not a semantic version']),
    ],
)
def test_what_could_never_run_is_refused(
    server: EmbeddedServer, text: str, complaints: list[str]
) -> None:
    message = refused(server, text)
    assert all(each in message for each in complaints), message


def test_a_blueprint_may_be_relabelled_whatever_has_become_of_its_functions(
    tmp_path: Any,
) -> None:
    with EmbeddedServer(capabilities=["functions"], functions=known(), data=tmp_path) as server:
        server.request("POST", f"{PATH}/blueprints", sent(SEED, "old"))
    none = known_functions(())
    with EmbeddedServer(capabilities=["functions"], functions=none, data=tmp_path) as server:
        old = server.request("GET", f"{PATH}/blueprints/old")
        old["metadata"]["labels"] = {"a": "b"}
        old = server.request("PUT", f"{PATH}/blueprints/old", old)
        assert old["metadata"]["labels"] == {"a": "b"}
        old["actions"]["tail"]["phases"][0]["name"] = "other"
        with pytest.raises(
            ApiError, match="there is no function KubeExec; no functions are loaded"
        ):
            server.request("PUT", f"{PATH}/blueprints/old", old)


def test_a_preferred_version_has_to_be_one(server: EmbeddedServer) -> None:
    about = {"apiVersion": "cr.kanister.io/v1alpha1", "kind": "ActionSet"}
    wish = {"name": "tail", "blueprint": "seed", "preferredVersion": "new"}
    body = about | {"metadata": {"name": "now"}, "spec": {"actions": [wish]}}
    with pytest.raises(ApiError, match=r'actions\[0\].preferredVersion: .*"new" is not a semantic'):
        server.request("POST", f"{PATH}/actionsets", body)


def test_functions_are_told_of_at_their_address(server: EmbeddedServer) -> None:
    found = server.request("GET", "/functions")
    assert [each["name"] for each in found["functions"]] == ["KubeExec", "Plain", "Report"]
