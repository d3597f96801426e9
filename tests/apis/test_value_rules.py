"""Rules that compute a value by expressions or by functions of users."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.conversions import TEXT, VALUES, WHOLE, check_compiled, crontab, of
from tests.apis.test_conversion_law import check_law
from tests.apis.test_rule_types import ONE
from tests.apis.test_rules import OTHER, Writer, carry, edge
from tests.apis.test_writing import defined, only

from polyver import apis
from polyver.apis.checking import check_types, check_writing, ledger
from polyver.apis.conversion import InvalidRule, Rules, build_converter
from polyver.core import PolyverError
from polyver.languages.values.strings import same

Object = dict[str, Any]


def percent(e: Rules) -> None:
    e.cel(
        "spec.share", "spec.percent", forward="string(self) + '%'", back="int(self.split('%')[0])"
    )


def address(e: Rules) -> None:
    e.cel(
        "spec.address",
        {"host": "spec.host", "port": "spec.port"},
        forward="{'host': self.split(':')[0], 'port': int(self.split(':')[1])}",
        back="self.host + (has(self.port) ? ':' + string(self.port) : '')",
    )


def sizes(e: Rules) -> None:
    names = {"width": "spec.width", "height": "spec.height"}
    e.convert(names, "spec.size", forward=joined, back=parted)


def joined(value: Any) -> Any:
    return f"{value['width']}x{value['height']}" if len(value) == 2 else None


def parted(value: Any) -> Any:
    if type(value) is not str or value.count("x") != 1:
        return None
    width, height = value.split("x")
    return {"width": int(width), "height": int(height)} if (width + height).isdigit() else None


def tags(e: Rules) -> None:
    e.convert("spec.tags", "spec.labels", forward=sorted, back=list)


@pytest.mark.parametrize(
    ("write", "old", "new"),
    [
        (percent, {"share": 5}, {"percent": "5%"}),
        (percent, {}, {}),
        (address, {"address": "a:80"}, {"host": "a", "port": 80}),
        (sizes, {"width": 3, "height": 4}, {"size": "3x4"}),
        (tags, {"tags": ["a", "b"]}, {"labels": ["a", "b"]}),
    ],
)
def test_a_value_is_computed_in_both_directions(write: Writer, old: Object, new: Object) -> None:
    known = edge(write)
    assert same(known.convert(crontab("v1", **old), "v2"), crontab("v2", **new))
    assert same(known.convert(crontab("v2", **new), "v1"), crontab("v1", **old))


@pytest.mark.parametrize(
    ("write", "version", "spec", "shown"),
    [
        (percent, "v2", {"percent": "x%"}, {}),
        (percent, "v2", {"percent": "05%"}, {"share": 5}),
        (percent, "v2", {"percent": 5}, {}),
        (percent, "v1", {"share": None}, {}),
        (percent, "v1", {"share": {"a": [1]}}, {}),
        (address, "v1", {"address": "a"}, {}),
        (address, "v1", {"address": "a:08"}, {"host": "a", "port": 8}),
        (address, "v2", {"host": "a"}, {"address": "a"}),
        (address, "v2", {"port": 80}, {}),
        (sizes, "v1", {"width": 3}, {}),
        (sizes, "v2", {"size": "03x4"}, {"width": 3, "height": 4}),
        (tags, "v1", {"tags": ["b", "a"]}, {"labels": ["a", "b"]}),
    ],
)
def test_a_value_that_does_not_come_back_is_preserved(
    write: Writer, version: str, spec: Object, shown: Object
) -> None:
    known, obj = edge(write), crontab(version, **spec)
    made = known.convert(obj, OTHER[version])
    assert same(made["spec"], shown)
    assert [*carry(made)] == [version]
    assert same(known.convert(made, version), obj)
    check_compiled(known, obj, OTHER[version])


def listed(e: Rules) -> None:
    e.cel(
        "spec.states",
        "spec.conditions",
        forward="self.map(t, {'type': t, 'value': self[t]})",
        back="self.transformMapEntry(i, c, {c.type: c.value})",
    )


@given(
    st.dictionaries(st.text(max_size=3), st.integers(0, 9), min_size=2).map(dict.items).map(list),
    st.randoms(),
)
def test_the_order_of_keys_does_not_change_the_result(items: list[Any], chance: Any) -> None:
    known = edge(listed)
    made = known.convert(crontab("v1", states=dict(items)), "v2")
    chance.shuffle(items)
    assert same(known.convert(crontab("v1", states=dict(items)), "v2"), made)
    assert not carry(made)
    assert same(known.convert(known.convert(made, "v1"), "v2"), made)


def test_an_edit_of_the_computed_value_discards_what_was_preserved() -> None:
    made = edge(percent).convert(crontab("v2", percent="05%"), "v1")
    made["spec"]["share"] = 6
    assert edge(percent).convert(made, "v2") == crontab("v2", percent="6%")


def test_a_number_of_the_schema_is_a_double_also_if_it_is_written_as_an_integer() -> None:
    number = {"type": "number"}
    schemas = {"v1": of(spec=of(cores=number)), "v2": of(spec=of(millis=WHOLE))}

    def cores(e: Rules) -> None:
        e.cel("spec.cores", "spec.millis", forward="int(self * 1000.0)", back="double(self) / 1e3")

    known = edge(cores, schemas)
    for value, millis in ((1, 1000), (0.5, 500)):
        obj = crontab("v1", cores=value)
        made = known.convert(obj, "v2")
        assert same(made, crontab("v2", millis=millis))
        assert same(known.convert(made, "v1"), obj)


def test_the_items_of_a_list_are_computed_one_by_one() -> None:
    def ports(e: Rules) -> None:
        inside = e.each("spec.ports", key="name")
        inside.cel("number", "port", forward="string(self)", back="int(self)")

    known = edge(ports)
    obj = crontab("v1", ports=[{"name": "a", "number": 1}, {"name": "b", "number": "x"}])
    made = known.convert(obj, "v2")
    assert made["spec"]["ports"][0] == {"name": "a", "port": "1"}
    assert same(known.convert(made, "v1"), obj)
    made["spec"]["ports"].reverse()
    assert known.convert(made, "v1")["spec"]["ports"] == obj["spec"]["ports"][::-1]


def test_an_expression_may_not_cost_more_than_its_value_is_large() -> None:
    def squared(e: Rules) -> None:
        e.cel("spec.a", "spec.b", forward="self.map(x, self.map(y, x + y))", back="self[0]")

    known = edge(squared)
    short, long = (crontab("v1", a=["x"] * size) for size in (5, 2000))
    assert len(known.convert(short, "v2")["spec"]["b"]) == 5
    made = known.convert(long, "v2")
    assert made["spec"] == {}
    assert same(known.convert(made, "v1"), long)


def test_a_result_that_is_no_json_is_missing() -> None:
    def endless(e: Rules) -> None:
        e.cel("spec.a", "spec.b", forward="1.0 / 0.0", back="0")

    made = edge(endless).convert(crontab("v1", a=3), "v2")
    assert made["spec"] == {}
    assert edge(endless).convert(made, "v1") == crontab("v1", a=3)


def test_a_field_that_the_schema_lacks_is_not_written() -> None:
    schemas = {"v1": of(spec=of(a=TEXT)), "v2": of(spec=of(b=of(name=TEXT)))}

    def more(e: Rules) -> None:
        e.cel("spec.a", "spec.b", forward="{'name': self, 'more': 'x'}", back="self.name")

    made = edge(more, schemas).convert(crontab("v1", a="x"), "v2")
    assert made == crontab("v2", b={"name": "x"})
    assert edge(more, schemas).convert(made, "v1") == crontab("v1", a="x")


RULES = [percent, address, sizes, tags]
FIELDS = ["address", "host", "port", "share", "percent", "width", "height", "size"]
SPECS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(FIELDS, VALUES | st.sampled_from(["a:1", "5%", "3x4", "a:08"]))
    | {"tags": st.lists(st.sampled_from("abc"), max_size=3)},
)


@given(SPECS, st.sampled_from(["v1", "v2"]))
def test_the_law_holds_for_values_of_any_form(spec: Object, version: str) -> None:
    def all_rules(e: Rules) -> None:
        for write in (percent, address, tags):
            write(e)

    known = edge(all_rules)
    spec = spec | {"labels": spec.get("tags", [])}
    obj = crontab(version, **spec)
    check_law(known, obj, OTHER[version], version)
    check_compiled(known, obj, OTHER[version])


# Functions


def failing(_: Any) -> Any:
    raise ValueError("secret")


def test_an_exception_of_a_function_fails_the_conversion() -> None:
    known = edge(lambda e: e.convert("spec.a", "spec.b", forward=failing, back=str))
    with pytest.raises(ValueError, match="secret"):
        known.convert(crontab("v1", a="x"), "v2")
    assert known.convert(crontab("v1"), "v2") == crontab("v2")


@pytest.mark.parametrize("result", [object(), 1j, math])
def test_a_function_must_return_json(result: Any) -> None:
    known = edge(lambda e: e.convert("spec.a", "spec.b", forward=lambda _: result, back=str))
    with pytest.raises(TypeError, match=r"returned no value for spec\.b"):
        known.convert(crontab("v1", a="x"), "v2")


@pytest.mark.parametrize("result", ["x", {"height": 1, "depth": 2}])
def test_a_function_must_return_the_fields_of_the_rule(result: Any) -> None:
    names = {"width": "spec.width", "height": "spec.height"}
    known = edge(lambda e: e.convert("spec.a", names, forward=lambda _: result, back=str))
    with pytest.raises(TypeError, match=r"returned no value for spec\.width, spec\.height"):
        known.convert(crontab("v1", a="x"), "v2")


def test_a_function_cannot_change_the_object() -> None:
    def change(value: Any) -> Any:
        value.append("c")
        return value

    known = edge(lambda e: e.convert("spec.a", "spec.b", forward=change, back=lambda v: v[:-1]))
    obj = crontab("v1", a=["a"])
    assert known.convert(obj, "v2")["spec"] == {"b": ["a", "c"]}
    assert obj == crontab("v1", a=["a"])


def test_a_rule_with_functions_runs_off_the_event_loop() -> None:
    """Servers call the converter in a worker thread, with the deadline of the request."""
    assert edge(tags).calls_functions
    assert edge(lambda e: e.each("spec.a").convert("b", "c", forward=str, back=int)).calls_functions
    assert not edge(percent).calls_functions


# Reading and checks


TWO = '{cel: {from: spec.a, to: {one: spec.b, two: spec.c}, forward: "%s", back: self.one}}'


def test_the_yaml_form_does_the_same() -> None:
    rule = TWO % "{'one': self, 'two': size(self)}"
    made = build_converter(only(rule)).convert(crontab("v1", a="xy"), "v2")
    assert made == crontab("v2", b="xy", c=2)


@pytest.mark.parametrize(
    ("rule", "fact"),
    [
        (TWO % "self +", "forward is no valid CEL expression: ERROR: <input>:1:7: Syntax error"),
        (TWO % "oldSelf", "undeclared reference to 'oldSelf'"),
        (TWO % "size(self)", "forward returns int, and not a map with the names of the fields"),
        ("{cel: {from: spec.a, to: spec.b, forward: self}}", '"back" is missing'),
        ("{cel: {from: {in: spec.a}, to: spec.b, forward: '1', back: '{}'}}", "'in' cannot be"),
        ("{cel: {from: {}, to: spec.b, forward: '1', back: '{}'}}", "needs at least one field"),
        ("{cel: {from: spec.a, to: metadata.name, forward: '1', back: '1'}}", "metadata.name"),
        ("{cel: {from: {a: s.a, b: s.a}, to: s.b, forward: '1', back: '{}'}}", "s.a twice"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_location(rule: str, fact: str) -> None:
    with pytest.raises(PolyverError) as refused:
        only(rule)
    assert fact in refused.value.fact
    assert refused.value.at.startswith("c.yaml:12, spec.edges[0].rules[0].cel")


@pytest.mark.parametrize(
    "rule",
    [
        "{cel: {from: spec.text, to: spec.whole, forward: size(self), back: string(self)}}",
        "{cel: {from: spec.text, to: spec.either, forward: self, back: string(self)}}",
        "{cel: {from: spec.any, to: spec.number, forward: self.x.y, back: '{\"x\": self}'}}",
        "{cel: {from: spec.list, to: spec.text, forward: 'self.map(x, x.name).join()',"
        ' back: \'self.split(",").map(x, {"name": x, "size": 1})\'}}',
        "{cel: {from: spec.text, to: {a: spec.flag, b: spec.texts},"
        ' forward: \'{"a": true, "b": self}\', back: \'self.a ? self.b : ""\'}}',
    ],
)
def test_expressions_that_fit_the_schemas_are_let_alone(rule: str) -> None:
    check_writing(only(rule), defined(ONE))
    check_types(only(rule), defined(ONE))


@pytest.mark.parametrize(
    ("rule", "fact"),
    [
        (
            "{cel: {from: spec.text, to: spec.whole, forward: self, back: string(self)}}",
            "spec.whole of v2: forward of cel returns string, but the schema has type integer",
        ),
        (
            "{cel: {from: spec.text, to: spec.whole, forward: size(self), back: self + 1}}",
            "spec.text of v1: back of cel returns int, but the schema has type string",
        ),
        (
            "{cel: {from: spec.whole, to: spec.text, forward: self.trim(), back: int(self)}}",
            "spec.whole of v1: forward of cel does not fit the schema: ",
        ),
        (
            "{each: {at: spec.list, rules: [{cel: {from: name, to: size, forward: self,"
            " back: string(self)}}]}}",
            "spec.list[].size of v2: forward of cel returns string, but the schema has type int",
        ),
        (
            "{cel: {from: spec.text, to: {a: spec.flag, b: spec.texts},"
            ' forward: \'{"a": 1, "b": 2}\', back: self.b}}',
            "spec.flag of v2: forward of cel returns int, but the schema has type boolean",
        ),
    ],
)
def test_an_expression_that_does_not_fit_the_schemas_is_refused(rule: str, fact: str) -> None:
    with pytest.raises(PolyverError) as refused:
        check_types(only(rule), defined(ONE))
    assert refused.value.fact.startswith(fact)
    assert "spec.edges[0].rules[0]." in refused.value.at


def test_a_field_that_does_not_exist_is_named() -> None:
    rule = "{cel: {from: spec.text, to: {a: spec.nope}, forward: '{}', back: '1'}}"
    with pytest.raises(PolyverError, match=r"cel writes spec\.nope, but v2 has no such field"):
        check_writing(only(rule), defined(ONE))


def test_the_ledger_names_the_rule() -> None:
    rule = "{cel: {from: spec.text, to: spec.whole, forward: size(self), back: string(self)}}"
    known = build_converter(only(rule), defined(ONE))
    found = ledger(known, ONE, "v1", "v2")
    assert found is not None
    [fate] = [each for each in found.fates if each.path == "spec.text"]
    assert (fate.how, fate.to, fate.rules, fate.exact) == (
        "transformed",
        ("spec.whole",),
        ("cel",),
        False,
    )


def test_python_names_the_function_of_the_edge() -> None:
    kind = apis.Kind("CronTab", group="ex.io")

    def wrong(e: apis.Rules) -> None:
        e.cel("spec.a", "spec.b", forward="self +", back="self")

    with pytest.raises(PolyverError, match="forward is no valid CEL expression") as refused:
        kind.edge("v1", "v2")(wrong)
    assert refused.value.at == "v1 to v2, wrong"
    with pytest.raises(InvalidRule, match="forward of convert is not a function"):
        Rules().convert("a", "b", forward="self", back=str)  # type: ignore[arg-type]
