"""Requests that try to keep the server from answering others, up to the size that it takes.

Each shape is a function that sends its requests and returns the statuses of the answers. `size` is
about how many bytes each body has.
"""

from __future__ import annotations

import base64
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.hostile.kinds import (
    DEFINITIONS,
    GROUP,
    OLD_THINGS,
    ROWS,
    THINGS,
    definition,
    thing,
)
from tests.hostile.serving import CONFIG_MAPS, JSON, Client, compact

__all__ = ["SHAPES", "Shape"]

YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
Send = Callable[[Client, int], Iterator[int]]


@dataclass(frozen=True)
class Shape:
    """One way to keep a server busy."""

    name: str
    send: Send
    statuses: tuple[int, ...]
    """The statuses of its answers, in order; the same ones as kube-apiserver's."""
    largest: int
    """The most bytes with which it makes sense."""


SHAPES: dict[str, Shape] = {}
LIMIT = 3 * 1024 * 1024 - 8192


def shape(*statuses: int, largest: int = LIMIT) -> Callable[[Send], Send]:
    def add(send: Send) -> Send:
        name = send.__name__.replace("_", " ")
        SHAPES[name] = Shape(name, send, statuses, largest)
        return send

    return add


def fill(size: int, each: Callable[[int], Any]) -> list[Any]:
    """As many items as fit into so many bytes of JSON."""
    length = len(compact(each(10**6))) + 1
    return [each(number) for number in range(size // length)]


def post(client: Client, path: str, body: object, query: str = "?dryRun=All") -> int:
    return client.send("POST", path + query, body).status


# Fields that nobody knows, and fields that are there twice.


def unknown(size: int) -> dict[str, Any]:
    return thing("x") | {"spec": {f"unknown{n}": 1 for n in range(size // 18)}}


@shape(201)
def unknown_fields(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, unknown(size))


@shape(400)
def unknown_fields_strict(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, unknown(size), "?fieldValidation=Strict")


@shape(201)
def unknown_fields_of_a_pod(client: Client, size: int) -> Iterator[int]:
    containers = fill(size, lambda n: {"name": f"c{n}", "image": "i", f"u{n}": 1, f"v{n}": {}})
    body = pod("x", containers[:1]) | {
        "spec": {"containers": containers[:1]} | unknown(size)["spec"]
    }
    yield post(client, PODS, body)


@shape(201)
def unknown_fields_in_many_items(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", entries=fill(size, lambda n: {"name": f"n{n}", "u": 1})))


def repeated(size: int, key: Callable[[int], str]) -> str:
    return ",".join(f'"{key(n)}":"v"' for n in range(size // (len(key(10**6)) + 7)))


@shape(201, 400)
def duplicate_keys(client: Client, size: int) -> Iterator[int]:
    start = (
        f'{{"apiVersion":"{GROUP}/v1","kind":"Thing","metadata":{{"name":"x"}},"spec":{{"map":{{'
    )
    body = (start + repeated(size, lambda n: f"k{n % 1000000 // 2:06}") + "}}}").encode()
    yield client.ask("POST", f"{THINGS}?dryRun=All", body).status
    yield client.ask("POST", f"{THINGS}?dryRun=All&fieldValidation=Strict", body).status


@shape(201)
def duplicate_keys_of_a_config_map(client: Client, size: int) -> Iterator[int]:
    body = (
        '{"metadata":{"name":"x"},"data":{' + repeated(size // 3, lambda n: f"k{n // 2:06}") + "}}"
    )
    yield client.ask("POST", f"{CONFIG_MAPS}?dryRun=All", body.encode()).status


# Values that are deep, long or many.


@shape(201)
def deep_values(client: Client, size: int) -> Iterator[int]:
    deep: Any = 1
    for _ in range(180):
        deep = {"a": deep}
    yield post(client, THINGS, thing("x", free={f"k{n}": deep for n in range(size // 1100)}))


@shape(400)
def brackets(client: Client, size: int) -> Iterator[int]:
    yield client.ask("POST", CONFIG_MAPS, b"[" * size).status


@shape(201)
def many_strings(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", plain=fill(size, lambda n: f"n{n}")))


@shape(422)
def many_wrong_types(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", plain=fill(size, lambda n: n)))


@shape(201)
def many_numbers(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", numbers=[1] * (size // 3)))


@shape(201)
def numbers_or_strings(client: Client, size: int) -> Iterator[int]:
    values = fill(size, lambda n: n if n % 2 else f"{n}")
    yield post(client, THINGS, thing("x", either=values))


@shape(400)
def digits(client: Client, size: int) -> Iterator[int]:
    body = compact(thing("x", free={"n": 0})).replace(b":0}", b":" + b"9" * size + b"}")
    yield client.ask("POST", f"{THINGS}?dryRun=All", body).status


@shape(201)
def many_long_numbers(client: Client, size: int) -> Iterator[int]:
    numbers = ",".join(["123456789012345678901234567890.5"] * (size // 33))
    body = compact(thing("x", free={"n": 0})).replace(b":0}", f":[{numbers}]}}".encode())
    yield client.ask("POST", f"{THINGS}?dryRun=All", body).status


@shape(201)
def long_string(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", plain=["\\u0041\n" * (size // 12)]))


@shape(201)
def many_map_keys(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", map={f"key-{n}": "v" for n in range(size // 18)}))


@shape(201)
def null_values(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", map={f"key-{n}": None for n in range(size // 19)}))


# What schemas ask for.


@shape(201)
def set_of_distinct(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", distinct=fill(size, lambda n: f"n{n}")))


@shape(422)
def set_of_equal(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", distinct=fill(size, lambda n: f"n{n // 2:06}")))


@shape(201)
def set_of_lists(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", groups=fill(size, lambda n: [f"n{n}", "b"])))


@shape(201)
def map_list_of_distinct(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", entries=fill(size, lambda n: {"name": f"n{n}"})))


@shape(422)
def map_list_of_equal(client: Client, size: int) -> Iterator[int]:
    entries = fill(size, lambda n: {"name": f"n{n // 2:06}"})
    yield post(client, THINGS, thing("x", entries=entries))


@shape(201)
def defaults_in_many_items(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", filled=[{}] * (size // 16)))


@shape(422)
def pattern_on_a_long_string(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", pattern=["a" * size]))


@shape(422)
def pattern_on_many_strings(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", pattern=["aaaaaaaaaaaaaaaaaaaaaaaaac"] * (size // 30)))


@shape(422)
def wrong_dates(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", dates=["2020-01-01T00:00:0"] * (size // 22)))


@shape(422)
def enum_of_thousands(client: Client, size: int) -> Iterator[int]:
    values = ["value-1999"] * (size // 14) + ["other"] * 100
    yield post(client, THINGS, thing("x", chosen=values))


@shape(201)
def any_of_in_many_items(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", sizes=[{"b": 1}] * (size // 10)))


@shape(422)
def no_any_of_in_many_items(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", sizes=[{"d": 1}] * (size // 10)))


@shape(201)
def embedded_objects(client: Client, size: int) -> Iterator[int]:
    def embedded(number: int) -> Any:
        return {"apiVersion": "v1", "kind": "A", "metadata": {"name": f"n{number}"}}

    yield post(client, THINGS, thing("x", embedded=fill(size, embedded)))


# Rules in CEL.


@shape(201)
def rule_of_two_loops(client: Client, size: int) -> Iterator[int]:
    del size
    yield post(client, THINGS, thing("x", pairs=[f"n{n}" for n in range(400)]))


@shape(201)
def rule_in_each_item(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", each=fill(size, lambda n: f"n{n}")))


@shape(422, largest=1024 * 1024)
def rule_that_matches(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", matched="a" * size))


@shape(201)
def rule_that_splits(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("x", split="a," * (size // 2)))


@shape(201, 200)
def rules_of_transitions(client: Client, size: int) -> Iterator[int]:
    kept = fill(size // 2, lambda n: {"name": f"n{n}"})
    yield post(client, THINGS, thing("transitions", kept=kept), "")
    changed = {"spec": {"kept": [each | {"value": "2"} for each in kept]}}
    yield client.send("PATCH", f"{THINGS}/transitions?dryRun=All", changed, MERGE).status


# Server-side apply.


def apply(client: Client, body: object, manager: str, query: str = "") -> int:
    path = f"{THINGS}/{body['metadata']['name']}"  # type: ignore[index]
    return client.send("PATCH", f"{path}?fieldManager={manager}{query}", body, APPLY).status


@shape(201, 200, 200, 409, 200)
def apply_of_many_entries(client: Client, size: int) -> Iterator[int]:
    entries = fill(size // 2, lambda n: {"name": f"n{n}", "value": "1"})
    others = [each | {"value": "2"} for each in entries]
    yield apply(client, thing("applied", entries=entries), "a")
    yield apply(client, thing("applied", entries=entries), "b")
    yield apply(client, thing("applied", entries=entries[::-1]), "b")
    yield apply(client, thing("applied", entries=others), "c")
    yield apply(client, thing("applied"), "a")


@shape(201, *[200] * 30)
def apply_by_many_managers(client: Client, size: int) -> Iterator[int]:
    entries = fill(size // 20, lambda n: {"name": f"n{n}", "value": "1"})
    for number in range(31):
        yield apply(client, thing("shared", entries=entries), f"manager-{number}")


@shape(201)
def apply_of_a_set(client: Client, size: int) -> Iterator[int]:
    yield apply(client, thing("set", distinct=fill(size // 2, lambda n: f"n{n}")), "a")


@shape(201)
def apply_of_yaml(client: Client, size: int) -> Iterator[int]:
    lines = "".join(f"  - name: n{n}\n" for n in range(size // 18))
    body = (
        f"apiVersion: {GROUP}/v1\nkind: Thing\nmetadata:\n  name: yaml\nspec:\n  entries:\n{lines}"
    )
    path = f"{THINGS}/yaml?fieldManager=a&dryRun=All"
    yield client.ask("PATCH", path, body.encode(), APPLY).status


@shape(201)
def body_in_yaml(client: Client, size: int) -> Iterator[int]:
    body = f"apiVersion: {GROUP}/v1\nkind: Thing\nmetadata: {{name: yaml}}\nspec:\n  plain:\n"
    body += "".join(f"  - 'n{n}'\n" for n in range(size // 14))
    yield client.ask("POST", f"{THINGS}?dryRun=All", body.encode(), YAML).status


@shape(400)
def aliases_in_yaml(client: Client, size: int) -> Iterator[int]:
    del size
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    yield client.ask("POST", f"{THINGS}?dryRun=All", "\n".join(lines).encode(), YAML).status


@shape(201)
def many_managed_fields(client: Client, size: int) -> Iterator[int]:
    def entry(number: int) -> Any:
        fields: Any = {"f:spec": {"f:map": {f"f:k{number}": {}}}}
        about = {"manager": f"m{number}", "operation": "Apply", "apiVersion": f"{GROUP}/v1"}
        return about | {"fieldsType": "FieldsV1", "fieldsV1": fields}

    body = thing("x")
    body["metadata"]["managedFields"] = fill(size, entry)
    yield post(client, THINGS, body)


# Patches.


@shape(201, 200, 200)
def json_patch_of_many_operations(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("patched", plain=fill(size // 3, lambda n: f"n{n}")), "")
    first = [{"op": "add", "path": "/spec/plain/0", "value": "v"}] * 10_000
    yield client.send("PATCH", f"{THINGS}/patched?dryRun=All", first, JSON_PATCH).status
    keys = [{"op": "add", "path": "/spec/map", "value": {}}]
    keys += [{"op": "add", "path": f"/spec/map/k{n}", "value": "v"} for n in range(9999)]
    yield client.send("PATCH", f"{THINGS}/patched?dryRun=All", keys, JSON_PATCH).status


@shape(201, 200)
def json_patch_of_many_tests(client: Client, size: int) -> Iterator[int]:
    values = fill(size // 2, lambda n: f"n{n}")
    yield post(client, THINGS, thing("tested", plain=values), "")
    some = [{"op": "test", "path": "/spec/plain", "value": values}]
    moves = [{"op": "move", "from": "/spec/plain", "path": "/spec/plain"}] * 9999
    yield client.send("PATCH", f"{THINGS}/tested?dryRun=All", some + moves, JSON_PATCH).status


@shape(201, 422)
def json_patch_of_copies(client: Client, size: int) -> Iterator[int]:
    yield post(client, THINGS, thing("copied", free={"a": ["x" * (size // 8)]}), "")
    copies = [{"op": "copy", "from": "/spec/free", "path": f"/spec/free/b{n}"} for n in range(999)]
    yield client.send("PATCH", f"{THINGS}/copied?dryRun=All", copies, JSON_PATCH).status


@shape(201, 200)
def merge_patch(client: Client, size: int) -> Iterator[int]:
    keys = {f"key-{n}": "v" for n in range(size // 40)}
    yield post(client, THINGS, thing("merged", map=keys), "")
    patch = {"spec": {"map": dict.fromkeys(keys)}}
    yield client.send("PATCH", f"{THINGS}/merged?dryRun=All", patch, MERGE).status


def pod(name: str, containers: list[Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": containers}}


@shape(201, 200, 200)
def strategic_merge_of_many_entries(client: Client, size: int) -> Iterator[int]:
    env = fill(size // 3, lambda n: {"name": f"n{n}", "value": "1"})
    yield post(client, PODS, pod("strategic", [{"name": "c", "image": "i", "env": env}]), "")
    other = [each | {"name": f"m{each['name']}"} for each in env]
    gone = [{"name": each["name"], "$patch": "delete"} for each in env]
    for change in (other, gone):
        patch = {"spec": {"containers": [{"name": "c", "env": change}]}}
        path = f"{PODS}/strategic?dryRun=All&fieldValidation=Ignore"
        status = client.send("PATCH", path, patch, STRATEGIC).status
        yield 200 if status == 422 else status  # the env of a pod cannot be changed


@shape(201)
def many_containers(client: Client, size: int) -> Iterator[int]:
    containers = fill(size // 8, lambda n: {"name": f"c{n}", "image": "i"})
    yield post(client, PODS, pod("x", containers))


# Metadata.


@shape(201, 201)
def many_owners(client: Client, size: int) -> Iterator[int]:
    def owner(number: int) -> Any:
        about = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}
        return about | {"uid": f"u{number:012}"}

    body = {"metadata": {"name": "x", "ownerReferences": fill(size, owner)}}
    yield post(client, CONFIG_MAPS, body)
    body["metadata"]["ownerReferences"] = [owner(1)] * (size // 75)
    yield post(client, CONFIG_MAPS, body)


@shape(201, 201)
def many_finalizers(client: Client, size: int) -> Iterator[int]:
    body = thing("x")
    body["metadata"]["finalizers"] = fill(size, lambda n: f"example.com/f{n}")
    yield post(client, THINGS, body)
    body["metadata"]["finalizers"] = fill(size, lambda n: f"plain{n}")
    yield post(client, THINGS, body)


@shape(201)
def many_labels(client: Client, size: int) -> Iterator[int]:
    labels = {f"label-{n}": "v" for n in range(size // 22)}
    yield post(client, CONFIG_MAPS, {"metadata": {"name": "x", "labels": labels}})


@shape(422, 422)
def many_wrong_labels(client: Client, size: int) -> Iterator[int]:
    labels = {f"label {n}": "v v" for n in range(size // 24)}
    yield post(client, CONFIG_MAPS, {"metadata": {"name": "x", "labels": labels}})
    yield post(client, CONFIG_MAPS, {"metadata": {"name": "x", "annotations": labels}})


@shape(422)
def long_name(client: Client, size: int) -> Iterator[int]:
    yield post(client, CONFIG_MAPS, {"metadata": {"name": "a-" * (size // 2)}})


# Selectors, tables, lists, watches.


@shape(200, 200, largest=60_000)
def long_label_selector(client: Client, size: int) -> Iterator[int]:
    values = ",".join(f"v{n}" for n in range(size // 16))
    many = ",".join(f"k{n}!=v" for n in range(size // 14))
    for text in (f"a notin ({values})", many):
        yield client.ask("GET", f"{ROWS}?labelSelector={urllib.parse.quote(text, safe=',')}").status


@shape(200, largest=60_000)
def long_field_selector(client: Client, size: int) -> Iterator[int]:
    text = ",".join(f"metadata.name!=n{n}" for n in range(size // 24))
    yield client.ask("GET", f"{ROWS}?fieldSelector={text}").status


@shape(200, 200, 200, 200, 200, 200)
def list_of_many_objects(client: Client, size: int) -> Iterator[int]:
    del size
    for accept in (JSON, TABLE, METADATA, YAML):
        yield client.ask("GET", ROWS, Accept=accept).status
    yield client.ask("GET", ROWS.replace("/v1/", "/v1alpha1/")).status
    yield client.ask("GET", f"{ROWS}?fieldSelector=spec.matched%3Dx").status


@shape(201, 200, 200, 200, 200)
def table_of_a_large_object(client: Client, size: int) -> Iterator[int]:
    entries = fill(size // 2, lambda n: {"name": f"n{n}"})
    yield post(client, THINGS, thing("wide", entries=entries), "")
    yield client.ask("GET", f"{THINGS}/wide", Accept=TABLE).status
    yield client.ask("GET", f"{THINGS}/wide", Accept=YAML).status
    yield client.ask("GET", f"{OLD_THINGS}/wide").status
    yield client.ask("GET", f"{THINGS}?fieldSelector=metadata.name%3Dwide", Accept=TABLE).status


@shape(200, 200)
def watch_of_many_objects(client: Client, size: int) -> Iterator[int]:
    del size
    watch = "?watch=1&timeoutSeconds=1&resourceVersion="
    yield client.ask("GET", f"{ROWS}{watch}0", Accept=TABLE).status
    yield client.ask("GET", f"{ROWS}{watch}0&labelSelector=a!%3Db").status


@shape(400, largest=60_000)
def long_continue_token(client: Client, size: int) -> Iterator[int]:
    token = base64.urlsafe_b64encode(b"[" * (size * 3 // 4)).decode().rstrip("=")
    yield client.ask("GET", f"{CONFIG_MAPS}?limit=1&continue={token}").status


@shape(200, largest=60_000)
def many_query_parameters(client: Client, size: int) -> Iterator[int]:
    query = "&".join(f"a{n}=b" for n in range(size // 8))
    yield client.ask("GET", f"{CONFIG_MAPS}?{query}").status


@shape(404, largest=60_000)
def long_path(client: Client, size: int) -> Iterator[int]:
    yield client.ask("GET", "/apis" + "/a" * (size // 2)).status


# Definitions.


def sized(plural: str, schema: Any, count: int = 1) -> dict[str, Any]:
    versions = [
        {
            "name": f"v{number + 1}",
            "served": True,
            "storage": not number,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
        }
        for number in range(count)
    ]
    return definition(plural, plural.capitalize(), versions)


def defined(client: Client, body: Any) -> Iterator[int]:
    """Create a definition, wait until it is served, read what is said of it, and delete it."""
    status = client.send("POST", DEFINITIONS, body).status
    yield status
    if status != 201:
        return
    plural = body["spec"]["names"]["plural"]
    while client.ask("GET", f"/apis/{GROUP}/v1/{plural}").status != 200:
        pass
    yield client.ask("GET", f"/openapi/v3/apis/{GROUP}/v1").status
    yield client.ask("GET", "/openapi/v2").status
    yield client.ask("GET", "/apis").status
    yield client.ask("DELETE", f"{DEFINITIONS}/{body['metadata']['name']}").status


def properties(size: int, each: Any) -> dict[str, Any]:
    length = len(compact(each)) + 14
    found = {f"p{n:06}": each for n in range(size // length)}
    return {"type": "object", "properties": found}


@shape(201, 200, 200, 200, 200, largest=1_400_000)
def definition_of_many_properties(client: Client, size: int) -> Iterator[int]:
    yield from defined(client, sized("manies", properties(size, {"type": "string"})))


@shape(201, 200, 200, 200, 200, largest=1_400_000)
def definition_of_deep_properties(client: Client, size: int) -> Iterator[int]:
    deep: Any = {"type": "object"}
    for _ in range(40):
        deep = {"type": "object", "properties": {"a": deep}}
    yield from defined(client, sized("deeps", properties(size, deep)))


@shape(201, 200, 200, 200, 200, largest=400_000)
def definition_of_many_rules(client: Client, size: int) -> Iterator[int]:
    rules = [{"rule": f"self.all(x, x != 'a{n}')"} for n in range(20)]
    each = {
        "type": "array",
        "maxItems": 10,
        "items": {"type": "string", "maxLength": 10},
        "x-kubernetes-validations": rules,
    }
    yield from defined(client, sized("ruleds", properties(size, each)))


@shape(201, 200, 200, 200, 200, largest=100_000)
def definition_of_long_rules(client: Client, size: int) -> Iterator[int]:
    text = " || ".join(f"self == '{n}'" for n in range(size // 18))
    each = {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": text}]}
    yield from defined(client, sized("longs", properties(len(text) + 200, each)))


@shape(422)
def definition_of_wrong_rules(client: Client, size: int) -> Iterator[int]:
    each = {"type": "string", "x-kubernetes-validations": [{"rule": "self.a.b.c == zzz"}]}
    yield from defined(client, sized("wrongs", properties(size, each)))


@shape(201, 200, 200, 200, 200, largest=1_400_000)
def definition_of_many_versions(client: Client, size: int) -> Iterator[int]:
    one = len(compact(sized("olds", {"type": "object"}))) - 150
    yield from defined(client, sized("olds", {"type": "object"}, min(size // one, 300)))


@shape(201, 200, 200, 200, 200, largest=1_400_000)
def definition_of_many_patterns(client: Client, size: int) -> Iterator[int]:
    each = {"type": "string", "pattern": "^(a|aa|a{100}){9}$"}
    yield from defined(client, sized("patterns", properties(size, each)))


@shape(201, 200, 200, 200, 200, largest=1_400_000)
def definition_of_many_alternatives(client: Client, size: int) -> Iterator[int]:
    each = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}] * 4}
    yield from defined(client, sized("alternates", properties(size, each)))


@shape(201, 200, 200, 200, 200, largest=1_400_000)
def definition_of_many_defaults(client: Client, size: int) -> Iterator[int]:
    item = {"type": "object", "properties": {"a": {"type": "string", "default": "b"}}}
    each = {"type": "array", "items": item, "default": [{}] * 20}
    yield from defined(client, sized("defaults", properties(size, each)))


@shape(201, 200, 200, 200, 200, largest=1_400_000)
def definition_of_a_long_enum(client: Client, size: int) -> Iterator[int]:
    values = fill(size, lambda n: f"v{n}")
    yield from defined(client, sized("enums", {"type": "string", "enum": values}))


@shape(201, 200, 200, 200, 200)
def definition_of_descriptions(client: Client, size: int) -> Iterator[int]:
    each = {"type": "string", "description": "words " * 1000}
    yield from defined(client, sized("words", properties(size // 3, each)))


# Other kinds.


@shape(201)
def deployment_of_many_values(client: Client, size: int) -> Iterator[int]:
    env = fill(size // 3, lambda n: {"name": f"n{n}", "value": "1"})
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}} | pod(
        "x", [{"name": "c", "image": "i", "env": env}]
    )
    template["metadata"] = {"labels": labels}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    yield post(client, DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": spec})


@shape(201)
def role_of_many_rules(client: Client, size: int) -> Iterator[int]:
    rules = fill(size // 3, lambda n: {"apiGroups": [""], "resources": [f"r{n}"], "verbs": ["get"]})
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    yield post(client, path, {"metadata": {"name": "x"}, "rules": rules})


@shape(201, 201)
def service_of_many_ports(client: Client, size: int) -> Iterator[int]:
    ports = fill(size // 3, lambda n: {"name": f"p{n}", "port": n % 65535 + 1})
    yield post(
        client,
        "/api/v1/namespaces/default/services",
        {"metadata": {"name": "x"}, "spec": {"ports": ports}},
    )
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    body = {"metadata": {"name": "x"}, "addressType": "IPv4"}
    yield post(
        client, slices, body | {"endpoints": fill(size // 3, lambda n: {"addresses": ["10.1.2.3"]})}
    )


def field(number: int, data: bytes) -> bytes:
    length, written = len(data), b""
    while length > 127:
        written += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + written + bytes([length]) + data


@shape(201, 422)
def protobuf_body(client: Client, size: int) -> Iterator[int]:
    named = field(1, field(1, b"x"))
    entries = b"".join(
        field(2, field(1, b"k%06d" % n) + field(2, b"v")) for n in range(size // 3 // 14)
    )
    kind = field(1, field(1, b"v1") + field(2, b"ConfigMap"))
    for raw in (named + entries, field(9, b"\x0b" * (size // 2))):
        body = b"k8s\x00" + kind + field(2, raw)
        yield client.ask("POST", f"{CONFIG_MAPS}?dryRun=All", body, PROTOBUF).status


@shape(201, 201)
def reviews(client: Client, size: int) -> Iterator[int]:
    extra = {f"k{n}": ["v"] for n in range(size // 20)}
    asked = {
        "spec": {
            "user": "a",
            "extra": extra,
            "groups": [],
            "nonResourceAttributes": {"path": "/", "verb": "get"},
        }
    }
    yield client.send("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", asked).status
    token = {"spec": {"token": "a." * (size // 2)}}
    yield client.send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", token).status


# Many objects at once.


@shape(200)
def deletion_of_many_objects(client: Client, size: int) -> Iterator[int]:
    """Dependents of one object, and then all of the rest; the garbage collector works meanwhile."""
    count = max(50, size // 6000)
    owner = client.send("POST", CONFIG_MAPS, {"metadata": {"name": "owner"}}).data["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    for number in range(count):
        metadata = {"name": f"dependent-{number}", "labels": {"many": "y"}}
        body = {"metadata": {**metadata, "ownerReferences": [reference]}}
        client.send("POST", CONFIG_MAPS, body)
    client.ask("DELETE", f"{CONFIG_MAPS}/owner")
    yield client.ask("DELETE", f"{CONFIG_MAPS}?labelSelector=many%3Dy").status
