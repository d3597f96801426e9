"""The loss ledger: what it says of fields is what conversions do to them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.conversions import EVERY_RULE, SCHEMAS, converter, of

from polyver.apis.checking import FieldConversion, ledger
from polyver.apis.conversion import Converter, FunctionEdge
from polyver.apis.conversion.paths import parse_path, pick
from polyver.languages.values.strings import same
from polyver.testing.strategies import objects_from_schema

Object = dict[str, Any]
KNOWN = converter(EVERY_RULE, SCHEMAS)
TEXT = {"type": "string"}


def fates(source: str, target: str, known: Converter = KNOWN) -> dict[str, FieldConversion]:
    found = ledger(known, SCHEMAS, source, target)
    assert found is not None
    return {fate.path: fate for fate in found.fates}


@pytest.mark.parametrize(
    ("path", "how", "to", "rules", "exact"),
    [
        ("spec.cronSpec", "moved", ("spec.schedule",), (), True),
        ("spec.hostPort", "transformed", ("spec.host", "spec.port"), ("split",), False),
        ("spec.image", "transformed", ("spec.images[]",), ("wrap",), True),
        ("spec.policy", "transformed", ("spec.policy",), ("values",), False),
        ("spec.replicas", "transformed", ("spec.replicas",), ("cast",), False),
        ("spec.timeoutSeconds", "transformed", ("spec.timeoutMillis",), ("scale",), False),
        ("spec.envList[].value", "transformed", ("spec.env{}",), ("keyed",), False),
        ("spec.containers[].name", "kept", ("spec.containers[].name",), (), True),
        ("spec.containers[].cmd", "moved", ("spec.containers[].command",), (), True),
    ],
)
def test_what_a_rule_makes_of_a_field(
    path: str, how: str, to: tuple[str, ...], rules: tuple[str, ...], exact: bool
) -> None:
    fate = fates("v1", "v2")[path]
    assert (fate.how, fate.to, fate.rules, fate.exact) == (how, to, rules, exact)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("spec.legacyMode", "dropped by a rule"),
        ("spec.only1.a", "v2 has no such field"),
        ("spec.containers[].debug", "v2 has no such field"),
        ("spec.envList[].note", "keyed has no field for it in v2"),
        ("status.ready", "v2 has no such field"),
    ],
)
def test_why_a_field_is_carried(path: str, why: str) -> None:
    fate = fates("v1", "v3")[path]
    assert (fate.how, fate.to, fate.why) == ("carried", (), why)


def test_a_constant_is_carried_only_if_it_is_another() -> None:
    assert fates("v2", "v1")["spec.engine"].why == 'unless it is "cron", which v1 implies'


def test_rules_on_the_way_add_up() -> None:
    fate = fates("v3", "v1")["spec.template.images"]
    assert (fate.to, fate.rules, fate.exact) == (("spec.image",), ("wrap",), False)


def test_a_way_back_may_be_exact_where_the_way_there_is_not() -> None:
    assert fates("v2", "v1")["spec.replicas"].exact
    assert fates("v2", "v1")["spec.env"].exact


def test_a_mapped_enum_is_exact_if_every_word_is_mapped() -> None:
    enum = {"type": "string", "enum": ["Allow", "Forbid"]}
    schemas = {**SCHEMAS, "v1": of(spec=of(policy=enum))}
    known = converter(EVERY_RULE, schemas)
    found = ledger(known, schemas, "v1", "v2")
    assert found is not None
    assert [fate.exact for fate in found.fates] == [True]
    more = {**SCHEMAS, "v1": of(spec=of(policy={**enum, "enum": ["Allow", "Replace"]}))}
    found = ledger(converter(EVERY_RULE, more), more, "v1", "v2")
    assert found is not None
    assert [fate.exact for fate in found.fates] == [False]


def test_without_schemas_it_tells_of_what_rules_name() -> None:
    known = converter(EVERY_RULE)
    found = ledger(known, {}, "v2", "v3")
    assert found is not None
    assert ([fate.path for fate in found.fates], found.complete) == (["spec.images"], False)


def test_functions_have_no_ledger_that_can_be_read() -> None:
    edge = FunctionEdge("v1", "v2", lambda obj: obj, lambda obj: obj)
    known = Converter("ex.io", "Toy", ["v1", "v2"], [edge], schemas={})
    assert ledger(known, {}, "v1", "v2") is None


VERSIONS = st.permutations(KNOWN.versions)
OBJECTS = {
    version: objects_from_schema(
        schema, api_version=f"stable.example.com/{version}", kind="CronTab"
    )
    for version, schema in SCHEMAS.items()
}


@given(VERSIONS, st.data())
def test_what_is_said_to_be_exact_is_never_carried(pair: list[str], data: st.DataObject) -> None:
    source, target = pair[:2]
    obj = data.draw(OBJECTS[source])
    lost = KNOWN.carried(KNOWN.convert(obj, target)).get(source, [])
    for path, fate in fates(source, target).items():
        if fate.exact:
            assert path not in lost


@given(VERSIONS, st.data())
def test_what_is_said_to_be_moved_is_there_and_what_is_carried_is_not(
    pair: list[str], data: st.DataObject
) -> None:
    source, target = pair[:2]
    obj = data.draw(OBJECTS[source])
    made = KNOWN.convert(obj, target)
    for path, fate in fates(source, target).items():
        if "[" in path or "{" in path:
            continue
        value = pick(obj, parse_path(path))
        if fate.how in ("kept", "moved"):
            assert same(pick(made, parse_path(fate.to[0])), value)
