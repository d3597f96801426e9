"""Random schemas and objects, and what the real server makes of them.

`python -m tests.kube.schemas` asks a real one and writes objects/recorded_schemas.json, which
objects/test_schema_corpus.py compares with our own schemas.
"""

from __future__ import annotations

import copy
import http.client
import json
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.deadlines import HANG
from tests.kube.drawn import Maker, relaxed

from polyver.testing import LocalCluster

RECORDED = Path(__file__).parent / "objects" / "recorded_schemas.json"
GROUP = "schemas.ex.io"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS, OBJECTS, UPDATED, UPDATES, BROKEN = 110, 8, 24, 6, 260
PATIENCE = HANG

NOT_OURS = ('"Rule":', "compilation failed", "cost")


class Asked:
    """A real server that is asked."""

    def __init__(self, cluster: LocalCluster) -> None:
        context = ssl.create_default_context(cafile=str(cluster.ca_file))
        place = urlsplit(cluster.url).netloc
        self._connection = http.client.HTTPSConnection(place, context=context, timeout=PATIENCE)
        self._token = cluster.token

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any, list[str]]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        encoded = json.dumps(body) if body is not None else None
        self._connection.request(method, path, encoded, headers)
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        return response.status, answer, response.headers.get_all("Warning") or []

    def close(self) -> None:
        self._connection.close()

    def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError(what)
            time.sleep(0.1)


def crd(number: int, schema: dict[str, Any]) -> dict[str, Any]:
    names = {"plural": f"s{number}", "singular": f"s{number}", "kind": f"S{number}"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"s{number}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }


def root(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": schema}}


def thing(number: int, name: str, spec: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": f"{GROUP}/v1", "kind": f"S{number}", "metadata": metadata, "spec": spec}


def outcome(answer: tuple[int, Any, list[str]]) -> dict[str, Any]:
    """What is recorded of an answer."""
    status, body, warned = answer
    if status in (200, 201):
        dropped = [text.split('\\"')[1] for text in warned if "unknown field" in text]
        return {"spec": body.get("spec"), "dropped": dropped}
    if status == 422:
        return {"causes": causes_of(body)}
    return {"message": body["message"]}


def causes_of(body: Any) -> list[list[str]]:
    found = body["details"]["causes"]
    return [[each["field"], each["message"], each["reason"]] for each in found]


class Recorder:
    """Makes kinds and objects, and keeps what the server says."""

    def __init__(self, server: Asked, maker: Maker) -> None:
        self._server, self._maker = server, maker

    def created(self) -> list[dict[str, Any]]:
        schemas = [self._maker.with_defaults(self._maker.schema()) for _ in range(KINDS)]
        kept = self._define([root(schema) for schema in schemas], first=0)
        return [
            {"schema": schema, "objects": [self._created(number, schema) for _ in range(OBJECTS)]}
            for number, schema in kept.items()
        ]

    def _created(self, number: int, schema: dict[str, Any]) -> dict[str, Any]:
        spec = self._maker.value(schema["properties"]["spec"])
        path = f"/apis/{GROUP}/v1/s{number}?dryRun=All"
        return {"sent": spec} | outcome(self._server.ask("POST", path, thing(number, "a", spec)))

    def _define(self, schemas: list[dict[str, Any]], *, first: int) -> dict[int, dict[str, Any]]:
        """Make kinds; those that the server takes are returned by their numbers."""
        kept = {}
        for number, schema in enumerate(schemas, first):
            status, body, _ = self._server.ask("POST", CRDS, crd(number, schema))
            if status == 201:
                kept[number] = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for number in kept:
            path = f"/apis/{GROUP}/v1/s{number}"
            self._server.until(lambda path=path: self._served(path), path)  # type: ignore[misc]
        return kept

    def _served(self, path: str) -> bool:
        try:
            return self._server.ask("GET", path)[0] == 200
        except json.JSONDecodeError:
            return False

    def updated(self) -> list[dict[str, Any]]:
        strict = [root(self._maker.schema()) for _ in range(UPDATED)]
        for schema in strict:
            schema["properties"]["probe"] = {"type": "string", "enum": ["x"]}
        loose = [relaxed(schema) for schema in strict]
        kept = self._define(loose, first=1000)
        made = {number: self._stored(number, loose[number - 1000]) for number in kept}
        found = {number: self._tightened(number, strict[number - 1000]) for number in kept}
        return [
            {"schema": tightened, "updates": self._updates(number, made[number])}
            for number, tightened in found.items()
            if tightened is not None
        ]

    def _stored(self, number: int, schema: dict[str, Any]) -> list[Any]:
        made = []
        for each in range(UPDATES):
            spec = self._maker.value(schema["properties"]["spec"], 0.02)
            body = thing(number, f"a{each}", spec)
            status, stored, _ = self._server.ask("POST", f"/apis/{GROUP}/v1/s{number}", body)
            made += [stored] if status == 201 else []
        return made

    def _tightened(self, number: int, schema: dict[str, Any]) -> dict[str, Any] | None:
        versions = crd(number, schema)["spec"]["versions"]
        path = f"{CRDS}/s{number}.{GROUP}"
        status, body, _ = self._server.ask("PATCH", path, {"spec": {"versions": versions}})
        if status != 200:
            return None
        probe = thing(number, "probe", {}) | {"probe": "y"}
        asked = f"/apis/{GROUP}/v1/s{number}?dryRun=All"
        self._server.until(lambda: "probe" in self._refused(asked, probe), path)
        found: dict[str, Any] = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        return found

    def _refused(self, path: str, body: Any) -> list[str]:
        status, answer, _ = self._server.ask("POST", path, body)
        return [each[0] for each in causes_of(answer)] if status == 422 else []

    def _updates(self, number: int, stored: list[Any]) -> list[dict[str, Any]]:
        made = []
        for old in stored:
            name = old["metadata"]["name"]
            spec = self._maker.changed(copy.deepcopy(old.get("spec")))
            path = f"/apis/{GROUP}/v1/s{number}/{name}?dryRun=All"
            answer = self._server.ask("PUT", path, old | {"spec": spec})
            made.append({"old": old.get("spec"), "sent": spec} | outcome(answer))
        return made

    def refused(self) -> list[dict[str, Any]]:
        """Schemas with mistakes, and what is said about them."""
        made = []
        for number in range(BROKEN):
            schema = root(self._maker.broken(self._maker.schema(2)))
            path = f"{CRDS}?dryRun=All"
            status, body, _ = self._server.ask("POST", path, crd(5000 + number, schema))
            if status not in (201, 422):
                continue  # it cannot even be read as a schema
            causes = causes_of(body) if status == 422 else []
            ours = [each for each in causes if not any(word in each[1] for word in NOT_OURS)]
            made.append({"schema": schema, "causes": ours})
        return made


def record(seed: int, to: Path) -> None:
    with LocalCluster() as cluster:
        recorder = Recorder(Asked(cluster), Maker(seed))
        recorded = {
            "created": recorder.created(),
            "updated": recorder.updated(),
            "refused": recorder.refused(),
        }
    lines = {
        part: "[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in entries) + "\n]"
        for part, entries in recorded.items()
    }
    text = ",\n".join(f'"{part}": {entries}' for part, entries in lines.items())
    to.write_text(f"{{\n{text}\n}}\n")
    counts = {part: len(entries) for part, entries in recorded.items()}
    print(f"{to}: {counts}, {to.stat().st_size // 1024} KB", file=sys.stderr)


if __name__ == "__main__":
    record(seed=7, to=RECORDED)
