"""Rules that depend on another field, or on the absence of a field: `when` and `default`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.conversions import TEXT, VALUES, WHOLE, check_compiled, crontab, listed, of
from tests.apis.test_conversion_law import check_law
from tests.apis.test_conversion_schemas import check_visibly
from tests.apis.test_rule_types import FIELDS
from tests.apis.test_rules import OTHER, Writer, carry, edge
from tests.apis.test_writing import defined, only

from polyver.apis.checking import check_types, check_writing, ledger
from polyver.apis.conversion import InvalidRule, Rules, build_converter
from polyver.core import PolyverError
from polyver.languages.values.strings import same

Object = dict[str, Any]


def regex(e: Rules) -> None:
    """As in Alertmanager's routes: a boolean became an operator."""
    cases = e.when("spec.regex", to="spec.matchType")
    cases.case(True, to="=~")
    cases.case([None, False], to="=")
    cases.otherwise()


def provider(e: Rules) -> None:
    cases = e.when("spec.type", to="spec.kind")
    aws = cases.case("AWS", to="aws")
    aws.move("spec.region", "spec.aws.region")
    aws.drop("spec.zone")
    gcp = cases.case("GCP", to="gcp")
    gcp.split("spec.region", into=["spec.gcp.region", "spec.gcp.zone"], separator="-")
    cases.otherwise().move("spec.region", "spec.region")


def tls(e: Rules) -> None:
    """The deciding field is the same in both versions, and a default depends on it."""
    cases = e.when("spec.tls")
    cases.case(True).default("spec.port", "spec.port", 443)
    cases.otherwise().default("spec.port", "spec.port", 80)


def size(e: Rules) -> None:
    e.default("spec.size", "spec.amount", 3)


def template(e: Rules) -> None:
    e.default("spec.template", "spec.template", {"name": "a"})


@pytest.mark.parametrize(
    ("write", "old", "new"),
    [
        (regex, {"regex": True}, {"matchType": "=~"}),
        (regex, {}, {"matchType": "="}),
        (provider, {"type": "AWS", "region": "eu"}, {"kind": "aws", "aws": {"region": "eu"}}),
        (
            provider,
            {"type": "GCP", "region": "eu-1"},
            {"kind": "gcp", "gcp": {"region": "eu", "zone": "1"}},
        ),
        (provider, {"region": "eu"}, {"region": "eu"}),
        (tls, {"tls": True}, {"tls": True, "port": 443}),
        (tls, {"tls": True, "port": 80}, {"tls": True, "port": 80}),
        (tls, {"tls": False}, {"tls": False, "port": 80}),
        (tls, {}, {"port": 80}),
        (tls, {"tls": "x"}, {"tls": "x", "port": 80}),
        (size, {}, {"amount": 3}),
        (size, {"size": 4}, {"amount": 4}),
        (template, {"template": {"name": "b"}}, {"template": {"name": "b"}}),
        (template, {}, {"template": {"name": "a"}}),
    ],
)
def test_a_rule_reads_both_ways(write: Writer, old: Object, new: Object) -> None:
    known = edge(write)
    assert same(known.convert(crontab("v1", **old), "v2"), crontab("v2", **new))
    assert same(known.convert(crontab("v2", **new), "v1"), crontab("v1", **old))


LOSSY: list[tuple[Writer, str, Object, Object]] = [
    (regex, "v1", {"regex": False}, {"matchType": "="}),
    (regex, "v1", {"regex": None}, {"matchType": "="}),
    (regex, "v1", {"regex": "yes"}, {}),
    (regex, "v2", {"matchType": "!~"}, {}),
    (regex, "v2", {}, {}),
    (regex, "v2", {"matchType": {"a": [1]}}, {}),
    (provider, "v1", {"type": "AWS", "zone": "b"}, {"kind": "aws"}),
    (provider, "v1", {"type": "AWS", "region": None}, {"kind": "aws", "aws": {"region": None}}),
    (provider, "v1", {"type": "GCP", "region": 5}, {"kind": "gcp"}),
    (provider, "v1", {"type": "Azure", "region": "x"}, {"region": "x"}),
    (provider, "v2", {"kind": "gcp", "aws": {"region": "x"}}, {"type": "GCP"}),
    (provider, "v2", {"aws": {"region": "x"}}, {}),
    (provider, "v2", {"kind": 5, "aws": "x"}, {"aws": "x"}),
    (tls, "v1", {"tls": True, "port": 443}, {"tls": True, "port": 443}),
    (tls, "v1", {"port": None}, {"port": 80}),
    (tls, "v2", {"tls": True}, {"tls": True}),
    (size, "v1", {"size": 3}, {"amount": 3}),
    (size, "v1", {"size": None}, {"amount": 3}),
    (size, "v2", {}, {}),
]


