"""Preserved fields that another release wrote are kept as they are by every executor."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.conversions import (
    DRAWN_FIELDS,
    EVERY_FIELD,
    check_compiled,
    crontab,
    drawn_converters,
    objects,
)
from tests.apis.test_carry_field import KNOWN as IN_FIELD
from tests.apis.test_conversion_law import KNOWN, PLAIN, STOPS, check_law, whole

from polyver.apis.conversion import ANNOTATION, BESIDE, Converter
from polyver.webhook import review

Object = dict[str, Any]
TEXTS = st.sampled_from(
    [
        '{"format":9,"fields":{"v1":{"spec.note":"mine"}}}',
        '{"format":1,"lost":{},"since":"v1"}',
        '{"format":1,"lost":{"v1":[]}}',
        '{"format": 2 , "lost": {}}',
        "{",
        "null",
        "words",
    ]
)


def with_text(obj: Object, text: str) -> Object:
    metadata = obj.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), ANNOTATION: text}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def text_of(obj: Object) -> Any:
    return obj["metadata"]["annotations"].get(ANNOTATION)


@given(objects(EVERY_FIELD), STOPS, TEXTS)
def test_a_text_of_another_format_passes_through_unchanged(
    obj: Object, stops: list[str], text: str
) -> None:
    for known in (PLAIN, KNOWN):
        first = with_text(whole(obj, stops[0], known), text)
        check_compiled(known, first, stops[1])
        second = known.convert(first, stops[1])
        assert text_of(second) == text
        check_compiled(known, second, stops[2])
        check_law(known, first, stops[1], stops[2])


@given(drawn_converters(), objects(DRAWN_FIELDS), TEXTS, st.data())
def test_it_passes_through_any_rules(
    known: Converter, obj: Object, text: str, data: st.DataObject
) -> None:
    first, stop, target = (data.draw(st.sampled_from(known.versions)) for _ in range(3))
    given_ = with_text(whole(obj, first, known), text)
    check_compiled(known, given_, stop)
    assert text_of(known.convert(given_, stop)) == text
    check_law(known, given_, stop, target)


def test_what_is_lost_meanwhile_is_kept_beside_it() -> None:
    old = with_text(crontab("v1", cronSpec="@daily", legacyMode={"a": 1}), '{"format":2}')
    new = KNOWN.convert(old, "v3")
    assert text_of(new) == '{"format":2}'
    assert msgspec.json.decode(new["metadata"]["annotations"][BESIDE])["lost"] == {
        "v1": {"spec.legacyMode": {"is": {"a": 1}}}
    }
    assert KNOWN.convert(new, "v1") == old


def test_what_is_beside_it_is_read_when_the_text_is_gone() -> None:
    old = crontab("v1", cronSpec="@daily", legacyMode={"a": 1})
    new = KNOWN.convert(with_text(old, '{"format":2}'), "v3")
    del new["metadata"]["annotations"][ANNOTATION]
    check_compiled(KNOWN, new, "v1")
    assert KNOWN.convert(new, "v1") == old
    second = KNOWN.convert(new, "v2")
    assert second["metadata"]["annotations"].keys() == {ANNOTATION}
    assert KNOWN.convert(second, "v1") == old


@pytest.mark.parametrize("note", [{}, {"note": "mine"}])
def test_a_field_for_preserved_fields_keeps_its_text_as_well(note: dict[str, str]) -> None:
    old = crontab("v1", cronSpec="@daily", **note) | {"kept": '{"format":2}'}
    for target in ("v1", "v2", "v3"):
        check_compiled(IN_FIELD, old, target)
        new = IN_FIELD.convert(old, target)
        assert new["kept"] == '{"format":2}'
        check_compiled(IN_FIELD, new, "v1")
        assert IN_FIELD.convert(new, "v1") == old


def test_a_review_keeps_it_and_reports_it_once() -> None:
    seen: list[tuple[str, str]] = []
    KNOWN.on_unknown_format = lambda found, name: seen.append((found, name))
    given_ = [with_text(crontab("v1", cronSpec="@daily"), '{"format":77}')] * 3
    request = {"uid": "1", "desiredAPIVersion": f"{KNOWN.group}/v3", "objects": given_}
    about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
    answer = review(
        msgspec.json.encode({**about, "request": request}), {(KNOWN.group, KNOWN.kind): KNOWN}
    )
    made = msgspec.json.decode(answer.body)["response"]["convertedObjects"]
    assert [text_of(each) for each in made] == ['{"format":77}'] * 3
    assert seen == [("format 77", "a")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"format":2}', "format 2"),
        ('{"format":1,"new":1}', "format 1, with other fields"),
        ("{", "not JSON"),
        ("[]", "no format number"),
        ('{"format":1,"lost":{}}', ""),
    ],
)
def test_the_format_is_named(text: str, said: str) -> None:
    assert KNOWN.unknown_format(with_text(crontab("v1"), text)) == said
