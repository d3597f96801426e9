"""Writes random sequences of writes to a real API server, and keeps who owned what after each.

python -m tests.kube.applies        writes tests/kube/objects/recorded_apply.json

Each step is a create, a PUT, a merge patch or an apply by one of a few managers; kept are the
object as it was answered, or the text of the refusal.
"""

from __future__ import annotations

import http.client
import json
import random
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from tests.deadlines import HANG

from polyver.core import PolyverError
from polyver.testing import LocalCluster

RECORDED = Path(__file__).parent / "objects" / "recorded_apply.json"
GROUP = "applies.ex.io"
SEED = 7
AT_ONCE = 4
MANAGERS = ("ann", "bob", "cyd", "dee")
FORGOTTEN = ("uid", "resourceVersion", "generation", "creationTimestamp", "namespace")
ENTRY = ("manager", "operation", "apiVersion", "subresource", "fieldsV1")
Value = dict[str, Any]

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_MEMBER = {"type": "object", "required": ["id"], "properties": {"id": _NUMBER, "role": _TEXT}}
_PORT = {
    "type": "object",
    "required": ["port"],
    "properties": {
        "port": _NUMBER,
        "protocol": {"type": "string", "default": "TCP"},
        "name": _TEXT,
        "flags": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
    },
}
SPEC = {
    "type": "object",
    "properties": {
        "color": _TEXT,
        "count": {"type": "integer", "default": 1},
        "on": {"type": "boolean"},
        "note": {"type": "string", "nullable": True},
        "size": {"x-kubernetes-int-or-string": True},
        "limits": {"type": "object", "additionalProperties": _TEXT},
        "frozen": {
            "type": "object",
            "additionalProperties": _TEXT,
            "x-kubernetes-map-type": "atomic",
        },
        "tags": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "args": {"type": "array", "items": _TEXT},
        "ports": {
            "type": "array",
            "items": _PORT,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
        },
        "teams": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": _TEXT,
                    "lead": _TEXT,
                    "members": {
                        "type": "array",
                        "items": _MEMBER,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["id"],
                    },
                },
            },
        },
        "inner": {
            "type": "object",
            "properties": {
                "a": _TEXT,
                "b": {"type": "object", "properties": {"c": _TEXT, "d": _NUMBER}},
            },
        },
        "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
STATUS = {"type": "object", "properties": {"phase": _TEXT, "ready": _NUMBER}}
_ONLY_OLD = {**SPEC, "properties": {**SPEC["properties"], "old": _TEXT}}  # type: ignore[dict-item]
SCHEMAS = {
    f"{GROUP}/v1": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}},
    f"{GROUP}/v1beta1": {"type": "object", "properties": {"spec": _ONLY_OLD, "status": STATUS}},
}
"""Of the kind Thing, by API version: all that server-side apply tells apart."""

PLACES = {
    "Thing": f"/apis/{GROUP}/v1/namespaces/default/things",
    "ConfigMap": "/api/v1/namespaces/default/configmaps",
    "Service": "/api/v1/namespaces/default/services",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
}
API_VERSIONS = {
    "Thing": f"{GROUP}/v1",
    "ConfigMap": "v1",
    "Service": "v1",
    "Deployment": "apps/v1",
}
COUNTS = {"Thing": 90, "ConfigMap": 18, "Service": 5, "Deployment": 4}


