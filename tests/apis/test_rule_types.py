"""Rules that cannot work on the types of their fields are refused; all others are let alone."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.conversions import ANYTHING, EVERY_RULE, MAP, SCHEMAS, TEXT, WHOLE, listed, of
from tests.apis.test_writing import declared, defined, only

from polyver.apis.checking import check_types
from polyver.core import PolyverError

EITHER = {"x-kubernetes-int-or-string": True}
FIELDS: dict[str, Any] = {
    "text": TEXT,
    "whole": WHOLE,
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "either": EITHER,
    "list": listed(name=TEXT, size=WHOLE),
    "map": MAP,
    "words": {"type": "array", "items": TEXT},
    "sizes": {"type": "object", "additionalProperties": WHOLE},
    "any": ANYTHING,
}
ONE = {"v1": of(spec=of(**FIELDS)), "v2": of(spec=of(**FIELDS, texts={**TEXT}))}


def test_rules_that_fit_their_schemas_are_let_alone() -> None:
    check_types(declared(EVERY_RULE), defined(SCHEMAS))


@pytest.mark.parametrize(
    "rule",
    [
        "{scale: {from: spec.whole, to: spec.whole, factor: 10}}",
        "{move: {from: spec.whole, to: spec.number}}",
        "{move: {from: spec.text, to: spec.either}}",
        "{move: {from: spec.any, to: spec.map}}",
        "{move: {from: 'metadata.labels.x', to: spec.text}}",
        "{const: {at: spec.number, value: 1}}",
        "{values: {at: spec.text, map: {a: b}}}",
        "{keyed: {from: spec.list, to: spec.sizes, key: name, value: size}}",
        "{duration: {from: spec.text, to: spec.whole, unit: s}}",
        "{duration: {from: spec.number, to: spec.text, unit: s, types: [number, string]}}",
        "{quantity: {from: spec.either, to: spec.number}}",
        "{join: {from: spec.words, to: spec.text, separator: ','}}",
        "{pattern: {from: spec.text, pattern: '(?P<a>.)', into: {a: spec.texts}}}",
        "{rename_keys: {at: spec.map, map: {a: b}}}",
        "{reverse: {join: {from: spec.words, to: spec.text, separator: ','}}}",
    ],
)
def test_types_that_go_together_are_let_alone(rule: str) -> None:
    check_types(only(rule), defined(ONE))


@pytest.mark.parametrize(
    ("rule", "fact"),
    [
        (
            "{scale: {from: spec.text, to: spec.whole, factor: 10}}",
            "spec.text of v1: scale expects an integer, but the schema has type string",
        ),
        (
            "{cast: {at: spec.text, from: string, to: integer, as: spec.flag}}",
            "spec.flag of v2: cast expects an integer, but the schema has type boolean",
        ),
        (
            "{split: {from: spec.whole, into: [spec.text, spec.texts], separator: ':'}}",
            "spec.whole of v1: split expects a string, but the schema has type integer",
        ),
        (
            "{wrap: {from: spec.text, to: spec.map}}",
            "spec.map of v2: wrap needs a list, but the schema has type object",
        ),
        (
            "{keyed: {from: spec.list, to: spec.map, key: name, value: size}}",
            "spec.list[].size of v1: keyed copies integer to spec.map{} of v2, which is string",
        ),
        (
            "{each: {at: spec.list, as: spec.map, rules: []}}",
            "spec.list of v1: each needs a list in both versions, or a map in both; v2 differs",
        ),
        (
            "{each: {at: spec.list, rules: [{scale: {from: name, to: size, factor: 2}}]}}",
            "spec.list[].name of v1: scale expects an integer, but the schema has type string",
        ),
        (
            "{move: {from: spec.text, to: spec.whole}}",
            "spec.text of v1: move copies string to spec.whole of v2, which is integer",
        ),
        (
            "{duration: {from: spec.text, to: spec.text, unit: s}}",
            "spec.text of v2: duration expects an integer, but the schema has type string",
        ),
        (
            "{quantity: {from: spec.flag, to: spec.whole}}",
            "spec.flag of v1: quantity expects a string, but the schema has type boolean",
        ),
        (
            "{join: {from: spec.text, to: spec.text, separator: ','}}",
            "spec.text of v1: join expects a list, but the schema has type string",
        ),
        (
            "{reverse: {join: {from: spec.list, to: spec.text, separator: ','}}}",
            "spec.list[] of v2: join expects a string, but the schema has type object",
        ),
        (
            "{pattern: {from: spec.text, pattern: '(?P<a>.)', into: {a: spec.whole}}}",
            "spec.whole of v2: pattern expects a string, but the schema has type integer",
        ),
        (
            "{rename_keys: {at: spec.list, map: {a: b}}}",
            "spec.list of v1: rename_keys needs a map, but the schema has type array",
        ),
        (
            "{rename_keys: {at: spec.map, as: spec.sizes, map: {a: b}}}",
            "spec.map{} of v1: rename_keys copies string to spec.sizes{} of v2, which is integer",
        ),
        (
            "{const: {at: spec.text, value: 5}}",
            "spec.text of v2: const writes 5, but the schema has type string",
        ),
        (
            "{values: {at: spec.flag, map: {a: b}}}",
            'spec.flag of v1: values writes "a", but the schema has type boolean',
        ),
    ],
)
def test_the_field_and_its_type_are_named(rule: str, fact: str) -> None:
    with pytest.raises(PolyverError) as refused:
        check_types(only(rule), defined(ONE))
    assert refused.value.fact == fact
    assert "spec.edges[0].rules[0]." in refused.value.at
