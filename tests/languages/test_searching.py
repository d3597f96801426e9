"""Patterns find their groups where Go finds them, and know what that costs."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from polyver.languages.regexp import Match, read_search

# Without repeats of what may be empty, in which Python and Go differ.
ATOMS = st.sampled_from(["a", "b", "(a)", "(b|ab)", "(?:a|b)", "(a+)", "(?P<x>b)"])
PATTERNS = st.lists(
    st.tuples(ATOMS, st.sampled_from(["", "", "?", "+", "*", "{1,2}", "+?"])).map("".join),
    min_size=1,
    max_size=4,
).map("".join)


def found(pattern: str, text: str, start: int = 0) -> Match | None:
    return read_search(pattern).find(text, start)[0]


def test_groups_are_told_by_number_and_name() -> None:
    match = found(r"(\w+)@(?P<host>\w+)(:\d+)?", "to joe@example")
    assert match == Match((3, 14), {1: (3, 6), 2: (7, 14)}, {"host": 2})


def test_a_search_may_begin_later() -> None:
    match = found("a(b)", "abab", 1)
    assert match is not None
    assert (match.span, match.groups[1]) == ((2, 4), (3, 4))


@given(PATTERNS.filter(lambda text: text.count("?P<x>") < 2), st.text("abc", max_size=10))
def test_walking_finds_what_trying_finds(pattern: str, text: str) -> None:
    """For scripts Python's engine has no word, so a pattern with one is walked."""
    walked = found(pattern.replace("a", r"[a\p{Greek}]"), text)
    tried = re.compile(pattern).search(text)
    assert (walked is None) == (tried is None)
    if walked is not None and tried is not None:
        assert walked.span == tried.span()
        groups = range(1, tried.re.groups + 1)
        assert walked.groups == {at: tried.span(at) for at in groups if tried.span(at)[0] >= 0}


def test_a_search_that_ends_early_costs_less_than_the_worst() -> None:
    search = read_search("(x+)y")
    text = "xy" + "z" * 100_000
    assert search.find(text)[1] < search.worst(len(text), len(text)) / 100


def test_repeats_count_as_often_as_they_may_come() -> None:
    assert read_search("(a{1,100}){1,10}").states > 1000 > read_search("a{1,100}").states
