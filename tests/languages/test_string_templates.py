"""Patterns take strings apart by their groups, and put the same strings together again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.languages.regexp import UnfixedPattern, read_template

IMAGE = "(?P<repo>[^:@]+)(:(?P<tag>[^@]*))?(?:@(?P<digest>sha256:[0-9a-f]+))?"


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("a/b", {"repo": "a/b"}),
        ("a:", {"repo": "a", "tag": ""}),
        ("a:1@sha256:0f", {"repo": "a", "tag": "1", "digest": "sha256:0f"}),
        ("a@sha256:0f", {"repo": "a", "digest": "sha256:0f"}),
        (":1", None),
        ("a@md5:0f", None),
        ("", None),
    ],
)
def test_a_string_is_taken_apart_as_a_whole(text: str, groups: dict[str, str] | None) -> None:
    assert read_template(IMAGE).taken_apart(text) == groups


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ({"repo": "a"}, "a"),
        ({"repo": "a", "digest": "sha256:1"}, "a@sha256:1"),
        ({"tag": "1"}, None),
        ({"repo": "a:b"}, "a:b"),
        ({"repo": "a", "digest": "1"}, None),
        ({}, None),
    ],
)
def test_only_strings_that_match_are_put_together(groups: dict[str, str], text: str | None) -> None:
    assert read_template(IMAGE).put_together(groups) == text


def test_fixed_text_may_be_quoted_and_anchored() -> None:
    found = read_template(r"^\Qv1.\E\d?(?P<rest>.*)$".replace(r"\d?", r"\."))
    assert found.taken_apart("v1..x") == {"rest": "x"}
    assert found.put_together({"rest": ""}) == "v1.."


@pytest.mark.parametrize(
    "pattern",
    ["a.", "a|(?P<x>b)", "(?P<x>a){2}", "(?i)v(?P<x>.)", "(a(b(?P<x>c))?)?", "(?P<x>(?P<y>a)b)"],
)
def test_a_pattern_must_determine_the_string(pattern: str) -> None:
    with pytest.raises(UnfixedPattern):
        read_template(pattern)


PARTS = st.sampled_from(["a", "-", r"\.", "(:(?P<%s>b*))?", "(?P<%s>[a-c]*)", "(?:(?P<%s>.)=)?"])


@given(st.lists(PARTS, min_size=1, max_size=4), st.text("ab-.:=", max_size=8))
def test_what_is_taken_apart_is_put_together_again(parts: list[str], text: str) -> None:
    named = [part % f"n{at}" if "%s" in part else part for at, part in enumerate(parts)]
    template = read_template("".join(named))
    for each in (text, *template.examples()):
        groups = template.taken_apart(each)
        if groups is not None:
            assert template.put_together(groups) == each
