"""The law: whatever stop a conversion makes on its way, it arrives at the same object."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.conversions import (
    DRAWN_FIELDS,
    EVERY_FIELD,
    EVERY_RULE,
    SCHEMAS,
    VALUES,
    check_compiled,
    converter,
    drawn_converters,
    objects,
)

from polyver.apis.conversion import ANNOTATION, Converter
from polyver.apis.conversion.paths import parse_path, pick
from polyver.languages.values.strings import same

Object = dict[str, Any]
PLAIN = converter(EVERY_RULE)
KNOWN = converter(EVERY_RULE, SCHEMAS)
STOPS = st.lists(st.sampled_from(PLAIN.versions), min_size=3, max_size=3)


def whole(obj: Object, version: str, known: Converter) -> Object:
    """An object of a version as an API server may have it."""
    made = {"apiVersion": f"{known.group}/{version}", "kind": known.kind, **copy.deepcopy(obj)}
    if version in known.schemas:
        known.schemas[version].prune(made)
    return made


def check_law(known: Converter, obj: Object, stop: str, target: str) -> None:
    before = copy.deepcopy(obj)
    there = known.convert(obj, target)
    assert same(known.convert(known.convert(obj, stop), target), there)
    assert same(obj, before), "a conversion changed what it was given"


@given(objects(EVERY_FIELD), STOPS)
def test_the_law_holds_for_every_rule(obj: Object, stops: list[str]) -> None:
    check_law(PLAIN, whole(obj, stops[0], PLAIN), stops[1], stops[2])


@given(objects(EVERY_FIELD), STOPS)
def test_the_law_holds_where_schemas_lack_fields(obj: Object, stops: list[str]) -> None:
    check_law(KNOWN, whole(obj, stops[0], KNOWN), stops[1], stops[2])


@given(drawn_converters(), objects(DRAWN_FIELDS), st.data())
def test_the_law_holds_for_any_rules(known: Converter, obj: Object, data: st.DataObject) -> None:
    first, stop, target = (data.draw(st.sampled_from(known.versions)) for _ in range(3))
    check_law(known, whole(obj, first, known), stop, target)


@given(objects(EVERY_FIELD), STOPS)
def test_nothing_is_there_that_a_schema_lacks(obj: Object, stops: list[str]) -> None:
    made = KNOWN.convert(whole(obj, stops[0], KNOWN), stops[1])
    assert KNOWN.schemas[stops[1]].prune(made) == []


def edited(obj: Object, field: int, value: Any) -> Object:
    """An object after somebody changed one field of what they see."""
    made = copy.deepcopy(obj)
    spec = made.get("spec")
    if type(spec) is dict and spec:
        spec[sorted(spec)[field % len(spec)]] = value
    return made


@given(objects(EVERY_FIELD), STOPS, st.integers(0, 20), VALUES)
def test_compiled_rules_do_what_the_interpreter_does(
    obj: Object, stops: list[str], field: int, value: Any
) -> None:
    for known in (PLAIN, KNOWN):
        first = whole(obj, stops[0], known)
        check_compiled(known, first, stops[1])
        second = known.convert(first, stops[1])
        check_compiled(known, second, stops[2])
        after = edited(second, field, value)
        if stops[1] in known.schemas:
            known.schemas[stops[1]].prune(after)
        check_compiled(known, after, stops[2])


@given(drawn_converters(), objects(DRAWN_FIELDS), st.data())
def test_any_compiled_rules_do_what_the_interpreter_does(
    known: Converter, obj: Object, data: st.DataObject
) -> None:
    first, stop, target = (data.draw(st.sampled_from(known.versions)) for _ in range(3))
    check_compiled(known, whole(obj, first, known), stop)
    second = known.convert(whole(obj, first, known), stop)
    check_compiled(known, second, target)
    after = edited(second, data.draw(st.integers(0, 9)), data.draw(VALUES))
    check_compiled(known, after, target)


@given(objects(EVERY_FIELD), STOPS)
def test_defaults_that_are_filled_in_on_the_way_lose_nothing(obj: Object, stops: list[str]) -> None:
    """An API server may fill in defaults in any version at any time."""
    first = whole(obj, stops[0], KNOWN)
    KNOWN.schemas[stops[0]].default(first)
    second = KNOWN.convert(first, stops[1])
    defaulted = copy.deepcopy(second)
    KNOWN.schemas[stops[1]].default(defaulted)
    carried = _carried(second, stops[0])
    expected, found = KNOWN.convert(second, stops[0]), KNOWN.convert(defaulted, stops[0])
    for path in carried:
        assert same(pick(found, parse_path(path)), pick(expected, parse_path(path)))


def _carried(obj: Object, version: str) -> list[str]:
    """The fields of a version that are kept in the carry of an object."""
    text = obj.get("metadata", {}).get("annotations", {}).get(ANNOTATION, '{"lost": {}}')
    return [*msgspec.json.decode(text)["lost"].get(version, {})]


def test_an_annotation_without_anything_in_it_goes() -> None:
    obj = whole({"metadata": {"annotations": {ANNOTATION: ""}}}, "v2", PLAIN)
    check_compiled(PLAIN, obj, "v1")
    assert ANNOTATION not in PLAIN.convert(obj, "v1")["metadata"].get("annotations", {})
