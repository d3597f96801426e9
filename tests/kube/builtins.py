"""Sends objects of built-in kinds to a real API server and keeps its answers as test data.

python -m tests.kube.builtins       writes tests/kube/server/recorded_builtins.json

The objects, and what is done to them, are in builtins.yaml. Answers are kept without what differs
from run to run: managedFields, uids, revisions, times; addresses and ports that the server chose
are `<address>` and `<port>`, names that it made end in `<suffix>`. Texts end with their first line:
what follows is a difference between the structures inside the real server, field by field.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from polyver.kube.objects import load_manifests
from polyver.kube.objects.builtin import builtin_kinds
from polyver.kube.objects.kinds import ResourceKind
from polyver.testing import LocalCluster

HERE = Path(__file__).parent
RECORDED = HERE / "server" / "recorded_builtins.json"
NAMESPACE = "builtins"
NAMESPACES = (NAMESPACE, "builtins-limited")
JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
HIDDEN = ("managedFields", "uid", "resourceVersion", "creationTimestamp")
UID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NOW = re.compile(r"20(2[5-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, and where in the list it stands."""

    about: str
    method: str
    path: str
    body: bytes | None
    media: str
    given: str
    """All that the case sends: what is not in it was chosen by the server."""


def load_bodies() -> list[dict[str, Any]]:
    path = HERE / "builtins.yaml"
    [document] = load_manifests(path.read_text(), path.name)
    given: Any = document.value
    return list(given)


def requests() -> Iterator[Asked]:
    """All that is asked, in its order."""
    for number, case in enumerate(load_bodies()):
        yield from _requests_of(number, case)


def _requests_of(number: int, case: dict[str, Any]) -> Iterator[Asked]:
    obj, given = case["create"], json.dumps(case)
    metadata = obj["metadata"]
    path = _path(_kind(obj["apiVersion"], obj["kind"]), metadata.get("namespace", NAMESPACE))
    about = f"{number}: {obj['kind']} {metadata.get('name', '')}"
    yield Asked(about, "POST", path, json.dumps(obj).encode(), JSON, given)
    own = f"{path}/{metadata.get('name')}"
    for step, ways in enumerate(case.get("then", ())):
        for way, body in ways.items():
            yield _then(f"{about} then {step}: {way}", way, body, own, given)


def _then(about: str, way: str, body: Any, own: str, given: str) -> Asked:
    match way:
        case "get":
            other = re.sub("autoscaling/v[12]", body, own)
            return Asked(about, "GET", other, None, JSON, given)
        case "delete":
            return Asked(about, "DELETE", own, None, JSON, given)
        case "replace":
            return Asked(about, "PUT", own, json.dumps(body).encode(), JSON, given)
        case "status":
            patch = json.dumps({"status": body}).encode()
            return Asked(about, "PATCH", f"{own}/status", patch, MERGE, given)
        case "scale":
            patch = json.dumps({"spec": body}).encode()
            return Asked(about, "PATCH", f"{own}/scale", patch, MERGE, given)
        case "merge" | "strategic":
            media = MERGE if way == "merge" else STRATEGIC
            return Asked(about, "PATCH", own, json.dumps(body).encode(), media, given)
    raise ValueError(f"{about}: there is no way to {way}")


def _kind(api_version: str, name: str) -> ResourceKind:
    for kind in builtin_kinds():
        if (kind.api_version, kind.kind) == (api_version, name):
            return kind
    raise LookupError(f"{api_version} has no {name}")


def _path(kind: ResourceKind, namespace: str) -> str:
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    inside = f"/namespaces/{namespace}" if kind.namespaced else ""
    return f"{root}{inside}/{kind.plural}"


def kept(asked: Asked, status: int, warnings: list[str], body: bytes) -> dict[str, Any]:
    """An answer in which nothing differs from run to run."""
    answer: dict[str, Any] = {"about": asked.about, "status": status}
    if warnings:
        answer["warnings"] = warnings
    return answer | {"body": _stable(json.loads(body), asked.given)}


def _stable(value: Any, given: str) -> Any:
    match value:
        case dict():
            return _named(
                {key: _stable(value[key], given) for key in value if key not in HIDDEN}, given
            )
        case list():
            return [_stable(each, given) for each in value]
        case str():
            return _text(value, given)
        case int() if 30000 <= value <= 32767 and str(value) not in given:
            return "<port>"
        case _:
            return value


def _named(value: dict[str, Any], given: str) -> dict[str, Any]:
    prefix, name = value.get("generateName"), value.get("name")
    if prefix and name and name.startswith(prefix):
        value["name"] = f"{prefix}<suffix>"
    return value


def _text(value: str, given: str) -> str:
    if re.fullmatch(r"10\.0\.\d+\.\d+", value) and value not in given:
        return "<address>"
    text = NOW.sub("<time>", UID.sub("<uid>", value))
    return re.sub(r"\n@@.*", "", text, flags=re.DOTALL)


def ask(cluster: LocalCluster) -> Iterator[dict[str, Any]]:
    trust = ssl.create_default_context(cafile=str(cluster.ca_file))
    connection = http.client.HTTPSConnection(urlsplit(cluster.url).netloc, context=trust)
    own = {"Authorization": f"Bearer {cluster.token}", "User-Agent": "case/1"}
    for name in NAMESPACES:
        _begin(connection, own, name)
    for asked in requests():
        headers = own | {"Accept": JSON, "Content-Type": asked.media}
        connection.request(asked.method, asked.path, asked.body, headers)
        answer = connection.getresponse()
        warnings = list(answer.headers.get_all("Warning") or ())
        yield kept(asked, answer.status, warnings, answer.read())


def _begin(connection: http.client.HTTPSConnection, headers: Mapping[str, str], name: str) -> None:
    """A namespace with its default account, without which no pod is created."""
    body = json.dumps({"metadata": {"name": name}})
    connection.request("POST", "/api/v1/namespaces", body, {**headers, "Content-Type": JSON})
    connection.getresponse().read()
    for _ in range(100):
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        connection.request("GET", account, None, dict(headers))
        answer = connection.getresponse()
        answer.read()
        if answer.status == http.HTTPStatus.OK:
            return
        time.sleep(0.1)
    raise TimeoutError(f"the namespace {name} has no default account")


def main() -> int:
    with LocalCluster() as cluster:
        found = list(ask(cluster))
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    refused = sum(answer["status"] >= http.HTTPStatus.BAD_REQUEST for answer in found)
    print(f"{len(found)} answers, {refused} of them refusals")
    return 0


if __name__ == "__main__":
    sys.exit(main())
