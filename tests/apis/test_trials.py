"""Trying out conversions: what is right is let alone, what was broken on purpose is found."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.apis.conversions import (
    EVERY_RULE,
    SCHEMAS,
    TEXT,
    VALUES,
    converter,
    drawn_converters,
    listed,
    of,
)

from polyver.apis.checking import ConversionFinding, words_of
from polyver.apis.conversion import Converter, DeclaredEdge, FunctionEdge, Rules
from polyver.apis.conversion.rules import CastRule, ConversionRule
from polyver.apis.trials import CheckedKind, check
from polyver.apis.trials._generated_objects import Mixer, drawn, shrunk
from polyver.kube.objects.schema import compile_schema
from polyver.languages.values.strings import same

Object = dict[str, Any]
HEAD = {"apiVersion": "stable.example.com/v1", "kind": "CronTab"}


def crontabs() -> CheckedKind:
    return CheckedKind(converter(EVERY_RULE, SCHEMAS), SCHEMAS, "crontabs", "conversion.yaml:1")


def found(rule: str, *, examples: int = 300, seed: int = 1) -> list[ConversionFinding]:
    checked = check(crontabs(), examples=examples, seed=seed)
    return [each for each in checked.findings if each.rule == rule]


def test_every_rule_passes() -> None:
    checked = check(crontabs(), examples=120, seed=2)
    assert checked.findings == ()
    assert checked.objects == 120
    assert len(checked.ledgers) == 6


@settings(max_examples=10, suppress_health_check=[HealthCheck.nested_given])
@given(drawn_converters())
def test_the_law_is_not_found_broken_for_any_rules(known: Converter) -> None:
    rules = {each.rule for each in check(known, examples=9).findings}
    assert not rules & {"law", "compiled", "default-loses", "fails", "identity"}


def test_a_function_of_a_rule_that_is_not_deterministic_is_found() -> None:
    numbers = itertools.count()
    rules = Rules()
    rules.convert("spec.a", "spec.b", forward=lambda _: next(numbers), back=str)
    known = Converter("ex.io", "Toy", ["v1", "v2"], [DeclaredEdge("v1", "v2", rules.block())])
    rules_found = {each.rule for each in check(known, examples=30).findings}
    assert "not-deterministic" in rules_found
    assert not rules_found & {"law", "compiled"}


def test_a_rule_that_is_broken_for_one_value_is_found_and_shrunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = CastRule.run

    def wrong(self: CastRule, values: tuple[Any, ...], *, back: bool) -> tuple[Any, ...]:
        return ("5",) if back and values[0] == 1 else right(self, values, back=back)

    monkeypatch.setattr(CastRule, "run", wrong)
    # What is drawn depends on which modules are loaded: Hypothesis takes constants from them.
    findings = next(filter(None, (found("compiled", seed=seed) for seed in range(1, 10))))
    for finding in findings:
        assert finding.example is not None
        assert finding.example.given["spec"] in ({"replicas": 1}, {"replicas": "1"})


def test_guards_that_are_not_looked_at_let_stale_values_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ConversionRule, "guards", lambda *_, **__: iter(()))
    findings = found("edit-lost", examples=200)
    assert findings
    for finding in findings:
        assert finding.example is not None
        assert len(finding.example.given["spec"]) <= 2
        assert " still has the value " in finding.fact


def test_the_same_seed_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConversionRule, "guards", lambda *_, **__: iter(()))
    one, other = (check(crontabs(), examples=40, seed=5) for _ in range(2))
    assert [each.as_data() for each in one.findings] == [each.as_data() for each in other.findings]
    assert one.ledgers == other.ledgers


def test_progress_is_told_object_by_object() -> None:
    told: list[int] = []
    check(crontabs(), examples=7, progress=told.append)
    assert sum(told) == 7


def test_a_single_version_has_nothing_to_try() -> None:
    checked = check(Converter("ex.io", "Toy", ["v1"], []), examples=10)
    assert (checked.objects, checked.ledgers) == (0, ())


# Objects.


def mixed(version: str, count: int, *, seed: int = 1) -> list[Object]:
    schema = SCHEMAS[version]
    objects = drawn(schema, count=10, seed=seed, head=HEAD)
    words = words_of(converter(EVERY_RULE, SCHEMAS))
    return list(itertools.islice(Mixer(schema, objects, words, seed=seed).objects(), count))


@pytest.mark.parametrize("version", ["v1", "v2", "v3"])
def test_mixed_objects_are_such_as_the_schema_allows(version: str) -> None:
    schema = compile_schema(SCHEMAS[version])
    for obj in mixed(version, 200):
        assert schema.validate(obj) == []
        assert schema.prune(obj) == []


def test_an_alternative_that_allows_no_number_is_not_chosen() -> None:
    number = {
        "type": "number",
        "minimum": 1,
        "exclusiveMinimum": True,
        "anyOf": [{"maximum": 1, "exclusiveMaximum": True}, {"maximum": 3}],
    }
    spec = {"type": "object", "required": ["n"], "properties": {"n": number}}
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec}}
    made = drawn(schema, count=20, seed=1, head=HEAD)
    assert made
    assert all(1 < each["spec"]["n"] <= 3 for each in made)


def test_an_alternative_that_allows_no_multiple_is_not_chosen() -> None:
    number = {
        "type": "number",
        "maximum": 5,
        "exclusiveMaximum": True,
        "multipleOf": 5,
        "anyOf": [{"minimum": 2}, {"minimum": -10}],
    }
    spec = {"type": "object", "required": ["n"], "properties": {"n": number}}
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec}}
    made = drawn(schema, count=20, seed=1, head=HEAD)
    assert {each["spec"]["n"] for each in made} <= {-10, -5, 0}


def test_objects_of_a_seed_do_not_depend_on_loaded_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def objects() -> list[Object]:
        return drawn(SCHEMAS["v1"], count=40, seed=7, head=HEAD)

    before = objects()
    texts = [f"constant-{number}" for number in range(500)]
    (tmp_path / "own_constants.py").write_text(f"VALUES = {texts}\nNUMBERS = {[*range(9000)]}\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("own_constants")
    assert objects() == before


@pytest.mark.parametrize("seed", range(20))
def test_one_object_has_every_field(seed: int) -> None:
    [first] = mixed("v1", 1, seed=seed)
    assert {*SCHEMAS["v1"]["properties"]["spec"]["properties"]} == {*first["spec"]}


def test_objects_are_various_partial_ones_among_them() -> None:
    objects = mixed("v1", 300)
    assert any("spec" not in obj for obj in objects)
    assert any(obj["metadata"].get("annotations") == {} for obj in objects)
    texts = {obj.get("spec", {}).get("hostPort") for obj in objects}
    assert {"a:08", "a:7"} <= texts


def test_words_are_those_of_rules_and_of_functions() -> None:
    table = {"one": 1}

    def up(obj: Object) -> Object:
        return {**obj, "spec": {"a": table.get("x"), "b": LIMITS, "c": named_elsewhere()}}

    edge = FunctionEdge("v1", "v2", up, lambda obj: obj)
    words = words_of(Converter("ex.io", "Toy", ["v1", "v2"], [edge]))
    assert {"spec", "one", 1, "x", 17, "elsewhere"} <= {*words}
    assert {"Allow", "allow", "cron", 1000} <= {*words_of(crontabs().converter)}


def named_elsewhere() -> str:
    return "elsewhere"


LIMITS = (17,)


# The smallest object.


@given(st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4), st.data())
def test_what_is_shrunk_is_still_bad_and_cannot_be_made_smaller(
    obj: Object, data: st.DataObject
) -> None:
    leaves = [*_leaves(obj)]
    if not leaves:
        return
    wanted = data.draw(st.sampled_from(leaves))
    is_bad: Callable[[Object], bool] = lambda each: any(same(wanted, v) for v in _leaves(each))  # noqa: E731
    small = shrunk(obj, is_bad)
    assert is_bad(small)
    assert [*_leaves(small)] == [wanted]


def _leaves(value: Any) -> Iterator[Any]:
    if type(value) is dict and value:
        for each in value.values():
            yield from _leaves(each)
    elif type(value) is list and value:
        for each in value:
            yield from _leaves(each)
    elif type(value) not in (dict, list):
        yield value


# Lists whose items nothing identifies.


def ports(*, key: str = "", keys: Sequence[str] = (), keep: str = "name") -> CheckedKind:
    """A kind with a list of ports, of which v2 lacks `note`."""
    here, there = (listed(**dict.fromkeys(names, TEXT)) for names in (("name", "note"), (keep,)))
    if keys:
        for each in (here, there):
            each |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [*keys]}
    schemas = {"v1": of(spec=of(ports=here)), "v2": of(spec=of(ports=there))}
    rules = Rules()
    if key:
        inside = rules.each("spec.ports", key=key)
        if keep != "name":
            inside.move("name", keep)
    edge = DeclaredEdge("v1", "v2", rules.block())
    made = Converter("ex.io", "Port", ["v1", "v2"], [edge], schemas=schemas)
    return CheckedKind(made, schemas, "ports.ex.io", "ports.yaml:1")


def test_a_list_without_keys_loses_by_edits() -> None:
    [finding] = check(ports(), examples=0).findings
    assert (finding.rule, finding.path, finding.versions) == (
        "edits-lose",
        "spec.ports[]",
        ("v1", "v2"),
    )
    assert "v2 cannot express note of an item, and nothing identifies the items" in finding.fact


@pytest.mark.parametrize(
    "known", [ports(key="name"), ports(keys=["name"]), ports(key="name", keep="title")]
)
def test_a_list_with_keys_does_not(known: CheckedKind) -> None:
    assert check(known, examples=20).findings == ()


def test_a_key_that_the_other_version_lacks_identifies_nothing() -> None:
    known = ports(key="note")
    [finding] = check(known, examples=0).findings
    assert finding.rule == "edits-lose"


def test_a_key_that_no_version_has_is_found() -> None:
    found = {each.rule: each for each in check(ports(key="title"), examples=0).findings}
    assert (found["unknown-field"].path, "edits-lose" in found) == ("spec.ports[].title", True)


@pytest.mark.parametrize("known", [ports(), ports(key="name"), ports(keys=["name"])])
def test_edits_lose_what_is_said(known: CheckedKind) -> None:
    """The finding is there exactly if an edit of an item loses its preserved field."""
    listed = [{"name": "a", "note": "x"}, {"name": "b", "note": "y", "port": 1}]
    old = {"apiVersion": "ex.io/v1", "kind": "Port", "spec": {"ports": listed}}
    there = known.converter.convert(old, "v2")
    there["spec"]["ports"] = [{"name": "c"}, *there["spec"]["ports"]]
    back = known.converter.convert(there, "v1")
    kept = [each.get("note") for each in back["spec"]["ports"]] == [None, "x", "y"]
    assert kept is (check(known, examples=0).findings == ())


def test_functions_that_lose_parts_of_items_are_observed() -> None:
    schemas = ports().schemas

    def forth(obj: Object) -> Object:
        items = [{"name": each["name"]} for each in obj["spec"].get("ports", []) if "name" in each]
        return {**obj, "spec": {"ports": items}}

    edge = FunctionEdge("v1", "v2", forth, lambda obj: obj)
    known = Converter("ex.io", "Port", ["v1", "v2"], [edge], schemas=schemas)
    checked = check(CheckedKind(known, schemas, "ports.ex.io"), examples=60)
    lost = [each for each in checked.findings if each.rule == "edits-lose"]
    assert [(each.path, each.versions) for each in lost] == [("spec.ports[]", ("v1", "v2"))]
