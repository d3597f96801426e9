"""`polyver check --against … --live`, beside a server that has objects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.apis.commands.test_against_cluster import (
    CONVERSIONS,
    DEFINITIONS,
    NAME,
    definition,
    is_gone,
)
from tests.apis.commands.test_check import BACKUPS, EDGE, MOVE
from tests.app.test_cli import Ran
from tests.walks.support import eventually

from polyver.apis.commands import _live
from polyver.client import GroupVersionResource, Listing
from polyver.kube.objects import load_manifests
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer, LocalCluster
from polyver.testing._requests import ask

Server = EmbeddedServer | LocalCluster
BACKUPS_PATH = "/apis/shop.example.com/v1/namespaces/default/backups"
COUNT = 7
DROP = "    - drop: {at: spec.cron}\n    - add: {at: spec.schedule}\n"


@pytest.fixture(scope="module")
def real_cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture(
    params=["embedded", pytest.param("real", marks=pytest.mark.kube)],
)
def server(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    """A server with objects of a kind in three versions; the conversions are in before.yaml."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_live, "_PAGE", 3)
    (tmp_path / "before.yaml").write_text(BACKUPS)
    name = "real_cluster" if request.param == "real" else "kube_server"
    yield from prepared(request.getfixturevalue(name), monkeypatch)


