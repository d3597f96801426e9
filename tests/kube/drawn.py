"""Schemas, objects that fit them, and objects and schemas that do not, all drawn at random."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

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
        kind = self.dice.choice(["", "object", "array"])
        made: dict[str, Any] = {"type": kind} if kind else {}
        made["x-kubernetes-preserve-unknown-fields"] = True
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
        if schema.get("type") == "object":
            return self._fields(schema, wild)
        if schema.get("type") == "array":
            size = self.dice.choice([0, 1, 1, 2, 2, 3])
            return [self.value(schema.get("items", {}), wild) for _ in range(size)]
        return self._scalar(schema)

    def _scalar(self, schema: dict[str, Any]) -> Any:
        match schema.get("type"):
            case "string":
                return self.dice.choice(FORMATS.get(schema.get("format", ""), WORDS))
            case "integer":
                return self.dice.choice([0, 1, 2, 5, 10, -1, 3000000000, 5.0])
            case "number":
                return self.dice.choice(NUMBERS)
            case "boolean":
                return self.chance(0.5)
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
            return {key: self.changed(each) for key, each in value.items() if self.chance(0.93)}
        if isinstance(value, list):
            kept = [self.changed(each) for each in value if self.chance(0.93)]
            self.dice.shuffle(kept)
            return kept
        return self.dice.choice([*WORDS, *NUMBERS]) if self.chance(0.08) else value

    def broken(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A schema in which some places say something that they should not."""
        made = copy.deepcopy(schema)
        inside = [place for place in places(made) if place is not made]
        for _ in range(self.dice.randrange(1, 4)):
            place = self.dice.choice(inside) if inside else made
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


def places(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from places(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from places(schema[key])


RULES = "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern"
RULES += " enum format minItems maxItems minProperties maxProperties anyOf oneOf allOf not required"


def relaxed(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema without rules for values."""
    made = copy.deepcopy(schema)
    for place in places(made):
        keys = place.get("items", {}).get("required") if place.get("type") == "array" else None
        for rule in RULES.split():
            if rule != "required" or "k" not in place.get("properties", {}):
                place.pop(rule, None)
        if keys and "x-kubernetes-list-map-keys" in place:
            place["items"]["required"] = keys
    return made
