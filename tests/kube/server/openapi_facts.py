"""What the real server's OpenAPI documents say of built-in types, without their words.

`python -m tests.kube.server.openapi_facts` asks a real server and writes recorded_openapi.json.
"""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from polyver.kube.objects.builtin import builtin_kinds
from polyver.kube.objects.kinds import ResourceKind
from polyver.testing import LocalCluster

RECORDED = Path(__file__).parent / "recorded_openapi.json"
REF = "#/components/schemas/"
Facts = dict[str, dict[str, Any]]


def facts_of(schemas: dict[str, Any], names: Iterable[str]) -> Facts:
    """The facts of these components, and of those that they refer to."""
    facts: Facts = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in facts:
            facts[name] = _component(schemas[name])
            waiting += references(schemas[name])
    return dict(sorted(facts.items()))


def references(schema: Any) -> Iterator[str]:
    """The components to which a schema refers; a property may be called $ref, too."""
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.removeprefix(REF).removeprefix("#/definitions/")
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from references(item)


def of_kind(schemas: dict[str, Any], group: str, version: str, kind: str) -> str:
    """The component that says that it is this kind's."""
    wanted = {"group": group, "version": version, "kind": kind}
    marked = "x-kubernetes-group-version-kind"
    return next(name for name, schema in schemas.items() if wanted in schema.get(marked, ()))


def _component(schema: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {"is": _type(schema)}
    if "properties" in schema:
        fields = schema["properties"].items()
        facts = {"fields": {name: _field(field) for name, field in sorted(fields)}}
    if required := schema.get("required"):
        facts["required"] = sorted(required)
    if schema.get("x-kubernetes-map-type") == "atomic":
        facts["atomic"] = True
    return facts


def _field(schema: dict[str, Any]) -> str:
    words = [_type(schema)]
    if (kind := schema.get("x-kubernetes-list-type", "atomic")) != "atomic":
        words.append(":".join([kind, *schema.get("x-kubernetes-list-map-keys", ())]))
    if schema.get("x-kubernetes-map-type") == "atomic":
        words.append("atomic")
    if strategy := schema.get("x-kubernetes-patch-strategy"):
        words.append(f"{strategy}:{schema.get('x-kubernetes-patch-merge-key', '')}".rstrip(":"))
    return " ".join(words)


def _type(schema: dict[str, Any]) -> str:
    if found := [name for name in [schema, *schema.get("allOf", ())] if "$ref" in name]:
        return str(found[0]["$ref"].removeprefix(REF))
    if "items" in schema:
        return f"[]{_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map:{_type(schema['additionalProperties'])}"
    if "oneOf" in schema:
        return "|".join(_type(each) for each in schema["oneOf"])
    return f"{schema.get('type', 'any')} {schema.get('format', '')}".strip()


def of_server(cluster: LocalCluster, kinds: Iterable[ResourceKind]) -> Facts:
    """What a real server says of these kinds."""
    facts: Facts = {}
    trust = ssl.create_default_context(cafile=str(cluster.ca_file))
    documents: dict[str, Any] = {}
    for kind in kinds:
        path = f"apis/{kind.api_version}" if kind.group else f"api/{kind.api_version}"
        if path not in documents:
            headers = {"Authorization": f"Bearer {cluster.token}", "Accept": "application/json"}
            request = urllib.request.Request(f"{cluster.url}/openapi/v3/{path}", headers=headers)
            with urllib.request.urlopen(request, context=trust) as answer:
                documents[path] = json.load(answer)["components"]["schemas"]
        schemas = documents[path]
        names = [of_kind(schemas, kind.group, kind.version, kind.kind)]
        if "list" in kind.verbs:
            names.append(of_kind(schemas, kind.group, kind.version, kind.list_kind))
        if "delete" in kind.verbs:
            names += [of_kind(schemas, "", "v1", name) for name in ("Status", "DeleteOptions")]
        facts |= facts_of(schemas, names)
    return dict(sorted(facts.items()))


if __name__ == "__main__":
    with LocalCluster() as running:
        found = of_server(running, builtin_kinds())
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{len(found)} types")
