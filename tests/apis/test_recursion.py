"""The rule `recurse`: rules that are applied again to the objects inside of an object."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.conversions import TEXT, VALUES, WHOLE, check_compiled, crontab, of
from tests.apis.test_conversion_law import check_law
from tests.apis.test_conversion_schemas import check_visibly
from tests.apis.test_rules import OTHER, carry, edge
from tests.apis.test_writing import defined, only

from polyver.apis.checking import check_types, check_writing, fitting, ledger
from polyver.apis.conversion import InvalidRule, Rules, build_converter
from polyver.core import PolyverError
from polyver.languages.values.strings import same

Object = dict[str, Any]
PRESERVES = {"x-kubernetes-preserve-unknown-fields": True}


def routes(e: Rules) -> None:
    route = e.within("spec.route")
    route.move("match", "matchers")
    route.drop("note")
    route.recurse("routes", to="children", key="name")


def node(name: str, *routes: Object, **fields: Any) -> Object:
    return {"name": name, **fields, **({"routes": [*routes]} if routes else {})}


TREE = node("a", node("b", node("c", match="3"), match="2"), node("d"), match="1")


def test_the_rules_are_applied_on_every_level() -> None:
    made = edge(routes).convert(crontab("v1", route=TREE), "v2")
    inner = {"name": "b", "matchers": "2", "children": [{"name": "c", "matchers": "3"}]}
    route = {"name": "a", "matchers": "1", "children": [inner, {"name": "d"}]}
    assert same(made, crontab("v2", route=route))
    assert same(edge(routes).convert(made, "v1"), crontab("v1", route=TREE))


def test_the_preserved_fields_of_an_inner_item_follow_its_key() -> None:
    tree = node("a", node("b", node("c", note="x"), node("d", note="y")))
    known = edge(routes)
    made = known.convert(crontab("v1", route=tree), "v2")
    check_compiled(known, crontab("v1", route=tree), "v2")
    made["spec"]["route"]["children"][0]["children"].reverse()
    made["spec"]["route"]["children"][0]["matchers"] = "new"
    expected = node("a", node("b", node("d", note="y"), node("c", note="x"), match="new"))
    assert same(known.convert(made, "v1"), crontab("v1", route=expected))


def test_an_object_inside_of_an_object_is_converted_too() -> None:
    def template(e: Rules) -> None:
        inside = e.within("spec.a")
        inside.cast("size", "string", "integer")
        inside.recurse("next")

    obj = crontab("v1", a={"size": "1", "next": {"size": "2", "next": {"size": "x"}}})
    made = edge(template).convert(obj, "v2")
    assert made["spec"] == {"a": {"size": 1, "next": {"size": 2, "next": {}}}}
    assert same(edge(template).convert(made, "v1"), obj)


def test_the_rules_of_an_edge_are_applied_again_inside_of_the_object() -> None:
    def whole(e: Rules) -> None:
        e.move("spec.a", "spec.b")
        e.recurse("spec.template")

    obj = crontab("v1", a=1, template={"spec": {"a": 2, "template": {"spec": {"a": 3}}}})
    made = edge(whole).convert(obj, "v2")
    inner = {"spec": {"b": 2, "template": {"spec": {"b": 3}}}}
    assert same(made, crontab("v2", b=1, template=inner))
    assert same(edge(whole).convert(made, "v1"), obj)


def test_the_block_around_is_applied_again() -> None:
    def groups(e: Rules) -> None:
        group = e.within("spec.group")
        group.move("a", "b")
        member = group.each("members", key="name")
        member.recurse("group", up=1)

    inner = {"a": 2, "members": [{"name": "y"}]}
    obj = crontab("v1", group={"a": 1, "members": [{"name": "x", "group": inner}]})
    made = edge(groups).convert(obj, "v2")
    assert made["spec"]["group"]["members"][0]["group"] == {"b": 2, "members": [{"name": "y"}]}
    assert same(edge(groups).convert(made, "v1"), obj)


def test_a_case_belongs_to_the_block_around_it() -> None:
    def matchers(e: Rules) -> None:
        inside = e.within("spec.route")
        cases = inside.when("regex", to="type")
        cases.case(True, to="=~").recurse("routes", key="name")
        cases.otherwise()

    tree = node("a", node("b", node("c", regex=True), regex=True), regex=True)
    made = edge(matchers).convert(crontab("v1", route=tree), "v2")
    [inner] = made["spec"]["route"]["routes"]
    assert (made["spec"]["route"]["type"], inner["type"]) == ("=~", "=~")
    assert inner["routes"] == [{"name": "c", "type": "=~"}]
    assert same(edge(matchers).convert(made, "v1"), crontab("v1", route=tree))


@pytest.mark.parametrize("levels", [19, 20, 21, 90])
@pytest.mark.parametrize("note", [{}, {"note": "x"}])
def test_deep_values_are_preserved_as_a_whole(levels: int, note: Object) -> None:
    tree = node("last", match="m", **note)
    for number in range(levels):
        tree = node(f"n{number}", tree, match="m")
    known, obj = edge(routes), crontab("v1", route=tree)
    made = known.convert(obj, "v2")
    depth, route = 0, made["spec"]["route"]
    while "children" in route:
        depth, route = depth + 1, route["children"][0]
    assert depth == min(levels, 20)
    assert route["matchers"] == "m"
    assert same(known.convert(made, "v1"), obj)


# Schemas


def schema(levels: int, last: Object, *, field: str, inner: str, **more: Object) -> Object:
    """The schema of a route that has the field for inner routes on some levels."""
    made = last
    for _ in range(levels):
        items = {"type": "array", "items": made}
        made = of(**{"name": TEXT, field: TEXT, inner: items}, **more)
    return of(spec=of(route=made))


def schemas(one: int, other: int, last: Object | None = None) -> dict[str, Object]:
    ends = [of(name=TEXT, match=TEXT), of(name=TEXT, matchers=TEXT)] if last is None else [last] * 2
    return {
        "v1": schema(one, ends[0], field="match", inner="routes", note=TEXT),
        "v2": schema(other, ends[1], field="matchers", inner="children"),
    }


@pytest.mark.parametrize(
    "known",
    [
        schemas(2, 2),
        schemas(3, 1),
        schemas(1, 3),
        schemas(1, 1, {**PRESERVES}),
        schemas(1, 2, {"type": "object", **PRESERVES}),
        schemas(0, 0, {**PRESERVES}),
        {"v1": schemas(2, 2)["v1"]},
    ],
)
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_schemas_may_end_at_any_level(known: dict[str, Object], version: str) -> None:
    found = edge(routes, known)
    tree: Any = TREE if version == "v1" else _renamed(TREE)
    obj = crontab(version, route=tree)
    if version in known:
        found.schemas[version].prune(obj)
    made = found.convert(obj, OTHER[version])
    if OTHER[version] in known:
        assert found.schemas[OTHER[version]].prune(made) == []
    assert same(found.convert(made, version), obj)
    check_compiled(found, obj, OTHER[version])
    check_compiled(found, made, version)


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    if not isinstance(value, dict):
        return value
    names = {"match": "matchers", "routes": "children"}
    return {names.get(name, name): _renamed(each) for name, each in value.items()}


def test_below_a_field_that_takes_everything_the_rules_are_applied_without_a_schema() -> None:
    known = edge(routes, schemas(1, 1, {**PRESERVES}))
    made = known.convert(crontab("v1", route=TREE), "v2")
    assert same(made, crontab("v2", route=_renamed(TREE)))
    assert carry(made) == {}


NODES = st.recursive(
    st.fixed_dictionaries({}, optional={"name": st.sampled_from("abc"), "match": VALUES}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from("abc"),
            "match": VALUES,
            "matchers": VALUES,
            "note": VALUES,
            "routes": st.lists(inner | VALUES, max_size=3) | inner | VALUES,
            "children": st.lists(inner, max_size=2) | VALUES,
        },
    ),
    max_leaves=8,
)


@given(NODES, NODES, st.sampled_from(["v1", "v2"]), st.integers(0, 3), st.integers(0, 3))
def test_the_law_holds_for_values_of_any_form(
    tree: Object, other: Object, version: str, one: int, two: int
) -> None:
    last = {**PRESERVES} if (one + two) % 2 else None
    for known in (edge(routes), edge(routes, schemas(one, two, last))):
        obj = crontab(version, route=tree)
        if known.schemas:
            known.schemas[version].prune(obj)
        check_law(known, obj, OTHER[version], version)
        check_compiled(known, obj, OTHER[version])
        made = known.convert(obj, OTHER[version])
        made["spec"]["route"] = other
        if known.schemas:
            known.schemas[OTHER[version]].prune(made)
        check_compiled(known, made, version)
        check_visibly(known, made, version, OTHER[version])


# Reading and checks


RECURSE = (
    "{within: {at: spec.route, rules: [{move: {from: match, to: matchers}},"
    " {recurse: {at: routes, as: children, key: name%s}}]}}"
)


def test_the_yaml_form_does_the_same() -> None:
    made = build_converter(only(RECURSE % "")).convert(crontab("v1", route=TREE), "v2")
    assert same(made, crontab("v2", route=_renamed(TREE)))


@pytest.mark.parametrize(
    ("rule", "fact"),
    [
        (RECURSE % ", up: 2", "recurse cannot go up 2 blocks: 1 are around its block"),
        (RECURSE % ", up: -1", "recurse cannot go up -1 blocks"),
        (RECURSE % ", rules: []", 'unknown field "rules"'),
        ("{recurse: {at: spec.a, key: ''}}", "the key of items has no name"),
        ("{reverse: {recurse: {at: spec.a}}}", "recurse cannot be reversed"),
        ("{recurse: {at: metadata.name}}", "metadata.name cannot be converted"),
        ("{recurse: {at: spec.a}}, {move: {from: spec.a, to: spec.b}}", "(recurse) reads spec.a"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_location(rule: str, fact: str) -> None:
    with pytest.raises(PolyverError) as refused:
        only(rule)
    assert fact in refused.value.fact
    assert refused.value.at.startswith("c.yaml:12, spec.edges[0].rules[")


def test_python_finds_the_same_errors() -> None:
    with pytest.raises(InvalidRule, match="recurse cannot be reversed"):
        edge(lambda e: e.reverse().recurse("spec.a"))


@pytest.mark.parametrize(
    "known", [schemas(2, 2), schemas(3, 1), schemas(1, 1, {**PRESERVES}), schemas(2, 3)]
)
def test_rules_that_fit_the_schemas_are_let_alone(known: dict[str, Object]) -> None:
    check_writing(only(RECURSE % ""), defined(known))
    check_types(only(RECURSE % ""), defined(known))
    found = fitting(build_converter(only(RECURSE % ""), defined(known)), known, "CronTab")
    assert [each for each in found if each.rule in ("unknown-field", "type")] == []


def changed(known: dict[str, Object], version: str, name: str, to: Object | None) -> Any:
    """The schemas, in which a field of the second level is another one, or is not there."""
    inner = "routes" if version == "v1" else "children"
    route = known[version]["properties"]["spec"]["properties"]["route"]["properties"]
    second = route[inner]["items"] = {**route[inner]["items"]}
    second["properties"] = {k: v for k, v in second["properties"].items() if k != name}
    second["properties"] |= {} if to is None else {name: to}
    return known


def test_a_type_that_does_not_fit_on_a_deeper_level_is_named() -> None:
    known = changed(schemas(2, 2), "v2", "matchers", WHOLE)
    with pytest.raises(PolyverError) as refused:
        check_types(only(RECURSE % ""), defined(known))
    assert refused.value.fact == (
        "spec.route.routes[].match of v1: move copies string to spec.route.children[].matchers of"
        " v2, which is integer"
    )


def test_a_field_that_does_not_exist_on_a_deeper_level_is_named() -> None:
    known = changed(schemas(2, 2), "v2", "matchers", None)
    with pytest.raises(PolyverError) as refused:
        check_writing(only(RECURSE % ""), defined(known))
    fact = "move writes spec.route.children[].matchers, but v2 has no such field"
    assert refused.value.fact == fact
    assert refused.value.at == "c.yaml:12, spec.edges[0].rules[0].within.rules[1].recurse"


def test_the_ledger_follows_the_levels() -> None:
    known = schemas(3, 2)
    found = ledger(edge(routes, known), known, "v1", "v2")
    assert found is not None
    fates = {each.path: (each.how, each.to) for each in found.fates}
    inner, to = "spec.route.routes[]", "spec.route.children[]"
    assert fates[f"{inner}.match"] == ("moved", (f"{to}.matchers",))
    assert fates[f"{inner}.routes[].match"] == ("moved", (f"{to}.children[].matchers",))
    assert fates[f"{inner}.routes[].routes[].match"] == ("carried", ())
    assert fates[f"{inner}.note"] == ("carried", ())
