"""kill -9 at any moment: what was acknowledged is there afterwards, and nothing is half there.

Three rounds by default; POLYVER_KILLS=50 makes it fifty, each on what the last one left behind.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import ssl
import subprocess
import sys
import threading
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.crds import widget_definition
from tests.deadlines import HANG

POLYVER = str(Path(sys.executable).parent / "polyver")
ROUNDS = int(os.environ.get("POLYVER_KILLS", "3"))
WRITERS = 4
PATIENCE = HANG
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/killed.example.com/v1/namespaces/default/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = {CONFIG_MAPS: ("v1", "ConfigMap"), WIDGETS: ("killed.example.com/v1", "Widget")}
WIDGET = widget_definition("killed.example.com")
Headers = Mapping[str, str]
GONE = (OSError, http.client.HTTPException)


class Server:
    """A `polyver up` in a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        began = time.monotonic()
        self.process = subprocess.Popen(
            [POLYVER, "up", "--port", "0", "--data", str(folder), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        ready = self.process.stdout.readline() and self.process.stdout.readline()
        assert ready, self.process.communicate()
        self.seconds = time.monotonic() - began
        config = json.loads((folder / "kubeconfig").read_text())
        cluster = config["clusters"][0]["cluster"]
        self._host = cluster["server"].removeprefix("https://")
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)
        user = next(u["user"] for u in config["users"] if u["name"] == "polyver-token")
        self._headers = {"Authorization": f"Bearer {user['token']}"}

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, context=self._tls, timeout=PATIENCE)

    def ask(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        path: str,
        body: object = None,
        media: str = "application/json",
    ) -> tuple[int, Any]:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {**self._headers, "Content-Type": media})
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def get(self, path: str) -> Any:
        connection = self.connect()
        try:
            status, found = self.ask(connection, "GET", path)
        finally:
            connection.close()
        assert status == 200, found
        return found

    def events(self, path: str, after: str) -> Iterator[Any]:
        """What a watch tells, until the server is gone or has been silent for its time."""
        connection = self.connect()
        try:
            connection.request("GET", f"{path}?watch=1&{after}", headers=self._headers)
            response = connection.getresponse()
            while line := response.readline():
                if line.endswith(b"\n"):
                    yield json.loads(line)
        except GONE:
            return
        finally:
            connection.close()

    def kill(self) -> str:
        self.process.kill()
        return self.process.communicate()[1]


def revision(obj: Any) -> int:
    return int(obj["metadata"]["resourceVersion"])


@dataclass
class Writer:
    """Writes its own objects over a connection of its own, and remembers what it was promised."""

    number: int
    state: dict[str, Any] = field(default_factory=dict)
    """By path: the object that was acknowledged last, or None after its deletion."""
    revisions: list[int] = field(default_factory=list)
    doubtful: str = ""
    """What was being written when the server was gone: it may have happened, or not."""

    def write(self, server: Server, chance: random.Random, wrote: threading.Semaphore) -> None:
        connection = server.connect()
        try:
            while True:
                self._write_one(server, connection, chance)
                wrote.release()
        except GONE:
            return
        finally:
            connection.close()

    def _write_one(
        self, server: Server, connection: http.client.HTTPSConnection, chance: random.Random
    ) -> None:
        collection = chance.choice([CONFIG_MAPS, WIDGETS])
        path = f"{collection}/w{self.number}-{chance.randrange(8)}"
        self.doubtful = path
        there = self.state.get(path)
        if there is None:
            self._create(server, connection, collection, path)
        else:
            act = chance.choice([self._update, self._patch, self._patch, self._delete])
            act(server, connection, path, there)
        self.doubtful = ""

    def _create(
        self, server: Server, connection: http.client.HTTPSConnection, collection: str, path: str
    ) -> None:
        version, kind = KINDS[collection]
        name = path.rpartition("/")[2]
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
        status, found = server.ask(connection, "POST", collection, body | {"data": {"n": "0"}})
        assert status == 201, found
        self._promised(path, found)

    def _update(
        self, server: Server, connection: http.client.HTTPSConnection, path: str, there: Any
    ) -> None:
        body = {**there, "data": {"n": str(int(there["data"]["n"]) + 1)}}
        status, found = server.ask(connection, "PUT", path, body)
        assert status == 200, found
        self._promised(path, found)

    def _patch(
        self, server: Server, connection: http.client.HTTPSConnection, path: str, there: Any
    ) -> None:
        patch = {"data": {"n": str(int(there["data"]["n"]) + 1)}}
        media = "application/merge-patch+json"
        status, found = server.ask(connection, "PATCH", path, patch, media)
        assert status == 200, found
        self._promised(path, found)

    def _delete(
        self, server: Server, connection: http.client.HTTPSConnection, path: str, there: Any
    ) -> None:
        status, found = server.ask(connection, "DELETE", path)
        assert status == 200, found
        self.state[path] = None

    def _promised(self, path: str, found: Any) -> None:
        self.revisions.append(revision(found))
        self.state[path] = found

    def recall(self, found: Mapping[str, Any]) -> None:
        """Compare with what is there now, and go on from it."""
        for path, promised in self.state.items():
            if path != self.doubtful:
                assert found.get(path) == promised
        if (path := self.doubtful) and (one := found.get(path)):
            self._check_doubtful(one, self.state.get(path))
        if self.doubtful:
            self.state[self.doubtful] = found.get(self.doubtful)
        self.doubtful = ""

    def _check_doubtful(self, one: Any, promised: Any) -> None:
        """What nobody was promised is there as a whole, one write further, or not at all."""
        before = int(promised["data"]["n"]) if promised else -1
        assert int(one["data"]["n"]) in (before, before + 1)
        if promised and one["data"] == promised["data"]:
            assert one == promised


