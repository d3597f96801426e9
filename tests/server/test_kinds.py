"""What built-in kinds add to a write, compared with what a real server answered."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.kube.builtins import NAMESPACES, Asked, kept, requests

from polyver.server._http import Request, User
from polyver.server.api import Api
from polyver.server.bootstrap import prepare
from polyver.store import MemoryStore

RECORDED = json.loads((Path(__file__).parent / "recorded_builtins.json").read_text())
ADMIN = User("admin", ("system:masters",))


async def _ask(api: Api, asked: Asked) -> dict[str, Any]:
    headers = {"content-type": asked.media, "accept": "application/json", "user-agent": "case/1"}
    request = Request(asked.method, asked.path, "", headers, asked.body or b"", ADMIN)
    answer = await api.handle(request)
    assert isinstance(answer.body, bytes)
    warnings = [text for name, text in answer.headers if name == "warning"]
    return kept(asked, answer.status, warnings, answer.body)


async def _answers() -> list[dict[str, Any]]:
    async with MemoryStore() as store:
        api = Api(store)
        await prepare(api, port=6443)
        for name in NAMESPACES:
            body = json.dumps({"metadata": {"name": name}}).encode()
            await _ask(api, Asked("", "POST", "/api/v1/namespaces", body, "application/json", ""))
        return [await _ask(api, asked) for asked in requests()]


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    return {answer["about"]: answer for answer in asyncio.run(_answers())}


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda answer: answer["about"])
def test_a_built_in_kind_answers_as_the_real_one(
    recorded: dict[str, Any], answers: dict[str, dict[str, Any]]
) -> None:
    assert answers[recorded["about"]] == recorded
