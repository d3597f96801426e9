"""Random schemas and objects, and what the real server makes of them.

`python -m tests.kube.schemas` asks a real one and writes tests/objects/recorded_schemas.json, which
tests/objects/test_schema_corpus.py compares with our own schemas.
"""

from __future__ import annotations

import copy
import http.client
import json
import random
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from polyver.testing import LocalCluster

RECORDED = Path(__file__).parent.parent / "objects" / "recorded_schemas.json"
GROUP = "schemas.ex.io"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS, OBJECTS, UPDATED, UPDATES, BROKEN = 110, 8, 24, 6, 260
PATIENCE = 60.0

WORDS = ["a", "b", "ab", "x1", "Abc", "", "longer-word", "ä€", 'quo"te\n', "a.b", "10%"]
NUMBERS = [0, 1, -1, 2, 5, 10, 7.5, 0.1, 1e-7, 1e21, 5.0, 3000000000, 2**63, -(2**63), 97]
PATTERNS = ["^[a-z]+$", "a", "^(a|ab)*$", r"^\w{2,}$", "(?i)^abc", r"^\pL+$", "b$", "[^a-c]", "^.$"]
FORMATS = {
    "date-time": ["2020-01-01T10:00:00Z", "2020-01-01t10:00:00.5+02:00", "2020-01-01 10:00", "x"],
    "date": ["2020-02-29", "2021-02-29", "2020-1-1", "0000-01-01"],
    "email": ["a@ex.io", "A <a@ex.io>", "a@", "@b", "a b@c", '"a b"@c', "a@[1.2.3.4]", "a.@b"],
    "ipv4": ["1.2.3.4", "01.2.3.4", "1.2.3", "::ffff:1.2.3.4", "1.2.3.256"],
    "ipv6": ["::1", "1.2.3.4", "fe80::1%eth0", "1:2:3:4:5:6:7:8", ":::"],
    "cidr": ["10.0.0.0/8", "10.0.0.0/33", "::/0", "10.0.0.0", "1.2.3.4/08"],
    "mac": ["00:11:22:33:44:55", "0011.2233.4455", "00-11-22-33-44-55", "00:11:22", "zz"],
    "uuid": ["01234567-89ab-cdef-0123-456789abcdef", "0123456789ABCDEF0123456789abcdef", "1"],
    "uuid3": ["01234567-89ab-3def-0123-456789abcdef", "01234567-89ab-4def-8123-456789abcdef"],
    "uuid4": ["01234567-89ab-4def-8123-456789abcdef", "01234567-89ab-4def-0123-456789abcdef"],
    "uuid5": ["01234567-89ab-5def-B123-456789abcdef", "01234567-89ab-4def-0123-456789abcdef"],
    "byte": ["YWJj", "YWI=", "", "%%%", "YQ", "YQ=="],
    "duration": ["1h30m", "1.5s", "22 ns", "2 weeks", "long", "5", "0", "-1m", ".5h", "3 d", "1 x"],
    "uri": [
        *("https://ex.io/x?y#z", "/path", "a b", "mailto:a@b", "http://a b/", "http://[::1]:80/x"),
        *("http://h:x/", "://x", "http://h/%zz", "*", "", "x:/%2f", "http://u@h/a b", "a/b"),
    ],
    "hostname": [
        "ex.io",
        "a",
        "-a",
        "a-",
        "a-b",
        "a_b.io",
        "ex.i",
        "ex.123",
        "ä.de",
        "a..io",
        "abc-d",
    ],
    "isbn": ["0321751043", "978-0321751041", "123"],
    "isbn10": ["0321751043", "3-401-01319-X", "0321751044"],
    "isbn13": ["978 0321751041", "9780321751042"],
    "creditcard": ["4220855426222389", "4220-8554-2622-2389", "1"],
    "ssn": ["123-45-6789", "123456789", "123 45 6789"],
    "hexcolor": ["#fff", "CCccCC", "#ff"],
    "rgbcolor": ["rgb(0, 31,255)", "rgb(256,0,0)", "rgb(0,0)"],
    "bsonobjectid": ["507f1f77bcf86cd799439011", "507f"],
    "password": ["anything"],
    "k8s-short-name": ["a-b", "A", "a.b"],
    "k8s-long-name": ["a.b-c", "a..b", "-a"],
    "no-such-format": ["anything"],
    "int32": ["anything"],
}


