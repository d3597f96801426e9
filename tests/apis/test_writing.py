"""Rules that write a field which a version does not have are named, and all others let alone."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.conversions import ANYTHING, EVERY_RULE, SCHEMAS, TEXT, listed, of

from polyver.apis import DefinedVersion, Definition, Names
from polyver.apis.checking import check_writing
from polyver.apis.conversion import DeclaredConversion, read_conversion
from polyver.core import PolyverError
from polyver.kube.objects import load_manifests

HEAD, EDGE = EVERY_RULE.partition("  edges:")[0], "  edges:\n  - {from: v1, to: v2, rules: [%s]}\n"


def declared(text: str) -> DeclaredConversion:
    [document] = load_manifests(text, "c.yaml")
    return read_conversion(document)


def defined(schemas: dict[str, Any]) -> Definition:
    versions = [
        DefinedVersion(name, storage=name == "v2", schema=each) for name, each in schemas.items()
    ]
    return Definition("stable.example.com", Names("CronTab", "crontabs"), tuple(versions))


def only(rule: str) -> DeclaredConversion:
    return declared(HEAD.replace("[v1, v2, v3]", "[v1, v2]") + EDGE % rule)


V1 = of(spec=of(a=TEXT, list=listed(name=TEXT, cmd=TEXT), any=ANYTHING))
V2 = of(spec=of(b=TEXT, list=listed(name=TEXT, run=TEXT), map={**ANYTHING, "type": "object"}))


def test_rules_for_what_is_there_are_let_alone() -> None:
    check_writing(declared(EVERY_RULE), defined(SCHEMAS))


@pytest.mark.parametrize(
    "rule",
    [
        "{move: {from: spec.a, to: spec.b}}",
        "{move: {from: spec.any.x, to: spec.map.z}}",
        "{move: {from: 'metadata.labels.x', to: spec.b}}",
        "{drop: {at: spec.never}}",
        "{add: {at: spec.never}}",
        "{each: {at: spec.list, rules: [{move: {from: cmd, to: run}}]}}",
        "{keyed: {from: spec.list, to: spec.map, key: name, value: cmd}}",
        "{within: {at: spec.any, as: spec.map, rules: [{move: {from: x, to: z}}]}}",
    ],
)
def test_what_writes_only_known_fields_is_taken(rule: str) -> None:
    check_writing(only(rule), defined({"v1": V1, "v2": V2}))


@pytest.mark.parametrize(
    ("rule", "fact", "at"),
    [
        ("{move: {from: spec.a, to: spec.c}}", "move writes spec.c, but v2", "move.to"),
        ("{move: {from: spec.c, to: spec.b}}", "move writes spec.c, but v1", "move.from"),
        (
            "{split: {from: spec.a, into: [spec.b, spec.c], separator: ':'}}",
            "split writes spec.c, but v2",
            "split.into[1]",
        ),
        ("{const: {at: spec.c, value: 1}}", "const writes spec.c, but v2", "const.at"),
        (
            "{cast: {at: spec.a, from: string, to: string, as: spec.c}}",
            "cast writes spec.c, but v2",
            "cast.as",
        ),
        (
            "{reverse: {join: {from: spec.list, to: spec.c, separator: ','}}}",
            "join writes spec.c, but v1",
            "reverse.join.to",
        ),
        (
            "{pattern: {from: spec.a, pattern: '(?P<x>.)(?P<w>.)', into: {x: spec.b, w: spec.c}}}",
            "pattern writes spec.c, but v2",
            "pattern.into.w",
        ),
        (
            "{rename_keys: {at: spec.a, as: spec.c, map: {x: w}}}",
            "rename_keys writes spec.c, but v2",
            "rename_keys.as",
        ),
        (
            "{each: {at: spec.list, rules: [{move: {from: cmd, to: exec}}]}}",
            "move writes spec.list[].exec, but v2",
            "each.rules[0].move.to",
        ),
        (
            "{keyed: {from: spec.list, to: spec.map, key: id, value: cmd}}",
            "keyed writes spec.list[].id, but v1",
            "keyed.from",
        ),
    ],
)
def test_the_rule_the_field_and_the_version_are_named(rule: str, fact: str, at: str) -> None:
    with pytest.raises(PolyverError) as refused:
        check_writing(only(rule), defined({"v1": V1, "v2": V2}))
    assert refused.value.fact == f"{fact} has no such field"
    assert refused.value.at.endswith(f"spec.edges[0].rules[0].{at}")