@pytest.mark.parametrize(("write", "version", "spec", "shown"), LOSSY)
def test_what_a_case_cannot_express_survives(
    write: Writer, version: str, spec: Object, shown: Object
) -> None:
    known, obj = edge(write), crontab(version, **spec)
    made = known.convert(obj, OTHER[version])
    assert [*carry(made)] in ([version], [])
    assert same(known.convert(made, version), obj)
    if write is not size or version == "v1":
        assert same(made["spec"], shown)
    check_compiled(known, obj, OTHER[version])
    check_compiled(known, made, version)


@pytest.mark.parametrize(
    ("write", "version", "spec", "edit", "expected"),
    [
        # Another case applies: what the first could not express belongs to it.
        (
            provider,
            "v1",
            {"type": "AWS", "region": "eu", "zone": "b"},
            {"kind": "gcp"},
            {"type": "GCP"},
        ),
        (regex, "v1", {"regex": False}, {"matchType": "=~"}, {"regex": True}),
        (tls, "v1", {"tls": True, "port": 443}, {"tls": False}, {"tls": False, "port": 443}),
        (size, "v1", {"size": 3}, {"amount": 4}, {"size": 4}),
    ],
)
def test_an_edit_of_what_it_depends_on_discards_a_preserved_value(
    write: Writer, version: str, spec: Object, edit: Object, expected: Object
) -> None:
    known, other = edge(write), OTHER[version]
    made = known.convert(crontab(version, **spec), other)
    made["spec"].update(edit)
    back = known.convert(made, version)
    assert {name: back["spec"].get(name) for name in expected} == expected
    assert "zone" not in back["spec"]


def test_an_edit_of_another_field_of_the_case_keeps_a_preserved_value() -> None:
    known = edge(provider)
    made = known.convert(crontab("v1", type="AWS", region="eu", zone="b"), "v2")
    made["spec"]["aws"]["region"] = "us"
    assert known.convert(made, "v1") == crontab("v1", type="AWS", region="us", zone="b")


def test_the_preserved_fields_inside_of_a_default_are_restored_one_by_one() -> None:
    def inner(e: Rules) -> None:
        e.default("spec.template", "spec.template", {"name": "a"})

    schemas = {
        "v1": of(spec=of(template=of(name=TEXT, note=TEXT))),
        "v2": of(spec=of(template=of(name=TEXT))),
    }
    known = edge(inner, schemas)
    made = known.convert(crontab("v1", template={"name": "b", "note": "c"}), "v2")
    assert made["spec"] == {"template": {"name": "b"}}
    made["spec"]["template"]["name"] = "d"
    assert known.convert(made, "v1")["spec"] == {"template": {"name": "d", "note": "c"}}
    both = crontab("v1", template={"name": "a", "note": "c"})
    assert known.convert(known.convert(both, "v2"), "v1") == both


@pytest.mark.parametrize("write", [regex, provider, tls, size, template])
def test_an_object_without_the_top_level_field_stays_as_it_is(write: Writer) -> None:
    known = edge(write)
    obj = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": "a"}}
    for version in ("v2", "v1"):
        check_compiled(known, obj, version)
        obj = known.convert(obj, version)
        assert obj.keys() == {"apiVersion", "kind", "metadata"}


def test_each_item_has_its_own_case() -> None:
    def matchers(e: Rules) -> None:
        cases = e.each("spec.matchers", key="name").when("regex", to="matchType")
        cases.case(True, to="=~")
        cases.case([None, False], to="=")
        cases.otherwise()

    known = edge(matchers)
    items = [{"name": "a", "regex": True}, {"name": "b"}, {"name": "c", "regex": False}]
    obj = crontab("v1", matchers=items)
    made = known.convert(obj, "v2")
    assert [item["matchType"] for item in made["spec"]["matchers"]] == ["=~", "=", "="]
    check_compiled(known, obj, "v2")
    made["spec"]["matchers"].reverse()
    assert known.convert(made, "v1")["spec"]["matchers"] == items[::-1]