class Maker:
    """Draws schemas, objects that fit them and objects that nearly do."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def schema(self, depth: int = 3) -> dict[str, Any]:
        kinds = ["string", "string", "integer", "number", "boolean", "int-or-string", "open"]
        kinds += ["object", "object", "array", "array", "map", "embedded"] if depth else []
        kind = self.dice.choice(kinds)
        made: dict[str, Any] = getattr(self, f"_{kind.replace('-', '_')}")(depth)
        if self.chance(0.15):
            made["nullable"] = True
        if self.chance(0.2) and kind not in ("embedded", "open"):
            made |= self._alternatives(made, depth)
        return made

    def with_defaults(self, schema: dict[str, Any]) -> dict[str, Any]:
        for inner in schema.get("properties", {}).values():
            self.with_defaults(inner)
            plain = {key: inner.get(key) for key in ("type", "format")}
            if self.chance(0.2) and plain["type"] in ("string", "integer", "boolean", "object"):
                default = self.fitting(inner)
                inner["default"] = default if default is not None else {}
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                self.with_defaults(schema[key])
        return schema

    def _string(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "string"}
        match self.dice.randrange(6):
            case 0:
                made["enum"] = self.dice.sample(WORDS, 3)
            case 1:
                made |= {
                    "minLength": self.dice.randrange(3),
                    "maxLength": self.dice.randrange(2, 5),
                }
            case 2:
                made["pattern"] = self.dice.choice(PATTERNS)
            case 3 | 4:
                made["format"] = self.dice.choice([*FORMATS])
        return made

    def _limits(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self.chance(0.3):
            made["minimum"] = self.dice.choice([0, 1, -1, 2.5])
            made |= {"exclusiveMinimum": True} if self.chance(0.4) else {}
        if self.chance(0.3):
            made["maximum"] = self.dice.choice([5, 10, 7.5, 1e21])
            made |= {"exclusiveMaximum": True} if self.chance(0.4) else {}
        if self.chance(0.2):
            made["multipleOf"] = self.dice.choice([5, 2, 0.1, 2.5])
        if self.chance(0.15):
            made["enum"] = self.dice.sample([0, 1, 5, 7.5, "a", True, None, {"a": 1}], 3)
        return made

    def _integer(self, depth: int) -> dict[str, Any]:
        form = self.dice.choice(["", "", "int32", "int64", "float"])
        return {"type": "integer"} | ({"format": form} if form else {}) | self._limits()

    def _number(self, depth: int) -> dict[str, Any]:
        form = self.dice.choice(["", "", "float", "double", "int32"])
        return {"type": "number"} | ({"format": form} if form else {}) | self._limits()

    def _boolean(self, depth: int) -> dict[str, Any]:
        return {"type": "boolean"} | ({"enum": [True]} if self.chance(0.2) else {})

    def _int_or_string(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"x-kubernetes-int-or-string": True}
        if self.chance(0.4):
            made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        elif self.chance(0.3):
            made["allOf"] = [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "a"}]
        return (
            made
            | ({"pattern": "^[0-9]+%?$"} if self.chance(0.4) else {})
            | ({"maximum": 5} if self.chance(0.3) else {})
        )

    def _open(self, depth: int) -> dict[str, Any]:
        kind = self.dice.choice(
            [{}, {"type": "object"}, {"type": "array", "items": {"type": "object"}}]
        )
        made = copy.deepcopy(kind) | {"x-kubernetes-preserve-unknown-fields": True}
        if made.get("type") == "object" and depth:
            made["properties"] = {"known": self.schema(depth - 1)}
        if made.get("type") == "array":
            made["items"] = {"type": "object", "properties": {"a": {"type": "object"}}}
        return made

    def _embedded(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "object", "x-kubernetes-embedded-resource": True}
        if self.chance(0.5):
            return made | {"x-kubernetes-preserve-unknown-fields": True}
        return made | {"properties": {"spec": self.schema(depth - 1)}}

    def _object(self, depth: int) -> dict[str, Any]:
        names = self.dice.sample(["a", "b", "c", "d"], self.dice.randrange(1, 4))
        made: dict[str, Any] = {
            "type": "object",
            "properties": {name: self.schema(depth - 1) for name in names},
        }
        if self.chance(0.4):
            made["required"] = self.dice.sample(names, self.dice.randrange(1, len(names) + 1))
        if self.chance(0.15):
            made |= {"minProperties": 1, "maxProperties": 2}
        if self.chance(0.1):
            made["additionalProperties"] = True
        return made

    def _map(self, depth: int) -> dict[str, Any]:
        values = self.dice.choice([True, False, *[None] * 6])
        made: dict[str, Any] = {"type": "object"}
        made["additionalProperties"] = self.schema(depth - 1) if values is None else values
        if self.chance(0.3):
            made |= {"minProperties": 1, "maxProperties": 2}
        return made

    def _array(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "array", "items": self.schema(depth - 1)}
        match self.dice.randrange(5):
            case 0:
                made["items"] = {"type": self.dice.choice(["string", "integer", "number"])}
                made["x-kubernetes-list-type"] = "set"
            case 1 | 2:
                keys = ["k"] if self.chance(0.6) else ["k", "l"]
                items = self._object(depth - 1 or 1)
                for key in keys:
                    items["properties"][key] = {"type": self.dice.choice(["string", "integer"])}
                items["required"] = [*keys]
                items |= {"properties": items["properties"]}
                made["items"] = {key: each for key, each in items.items() if "Prop" not in key}
                made |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
            case 3:
                made |= {"minItems": self.dice.randrange(2), "maxItems": self.dice.randrange(1, 3)}
        return made

    def _alternatives(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        options = [self._option(schema) for _ in range(self.dice.randrange(1, 4))]
        name = self.dice.choice(["anyOf", "oneOf", "allOf", "not"])
        if name in schema:
            return {}
        return {"not": options[0]} if name == "not" else {name: options}

    def _option(self, schema: dict[str, Any], depth: int = 2) -> dict[str, Any]:
        """What limits a value further without naming types."""
        fields = [*schema.get("properties", {})]
        if fields and self.chance(0.7):
            made: dict[str, Any] = {"required": [self.dice.choice(fields)]}
            name = self.dice.choice(fields)
            if depth and self.chance(0.6):
                inner = self._option(schema["properties"][name], depth - 1)
                made["properties"] = {name: inner}
            return made
        if depth and self.chance(0.1):
            return {"anyOf": [self._option(schema, depth - 1), self._option(schema, depth - 1)]}
        limits: list[dict[str, Any]] = [
            {"minLength": 2},
            {"pattern": "^a"},
            {"minimum": 2},
            {"maximum": 1, "exclusiveMaximum": True},
            {"enum": ["a", 1, True]},
            {"minItems": 1},
            {"maxProperties": 1},
            {"format": "date"},
            {"multipleOf": 2},
        ]
        if schema.get("type") == "array" and self.chance(0.5):
            return {"items": self._option(schema["items"], 0)}
        return copy.deepcopy(self.dice.choice(limits))

    def value(self, schema: dict[str, Any], wild: float = 0.12) -> Any:
        """A value that often fits a schema."""
        if self.chance(wild):
            return self.anything()
        if "enum" in schema and self.chance(0.8):
            return copy.deepcopy(self.dice.choice(schema["enum"]))
        if schema.get("x-kubernetes-int-or-string"):
            return self.dice.choice([1, 5, 6, "10%", "a", "5"])
        match schema.get("type"):
            case "string":
                return self.dice.choice(FORMATS.get(schema.get("format", ""), WORDS))
            case "integer":
                return self.dice.choice([0, 1, 2, 5, 10, -1, 3000000000, 5.0])
            case "number":
                return self.dice.choice(NUMBERS)
            case "boolean":
                return self.chance(0.5)
            case "array":
                size = self.dice.choice([0, 1, 1, 2, 2, 3])
                return [self.value(schema.get("items", {}), wild) for _ in range(size)]
            case "object":
                return self._fields(schema, wild)
        return self.anything()

    def _fields(self, schema: dict[str, Any], wild: float) -> dict[str, Any]:
        made: dict[str, Any] = {}
        fields = schema.get("properties", {})
        for name, inner in fields.items():
            if self.chance(0.75) or (name in schema.get("required", ()) and self.chance(0.8)):
                made[name] = self.value(inner, wild)
        others = schema.get("additionalProperties")
        for name in ["a", "ex.io/b", "c"][: self.dice.randrange(4)] if others is not None else ():
            made.setdefault(name, self.value(others if isinstance(others, dict) else {}, wild))
        if schema.get("x-kubernetes-embedded-resource") and self.chance(0.9):
            made |= {"apiVersion": "v1", "kind": self.dice.choice(["Pod", "Bad Kind"])}
            if self.chance(0.5):
                made["metadata"] = {"name": self.dice.choice(["a", "A/b"]), "zzz": 1}
        if self.chance(wild):
            made["zzz"] = self.anything()
        return made

    def anything(self, depth: int = 2) -> Any:
        simple = [None, True, False, *self.dice.sample(NUMBERS, 3), *self.dice.sample(WORDS, 3)]
        if depth and self.chance(0.25):
            return [self.anything(depth - 1) for _ in range(self.dice.randrange(3))]
        if depth and self.chance(0.3):
            return {name: self.anything(depth - 1) for name in self.dice.sample("abz", 2)}
        return self.dice.choice(simple)

    def fitting(self, schema: dict[str, Any]) -> Any:
        """A value that is hoped to fit; the server says whether it does."""
        return self.value(schema, 0)

    def changed(self, value: Any) -> Any:
        """The same value with little changes."""
        if isinstance(value, dict):
            kept = {key: self.changed(each) for key, each in value.items() if self.chance(0.93)}
            return kept
        if isinstance(value, list):
            kept = [self.changed(each) for each in value if self.chance(0.93)]
            self.dice.shuffle(kept)
            return kept
        return self.dice.choice(WORDS + NUMBERS) if self.chance(0.08) else value

    def broken(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A schema in which some places say something that they should not."""
        made = copy.deepcopy(schema)
        places = [place for place in _places(made) if place is not made]
        for _ in range(self.dice.randrange(1, 4)):
            place = self.dice.choice(places) if places else made
            if self.chance(0.2):
                place.pop(self.dice.choice(["type", "items", "x-kubernetes-list-map-keys"]), None)
            else:
                place |= copy.deepcopy(self.dice.choice(MISTAKES))
        return made


