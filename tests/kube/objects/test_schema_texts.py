"""Patterns and formats: what Go's own libraries say about them was recorded once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.objects.schema import InvalidPattern, python_pattern
from polyver.languages.regexp import compile_pattern
from polyver.languages.regexp._automaton import Automaton
from polyver.languages.regexp.syntax import parse
from polyver.languages.values.formats import text_format
from polyver.languages.values.strings import number_text, quoted, shown

RECORDED = json.loads((Path(__file__).parent / "recorded_texts.json").read_text())
READABLE = [entry for entry in RECORDED["patterns"] if isinstance(entry[2], bool)]
UNREADABLE = [entry for entry in RECORDED["patterns"] if isinstance(entry[2], str)]
texts = st.text(st.sampled_from("aabbcA0-_ \n.é"), max_size=12)


@pytest.mark.parametrize(("pattern", "text", "found"), READABLE)
def test_patterns_match_as_in_go(pattern: str, text: str, found: bool) -> None:
    assert compile_pattern(pattern)(text) is found
    assert Automaton(parse(pattern)).matches(text) is found


@pytest.mark.parametrize(("pattern", "text", "problem"), UNREADABLE)
def test_what_is_no_pattern_is_refused_as_in_go(pattern: str, text: str, problem: str) -> None:
    with pytest.raises(InvalidPattern) as found:
        compile_pattern(pattern)
    assert str(found.value) == problem


def test_a_pattern_that_nests_too_deeply_is_refused() -> None:
    with pytest.raises(InvalidPattern, match="expression nests too deeply"):
        compile_pattern("(" * 199 + ")" * 199)


@given(st.sampled_from([entry[0] for entry in READABLE]), texts)
def test_both_ways_of_matching_agree(pattern: str, text: str) -> None:
    source = python_pattern(pattern)
    if source is not None:
        found = re.search(source, text) is not None
        assert Automaton(parse(pattern)).matches(text) is found


@given(st.text())
def test_any_text_is_a_pattern_or_is_refused(pattern: str) -> None:
    try:
        matches = compile_pattern(pattern)
    except InvalidPattern:
        return
    assert matches("") in (True, False)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 5000 + "b"),
        ("(a|aa)+$", "a" * 5000 + "b"),
        ("(x+x+)+y", "x" * 5000),
        (".*.*.*.*=", "x" * 5000),
        ("a?" * 30 + "a" * 30, "a" * 29),
    ],
)
def test_no_text_takes_long(pattern: str, text: str) -> None:
    # Trying all ways would take longer than anyone lives; the test ends, or it never does.
    assert not compile_pattern(pattern)(text)


@pytest.mark.parametrize("name", RECORDED["formats"])
def test_formats_are_checked_as_in_go(name: str) -> None:
    check = text_format(name)
    assert check is not None
    assert [text for text in RECORDED["formats"][name]["right"] if not check(text)] == []
    assert [text for text in RECORDED["formats"][name]["wrong"] if check(text)] == []


@given(st.sampled_from([*RECORDED["formats"]]), st.text())
def test_any_text_has_a_format_or_has_not(name: str, text: str) -> None:
    check = text_format(name)
    assert check is not None
    assert check(text) in (True, False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567.0, "1.234567e+06"),
        (123456.0, "123456"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-0.5, "-0.5"),
        (2**63, "9.223372036854776e+18"),
        (2**63 - 1, "9223372036854775807"),
        (1e100, "1e+100"),
    ],
)
def test_numbers_read_as_in_go(value: float, text: str) -> None:
    assert number_text(value) == text


def test_numbers_inside_of_other_values_read_as_in_json() -> None:
    assert shown({"b": 1e-7, "a": [1e20, 1e21, 1234567.5]}) == (
        '{"a":[100000000000000000000,1e+21,1234567.5],"b":1e-7}'
    )


def test_texts_are_quoted_as_in_go() -> None:
    assert quoted('a"\\\x07\x7f\u00a0\u2028ä😀') == '"a\\"\\\\\\a\\x7f\\u00a0\\u2028ä😀"'
