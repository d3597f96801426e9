"""The requests to each version are counted, by the embedded server and by the webhooks."""

from __future__ import annotations

import http.client
import json
import secrets
import signal
import ssl
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.walks.replicas import NAMESPACE, Balancer, Replica, replicas
from tests.walks.support import Server, eventually, request
from tests.walks.test_run import DEFINITIONS, OWN, conversion, definition, lamp, lamps, serving

from polyver import apis
from polyver.apis.conversion_kind import CONVERSIONS
from polyver.apis.version_usage import VERSION_USAGES
from polyver.testing import EmbeddedServer, LocalCluster

Object = dict[str, Any]
GROUP = "used.lamps.dev"
LAMPS = f"lamps.{GROUP}"
USAGES = "/apis/polyver.dev/v1alpha1/versionusages"


def usage(server: Server) -> Object:
    """The status of the VersionUsage of lamps; {} if there is none yet."""
    found = request(server, "GET", f"{USAGES}/{LAMPS}") or {}
    return dict(found.get("status") or {})


def of_version(server: Server, version: str) -> Object:
    found = {each["version"]: each for each in usage(server).get("versions") or ()}
    return dict(found.get(version) or {})


def send(
    server: Server, method: str, path: str, *, agent: str, user: str = "", body: object = None
) -> int:
    """Send a request with a user agent of its own, as another user if one is given."""
    context = ssl.create_default_context(cafile=server.ca_file)
    headers = {"Authorization": f"Bearer {server.token}", "User-Agent": agent}
    headers["Content-Type"] = "application/json"
    if user:
        headers |= {"Impersonate-User": user, "Impersonate-Group": "system:masters"}
    connection = http.client.HTTPSConnection(server.url.removeprefix("https://"), context=context)
    try:
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def clients(version: Object) -> dict[tuple[str, str], int]:
    found = version.get("clients") or ()
    return {(each["user"], each.get("userAgent", "")): each["requests"] for each in found}


def test_requests_are_counted_and_kept(tmp_path: Path) -> None:
    with EmbeddedServer(data=tmp_path) as server:
        request(server, "POST", DEFINITIONS, definition(GROUP))
        eventually(lambda: usage(server).get("since"))
        since = usage(server)["since"]
        for _ in range(3):
            assert send(server, "GET", lamps(GROUP, "v1"), agent="kubectl/v1.33.2") == 200
        assert send(server, "GET", lamps(GROUP, "v1", "none"), agent="argocd/2", user="jo") == 404
        assert send(server, "GET", lamps(GROUP, "v2"), agent="argocd/2") == 200
        assert send(server, "GET", f"/apis/{GROUP}/v1/trees", agent="argocd/2") == 404
    with EmbeddedServer(data=tmp_path) as server:
        found = usage(server)
        assert (found["since"], found["source"]) == (since, "APIServer")
        old, new = of_version(server, "v1"), of_version(server, "v2")
        admin = "kubernetes-admin"
        assert clients(old) == {("jo", "argocd/2"): 1, (admin, "kubectl/v1.33.2"): 3}
        assert clients(new) == {(admin, "argocd/2"): 1}
        assert (old["requests"], new["requests"]) == (4, 1)
        assert since <= old["lastRequest"] == old["clients"][0]["lastRequest"]
        # Counts of the next process are added.
        assert send(server, "GET", lamps(GROUP, "v1"), agent="kubectl/v1.33.2") == 200
    with EmbeddedServer(data=tmp_path) as server:
        assert of_version(server, "v1")["requests"] == 5
        request(server, "DELETE", f"{DEFINITIONS}/{LAMPS}")
        eventually(lambda: request(server, "GET", f"{USAGES}/{LAMPS}") is None)


def test_metrics_count_requests_per_version(tmp_path: Path) -> None:
    with EmbeddedServer(data=tmp_path) as server:
        request(server, "POST", DEFINITIONS, definition(GROUP))
        eventually(lambda: request(server, "GET", lamps(GROUP, "v1")))
        context = ssl.create_default_context(cafile=server.ca_file)
        connection = http.client.HTTPSConnection(server.url[8:], context=context)
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {server.token}"})
        text = connection.getresponse().read().decode()
        connection.close()
    labels = f'code="200",group="{GROUP}",resource="lamps",verb="LIST",version="v1"'
    assert any(
        line.startswith("apiserver_request_total{") and all(e in line for e in labels.split(","))
        for line in text.splitlines()
    )


@pytest.fixture(params=["embedded", pytest.param("kubernetes", marks=pytest.mark.kube)])
def cluster(request: pytest.FixtureRequest) -> Iterator[Server]:
    start = EmbeddedServer(capabilities=()) if request.param == "embedded" else LocalCluster()
    with start as running:
        prepare(running)
        yield running


def prepare(server: Server) -> None:
    request(server, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for kind in (CONVERSIONS, VERSION_USAGES):
        request(server, "POST", DEFINITIONS, apis.crd_of(kind.definition()))
    eventually(lambda: request(server, "GET", OWN) and request(server, "GET", USAGES))


def test_webhooks_count_what_they_see(cluster: Server) -> None:
    server, balancer = cluster, Balancer()
    with replicas(server, balancer, 2) as running:
        request(server, "POST", DEFINITIONS, definition(GROUP))
        request(server, "POST", OWN, conversion(GROUP))
        eventually(lambda: serving(server, GROUP)["status"] == "True")
        # The VersionUsage says from when on requests were counted, even if there are none.
        eventually(lambda: usage(server).get("since"))
        write = partial(send, server, "POST", agent="case/1", user="jo")
        eventually(lambda: asks(server, running))
        for number in range(4):
            made = lamp(GROUP, "v1", f"a{number}", watts="60")
            assert write(lamps(GROUP, "v1"), body=made) == 201
        assert write(lamps(GROUP, "v2"), body=lamp(GROUP, "v2", "b", power=5)) == 201
        # The user of the replicas themselves is not counted, apart from conversions.
        request(server, "GET", lamps(GROUP, "v1", "b"))
        request(server, "POST", lamps(GROUP, "v2"), lamp(GROUP, "v2", "c", power=5))
        for each in running:
            each.end(signal.SIGTERM)
    balancer.close()
    assert usage(server)["source"] == "Webhooks"
    old, new = of_version(server, "v1"), of_version(server, "v2")
    assert (clients(old), old["requests"]) == ({("jo", ""): 4}, 4)
    assert clients(new)["jo", ""] == 1
    # Each write in v1, and each request that reads v1, makes the server convert to v1.
    assert old["conversions"] >= 5
    assert old["lastConversion"] >= old["lastRequest"]
    # v2 is the storage version: conversions to it say nothing about clients.
    assert "conversions" not in new


def asks(server: Server, running: list[Replica]) -> bool:
    """Write a lamp; return True if a replica was asked to admit one.

    An API server hears of webhooks after they were registered.
    """
    probe = lamp(GROUP, "v2", f"probe-{secrets.token_hex(4)}", power=1)
    send(server, "POST", lamps(GROUP, "v2"), agent="case/1", user="probe", body=probe)
    return any(f'act="validate",group="{GROUP}"' in metrics(each) for each in running)


def metrics(replica: Replica) -> str:
    context = ssl._create_unverified_context()
    address = f"https://127.0.0.1:{replica.port}/metrics"
    with urllib.request.urlopen(address, context=context) as answer:
        return str(answer.read().decode())
