"""One change of a schema for each rule of compatibility, and what it takes away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
RULES_IN_CEL = "x-kubernetes-validations"
NOTHING = object()

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
KEYED = {"type": "object", "properties": {"k": TEXT, "l": TEXT}, "required": ["k", "l"]}
DOUBLES = [{"k": "a", "l": "a"}, {"k": "a", "l": "b"}]


@dataclass(frozen=True)
class Row:
    """A change of the field `f`, what is found, and what shows that it is as bad as that."""

    rule: str
    old: Json | None
    new: Json | None
    value: Any = NOTHING
    """What was right in `f` and is refused, dropped or filled in afterwards."""
    path: str = "f"


def fields(**schemas: Json) -> Json:
    return {"type": "object", "properties": schemas}


def items(schema: Json, **more: Any) -> Json:
    return {"type": "array", "items": schema} | more


def keyed(kind: str, *keys: str) -> Json:
    said = {"x-kubernetes-list-type": kind}
    more = {"x-kubernetes-list-map-keys": [*keys]} if keys else {}
    return items(KEYED if kind == "map" else TEXT, **said, **more)


ROWS = [
    Row("field-removed", TEXT, None, "a"),
    Row("field-removed", fields(a=TEXT), fields(b=NUMBER), {"a": "x"}, "f.a"),
    Row("field-removed", items(fields(a=TEXT)), items(fields(b=NUMBER)), [{"a": "x"}], "f[].a"),
    Row("field-removed", fields(a=TEXT), {"type": "object", "additionalProperties": False},
        {"a": "x"}, "f.a"),
    Row("field-renamed", fields(cron=TEXT), fields(schedule=TEXT), {"cron": "x"}, "f.cron"),
    Row("field-added", None, TEXT),
    Row("field-added", fields(a=TEXT), fields(a=TEXT, b=NUMBER | {"default": 1}), path="f.b"),
    Row("field-claimed", fields(a=TEXT) | {PRESERVE: True},
        fields(a=TEXT, b=TEXT) | {PRESERVE: True}, {"b": 1}, "f.b"),
    Row("field-freed", fields(a=TEXT) | {PRESERVE: True}, {"type": "object", PRESERVE: True},
        path="f.a"),
    Row("field-filled-in", fields(a=TEXT) | {"maxProperties": 1},
        fields(a=TEXT, b=NUMBER | {"default": 1}) | {"maxProperties": 1}, {"a": "x"}, "f.b"),
    Row("field-filled-in", fields(a=fields(b=TEXT)) | {"not": {"enum": [{"a": {"c": 1}}]}},
        fields(a=fields(b=TEXT, c=NUMBER | {"default": 1}))
        | {"not": {"enum": [{"a": {"c": 1}}]}}, {"a": {}}, "f.a.c"),
    Row("default-refused", {"type": "object", "additionalProperties": fields(a=TEXT)},
        {"type": "object", "additionalProperties":
         fields(a=TEXT, b=NUMBER | {"default": 5, "maximum": 3})}, {"x": {}}, "f{}.b"),
    Row("type-changed", TEXT, NUMBER, "a"),
    Row("type-changed", {"type": "number"}, NUMBER, 1.5),
    Row("type-changed", {INT_OR_STRING: True}, NUMBER, "50%"),
    Row("type-changed", {INT_OR_STRING: True}, TEXT, 5),
    Row("type-changed", {PRESERVE: True}, {"type": "object", PRESERVE: True}, [1]),
    Row("type-changed", items(TEXT), items(NUMBER), ["a"], "f[]"),
    Row("type-changed", {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "additionalProperties": NUMBER}, {"a": "x"}, "f{}"),
    Row("type-widened", NUMBER, {"type": "number"}),
    Row("type-widened", NUMBER, {INT_OR_STRING: True}),
    Row("enum-added", TEXT, TEXT | {"enum": ["a"]}, "b"),
    Row("enum-narrowed", TEXT | {"enum": ["a", "b"]}, TEXT | {"enum": ["a", "c"]}, "b"),
    Row("enum-widened", TEXT | {"enum": ["a"]}, TEXT | {"enum": ["b", "a"]}),
    Row("enum-widened", TEXT | {"enum": ["a"]}, TEXT),
    Row("required-field-added", fields(a=TEXT), fields(a=TEXT, b=NUMBER) | {"required": ["b"]},
        {"a": "x"}, "f.b"),
    Row("required-added", fields(a=TEXT, b=TEXT), fields(a=TEXT, b=TEXT) | {"required": ["b"]},
        {"a": "x"}, "f.b"),
    Row("required-exposed", fields(a=TEXT | {"default": "x"}) | {"required": ["a"]},
        fields(a=TEXT) | {"required": ["a"]}, {}, "f.a"),
    Row("required-filled-in", fields(a=TEXT | {"default": "x"}),
        fields(a=TEXT | {"default": "x"}) | {"required": ["a"]}, path="f.a"),
    Row("required-removed", fields(a=TEXT) | {"required": ["a"]}, fields(a=TEXT), path="f.a"),
    Row("limit-added", NUMBER, NUMBER | {"minimum": 1}, 0),
    Row("limit-added", NUMBER, NUMBER | {"maximum": 1}, 2),
    Row("limit-added", NUMBER, NUMBER | {"multipleOf": 2}, 3),
    Row("limit-added", TEXT, TEXT | {"minLength": 1}, ""),
    Row("limit-added", TEXT, TEXT | {"maxLength": 1}, "ab"),
    Row("limit-added", items(TEXT), items(TEXT, minItems=1), []),
    Row("limit-added", items(TEXT), items(TEXT, maxItems=1), ["a", "b"]),
    Row("limit-added", fields(a=TEXT), fields(a=TEXT) | {"minProperties": 1}, {}),
    Row("limit-added", fields(a=TEXT, b=TEXT), fields(a=TEXT, b=TEXT) | {"maxProperties": 1},
        {"a": "", "b": ""}),
    Row("limit-tightened", NUMBER | {"minimum": 1}, NUMBER | {"minimum": 2}, 1),
    Row("limit-tightened", NUMBER | {"minimum": 1},
        NUMBER | {"minimum": 1, "exclusiveMinimum": True}, 1),
    Row("limit-tightened", NUMBER | {"maximum": 2}, NUMBER | {"maximum": 1}, 2),
    Row("limit-tightened", NUMBER | {"maximum": 2},
        NUMBER | {"maximum": 2, "exclusiveMaximum": True}, 2),
    Row("limit-tightened", NUMBER | {"multipleOf": 2}, NUMBER | {"multipleOf": 4}, 2),
    Row("limit-tightened", TEXT | {"maxLength": 2}, TEXT | {"maxLength": 1}, "ab"),
    Row("limit-tightened", items(TEXT, minItems=1), items(TEXT, minItems=2), ["a"]),
    Row("limit-widened", NUMBER | {"minimum": 1}, NUMBER | {"minimum": 0}),
    Row("limit-widened", NUMBER | {"maximum": 1}, NUMBER),
    Row("limit-widened", NUMBER | {"multipleOf": 4}, NUMBER | {"multipleOf": 2}),
    Row("limit-widened", NUMBER | {"minimum": 1, "exclusiveMinimum": True},
        NUMBER | {"minimum": 1}),
    Row("limit-changed", NUMBER | {"multipleOf": 4}, NUMBER | {"multipleOf": 6}, 4),
    # A bound that is no integer refuses them all.
    Row("limit-changed", NUMBER | {"minimum": 3}, NUMBER | {"minimum": 2.5}, 3),
    # Integers are compared with the whole part of a bound.
    Row("limit-changed", {"type": "number", "minimum": 2.2},
        {"type": "number", "minimum": 2.1, "exclusiveMinimum": True}, 2),
    Row("pattern-changed", TEXT, TEXT | {"pattern": "^a"}, "b"),
    Row("pattern-changed", TEXT | {"pattern": "^b"}, TEXT | {"pattern": "^a"}, "b"),
    Row("pattern-removed", TEXT | {"pattern": "^a"}, TEXT),
    Row("format-changed", TEXT, TEXT | {"format": "date"}, "a"),
    Row("format-changed", TEXT | {"format": "ipv6"}, TEXT | {"format": "ipv4"}, "::1"),
    Row("format-changed", NUMBER | {"format": "int64"}, NUMBER | {"format": "int32"}, 2**40),
    Row("format-widened", NUMBER | {"format": "int32"}, NUMBER | {"format": "int64"}),
    Row("format-widened", NUMBER, NUMBER | {"format": "int64"}),
    Row("format-widened", TEXT | {"format": "date"}, TEXT),
    Row("nullable-removed", TEXT | {"nullable": True}, TEXT, None),
    Row("nullable-added", TEXT, TEXT | {"nullable": True}),
    Row("null-kept", TEXT | {"enum": ["a"]}, TEXT | {"enum": ["a"], "nullable": True}),
    Row("default-changed", TEXT | {"default": "a"}, TEXT | {"default": "b"}),
    Row("default-removed", TEXT | {"default": "a"}, TEXT),
    Row("default-added", TEXT, TEXT | {"default": "a"}),
    Row("unknown-dropped", fields(a=TEXT) | {PRESERVE: True}, fields(a=TEXT), {"b": 1}),
    Row("unknown-dropped", items(fields(a=TEXT), **{PRESERVE: True}), items(fields(a=TEXT)),
        [{"b": 1}], "f[]"),
    Row("unknown-dropped", {"type": "object", "additionalProperties": True},
        {"type": "object", "additionalProperties": False}, {"a": 1}),
    Row("unknown-kept", fields(a=TEXT), fields(a=TEXT) | {PRESERVE: True}),
    Row("unknown-refused", {"type": "object"}, {"type": "object", "additionalProperties": False}),
    Row("values-narrowed", {"type": "object", "additionalProperties": TEXT}, {"type": "object"},
        {"a": "x"}, "f{}"),
    Row("values-narrowed", {"type": "object", PRESERVE: True},
        {"type": "object", "additionalProperties": TEXT}, {"a": 1}),
    Row("values-widened", {"type": "object", "additionalProperties": TEXT},
        {"type": "object", PRESERVE: True}, path="f{}"),
    Row("values-widened", {"type": "object"}, {"type": "object", "additionalProperties": TEXT}),
    Row("embedded-added", {"type": "object", PRESERVE: True},
        {"type": "object", PRESERVE: True, EMBEDDED: True}, {"a": 1}),
    Row("embedded-removed", fields(spec=TEXT) | {EMBEDDED: True}, fields(spec=TEXT),
        {"apiVersion": "v1", "kind": "Pod"}),
    Row("list-keyed", items(TEXT), keyed("set"), ["a", "a"]),
    Row("list-keyed", items(KEYED), keyed("map", "k"), DOUBLES),
    Row("list-keyed", keyed("map", "k", "l"), keyed("map", "k"), DOUBLES),
    Row("list-merged", keyed("set"), items(TEXT)),
    Row("map-merged", fields(a=TEXT), fields(a=TEXT) | {"x-kubernetes-map-type": "atomic"}),
    Row("unique-added", items(TEXT), items(TEXT, uniqueItems=True)),
    Row("unique-removed", items(TEXT, uniqueItems=True), items(TEXT)),
    Row("alternatives-changed", TEXT, TEXT | {"anyOf": [{"pattern": "a"}]}, "b"),
    Row("alternatives-changed", TEXT | {"anyOf": [{"maxLength": 1}]},
        TEXT | {"anyOf": [{"maxLength": 0}]}, "b"),
    Row("alternatives-changed", TEXT | {"oneOf": [{"maxLength": 1}]},
        TEXT | {"oneOf": [{"maxLength": 1}, {"maxLength": 2}]}, "b"),
    Row("alternatives-changed", TEXT | {"not": {"maxLength": 1}}, TEXT | {"not": {"maxLength": 2}},
        "bb"),
    Row("alternatives-changed", TEXT | {"allOf": [{"maxLength": 2}]},
        TEXT | {"allOf": [{"maxLength": 2}, {"pattern": "a"}]}, "b"),
    Row("alternatives-changed", fields(a=TEXT) | {"anyOf": [{"required": ["a"]}, {}]},
        fields(a=TEXT) | {"anyOf": [{"required": ["a"]}]}, {}),
    Row("alternatives-widened", TEXT | {"anyOf": [{"maxLength": 1}]},
        TEXT | {"anyOf": [{"pattern": "a"}, {"maxLength": 2}]}),
    Row("alternatives-widened", TEXT | {"allOf": [{"maxLength": 1}, {"pattern": "a"}]},
        TEXT | {"allOf": [{"maxLength": 2}]}),
    Row("alternatives-widened", TEXT | {"not": {"maxLength": 1}}, TEXT),
    Row("rule-added", TEXT, TEXT | {RULES_IN_CEL: [{"rule": "self != ''"}]}),
    Row("rule-removed", TEXT | {RULES_IN_CEL: [{"rule": "self != ''"}]}, TEXT),
    Row("keyword-changed", TEXT, TEXT | {"x-kubernetes-of-tomorrow": True}),
]  # fmt: skip


def schema(field: Json | None) -> Json:
    return {"type": "object", "properties": {"g": TEXT} | ({"f": field} if field else {})}


WITNESSED = [row for row in ROWS if row.value is not NOTHING]


def identity(row: Row) -> str:
    return f"{row.rule}-{row.path}"