def prepared(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    ask(server, "POST", DEFINITIONS, definition())
    eventually(lambda: is_served(server))
    for number in range(COUNT):
        ask(server, "POST", BACKUPS_PATH, backup(number))
    yield server
    ask(server, "DELETE", f"{DEFINITIONS}/{NAME}")
    eventually(lambda: not is_served(server))


def is_served(server: Server) -> bool:
    with suppress(ApiError):
        ask(server, "GET", BACKUPS_PATH)
        return True
    return False


def backup(number: int) -> dict[str, Any]:
    spec = {"schedule": f"{number} * * * *", "host": "db", "keepHours": 24 * number}
    spec["mode"] = "incremental" if number == 3 else "full"
    about = {"apiVersion": "shop.example.com/v1", "kind": "Backup"}
    return {**about, "metadata": {"name": f"b{number}"}, "spec": spec}


def check(capsys: pytest.CaptureFixture[str], text: str, *more: str) -> dict[str, Any]:
    Path("backups.yaml").write_text(text)
    arguments = ("--conversions", "backups.yaml", "--examples", "0", "--seed", "1", "-o", "json")
    against = () if "--against" in more else ("--against", "before.yaml")
    ran = Ran(capsys, "check", *arguments, "--live", *against, *more)
    found: dict[str, Any] = json.loads(ran.out)
    return found


def changes(found: dict[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(e["rule"], "".join(e["versions"][-1:]), e["path"]): e for e in found["findings"]}


def test_the_objects_of_a_cluster_show_what_changes_for_them(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unchanged conversion, a drop in place of a move, another factor, a narrowed enum."""
    same = check(capsys, BACKUPS)
    assert (same["findings"], same["live"]) == ([], {NAME: COUNT})

    lost = changes(check(capsys, BACKUPS.replace(MOVE, DROP)))[
        "view-changed", "v1alpha1", "spec.cron"
    ]
    assert (lost["objects"], lost["object"]) == (COUNT, "default/b0")
    assert lost["example"]["expected"]["spec"].keys() == {"cron"}
    assert (lost["file"], lost["severity"]) == ("backups.yaml", "breaking")

    scaled = changes(check(capsys, BACKUPS.replace("factor: 24", "factor: 12")))
    days = scaled["view-changed", "v1beta1", "spec.keepDays"]
    assert days["objects"] == COUNT - 1  # zero hours are zero days
    assert days["fact"].startswith("in v1beta1 it was ")

    narrowed = check(capsys, BACKUPS.replace("enum: [full, incremental]", "enum: [full]"))
    enum = changes(narrowed)["enum-narrowed", "v1", "spec.mode"]
    assert (enum["objects"], enum["object"]) == (1, "default/b3")
    assert enum["example"]["given"]["spec"] == {"mode": "incremental"}


def test_an_edge_that_is_gone_is_shown_by_an_object_of_the_cluster(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    found = changes(check(capsys, BACKUPS.replace(EDGE, "")))
    lost = found["unconverted", "v1alpha1", ""]
    assert (lost["objects"], lost["object"]) == (COUNT, "default/b0")
    assert lost["example"]["expected"]["apiVersion"] == "shop.example.com/v1alpha1"


def test_nothing_on_the_cluster_changes(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    before = ask(server, "GET", BACKUPS_PATH)["items"]
    check(capsys, BACKUPS.replace(MOVE, DROP))
    assert ask(server, "GET", BACKUPS_PATH)["items"] == before


@pytest.mark.parametrize("server", ["embedded"], indirect=True)
def test_the_conversion_on_the_cluster_is_the_earlier_one(
    server: EmbeddedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also for an object that was written in another version, and has preserved fields."""
    [rules] = [e.value for e in load_manifests(BACKUPS, "b.yaml") if "edges" in str(e.value)]
    ask(server, "POST", CONVERSIONS, rules)
    path = BACKUPS_PATH.replace("/v1/", "/v1alpha1/")
    old = {"cron": "1 * * * *", "target": "db:080", "verbose": True, "keepDays": "many"}
    about = {"apiVersion": "shop.example.com/v1alpha1", "kind": "Backup"}
    eventually(lambda: is_served_by(server, path))
    ask(server, "POST", path, {**about, "metadata": {"name": "old"}, "spec": old})
    found = check(capsys, BACKUPS, "--against", "cluster:")
    assert (found["findings"], found["live"]) == ([], {NAME: COUNT + 1})
    changed = changes(check(capsys, BACKUPS.replace(MOVE, DROP), "--against", "cluster:"))
    assert changed["view-changed", "v1alpha1", "spec.cron"]["objects"] == COUNT + 1
    ask(server, "DELETE", f"{BACKUPS_PATH}/old")
    ask(server, "DELETE", f"{DEFINITIONS}/{NAME}")
    ask(server, "DELETE", f"{CONVERSIONS}/{NAME}")
    eventually(lambda: is_gone(server, f"{CONVERSIONS}/{NAME}"))
    ask(server, "POST", DEFINITIONS, definition())


def is_served_by(server: Server, path: str) -> bool:
    """Report whether the server converts to a version that differs from the stored one."""
    [*_, first] = ask(server, "GET", path)["items"]
    return "cron" in first["spec"]


class Expiring:
    """A client whose server forgets the state of a list after the first page."""

    def __init__(self, offer: str) -> None:
        self.offer = offer
        self.asked: list[str] = []

    async def list(self, _: GroupVersionResource, *, limit: int, more: str) -> Listing:
        del limit
        self.asked.append(more)
        if more == "old":
            raise ApiError(410, "Expired", "too old", metadata={"continue": self.offer})
        return Listing([{"metadata": {"name": more or "first"}}], "1", "" if more else "old")


def test_a_list_that_expires_is_continued_as_the_server_offers() -> None:
    resource = GroupVersionResource("shop.example.com", "v1", "backups")

    async def names(client: Any) -> list[str]:
        pages = [page async for page in _live._pages(client, resource)]
        return [each["metadata"]["name"] for page in pages for each in page.items]

    client = Expiring("fresh")
    assert asyncio.run(names(client)) == ["first", "fresh"]
    assert client.asked == ["", "old", "fresh"]
    with pytest.raises(ApiError):
        asyncio.run(names(Expiring("")))


def test_live_alone_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capsys, "check", "--conversions", "any.yaml", "--live")
    assert ran.code == 2
    assert "--live needs --against" in ran.err
