"""Asks a real API server for the tables of many objects and keeps them as test data.

python -m tests.kube.tables       writes tests/kube/objects/recorded_tables.json

The objects are in tables.yaml. What differs from run to run gets one value: times of today become
`<now>`, ages of seconds `0s`, uids the same uid. Descriptions of columns are left out.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from polyver.kube.objects import load_manifests
from polyver.testing import LocalCluster

HERE = Path(__file__).parent
RECORDED = HERE / "objects" / "recorded_tables.json"
NAMESPACE = "tables"
GROUP = "columns.ex.io"
JSON, MERGE = "application/json", "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
INITIAL = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&timeoutSeconds=1"
INITIAL += "&resourceVersionMatch=NotOlderThan"
NO_UID = "00000000-0000-0000-0000-000000000000"
UID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RECENT = re.compile(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
MOMENTS = re.compile(r"\d{1,2}s")


class Server:
    """One API server, asked over one connection."""

    def __init__(self, cluster: LocalCluster) -> None:
        trust = ssl.create_default_context(cafile=str(cluster.ca_file))
        self._connection = http.client.HTTPSConnection(urlsplit(cluster.url).netloc, context=trust)
        self._token = cluster.token

    def ask(
        self, method: str, path: str, body: object = None, *, accept: str = JSON, sent: str = JSON
    ) -> bytes:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept}
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, headers | {"Content-Type": sent})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {content.decode()}")
        return content

    def get(self, path: str, accept: str = JSON) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask("GET", path, accept=accept))
        return found

    def path(self, api_version: str, kind: str) -> str:
        """Where objects of a kind are found; those with namespaces in ours."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        for resource in self.get(root)["resources"]:
            if resource["kind"] == kind and "/" not in resource["name"]:
                inside = f"/namespaces/{NAMESPACE}" if resource["namespaced"] else ""
                return f"{root}{inside}/{resource['name']}"
        raise LookupError(f"{api_version} has no {kind}")


def create(server: Server, path: str, obj: dict[str, Any]) -> None:
    """Create an object, with its status, and delete it if it says so: it has a finalizer then."""
    status, deleted = obj.get("status"), obj.get("delete")
    made = {key: obj[key] for key in obj if key not in ("status", "delete")}
    if obj["kind"] == "Pod":  # the names of volumes with tokens differ from run to run
        made["spec"] = made["spec"] | {"automountServiceAccountToken": False}
    server.ask("POST", path, made)
    own = f"{path}/{obj['metadata']['name']}"
    if status:
        server.ask("PATCH", f"{own}/status", {"status": status}, sent=MERGE)
    if deleted:
        server.ask("DELETE", own)


def stable(value: Any) -> Any:
    """A value in which nothing differs from run to run."""
    match value:
        case dict():
            hidden = ("managedFields", "uid", "resourceVersion", "generation", "generateName")
            return {key: stable(value[key]) for key in value if key not in hidden}
        case list():
            return [stable(each) for each in value]
        case str() if MOMENTS.fullmatch(value):
            return "0s"
        case str():
            return RECENT.sub("<now>", UID.sub(NO_UID, value))
        case _:
            return value


def recorded(server: Server, path: str) -> dict[str, Any]:
    """The tables of one kind: of its list, of a list of nothing, and of each object in a watch."""
    table = server.get(f"{path}?includeObject=Object", TABLE)
    nothing = server.get(f"{path}?labelSelector=no-such-label", TABLE)
    alone, bookmark = initial_cells(server, path)
    return {
        "columns": columns_of(table),
        "nothing": nothing["rows"],
        "rows": [row_of(row, alone) for row in table["rows"]],
        "bookmark": bookmark,
    }


def columns_of(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {key: column[key] for key in column if key != "description"}
        for column in table["columnDefinitions"]
    ]


def initial_cells(server: Server, path: str) -> tuple[dict[str, Any], list[Any]]:
    """The cells of each object by its name, and those of a bookmark, as a watch shows them."""
    lines = server.ask("GET", f"{path}?{INITIAL}", accept=TABLE).splitlines()
    events = [json.loads(line) for line in lines]
    rows = [(event["type"], stable(event["object"]["rows"][0])) for event in events]
    alone = {
        row["object"]["metadata"]["name"]: row["cells"] for kind, row in rows if kind == "ADDED"
    }
    return alone, next(row["cells"] for kind, row in rows if kind == "BOOKMARK")


