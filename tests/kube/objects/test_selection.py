"""Selectors: they choose as the real server does, and are refused in its words."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.cases import load_cases
from tests.kube.record import transcript

from polyver.kube.objects import InvalidSelector, parse_field_selector, parse_label_selector


def refusals(case: str, parameter: str) -> list[tuple[str, str]]:
    """The selectors of a case that the real server refused, and its words."""
    found = []
    answers = transcript(case) or []
    for step, answer in zip(load_cases()[case].steps, answers, strict=True):
        selector = parse_qs(urlsplit(step.path).query, keep_blank_values=True).get(parameter)
        if selector and answer["status"] == 400:
            found.append((selector[0], answer["body"]["message"]))
    assert found
    return found


@pytest.mark.parametrize(
    ("selector", "message"), refusals("label-selector-malformed", "labelSelector")
)
def test_a_label_selector_is_refused_in_the_real_servers_words(selector: str, message: str) -> None:
    with pytest.raises(InvalidSelector) as caught:
        parse_label_selector(selector)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        found
        for found in refusals("field-selector-unsupported", "fieldSelector")
        if "known field" not in found[1] and "not supported" not in found[1]
    ],
)
def test_a_field_selector_is_refused_in_the_real_servers_words(selector: str, message: str) -> None:
    with pytest.raises(InvalidSelector) as caught:
        parse_field_selector(selector)
    assert str(caught.value) == message


WEB = {"app": "web", "tier": "front", "size": "10", "ex.io/team": "a"}


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        (" app = web , tier ", True),
        ("app=db", False),
        ("app!=db", True),
        ("old!=x", True),
        ("app in (web, db)", True),
        ("app in (db)", False),
        ("app notin (db)", True),
        ("old notin (x)", True),
        ("tier", True),
        ("old", False),
        ("!old", True),
        ("! tier", False),
        ("size>9", True),
        ("size<10", False),
        ("app>1", False),
        ("ex.io/team=a", True),
        ("app=", False),
        ("app in (,web)", True),
        ("in in (in)", False),
        ("app=web,tier=back", False),
    ],
)
def test_label_selectors_choose(selector: str, chosen: bool) -> None:
    found = parse_label_selector(selector)
    assert all(requirement.matches(WEB) for requirement in found) is chosen


@given(st.text("ab=!<>(),in ", max_size=12) | st.text(max_size=8))
def test_any_label_selector_is_read_or_refused(text: str) -> None:
    try:
        for requirement in parse_label_selector(text):
            requirement.matches(WEB)
    except InvalidSelector as error:
        assert str(error)  # noqa: PT017 - any text may also be valid


@given(st.text("ab=!\\,", max_size=10) | st.text(max_size=8))
def test_any_field_selector_is_read_or_refused(text: str) -> None:
    try:
        for requirement in parse_field_selector(text):
            requirement.matches(lambda field: "")
    except InvalidSelector as error:
        assert str(error)  # noqa: PT017 - any text may also be valid


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_what_is_escaped_in_a_field_selector_is_what_is_meant(values: list[str]) -> None:
    escaped = [v.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=") for v in values]
    found = parse_field_selector(",".join(f"metadata.name={value}" for value in escaped))
    assert [requirement.value for requirement in found] == values


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("metadata.name=a", True),
        ("metadata.name==a", True),
        ("metadata.name!=a", False),
        ("metadata.name=a,", True),
        ("metadata.name=a,metadata.namespace=other", False),
        ("", True),
    ],
)
def test_field_selectors_choose(selector: str, chosen: bool) -> None:
    fields = {"metadata.name": "a", "metadata.namespace": "default"}
    found = parse_field_selector(selector)
    assert all(requirement.matches(fields.__getitem__) for requirement in found) is chosen
