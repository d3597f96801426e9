"""Writes down what the built-in kinds and types of Kubernetes are, as facts that polyver reads.

python -m tests.kube.facts      needs what `make kube` builds, and Go; a minute when it is cold
"""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.kube import build

from polyver.kube.objects.builtin import builtin_kinds
from polyver.kube.objects.kinds import ResourceKind
from polyver.testing import LocalCluster

ROOT = Path(__file__).resolve().parents[2]
BUILTIN = ROOT / "src/polyver/kube/objects/builtin"
BODIES = ROOT / "tests/kube/objects/typed_bodies.txt"
ANSWERS = ROOT / "tests/kube/objects/recorded_typed.json"
OWN_METADATA = "uid namespace resourceVersion creationTimestamp managedFields generation".split()
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
PART_VERBS = ["get", "patch", "update"]
PARTS = {"status", "scale", "finalize", "token"}  # others need nodes that run something
KINDS = {
    "": "configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims"
    " persistentvolumes pods resourcequotas secrets serviceaccounts services",
    "apiregistration.k8s.io": "apiservices",
    "apps": "controllerrevisions daemonsets deployments replicasets statefulsets",
    "events.k8s.io": "events",
    "authentication.k8s.io": "selfsubjectreviews tokenreviews",
    "authorization.k8s.io": "localsubjectaccessreviews selfsubjectaccessreviews"
    " selfsubjectrulesreviews subjectaccessreviews",
    "autoscaling": "horizontalpodautoscalers",
    "batch": "cronjobs jobs",
    "networking.k8s.io": "ingressclasses ingresses networkpolicies",
    "policy": "poddisruptionbudgets",
    "rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
    "storage.k8s.io": "storageclasses",
    "storagemigration.k8s.io": "storageversionmigrations",
    "admissionregistration.k8s.io": "mutatingwebhookconfigurations validatingwebhookconfigurations",
    "apiextensions.k8s.io": "customresourcedefinitions",
    "coordination.k8s.io": "leases",
    "discovery.k8s.io": "endpointslices",
}


def types() -> str:
    """What the Go structs and the OpenAPI definitions of one release say."""
    command = [str(build._go()), "run", "./facts"]
    folder = build.MODULES / "kubernetes"
    environment = build._environment()
    run = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE)
    return run.stdout.decode()


def kinds(cluster: LocalCluster) -> Iterator[dict[str, Any]]:
    """The kinds that polyver has, as a real server's discovery tells of them."""
    for path in ("/api", "/apis"):
        with ask(cluster, path) as answer:
            groups = json.load(answer)["items"]
        for group in groups:
            name = group["metadata"].get("name", "")
            wanted = KINDS.get(name, "").split()
            for version in group["versions"]:
                for resource in version["resources"]:
                    if resource["resource"] in wanted:
                        yield kind(name, version["version"], resource)


def kind(group: str, version: str, resource: dict[str, Any]) -> dict[str, Any]:
    found = {
        "group": group,
        "version": version,
        "kind": resource["responseKind"]["kind"],
        "plural": resource["resource"],
        "singular": resource["singularResource"],
        "namespaced": resource["scope"] == "Namespaced",
        "short_names": resource.get("shortNames", []),
        "categories": resource.get("categories", []),
        "verbs": resource["verbs"] if resource["verbs"] != VERBS else [],
        "subresources": [
            part(each) for each in resource.get("subresources", []) if each["subresource"] in PARTS
        ],
    }
    return {key: value for key, value in found.items() if value not in ([], "")}


def part(subresource: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": subresource["subresource"]}
    if subresource["verbs"] != PART_VERBS:
        found["verbs"] = subresource["verbs"]
    if (other := subresource["responseKind"])["group"]:
        found |= other
    return found


def answers(cluster: LocalCluster) -> Iterator[dict[str, Any]]:
    """What a real server says to each of the bodies that the tests decode."""
    paths = {each.plural: path_of(each) for each in reversed(builtin_kinds())}
    for number, line in enumerate(BODIES.read_text().splitlines()[1:]):
        resource, _, body = line.partition(" ")
        text = body.replace("$name", f"a{number}")
        yield {"resource": resource, "body": text} | answer(cluster, paths[resource], text)


def path_of(kind: ResourceKind) -> str:
    scope = "/namespaces/default" if kind.namespaced else ""
    return f"/{'apis' if kind.group else 'api'}/{kind.api_version}{scope}/{kind.plural}"


def answer(cluster: LocalCluster, path: str, body: str) -> dict[str, Any]:
    try:
        with ask(cluster, path, body.encode()) as reply:
            value, warnings = json.load(reply), reply.headers.get_all("Warning", [])
    except urllib.error.HTTPError as error:
        return {"status": error.code, "message": json.load(error)["message"]}
    for name in OWN_METADATA:
        value["metadata"].pop(name, None)
    if value["kind"] == "CustomResourceDefinition":
        del value["status"]  # the server writes it at once
    texts = [json.loads(text[len("299 - ") :].encode("latin-1")) for text in warnings]
    return {"status": 201, "value": value, "problems": [each for each in texts if "field" in each]}


def ask(cluster: LocalCluster, path: str, body: bytes | None = None) -> Any:
    headers = {"Authorization": f"Bearer {cluster.token}", "Accept": DISCOVERY}
    if body is not None:
        headers |= {"Accept": "application/json", "Content-Type": "application/json"}
    request = urllib.request.Request(cluster.url + path, data=body, headers=headers)
    context = ssl.create_default_context(cafile=cluster.ca_file)
    return urllib.request.urlopen(request, context=context)


def write(path: Path, lines: Iterator[dict[str, Any]]) -> None:
    text = ",\n".join(json.dumps(each, ensure_ascii=False) for each in lines)
    path.write_text(f"[\n{text}\n]\n")


def main() -> int:
    build.assets()
    (BUILTIN / "types.json").write_text(types())
    with LocalCluster() as cluster:
        write(BUILTIN / "kinds.json", kinds(cluster))
        write(ANSWERS, answers(cluster))
    return 0


if __name__ == "__main__":
    sys.exit(main())
