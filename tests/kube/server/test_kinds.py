"""What built-in kinds add to a write, compared with what a real server answered."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tests.kube.builtins import NAMESPACES, Asked, kept, requests

from polyver.kube.objects.builtin import builtin_kinds, shape_of
from polyver.kube.server.api import ApiServer
from polyver.kube.server.bootstrap import prepare
from polyver.kube.server.http import HttpRequest, User
from polyver.kube.server.kinds._builtin import defaults_of
from polyver.kube.store import MemoryStore

RECORDED = json.loads((Path(__file__).parent / "recorded_builtins.json").read_text())
ADMIN = User("admin", ("system:masters",))

# What the real server does differently, and why it stays so.
KNOWN = {
    "Endpoints wrong": "it warns of a deprecated kind even when it refuses",
    "Job small then 3": "it shows a template as the structure that it has inside",
    "Job going then 3": "it leaves the pods of a job behind unless it is told otherwise",
    "ControllerRevision small then 0": "it takes any change of a revision for one of its data",
}
# Nothing would take these finalizers away again, and nothing moves a volume from phase to phase.
LEFT_OUT = ("kubernetes.io/pvc-protection", "kubernetes.io/pv-protection")


async def _ask(api: ApiServer, asked: Asked) -> dict[str, Any]:
    headers = {"content-type": asked.media, "accept": "application/json", "user-agent": "case/1"}
    request = HttpRequest(asked.method, asked.path, "", headers, asked.body or b"", ADMIN)
    answer = await api.handle(request)
    assert isinstance(answer.body, bytes)
    warnings = [text for name, text in answer.headers if name == "warning"]
    return kept(asked, answer.status, warnings, answer.body)


async def _answers() -> list[dict[str, Any]]:
    async with MemoryStore() as store:
        api = ApiServer(store)
        await prepare(api, port=6443)
        for name in NAMESPACES:
            body = json.dumps({"metadata": {"name": name}}).encode()
            await _ask(api, Asked("", "POST", "/api/v1/namespaces", body, "application/json", ""))
        return [await _ask(api, asked) for asked in requests()]


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    return {answer["about"]: answer for answer in asyncio.run(_answers())}


def _expected(recorded: dict[str, Any]) -> dict[str, Any]:
    """What the real server answered, without what is left out on purpose."""
    expected = copy.deepcopy(recorded)
    metadata = expected["body"].get("metadata", {})
    if metadata.get("finalizers") in ([name] for name in LEFT_OUT):
        del metadata["finalizers"]
    if expected["body"].get("kind") == "PersistentVolume":
        del expected["body"]["status"]["lastPhaseTransitionTime"]
    return expected


def _is_known(recorded: dict[str, Any]) -> bool:
    about = recorded["about"].split(": ", 1)[1]
    return any(about.startswith(known) for known in KNOWN)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda answer: answer["about"])
def test_a_built_in_kind_answers_as_the_real_one(
    recorded: dict[str, Any], answers: dict[str, dict[str, Any]]
) -> None:
    same = answers[recorded["about"]] == _expected(recorded)
    if _is_known(recorded):
        assert not same, "this is no difference any more"
    else:
        assert answers[recorded["about"]] == _expected(recorded)


def test_every_known_difference_is_one() -> None:
    assert sum(map(_is_known, RECORDED)) == len(KNOWN)


KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
STORED = [answer["body"] for answer in RECORDED if answer["body"].get("kind") != "Status"]
OBJECTS = [body for body in STORED if (body.get("apiVersion"), body["kind"]) in KINDS]


def test_what_has_its_defaults_gets_no_others() -> None:
    for obj in OBJECTS:
        kind = KINDS[obj["apiVersion"], obj["kind"]]
        fill = defaults_of(shape_of(kind.group, kind.version, kind.kind))
        assert fill(obj) == obj


def test_defaults_leave_what_they_are_given_as_it_is() -> None:
    fill = defaults_of(shape_of("", "v1", "Pod"))
    given: dict[str, Any] = {"metadata": {}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    before = copy.deepcopy(given)
    assert fill(given)["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert given == before