MISTAKES: list[dict[str, Any]] = [
    {"type": "text"},
    {"type": "null"},
    {"type": ""},
    {"type": "array"},
    {"type": "object", "nullable": True},
    {"uniqueItems": True},
    {"$ref": "#/x"},
    {"additionalProperties": {"type": "string"}, "properties": {"a": {"type": "string"}}},
    {"additionalProperties": False},
    {"x-kubernetes-list-type": "set"},
    {"x-kubernetes-list-type": "map"},
    {"x-kubernetes-list-type": "bag"},
    {"x-kubernetes-list-map-keys": ["a", "a"]},
    {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "zz"]},
    {"x-kubernetes-map-type": "atomic"},
    {"x-kubernetes-map-type": "loose"},
    {"x-kubernetes-preserve-unknown-fields": False},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"x-kubernetes-int-or-string": True},
    {"x-kubernetes-embedded-resource": True},
    {"x-kubernetes-embedded-resource": True, "properties": {"kind": {"type": "integer"}}},
    {"anyOf": [{"type": "string"}, {"description": "x", "title": "y"}]},
    {"oneOf": [{"nullable": True, "default": 1}]},
    {"not": {"x-kubernetes-preserve-unknown-fields": True, "additionalProperties": True}},
    {"not": {"properties": {"metadata": {"minLength": 1}, "new": {"enum": [1]}}}},
    {"allOf": [{"items": {"type": "string"}}, {"x-kubernetes-list-type": "set"}]},
    {"pattern": "("},
    {"pattern": "a)"},
    {"pattern": "a**"},
    {"pattern": "(?=a)"},
    {"pattern": "\\y"},
    {"pattern": "[b-a]"},
    {"pattern": "a{1001}"},
    {"pattern": "+"},
    {"pattern": "\\"},
    {"pattern": "[[:word:]]\\pN"},
    {"default": "x"},
    {"default": {"zzz": 1}},
    {"default": [1]},
    {"definitions": {"a": {"type": "string"}}},
    {"patternProperties": {"a": {"type": "string"}}},
    {"items": {"type": "string", "nullable": True}},
    {"properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}},
    {"properties": {"apiVersion": {"type": "integer"}}},
    {"x-kubernetes-validations": [{"rule": " "}, {"rule": "true", "message": "a\nb"}]},
    {"x-kubernetes-validations": [{"rule": "true", "fieldPath": ".zz", "reason": "No"}]},
]
NOT_OURS = ('"Rule":', "compilation failed", "cost")


def _places(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from _places(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _places(schema[key])


RULES = "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern"
RULES += " enum format minItems maxItems minProperties maxProperties anyOf oneOf allOf not required"


def relaxed(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema without rules for values."""
    made = copy.deepcopy(schema)
    for place in _places(made):
        keys = place.get("items", {}).get("required") if place.get("type") == "array" else None
        for rule in RULES.split():
            if rule != "required" or "k" not in place.get("properties", {}):
                place.pop(rule, None)
        if keys and "x-kubernetes-list-map-keys" in place:
            place["items"]["required"] = keys
    return made


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
        return [
            {"schema": schema, "updates": self._updates(number, made[number])}
            for number in kept
            if (schema := self._tightened(number, strict[number - 1000])) is not None
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
