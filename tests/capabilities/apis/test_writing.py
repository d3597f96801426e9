"""Rules that write a field which a version does not have: told apart, and done without."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.capabilities.apis.conversions import (
    ANYTHING,
    EVERY_RULE,
    PLAUSIBLE,
    SCHEMAS,
    TEXT,
    Object,
    crontab,
    listed,
    of,
)

from polyver.apis import DefinedVersion, Definition, Names
from polyver.capabilities.apis.checking import check_writing, fitting_converter
from polyver.capabilities.apis.conversion import Declared, read_conversion
from polyver.core import PolyverError
from polyver.objects import load_manifests
from polyver.objects.schema import compile_schema

HEAD, EDGE = EVERY_RULE.partition("  edges:")[0], "  edges:\n  - {from: v1, to: v2, rules: [%s]}\n"


def declared(text: str) -> Declared:
    [document] = load_manifests(text, "c.yaml")
    return read_conversion(document)


def defined(schemas: dict[str, Any]) -> Definition:
    versions = [
        DefinedVersion(name, storage=name == "v2", schema=each) for name, each in schemas.items()
    ]
    return Definition("stable.example.com", Names("CronTab", "crontabs"), tuple(versions))


def only(rule: str) -> Declared:
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
        ("{move: {from: spec.a, to: spec.c}}", "move writes spec.c, and v2", "move.to"),
        ("{move: {from: spec.c, to: spec.b}}", "move writes spec.c, and v1", "move.from"),
        (
            "{split: {from: spec.a, into: [spec.b, spec.c], separator: ':'}}",
            "split writes spec.c, and v2",
            "split.into[1]",
        ),
        ("{const: {at: spec.c, value: 1}}", "const writes spec.c, and v2", "const.at"),
        (
            "{cast: {at: spec.a, from: string, to: string, as: spec.c}}",
            "cast writes spec.c, and v2",
            "cast.as",
        ),
        (
            "{each: {at: spec.list, rules: [{move: {from: cmd, to: exec}}]}}",
            "move writes spec.list[].exec, and v2",
            "each.rules[0].move.to",
        ),
        (
            "{keyed: {from: spec.list, to: spec.map, key: id, value: cmd}}",
            "keyed writes spec.list[].id, and v1",
            "keyed.from",
        ),
    ],
)
def test_the_rule_the_field_and_the_version_are_named(rule: str, fact: str, at: str) -> None:
    with pytest.raises(PolyverError) as refused:
        check_writing(only(rule), defined({"v1": V1, "v2": V2}))
    assert refused.value.fact == f"{fact} has no such field"
    assert refused.value.at.endswith(f"spec.edges[0].rules[0].{at}")


def lacking(*names: str) -> dict[str, Any]:
    """The schemas of the reference, where v2 has lost some fields."""
    schemas = copy.deepcopy(SCHEMAS)
    for name in names:
        del schemas["v2"]["properties"]["spec"]["properties"][name]
    return schemas


SPECS = st.fixed_dictionaries(
    {},
    optional={
        name: PLAUSIBLE.get(name, st.sampled_from(["a", "b"]))
        for name in ("cronSpec", "hostPort", "times", "image", "policy", "envList", "containers")
    },
)
GONE = ["schedule", "host", "images", "policy", "env", "engine", "containers", "at"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(SPECS, st.sets(st.sampled_from(GONE)))
def test_without_these_rules_nothing_is_lost_when_a_server_prunes(
    spec: Object, gone: set[str]
) -> None:
    schemas = lacking(*gone)
    converter, stored_as = fitting_converter(declared(EVERY_RULE), defined(schemas)), schemas["v2"]
    stored = converter.convert(crontab("v1", **spec), "v2")
    compile_schema(stored_as).prune(stored)
    shown = converter.convert(stored, "v1")
    compile_schema(schemas["v1"]).prune(shown)
    assert {name: shown["spec"].get(name) for name in spec} == spec


def test_a_field_that_comes_back_gets_what_was_carried() -> None:
    old = crontab("v1", cronSpec="@daily")
    less = fitting_converter(declared(EVERY_RULE), defined(lacking("schedule")))
    more = fitting_converter(declared(EVERY_RULE), defined(SCHEMAS))
    assert "schedule" not in less.convert(old, "v2")["spec"]
    assert more.convert(less.convert(old, "v2"), "v1")["spec"] == old["spec"]


def test_versions_that_one_side_does_not_know_do_not_keep_the_others_apart() -> None:
    schemas = {"v1": SCHEMAS["v1"], "v2": SCHEMAS["v2"], "v4": SCHEMAS["v3"]}
    converter = fitting_converter(declared(EVERY_RULE), defined(schemas))
    old = crontab("v1", cronSpec="@daily")
    assert converter.convert(old, "v2")["spec"]["schedule"] == "@daily"
