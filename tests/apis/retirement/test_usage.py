"""The clients of a version, from the counted requests."""

from __future__ import annotations

from typing import Any

import pytest

from polyver.apis.retirement import clients_of

Object = dict[str, Any]
OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"
LIMIT = "2026-01-02T00:00:00Z"


def usage(*clients: Object, **more: Any) -> Object:
    last = max((each["lastRequest"] for each in clients), default=None)
    found = {"version": "v1", "requests": 9, "clients": [*clients], "lastRequest": last, **more}
    return {"status": {"since": OLD, "source": "APIServer", "versions": [found]}}


def client(user: str, last: str, agent: str | None = "kubectl/v1.33") -> Object:
    found = {"user": user, "userAgent": agent, "requests": 2, "lastRequest": last}
    return {name: value for name, value in found.items() if value is not None}


def test_only_clients_with_a_request_after_the_limit_are_recent() -> None:
    found = clients_of(usage(client("alice", NEW), client("bob", OLD)), "v1")
    assert found.recent(LIMIT) == [f"alice with kubectl/v1.33 (last request {NEW})"]


def test_a_client_without_a_user_agent_is_named_by_its_user() -> None:
    found = clients_of(usage(client("alice", NEW, agent=None)), "v1")
    assert found.recent(LIMIT) == [f"alice (last request {NEW})"]


def test_controllers_of_kubernetes_do_not_count() -> None:
    user = "system:serviceaccount:kube-system:generic-garbage-collector"
    assert clients_of(usage(client(user, NEW)), "v1").recent(LIMIT) == []


def test_clients_that_were_not_counted_separately_are_recent_together() -> None:
    found = clients_of(usage(client("alice", OLD), otherClients=4), "v1")
    assert found.recent(LIMIT) == []
    found = clients_of(usage(client("alice", OLD), otherClients=4, lastRequest=NEW), "v1")
    assert found.recent(LIMIT) == [f"other clients (4 requests, last request {NEW})"]


@pytest.mark.parametrize("found", [None, {}, usage()])
def test_without_counted_clients_nobody_is_recent(found: Object | None) -> None:
    assert clients_of(found, "v1").recent("") == []
    assert clients_of(found, "v2").requests == 0
