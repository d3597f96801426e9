"""Services get addresses that no other service has."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from polyver.kube.server.api import ApiServer
from polyver.kube.server.bootstrap import prepare
from polyver.kube.server.http import HttpRequest, User
from polyver.kube.server.kinds import _addresses
from polyver.kube.store import MemoryStore

if TYPE_CHECKING:
    import pytest

ADMIN = User("admin", ("system:masters",))
SERVICES = "/api/v1/namespaces/default/services"


async def _ask(
    api: ApiServer, method: str, path: str, body: object = None, query: str = ""
) -> tuple[int, Any]:
    sent = b"" if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "user-agent": "test"}
    answer = await api.handle(HttpRequest(method, path, query, headers, sent, ADMIN))
    assert isinstance(answer.body, bytes)
    return answer.status, json.loads(answer.body)


def _with_api(scenario: Callable[[ApiServer], Awaitable[None]]) -> None:
    async def run() -> None:
        async with MemoryStore() as store:
            api = ApiServer(store)
            await prepare(api, port=6443)
            await scenario(api)

    asyncio.run(run())


def _service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def _few(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    pool = _addresses._Pool("an IP", range(2, 2 + count), lambda at: f"10.0.0.{at}")
    monkeypatch.setattr(_addresses, "_ADDRESSES", pool)


def test_services_made_at_once_have_different_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    _few(monkeypatch, 5)

    async def scenario(api: ApiServer) -> None:
        made = [_ask(api, "POST", SERVICES, _service(f"s{number}")) for number in range(5)]
        answers = await asyncio.gather(*made)
        assert [status for status, _ in answers] == [201] * 5
        assert len({body["spec"]["clusterIP"] for _, body in answers}) == 5

    _with_api(scenario)


def test_the_address_of_a_deleted_service_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _few(monkeypatch, 1)

    async def scenario(api: ApiServer) -> None:
        _, first = await _ask(api, "POST", SERVICES, _service("a"))
        status, body = await _ask(api, "POST", SERVICES, _service("b"))
        assert (status, "range is full" in body["message"]) == (500, True)
        await _ask(api, "DELETE", f"{SERVICES}/a")
        status, second = await _ask(api, "POST", SERVICES, _service("b"))
        assert (status, second["spec"]["clusterIP"]) == (201, first["spec"]["clusterIP"])

    _with_api(scenario)


def test_a_dry_run_takes_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    _few(monkeypatch, 1)

    async def scenario(api: ApiServer) -> None:
        status, _ = await _ask(api, "POST", SERVICES, _service("a"), "dryRun=All")
        assert status == 201
        status, _ = await _ask(api, "POST", SERVICES, _service("a"))
        assert status == 201

    _with_api(scenario)


def test_nobody_gets_the_address_of_the_server_itself() -> None:
    async def scenario(api: ApiServer) -> None:
        status, body = await _ask(api, "POST", SERVICES, _service("a", clusterIP="10.0.0.1"))
        assert (status, "already allocated" in body["message"]) == (422, True)

    _with_api(scenario)


def test_a_service_keeps_its_address_and_node_port_when_it_is_replaced() -> None:
    async def scenario(api: ApiServer) -> None:
        _, before = await _ask(api, "POST", SERVICES, _service("a", type="NodePort"))
        changed = _service("a", type="NodePort", selector={"app": "a"})
        status, after = await _ask(api, "PUT", f"{SERVICES}/a", changed)
        assert status == 200
        assert after["spec"] == before["spec"] | {"selector": {"app": "a"}}

    _with_api(scenario)