class Follower:
    """Follows one collection across all servers, each time from where it was."""

    def __init__(self, collection: str) -> None:
        self.collection = collection
        self.state: dict[str, Any] = {}
        self.revisions: list[int] = []

    def begin(self, server: Server) -> None:
        listed = server.get(self.collection)
        self._last = revision(listed)
        for item in listed["items"]:
            path = f"{self.collection}/{item['metadata']['name']}"
            self.state[path] = named(self.collection, item)

    def follow(self, server: Server) -> None:
        for event in server.events(self.collection, f"resourceVersion={self._last}"):
            self._take(event)

    def catch_up(self, server: Server, newest: int) -> None:
        """Hear of everything up to a revision."""
        after = f"resourceVersion={self._last}&timeoutSeconds={PATIENCE}"
        if self._last < newest:
            for event in server.events(self.collection, after):
                self._take(event)
                if self._last >= newest:
                    return

    def _take(self, event: Any) -> None:
        obj = event["object"]
        assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
        # Each change once, and none before one that was told.
        assert revision(obj) > self._last
        path = f"{self.collection}/{obj['metadata']['name']}"
        assert (path in self.state) == (event["type"] != "ADDED"), event
        self._last = revision(obj)
        self.revisions.append(self._last)
        if event["type"] == "DELETED":
            del self.state[path]
        else:
            self.state[path] = obj


class Walk:
    """Rounds of writing, each ended by a kill."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.writers = [Writer(number) for number in range(WRITERS)]
        self.followers = [Follower(CONFIG_MAPS), Follower(WIDGETS)]
        self.starts: list[float] = []
        self.server = self._start()
        define(self.server)
        for follower in self.followers:
            follower.begin(self.server)

    def _start(self) -> Server:
        server = Server(self.folder)
        self.starts.append(server.seconds)
        return server

    def round(self) -> None:
        wrote = threading.Semaphore(0)
        failures: list[BaseException] = []
        threads = [
            threading.Thread(
                target=guarded, args=(failures, writer.write, self.server, seed, wrote)
            )
            for writer in self.writers
            for seed in [random.Random(self.chance.random())]
        ]
        threads += [
            threading.Thread(target=guarded, args=(failures, follower.follow, self.server))
            for follower in self.followers
        ]
        for thread in threads:
            thread.start()
        for _ in range(self.chance.randrange(200)):
            assert wrote.acquire(timeout=PATIENCE)
        time.sleep(self.chance.random() / 100)
        said = self.server.kill()
        for thread in threads:
            thread.join()
        assert (failures, said) == ([], "")
        self.server = self._start()
        self._check()

    def _check(self) -> None:
        listed = [self.server.get(path) for path in KINDS]
        found = {
            f"{path}/{item['metadata']['name']}": named(path, item)
            for path, one in zip(KINDS, listed, strict=True)
            for item in one["items"]
        }
        newest = max(revision(one) for one in listed)
        assert newest >= max(n for writer in self.writers for n in (0, *writer.revisions))
        for writer in self.writers:
            writer.recall(found)
        for follower in self.followers:
            theirs = {path: obj for path, obj in found.items() if follower.collection in path}
            follower.catch_up(self.server, max(map(revision, theirs.values()), default=0))
        # A deletion that came last is not in any list: it is heard when the next change is.
        told = {number for follower in self.followers for number in follower.revisions}
        promised = {number for writer in self.writers for number in writer.revisions}
        assert promised <= told

    def end(self) -> None:
        """Everything that was told, put together, is what is there."""
        connection = self.server.connect()
        for follower in self.followers:
            version, kind = KINDS[follower.collection]
            last = {"apiVersion": version, "kind": kind, "metadata": {"name": "last"}}
            status, made = self.server.ask(connection, "POST", follower.collection, last)
            assert status == 201, made
            assert revision(made) > max((0, *follower.revisions))
            follower.catch_up(self.server, revision(made))
            assert follower.state == {
                f"{follower.collection}/{item['metadata']['name']}": named(
                    follower.collection, item
                )
                for item in self.server.get(follower.collection)["items"]
            }
        connection.close()


def named(collection: str, item: Any) -> Any:
    """An item of a list, which does not say what it is, as it is told alone."""
    version, kind = KINDS[collection]
    return {"apiVersion": version, "kind": kind, **item}


def guarded(failures: list[BaseException], act: Any, *arguments: Any) -> None:
    try:
        act(*arguments)
    except BaseException as error:
        failures.append(error)


def define(server: Server) -> None:
    connection = server.connect()
    status, found = server.ask(connection, "POST", DEFINITIONS, WIDGET)
    assert status == 201, found
    while (
        server.ask(connection, "GET", f"{DEFINITIONS}/widgets.killed.example.com")[1]["status"][
            "acceptedNames"
        ].get("kind")
        != "Widget"
    ):
        time.sleep(0.01)
    connection.close()


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    # Which rounds were walked is told by a failure, and walked again with POLYVER_SEED.
    seed = int(os.environ.get("POLYVER_SEED") or random.randrange(1 << 32))
    print(f"POLYVER_SEED={seed}")
    walk = Walk(tmp_path / "data", seed)
    yield walk
    walk.server.kill()


def test_what_was_acknowledged_survives_a_kill(walk: Walk) -> None:
    for _ in range(ROUNDS):
        walk.round()
    walk.end()
    writes = sum(len(writer.revisions) for writer in walk.writers)
    print(f"{writes} writes; ready again after {max(walk.starts[1:]):.2f} s at most")
