"""Rules in CEL: what they see, what they may cost, and that none of them runs forever."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.objects.schema import check_schema, compile_schema
from polyver.kube.objects.schema._rules import Findings, compile_rules
from polyver.kube.objects.schema.structure import read_structure
from polyver.languages.cel import (
    CelEnvironment,
    CelResult,
    CelSchema,
    Uncompilable,
    Unusable,
    declared,
    escape,
    to_value,
)
from polyver.languages.cel._names import unescape
from polyver.languages.regexp import InvalidPattern, read_pattern
from polyver.languages.regexp._automaton import Finder
from polyver.languages.regexp.syntax import parse

LIST = {"type": "array", "items": {"type": "integer"}}
SCHEMA = {"type": "object", "properties": {"list": LIST, "text": {"type": "string"}}}
LARGE = {"list": list(range(20_000)), "text": "a" * 20_000}
WORDS = (
    "self . list text size ( ) [ ] { } , : ? && || ! - + * / % == < in 1 -2 1.5 2u 'a' b'b' true "
    "null x all exists map filter has optional of none orValue dyn type int string 'a\\n' ` \\ \" '"
).split()
COSTLY = [
    "self.list.all(x, !self.list.exists(y, y > 1000000))",
    "self.list.map(x, self.text).join().size() > 0",
    "self.list.all(x, self == self)",
    "self.list.distinct().size() > 0",
    "lists.range(900000).sort().size() > 0",
    "self.text.replace('', self.text).size() > 0",
    f"'{'%s' * 600}'.format([{', '.join(['self.text'] * 600)}]).size() > 0",
]


def run(rule: str, data: Any, schema: Any = None) -> CelResult:
    schema = schema or SCHEMA
    place = declared(schema, "selfType")
    assert place is not None
    seen = to_value(data, CelSchema(schema))
    return CelEnvironment(place).compile(rule).program.evaluate({"self": seen})


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=20))
def test_every_text_is_an_expression_or_is_told_what_is_wrong_with_it(text: str) -> None:
    try:
        outcome = run(text, {"list": [1], "text": "b"})
    except (Uncompilable, Unusable) as problem:
        told = str(problem)
    else:
        told = "ERROR: <input>:" if outcome.cost < 10_000 else "it cost too much"
    assert told.startswith(("ERROR: <input>:", "error parsing regexp", "type conversion error"))


@pytest.mark.parametrize("rule", COSTLY)
def test_a_rule_that_costs_too_much_ends_early(rule: str) -> None:
    outcome = run(rule, LARGE)
    assert outcome.failure == "operation cancelled: actual cost limit exceeded"


@pytest.mark.parametrize(
    "rule",
    [
        *("(" * 5000, "[" * 5000, "-" * 90_000 + "x", "1" + "+1" * 5000, "a" * 100_001),
        *("x" + ".y" * 5000, "true ? 1 : " * 5000 + "2", "'a'" + ".trim()" * 5000, "{1:" * 5000),
        "optional.of(1)" + ".optMap(x, x)" * 60,
    ],
)
def test_an_expression_without_an_end_is_refused(rule: str) -> None:
    with pytest.raises(Uncompilable, match=r"limit|too large|undeclared|expecting"):
        run(rule, {})


@pytest.mark.parametrize("rule", ["(" * 49 + "1" + ")" * 49, "1" + "+1" * 199])
def test_what_is_allowed_to_be_deep_can_be_evaluated_from_deep_inside(rule: str) -> None:
    def deeper(levels: int) -> CelResult:
        return deeper(levels - 1) if levels else run(rule, {})

    assert deeper(200).failure is None


def test_values_that_are_written_out_are_looked_up_at_once() -> None:
    words = ", ".join(str(number) for number in range(10_000))
    assert run(f"self.list.all(x, x < 10000 || !(x in [{words}]))", LARGE).value is True
    assert run("dyn(2) in [1.0, 2.0] && !(dyn(true) in [1]) && !(dyn([1]) in [1])", {}).value


def test_many_terms_may_be_joined() -> None:
    assert run(" && ".join(["true"] * 2000), {}).value is True


@given(st.text(alphabet="ab_-./1", max_size=8))
def test_names_that_can_be_written_can_be_read_again(name: str) -> None:
    escaped = escape(name)
    if escaped is not None:
        assert unescape(escaped) == name


PATTERNS = st.lists(
    st.sampled_from(["a", "b", "(a|ab)", "a*", "b+?", "(a|b)*?", "a??", r"\b", "^", "$", "(b|)"]),
    max_size=4,
).map("".join)


@given(PATTERNS, st.text(alphabet="ab c", max_size=8))
def test_what_is_found_does_not_depend_on_how_it_is_looked_for(pattern: str, text: str) -> None:
    try:
        quick = read_pattern(pattern)
    except InvalidPattern:
        return
    assert quick.find(text) == Finder(parse(pattern)).find(text)


def test_a_pattern_is_found_in_a_long_text_in_good_time() -> None:
    assert read_pattern("(a|aa)+?b").find("a" * 20_000 + "b") == (0, 20_001)
    assert read_pattern("(a*)*b").find("a" * 20_000) is None


def ruled(*rules: Any, **more: Any) -> dict[str, Any]:
    inside = {"type": "object", "x-kubernetes-validations": [*rules], **more}
    return {"type": "object", "properties": {"spec": inside}}


def test_all_rules_for_an_object_together_may_cost_so_much() -> None:
    rule = {"rule": "self.all(x, x > 0)", "message": "above zero"}
    items = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [rule]}
    schema = ruled(additionalProperties=items)
    rules = compile_rules(schema, read_structure(schema))
    assert rules is not None
    findings = Findings(left=100)
    rules.check({"spec": {"a": [0], "b": list(range(1, 100)), "c": [0]}}, None, findings)
    assert [each.field for each in findings.causes] == ["spec[a]", "spec[b]"]
    assert findings.causes[-1].message == (
        'Invalid value: "array": validation failed due to running out of cost budget, '
        "no further validation rules will be run"
    )


def test_a_message_that_cannot_be_made_is_replaced() -> None:
    rules = [
        {"rule": "false", "messageExpression": "[''][1]", "message": "plain"},
        {"rule": "false", "messageExpression": "' '"},
        {"rule": "1 > 2", "messageExpression": "'a\\nb'"},
    ]
    found = compile_schema(ruled(*rules)).validate({"spec": {}})
    assert [each.message for each in found] == [
        "Invalid value: plain",
        "Invalid value: failed rule: false",
        "Invalid value: failed rule: 1 > 2",
    ]


def test_a_path_in_a_rule_leads_to_a_field_or_a_key() -> None:
    fields = {"a.b": {"type": "object", "additionalProperties": {"type": "string"}}}
    right = {"rule": "false", "fieldPath": "['a.b']['x\\'y']", "message": "no"}
    schema = ruled(right, properties=fields)
    assert check_schema(schema, "s") == []
    assert compile_schema(schema).validate({"spec": {}})[0].field == "spec.a.b[x'y]"
    for wrong in ("a", "['a.b'", "['a.b'].x.y", "['a\\qb']", ".c", "[a]"):
        refused = check_schema(ruled(right | {"fieldPath": wrong}, properties=fields), "s")
        assert refused[0].message.endswith("must be a valid path")


def test_a_schema_without_rules_has_nothing_to_check() -> None:
    schema = compile_schema({"type": "object", "properties": {"spec": {"type": "object"}}})
    assert schema.validate({"spec": {}}) == []
    assert schema.tolerated({"spec": {}}, {"spec": {}}) == []
