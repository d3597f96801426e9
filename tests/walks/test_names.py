"""References that hold no names: each object reports it in its status, and nothing is retried."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.definitions.samples import definition, templated
from tests.walks.support import eventually, request

from polyver.testing import EmbeddedServer

Object = dict[str, Any]
NAMES = ["<script>", "<script>alert(1)</script>", "a/b", "..", "A B", "a?b#c", "\n", "x" * 300]
KANISTER = "/apis/cr.kanister.io/v1alpha1/namespaces/default"
OAM = "/apis/core.oam.dev"
CROSSPLANE = "/apis/apiextensions.crossplane.io/v1"
PHASE = {"func": "KubeOps", "name": "p", "args": {"operation": "create", "spec": {}}}
DEFINED = {
    "group": "ex.org",
    "names": {"kind": "Thing", "plural": "things"},
    "versions": [
        {
            "name": "v1",
            "served": True,
            "referenceable": True,
            "schema": {"openAPIV3Schema": {"type": "object"}},
        }
    ],
}


def named(api_version: str, kind: str, name: str, namespace: str = "", **rest: Any) -> Object:
    inside = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **inside}, **rest}


def composition(name: str, step: Object) -> Object:
    spec = {
        "compositeTypeRef": {"apiVersion": "ex.org/v1", "kind": "Thing"},
        "mode": "Pipeline",
        "pipeline": [{"step": "s", **step}],
    }
    return named("apiextensions.crossplane.io/v1", "Composition", name, spec=spec)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    everything = ("apis", "functions", "definitions", "compositions")
    with EmbeddedServer(capabilities=everything) as running:
        actions = {"act": {"phases": [PHASE]}}
        blueprint = named("cr.kanister.io/v1alpha1", "Blueprint", "right", actions=actions)
        running.request("POST", f"{KANISTER}/blueprints", blueprint)
        definitions = f"{OAM}/v2beta1/namespaces/vela-system/componentdefinitions"
        running.request("POST", definitions, definition("web", templated("1.0.0")))
        kind = "CompositeResourceDefinition"
        made = named("apiextensions.crossplane.io/v1", kind, "things.ex.org", spec=DEFINED)
        running.request("POST", f"{CROSSPLANE}/compositeresourcedefinitions", made)
        eventually(lambda: request(running, "GET", "/apis/ex.org/v1/things"))
        yield running


def action_set(name: str, /, **spec: Any) -> tuple[str, Object]:
    action = {"name": "act", "blueprint": "right", **spec}
    made = named("cr.kanister.io/v1alpha1", "ActionSet", name, spec={"actions": [action]})
    return f"{KANISTER}/actionsets", made


def app(name: str, /, **component: Any) -> tuple[str, Object]:
    whole = {"name": "c", "type": "web", "properties": {"image": "a"}, **component}
    made = named("core.oam.dev/v1beta1", "Application", name, spec={"components": [whole]})
    return f"{OAM}/v1beta1/namespaces/default/applications", made


def thing(name: str, /, **spec: Any) -> tuple[str, Object]:
    return "/apis/ex.org/v1/things", named("ex.org/v1", "Thing", name, spec=spec)


def references(number: int, name: str) -> Iterator[tuple[str, Object]]:
    """An object for each field that names another one."""
    yield action_set(f"blueprint-{number}", blueprint=name)
    yield action_set(f"object-{number}", object={"kind": "Deployment", "name": name})
    inside = {"kind": "Deployment", "name": "a", "namespace": name}
    yield action_set(f"namespace-{number}", object=inside)
    yield action_set(f"secret-{number}", secrets={"a": {"name": name}})
    yield action_set(f"map-{number}", configMaps={"a": {"name": "b", "namespace": name}})
    yield app(f"type-{number}", type=name)
    yield app(f"version-{number}", type=f"web@{name}")
    yield app(f"component-{number}", name=name)
    yield app(f"trait-{number}", traits=[{"type": name}])
    yield thing(f"composition-{number}", compositionRef={"name": name})
    step = composition(f"step-{number}", {"functionRef": {"name": name}})
    yield f"{CROSSPLANE}/compositions", step
    yield thing(f"function-{number}", compositionRef={"name": f"step-{number}"})
    exact = {"functionRef": {"name": "f"}, "functionRevisionRef": {"name": name}}
    yield f"{CROSSPLANE}/compositions", composition(f"exact-{number}", exact)
    yield thing(f"revision-{number}", compositionRef={"name": f"exact-{number}"})


def problems(obj: Object) -> list[tuple[str, str]]:
    """Reasons and messages by which an object says that something is wrong with it."""
    status = obj.get("status") or {}
    if obj["kind"] == "ActionSet":
        failed = status.get("state") == "failed"
        return [("failed", status["error"]["message"])] if failed else []
    conditions = status.get("conditions") or ()
    return [(each["reason"], each["message"]) for each in conditions if each["status"] == "False"]


@pytest.mark.parametrize("name", NAMES, ids=[f"name-{n}" for n in range(len(NAMES))])
def test_what_is_no_name_fails_with_a_reason_and_is_not_retried(
    server: EmbeddedServer, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    made = [*references(NAMES.index(name), name)]
    for path, obj in made:
        server.request("POST", path, obj)
    for path, obj in made:
        if obj["kind"] == "Composition":
            continue  # which has no status
        place = f"{path}/{obj['metadata']['name']}"
        found = eventually(lambda place=place: problems(server.request("GET", place)))  # type: ignore[misc]
        for reason, message in found:
            assert message, place
            # A word that is a part of the API, and not the name of a class of ours.
            assert re.fullmatch("[A-Za-z]+", reason), place
            assert not re.search("Error|Exception", reason), place
    printed = capfd.readouterr()
    assert "will be tried again" not in printed.out + printed.err


def test_an_action_set_says_which_text_is_no_name(server: EmbeddedServer) -> None:
    path, obj = action_set("which", blueprint="<script>")
    server.request("POST", path, obj)
    [(_, message)] = eventually(lambda: problems(server.request("GET", f"{path}/which")))
    assert message.startswith('"<script>" is not a name: a lowercase RFC 1123 subdomain must')
    assert "(spec.actions[0].blueprint)" in message


def test_the_reason_says_that_a_definition_is_not_there(server: EmbeddedServer) -> None:
    path, obj = app("nowhere", type="nowhere")
    server.request("POST", path, obj)
    found = eventually(lambda: problems(server.request("GET", f"{path}/nowhere")))
    assert found[0] == (
        "DefinitionNotFound",
        "there is no ComponentDefinition nowhere (spec.components[0].type); searched in default "
        "and vela-system",
    )