FIELDS_OF_CASES = {
    "regex": VALUES | st.booleans(),
    "matchType": st.sampled_from(["=", "=~", "!="]) | VALUES,
    "type": st.sampled_from(["AWS", "GCP", "x"]) | VALUES,
    "kind": st.sampled_from(["aws", "gcp", "x"]) | VALUES,
    "region": st.sampled_from(["eu", "eu-1"]) | VALUES,
    "aws": st.fixed_dictionaries({}, optional={"region": VALUES}) | VALUES,
    "gcp": st.fixed_dictionaries({}, optional={"region": VALUES, "zone": VALUES}) | VALUES,
    "zone": VALUES,
    "tls": st.booleans() | VALUES,
    "port": st.sampled_from([80, 443]) | VALUES,
    "size": st.integers(2, 4) | VALUES,
    "amount": st.integers(2, 4) | VALUES,
}
SPECS = st.fixed_dictionaries({}, optional=FIELDS_OF_CASES)


def all_rules(e: Rules) -> None:
    for write in (regex, provider, tls, size, template):
        write(e)


@given(SPECS, SPECS, st.sampled_from(["v1", "v2"]))
def test_the_law_holds_for_values_of_any_form(spec: Object, edit: Object, version: str) -> None:
    known, obj = edge(all_rules), crontab(version, **spec)
    check_law(known, obj, OTHER[version], version)
    check_compiled(known, obj, OTHER[version])
    made = known.convert(obj, OTHER[version])
    made["spec"].update(edit)
    check_compiled(known, made, version)
    check_visibly(known, made, version, OTHER[version])


# Reading and checks


WHEN = "{when: {from: spec.a, to: spec.b, cases: [%s], otherwise: {rules: []}}}"


def test_the_yaml_form_does_the_same() -> None:
    rule = WHEN % "{is: [null, x], as: w, rules: [{default: {from: spec.c, to: spec.d, value: 1}}]}"
    known = build_converter(only(rule))
    assert known.convert(crontab("v1"), "v2") == crontab("v2", b="w", d=1)
    assert known.convert(crontab("v2", b="w", d=1), "v1") == crontab("v1")


@pytest.mark.parametrize(
    ("rule", "fact", "at"),
    [
        ("{when: {from: spec.a, cases: [{is: x}]}}", 'cover only "x" in spec.a', ".when"),
        ("{when: {from: spec.a, cases: [{is: true}, {is: false}]}}", "cover only", ".when"),
        (WHEN % "{is: [x, w]}, {is: w}", 'two cases of when apply to "w" in spec.a', ".when"),
        (WHEN % "{is: x, as: z}, {is: w, as: z}", 'two cases of when apply to "z" in s', ".when"),
        (WHEN % "{is: null}, {is: [null, x]}", "apply to a missing spec.a", ".when"),
        (WHEN % "{is: {c: d}}", '{"c":"d"} cannot decide a case of when', ".when"),
        (WHEN % "{is: []}", "a case of when needs a value", ".when"),
        (WHEN % "", "when needs at least one case", ".when"),
        (WHEN % "{as: x}", '"is" is missing', ".when.cases[0]"),
        (
            WHEN % "{is: x, rules: [{drop: {at: spec.a}}]}",
            "a case of when converts spec.a, which decides the case",
            ".when",
        ),
        (
            WHEN % "{is: x, rules: [{drop: {at: spec.c}}, {drop: {at: spec.c.d}}]}",
            "rule 1 (drop) reads spec.c already",
            ".when.cases[0].rules[1].drop",
        ),
        (
            WHEN % "{is: x, rules: [{drop: {at: metadata.name}}]}",
            "metadata.name cannot be converted",
            ".when.cases[0].rules[0].drop",
        ),
        (
            "{when: {from: spec.a, to: status.a, cases: [{is: x}], otherwise: {}}}",
            "spec.a and status.a of when are in different top-level fields",
            ".when",
        ),
        (
            "{default: {from: spec.a, to: status.a, value: 1}}",
            "spec.a and status.a of default are in different top-level fields",
            ".default",
        ),
        (
            WHEN % "{is: x, rules: [{const: {at: status.b, value: 1}}]}",
            "a case of when sets status.b, which is not in spec",
            ".when",
        ),
        ("{default: {from: spec.a, to: spec.a, value: null}}", "default needs a value", ".default"),
    ],
)
def test_cases_that_overlap_or_leave_values_out_are_refused(rule: str, fact: str, at: str) -> None:
    with pytest.raises(PolyverError) as refused:
        only(rule)
    assert fact in refused.value.fact
    assert refused.value.at == f"c.yaml:12, spec.edges[0].rules[0]{at}"


