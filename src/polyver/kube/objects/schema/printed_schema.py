"""Writes a schema as JSON with Go's field names.

Some of kube-apiserver's error messages contain a complete schema in this form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyver.languages.values.strings import json_text

__all__ = ["KEYWORDS", "declared", "rule_text"]

_TEXTS = "id $schema description type format title pattern"
_FLAGS = "nullable exclusiveMaximum exclusiveMinimum uniqueItems"
_FLAGS += " x-kubernetes-embedded-resource x-kubernetes-int-or-string"
_EMPTY: dict[str, Any] = dict.fromkeys(_TEXTS.split(), "") | dict.fromkeys(_FLAGS.split(), False)
KEYWORDS = (
    "id $schema $ref description type nullable format title default maximum exclusiveMaximum "
    "minimum exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems multipleOf "
    "enum maxProperties minProperties required items allOf oneOf anyOf not properties "
    "additionalProperties patternProperties dependencies additionalItems definitions externalDocs "
    "example x-kubernetes-preserve-unknown-fields x-kubernetes-embedded-resource "
    "x-kubernetes-int-or-string x-kubernetes-list-map-keys x-kubernetes-list-type "
    "x-kubernetes-map-type x-kubernetes-validations"
).split()
_RULE = "rule message messageExpression reason fieldPath optionalOldSelf".split()
_RULE_EMPTY = {"rule": "", "message": "", "messageExpression": "", "fieldPath": ""}


def declared(schema: Mapping[str, Any]) -> str:
    """Write a schema as JSON with all keywords in Go's order, including keywords that are not set.

    >>> declared({"type": "object"})[:63]
    '{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object'
    """
    pairs = (f'"{_name(key)}":{_value(key, schema.get(key))}' for key in KEYWORDS)
    return f"{{{','.join(pairs)}}}"


def _name(keyword: str) -> str:
    if keyword == "id":
        return "ID"
    if keyword.startswith("x-kubernetes-"):
        words = keyword.removeprefix("x-kubernetes-").split("-")
        return "X" + "".join(word.capitalize() for word in words)
    return keyword.removeprefix("$")[:1].upper() + keyword.removeprefix("$")[1:]


def _value(keyword: str, value: Any) -> str:
    if value is None:
        return json_text(_EMPTY.get(keyword))
    match keyword:
        case "allOf" | "oneOf" | "anyOf":
            return f"[{','.join(map(declared, value))}]" if value else "null"
        case "properties" | "patternProperties" | "definitions":
            pairs = (f"{json_text(name)}:{declared(value[name])}" for name in sorted(value))
            return f"{{{','.join(pairs)}}}"
        case "x-kubernetes-validations":
            return f"[{','.join(map(rule_text, value))}]"
        case _:
            return _single(keyword, value)


def _single(keyword: str, value: Any) -> str:
    match keyword:
        case "not":
            return declared(value)
        case "items":
            return f'{{"Schema":{declared(value)},"JSONSchemas":null}}'
        case "additionalProperties" | "additionalItems":
            inside = declared(value) if isinstance(value, Mapping) else "null"
            return f'{{"Allows":{json_text(value is not False)},"Schema":{inside}}}'
        case _:
            return json_text(value)


def rule_text(rule: Mapping[str, Any]) -> str:
    """Write a CEL rule as JSON with all fields, including fields that are not set."""
    pairs = (f'"{_name(key)}":{json_text(rule.get(key, _RULE_EMPTY.get(key)))}' for key in _RULE)
    return f"{{{','.join(pairs)}}}"