def row_of(row: dict[str, Any], alone: dict[str, Any]) -> dict[str, Any]:
    """A row, and its cells in a table of its own if they are others there."""
    for condition in row.get("conditions", []):
        condition.pop("message", None)
    row = stable(row)
    cells = alone[row["object"]["metadata"]["name"]]
    return row if cells == row["cells"] else row | {"alone": cells}


def builtin_tables(server: Server, objects: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    paths: dict[tuple[str, str], str] = {}
    for obj in objects:
        kind = obj["apiVersion"], obj["kind"]
        paths[kind] = paths.get(kind) or server.path(*kind)
        create(server, paths[kind], obj)
        if obj["metadata"]["name"] == NAMESPACE and obj["kind"] == "Namespace":
            wait_for(server, f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default")
    time.sleep(2)  # for namespaces to be terminating, and for kinds to be established
    paths["autoscaling/v1", "HorizontalPodAutoscaler"] = server.path(
        "autoscaling/v1", "HorizontalPodAutoscaler"
    )
    for (api_version, name), path in paths.items():
        names = [obj["metadata"]["name"] for obj in objects if obj["kind"] == name]
        tables = recorded(server, path)
        tables["rows"] = [row for row in tables["rows"] if is_ours(row["object"], names)]
        yield {"apiVersion": api_version, "kind": name, **tables}


def is_ours(obj: dict[str, Any], names: list[str]) -> bool:
    """Whether we made an object, and its version can tell all of it without annotations."""
    metadata = obj["metadata"]
    hidden = any(key.startswith("autoscaling.alpha") for key in metadata.get("annotations", {}))
    return metadata["name"] in names and not hidden


def wait_for(server: Server, path: str) -> None:
    for _ in range(100):
        try:
            server.get(path)
        except RuntimeError:
            time.sleep(0.1)
        else:
            return
    server.get(path)


def definition(plural: str, columns: list[dict[str, Any]]) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True}
    version |= {"schema": {"openAPIV3Schema": anything}, "additionalPrinterColumns": columns}
    names = {"plural": plural, "kind": plural.title()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }


def custom_tables(server: Server, kinds: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for number, kind in enumerate(kinds):
        plural = f"things{number}"
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        server.ask("POST", path, definition(plural, kind["columns"]))
    for number, kind in enumerate(kinds):
        plural = f"things{number}"
        path = f"/apis/{GROUP}/v1/{plural}"
        wait_for(server, path)
        for count, spec in enumerate(kind["objects"]):
            metadata = {"name": f"o{count:02}", "annotations": {"ex.io/x": f"annotation {count}"}}
            obj = {"apiVersion": f"{GROUP}/v1", "kind": plural.title(), "metadata": metadata}
            server.ask("POST", path, obj | {"spec": spec})
        tables = recorded(server, path)
        yield {"about": kind["about"], "printerColumns": kind["columns"], **tables}


def scale_tables(server: Server) -> Iterator[dict[str, Any]]:
    """The tables of scales: of a Deployment from before, and of an object of a custom kind."""
    scaled = definition("scaled", [])
    replicas = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    scaled["spec"]["versions"][0]["subresources"] = {"status": {}, "scale": replicas}
    server.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", scaled)
    path = f"/apis/{GROUP}/v1/scaled"
    wait_for(server, path)
    obj = {"apiVersion": f"{GROUP}/v1", "kind": "Scaled", "metadata": {"name": "a"}}
    create(server, path, obj | {"spec": {"replicas": 3}, "status": {"replicas": 2}})
    deployment = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/a"
    for custom, own in ((False, deployment), (True, f"{path}/a")):
        table = server.get(f"{own}/scale?includeObject=Object", TABLE)
        yield {"custom": custom, "columns": columns_of(table), "rows": stable(table["rows"])}


def main() -> int:
    path = HERE / "tables.yaml"
    [document] = load_manifests(path.read_text(), path.name)
    given: Any = document.value
    now = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    with LocalCluster() as cluster:
        server = Server(cluster)
        found = {
            "now": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "builtin": list(builtin_tables(server, given["builtin"])),
            "custom": list(custom_tables(server, given["custom"])),
            "scales": list(scale_tables(server)),
        }
    RECORDED.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    print(f"{len(found['builtin'])} built-in kinds, {len(found['custom'])} custom kinds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
