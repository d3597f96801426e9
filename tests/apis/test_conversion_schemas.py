"""The law, where versions have schemas that differ at any depth, and objects are edited between."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.apis.conversions import check_compiled
from tests.apis.drawn_schemas import (
    Drawn,
    edited,
    found_at,
    known_converters,
    objects_of,
    places_in,
)

from polyver.apis.conversion import ANNOTATION, Converter
from polyver.apis.conversion._block import RuleBlock
from polyver.apis.conversion.hops import ByRules
from polyver.apis.conversion.paths import parse_path, pick
from polyver.apis.conversion.rules import CastRule, ConversionRule, ScaleRule, SplitRule, ValuesRule
from polyver.apis.conversion.schemas import has_path
from polyver.apis.conversion.text_rules import TypedRule
from polyver.apis.conversion.values import fingerprint
from polyver.kube.objects.schema import MalformedMetadata
from polyver.languages.values.strings import same

Object = dict[str, Any]


def carry_of(obj: Object) -> str | None:
    found: str | None = obj["metadata"].get("annotations", {}).get(ANNOTATION)
    return found


def visible(obj: Object) -> Object:
    """An object without its carry."""
    made = copy.deepcopy(obj)
    annotations = made["metadata"].get("annotations", {})
    annotations.pop(ANNOTATION, None)
    if not annotations:
        made["metadata"].pop("annotations", None)
    return made


def with_carry(obj: Object, carry: str | None) -> Object:
    if carry is None:
        return obj
    annotations = obj["metadata"].get("annotations", {}) | {ANNOTATION: carry}
    return obj | {"metadata": obj["metadata"] | {"annotations": annotations}}


def written(known: Converter, obj: Object, version: str, *, defaulted: bool) -> Object:
    """What an API server makes of an object that a client wrote."""
    made = copy.deepcopy(obj)
    if version in known.schemas:
        try:
            known.schemas[version].prune(made)
        except MalformedMetadata:
            assume(False)
        if defaulted:
            known.schemas[version].default(made)
    return made


def check_law(known: Converter, obj: Object, stop: str, target: str) -> None:
    """The law; an object comes back as it was, but for a carry that was stale."""
    before = copy.deepcopy(obj)
    check_compiled(known, obj, stop)
    halfway = known.convert(obj, stop)
    check_compiled(known, halfway, target)
    arrived = known.convert(halfway, target)
    if known.version_of(obj) == target:
        assert same(visible(arrived), visible(obj))
    else:
        assert same(arrived, known.convert(obj, target))
    assert same(obj, before), "a conversion changed what it was given"


def check_visibly(known: Converter, obj: Object, stop: str, target: str) -> None:
    """The law for an object whose carry may be stale: what is carried may be told in other words.

    Nobody can tell the two from each other, in whatever version they look.
    """
    check_law(known, obj, stop, known.version_of(obj))
    directly, by_way = known.convert(obj, target), known.convert(known.convert(obj, stop), target)
    for version in known.versions:
        seen = [visible(known.convert(each, version)) for each in (directly, by_way)]
        assert same(*seen), f"they differ in {version}"


@given(known_converters(), st.data())
def test_the_law_holds_whatever_fields_versions_have(drawn: Drawn, data: st.DataObject) -> None:
    first, stop, target = (data.draw(drawn.versions) for _ in range(3))
    obj = data.draw(objects_of(drawn, first))
    check_law(drawn.converter, obj, stop, target)
    made = carry_of(drawn.converter.convert(obj, stop))
    if made is not None:
        canonical = msgspec.json.encode(msgspec.json.decode(made), order="sorted")
        assert made.encode() == canonical


@given(known_converters(), st.data())
def test_an_edit_survives_all_further_conversions(drawn: Drawn, data: st.DataObject) -> None:
    first, where, stop, target = (data.draw(drawn.versions) for _ in range(4))
    found = drawn.converter.convert(data.draw(objects_of(drawn, first)), where)
    after = data.draw(edited(found))
    after = written(drawn.converter, after, where, defaulted=data.draw(st.booleans()))
    check_visibly(drawn.converter, after, stop, target)


@given(known_converters(), st.data())
def test_the_carry_of_another_object_is_harmless(drawn: Drawn, data: st.DataObject) -> None:
    one, other, where, stop, target = (data.draw(drawn.versions) for _ in range(5))
    known = drawn.converter
    carry = carry_of(known.convert(data.draw(objects_of(drawn, one)), where))
    obj = with_carry(known.convert(data.draw(objects_of(drawn, other)), where), carry)
    check_visibly(known, obj, stop, target)


_KEYS = ["is", "if", "in", "by", "at", "first", "rest", "kept", "order", "absent", "whole", "lost"]
_KEYS += ["v1", "v2", "spec.a", "spec..a", "metadata.name", "metadata.labels", "0", "9" * 5000]
_PARTS: list[Any] = [None, 1, "x", [], {}, [1], ["a"], {"a": {"is": 1}}, {"0": {"in": {}}}]
_PLAIN = '{"format":1,"lost":{"v1":{"spec.a":{"is":1}},"v2":{"spec.b":{"at":{}}}}}'


@st.composite
def mangled(draw: st.DrawFn, text: str) -> str:
    """A carry that somebody changed in some places."""
    carry: Any = msgspec.json.decode(text)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from([each for each in places_in(carry) if each]))
        holder, key = found_at(carry, place[:-1]), place[-1]
        part = copy.deepcopy(draw(st.sampled_from([*_PARTS, holder[key]])))
        del holder[key]
        if isinstance(holder, dict):
            holder[draw(st.sampled_from([*_KEYS, key]))] = part
        assume(carry)
    return msgspec.json.encode(carry).decode()


@given(known_converters(), st.data())
def test_no_carry_breaks_a_conversion(drawn: Drawn, data: st.DataObject) -> None:
    first, where, stop, target = (data.draw(drawn.versions) for _ in range(4))
    known = drawn.converter
    found = known.convert(data.draw(objects_of(drawn, first)), where)
    wrong = with_carry(found, data.draw(mangled(carry_of(found) or _PLAIN)))
    check_compiled(known, wrong, stop)
    halfway = known.convert(wrong, stop)
    assert halfway["metadata"]["name"] == found["metadata"]["name"]
    if target == where:
        assert same(visible(known.convert(halfway, target)), visible(wrong))


@given(known_converters(functions=False), st.data())
def test_an_api_server_prunes_nothing_from_what_was_converted(
    drawn: Drawn, data: st.DataObject
) -> None:
    first, target = data.draw(drawn.versions), data.draw(drawn.versions)
    known = drawn.converter
    made = known.convert(data.draw(objects_of(drawn, first)), target)
    if {first, target} <= {*known.schemas} and all(block.fits for block in blocks_of(known)):
        assert known.schemas[target].prune(made) == []


def blocks_of(known: Converter) -> list[RuleBlock]:
    ways = [known.tree.way(one, other) for one in known.versions for other in known.versions]
    steps = [hop.convert for way in ways for hop in way]
    return [step.block for step in steps if isinstance(step, ByRules)]


@given(known_converters(), st.data())
def test_what_is_carried_survives_defaults_of_any_version(
    drawn: Drawn, data: st.DataObject
) -> None:
    first, stop, where = (data.draw(drawn.versions) for _ in range(3))
    known = drawn.converter
    found = known.convert(known.convert(data.draw(objects_of(drawn, first)), stop), where)
    defaulted = written(known, found, where, defaulted=True)
    expected, arrived = known.convert(found, first), known.convert(defaulted, first)
    carry = msgspec.json.decode(carry_of(found) or '{"lost": {}}')["lost"]
    for text, entry in carry.get(first, {}).items():
        if "if" in entry or not isinstance(entry.get("is", {}), dict):
            path = parse_path(text)
            assert same(pick(arrived, path), pick(expected, path))


@given(known_converters(functions=False), st.data())
def test_what_went_stale_does_not_come_back(drawn: Drawn, data: st.DataObject) -> None:
    """After an edit of what a rule reads, it writes what it would write for any object."""
    known = drawn.converter
    source = data.draw(drawn.versions)
    target = data.draw(drawn.versions)
    assume(len(known.tree.way(source, target)) == 1)
    before = known.convert(data.draw(objects_of(drawn, source)), target)
    after = written(known, data.draw(edited(before)), target, defaulted=False)
    arrived = known.convert(after, source)
    seen = [written(known, each, target, defaulted=True) for each in (before, after)]
    [hop] = known.tree.way(target, source)
    assert isinstance(hop.convert, ByRules)
    place = hop.convert.block.written(back=hop.convert.back)
    for rule in filter(is_simple, hop.convert.block.rules):
        reads, writes = rule.ports(back=hop.convert.back)
        was, now = (fingerprint([pick(each, path) for path in reads]) for each in seen)
        if was != now:
            made = rule.run(tuple(pick(after, path) for path in reads), back=hop.convert.back)
            for path, value in zip(writes, made, strict=True):
                assert not has_path(place, path) or same(value, pick(arrived, path))


def is_simple(rule: ConversionRule) -> bool:
    inside = all(path[0] != "metadata" for path in (*rule.sources, *rule.targets))
    return inside and isinstance(rule, ValuesRule | CastRule | ScaleRule | SplitRule | TypedRule)