class _Dice:
    """Small random objects; the same numbers give the same ones."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def one(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def some(self, *choices: Any, most: int = 3) -> list[Any]:
        return self._random.sample(choices, self._random.randint(0, min(most, len(choices))))

    def part(self, share: float, **makers: Callable[[], Any]) -> Value:
        return {name: make() for name, make in makers.items() if self.chance(share)}

    def text(self) -> str:
        return str(self.one("x", "y", "z"))

    def texts(self) -> dict[str, str]:
        return {key: self.text() for key in self.some("k", "l", "m")}

    def metadata(self) -> Value:
        found = self.part(0.3, labels=self.texts, annotations=self.texts)
        return found | self.part(0.1, finalizers=lambda: self.some("ex.io/a", "ex.io/b"))

    def thing(self) -> Value:
        share = self.one(0.15, 0.3)
        spec = self.part(
            share,
            color=self.text,
            count=lambda: self.one(1, 2, None),
            on=lambda: self.one(True, False),
            note=lambda: self.one("n", None),
            size=lambda: self.one(1, "50%", True) if self.chance(0.2) else self.one(1, "1"),
            limits=lambda: self.one(self.texts(), self.texts(), None),
            frozen=self.texts,
            tags=lambda: self.some("a", "b", "c", "d", "<e>"),
            args=lambda: self.some("p", "q"),
            ports=lambda: [self._port(port) for port in self.some(80, 443, 9, 10)],
            teams=lambda: [self._team(name) for name in self.some("red", "blue", "tan")],
            inner=self._inner,
            extra=self._extra,
        )
        return {"spec": spec} if spec or self.chance(0.5) else {}

    def _port(self, port: int) -> Value:
        found = self.part(0.4, name=self.text, flags=lambda: self.some("u", "v"))
        return {"port": port} | self.part(0.5, protocol=lambda: self.one("TCP", "UDP")) | found

    def _team(self, name: str) -> Value:
        members = [{"id": each} | self.part(0.5, role=self.text) for each in self.some(1, 2, 10)]
        return {"name": name} | self.part(0.5, lead=self.text, members=lambda: members)

    def _inner(self) -> Value:
        return self.part(
            0.6, a=self.text, b=lambda: self.part(0.6, c=self.text, d=lambda: self.one(1, 2))
        )

    def _extra(self) -> Value:
        return self.part(
            0.5,
            s=lambda: self.one("x", 1, 1.5, True, {"t": 1}, [1], {}, [], None),
            deep=lambda: {"a": {"b": self.text()}} if self.chance(0.5) else self.texts(),
            list=lambda: self.some({"name": "x"}, 1, "y"),
        )

    def configmap(self) -> Value:
        return self.part(0.7, data=self.texts) | self.part(0.1, immutable=lambda: False)

    def service(self) -> Value:
        ports = [
            {"name": f"p{port}", "port": port}
            | self.part(0.5, protocol=lambda: "TCP", targetPort=lambda: self.one(80, "http"))
            for port in self.some(80, 443) or [80]
        ]
        spec = self.part(0.6, selector=self.texts, sessionAffinity=lambda: "None")
        return {"spec": spec | {"ports": ports}}

    def deployment(self) -> Value:
        labels = {"app": "a"}
        containers = [self._container(name) for name in self.some("one", "two") or ["one"]]
        template = {
            "metadata": {"labels": labels | self.texts()},
            "spec": {"containers": containers},
        }
        spec = {"selector": {"matchLabels": labels}, "template": template}
        return {"spec": spec | self.part(0.5, replicas=lambda: self.one(1, 2), paused=lambda: True)}

    def _container(self, name: str) -> Value:
        env = [{"name": each, "value": self.text()} for each in self.some("A", "B")]
        limits = {"limits": {"cpu": self.one("1", "2")}}
        ports = [{"containerPort": port} for port in self.some(80, 443)]
        some = self.part(0.4, env=lambda: env, resources=lambda: limits, ports=lambda: ports)
        return {"name": name, "image": self.one("i:1", "i:2")} | some

    def body(self, kind: str) -> Value:
        found: Value = getattr(self, kind.lower())()
        metadata = self.metadata()
        return found | ({"metadata": metadata} if metadata else {})


def sequences() -> Iterator[tuple[str, str, list[Value]]]:
    """A kind, the name of an object of it, and what is done with it."""
    for kind, count in COUNTS.items():
        for number in range(count):
            name = f"{kind.lower()}-{number}"
            dice = _Dice(f"{SEED}/{name}")
            yield kind, name, [_step(dice, kind, first=not each) for each in range(6)]


def _step(dice: _Dice, kind: str, *, first: bool) -> Value:
    step: Value = {"op": dice.one("create", "apply") if first else _operation(dice)}
    step["manager"] = dice.one(*MANAGERS)
    step["body"] = dice.body(kind)
    if step["op"] == "apply" and dice.chance(0.4):
        step["force"] = True
    if kind == "Thing":
        if dice.chance(0.2):
            step["version"] = "v1beta1"
            if dice.chance(0.5):
                step["body"].setdefault("spec", {})["old"] = dice.text()
        if dice.chance(0.2):
            step["body"]["status"] = dice.part(0.7, phase=dice.text, ready=lambda: 1)
            if not first and step["op"] != "put" and dice.chance(0.7):
                step["subresource"] = "status"
    if dice.chance(0.05) and step["op"] == "merge":
        step["body"] = {"metadata": {"managedFields": dice.one([], [{}])}}
    return step


def _operation(dice: _Dice) -> str:
    return str(dice.one("apply", "apply", "apply", "apply", "merge", "merge", "put"))


MEDIA = {"apply": "application/apply-patch+yaml", "merge": "application/merge-patch+json"}


class _Api:
    def __init__(self, cluster: LocalCluster) -> None:
        context = ssl.create_default_context(cafile=cluster.ca_file)
        self._connection = http.client.HTTPSConnection(
            urlsplit(cluster.url).netloc, context=context, timeout=HANG
        )
        self._token = cluster.token

    def ask(self, method: str, path: str, body: Any = None, media: str = "") -> tuple[int, Value]:
        headers = {"Authorization": f"Bearer {self._token}"}
        headers["Content-Type"] = media or "application/json"
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, headers)
        response = self._connection.getresponse()
        text = response.read()  # a kind that is not served yet is a plain text
        return response.status, json.loads(text) if text.startswith(b"{") else {}


def _define_things(api: _Api) -> None:
    versions = [
        {
            "name": version.partition("/")[2],
            "served": True,
            "storage": version.endswith("/v1"),
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        }
        for version, schema in SCHEMAS.items()
    ]
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": versions,
        },
    }
    status, answer = api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    if status != 201:
        raise PolyverError(f"the kind Thing is refused: {answer}")
    while any(
        api.ask("GET", f"/apis/{version}/namespaces/default/things")[0] != 200
        for version in SCHEMAS
    ):
        time.sleep(0.1)


def _perform(api: _Api, kind: str, name: str, steps: list[Value]) -> Value:
    """The sequence with what came of each step."""
    return {"kind": kind, "steps": [_performed(api, kind, name, step) for step in steps]}


def _performed(api: _Api, kind: str, name: str, step: Value) -> Value:
    version, place = API_VERSIONS[kind], PLACES[kind]
    if "version" in step:
        version, place = f"{GROUP}/{step['version']}", place.replace("/v1/", f"/{step['version']}/")
    query = f"?fieldManager={step['manager']}" + ("&force=true" if "force" in step else "")
    one = f"{place}/{name}" + (f"/{step['subresource']}" if "subresource" in step else "")
    body = {"apiVersion": version, "kind": kind, **step["body"]}
    body["metadata"] = {**body.get("metadata", {}), "name": name}
    match step["op"]:
        case "create":
            status, answer = api.ask("POST", place + query, body)
        case "put":
            _, there = api.ask("GET", one)
            found = there.get("metadata", {})
            body["metadata"]["resourceVersion"] = found.get("resourceVersion", "")
            status, answer = api.ask("PUT", one + query, body)
        case op:
            status, answer = api.ask("PATCH", one + query, body, MEDIA[op])
    return step | {"code": status} | _kept(answer)


def _kept(answer: Value) -> Value:
    """What is worth keeping of an answer, in as few words as will do."""
    if answer.get("kind") == "Status":
        return {"text": answer["message"]}
    metadata = answer.pop("metadata")
    owners = [[each.get(key, "") for key in ENTRY] for each in metadata.pop("managedFields", [])]
    kept = {key: value for key, value in metadata.items() if key not in FORGOTTEN}
    found = {key: value for key, value in answer.items() if key not in ("apiVersion", "kind")}
    return {"object": found | {"metadata": kept}, "owners": owners}


def record() -> list[Value]:
    with LocalCluster() as cluster:
        _define_things(_Api(cluster))
        with ThreadPoolExecutor(AT_ONCE) as workers:
            asked = [
                workers.submit(lambda each: _perform(_Api(cluster), *each), each)
                for each in sequences()
            ]
            return [each.result() for each in asked]


def main() -> int:
    found = record()
    lines = [msgspec.json.encode(each).decode() for each in found]
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    codes = [step["code"] for each in found for step in each["steps"]]
    counted = ", ".join(f"{codes.count(code)} × {code}" for code in sorted(set(codes)))
    print(f"{len(found)} sequences, {RECORDED.stat().st_size:,} bytes: {counted}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PolyverError as error:
        sys.exit(f"error: {error}")