def test_another_rule_cannot_use_the_fields_of_a_case() -> None:
    rule = WHEN % "{is: x, rules: [{drop: {at: spec.c}}]}" + ", {drop: {at: spec.c}}"
    with pytest.raises(PolyverError, match=r"rule 1 \(when\) reads spec\.c already") as refused:
        only(rule)
    assert refused.value.at == "c.yaml:12, spec.edges[0].rules[1].drop"


def test_python_finds_the_same_errors() -> None:
    def partial(e: Rules) -> None:
        e.when("spec.a").case(True)

    with pytest.raises(InvalidRule, match="the cases of when cover only true in spec"):
        edge(partial)


KNOWN = {"v1": of(spec=of(**FIELDS)), "v2": of(spec=of(**FIELDS))}
MODE = "{when: {from: spec.text, to: spec.flag, cases: [{is: a, as: %s%s}], otherwise: {}}}"


@pytest.mark.parametrize(
    "rule",
    [
        MODE % ("true", ""),
        MODE % ("true", ", rules: [{move: {from: spec.whole, to: spec.number}}]"),
        "{default: {from: spec.whole, to: spec.number, value: 1}}",
        "{default: {from: spec.map, to: spec.map, value: {a: b}}}",
    ],
)
def test_rules_that_fit_the_schemas_are_let_alone(rule: str) -> None:
    check_writing(only(rule), defined(KNOWN))
    check_types(only(rule), defined(KNOWN))


@pytest.mark.parametrize(
    ("rule", "fact"),
    [
        (MODE % ("x", ""), 'spec.flag of v2: when writes "x", but the schema has type boolean'),
        (
            MODE % ("true", ", rules: [{scale: {from: spec.list, to: spec.whole, factor: 2}}]"),
            "spec.list of v1: scale expects an integer, but the schema has type array",
        ),
        (
            "{when: {from: spec.text, to: spec.flag, cases: [{is: null}], otherwise: {}}}",
            "spec.text of v1: move copies string to spec.flag of v2, which is boolean",
        ),
        (
            "{default: {from: spec.text, to: spec.text, value: 1}}",
            "spec.text of v2: default writes 1, but the schema has type string",
        ),
        (
            "{default: {from: spec.text, to: spec.whole, value: 1}}",
            "spec.text of v1: default copies string to spec.whole of v2, which is integer",
        ),
    ],
)
def test_rules_that_do_not_fit_the_schemas_are_refused(rule: str, fact: str) -> None:
    with pytest.raises(PolyverError) as refused:
        check_types(only(rule), defined(KNOWN))
    assert refused.value.fact == fact


def test_a_field_that_does_not_exist_is_named() -> None:
    rules = ", rules: [{move: {from: spec.whole, to: spec.nope}}]"
    for rule, at in (
        (MODE % ("true", rules), "when.cases[0].rules[0].move.to"),
        (MODE.replace("spec.flag", "spec.nope") % ("true", ""), "when.to"),
    ):
        with pytest.raises(PolyverError, match=r"spec\.nope, but v2 has no such") as refused:
            check_writing(only(rule), defined(KNOWN))
        assert refused.value.at == f"c.yaml:12, spec.edges[0].rules[0].{at}"


def test_the_ledger_follows_all_cases() -> None:
    schemas = {
        "v1": of(spec=of(type=TEXT, region=TEXT, zone=TEXT, size=WHOLE, list=listed(a=TEXT))),
        "v2": of(
            spec=of(
                kind=TEXT,
                region=TEXT,
                amount=WHOLE,
                aws=of(region=TEXT),
                gcp=of(region=TEXT, zone=TEXT),
            )
        ),
    }

    def both(e: Rules) -> None:
        provider(e)
        size(e)

    found = ledger(edge(both, schemas), schemas, "v1", "v2")
    assert found is not None
    fates = {each.path: (each.how, each.to, each.rules, each.exact) for each in found.fates}
    regions = ("spec.aws.region", "spec.gcp.region", "spec.gcp.zone", "spec.region")
    assert fates == {
        "spec.type": ("transformed", ("spec.kind",), ("when",), False),
        "spec.region": ("transformed", regions, ("when", "split"), True),
        "spec.zone": ("carried", (), (), False),
        "spec.size": ("transformed", ("spec.amount",), ("default",), False),
        "spec.list[].a": ("carried", (), (), False),
    }
