"""Versions: three orders that are total, and nothing else that passes for a version."""

from __future__ import annotations

import copy
import json
import pickle
from functools import cmp_to_key
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import strategies as our

from polyver.core import InvalidVersion, KubeVersion, SemVer, Serial, Series, Version

RECORDED = json.loads((Path(__file__).parents[1] / "peers" / "recorded.json").read_text())

SEED_ORDER = "v10 v2 v1 v11beta2 v10beta3 v3beta1 v12alpha1 v11alpha2 foo1 foo10".split()

any_order = st.sampled_from([our.kube_versions, our.semvers, our.serials])
three_of_one_order = any_order.flatmap(lambda order: st.tuples(order, order, order))


def test_the_seeds_list_is_in_kube_order() -> None:
    shuffled = sorted(SEED_ORDER)
    assert [str(v) for v in sorted(map(KubeVersion.parse, shuffled), reverse=True)] == SEED_ORDER


@given(three_of_one_order)
def test_an_order_is_total(three: tuple[Any, Any, Any]) -> None:
    a, b, c = three
    assert (a < b) + (a == b) + (a > b) == 1
    assert (a <= b) == (a < b or a == b)
    assert (a >= b) == (b <= a)
    assert (a < b) == (b > a)
    if a <= b <= c:
        assert a <= c


@given(three_of_one_order)
def test_equal_versions_have_equal_hashes(three: tuple[Any, Any, Any]) -> None:
    a, b, _ = three
    assert a != b or hash(a) == hash(b)


@given(any_order.flatmap(lambda order: order))
def test_parsing_what_was_formatted_gives_the_same_version(version: Version) -> None:
    again = type(version).parse(str(version))
    assert again == version
    assert str(again) == str(version)


@given(our.series)
def test_parsing_a_formatted_series_gives_the_same_series(series: Series) -> None:
    assert Series.parse(str(series)) == series


@given(our.kube_texts)
def test_every_api_version_keeps_its_text(text: str) -> None:
    assert str(KubeVersion.parse(text)) == text


def test_kube_order_is_what_kubernetes_says() -> None:
    ranks = [[KubeVersion.parse(text) for text in rank] for rank in RECORDED["kube"]]
    assert len(ranks) > 80
    for higher, lower in pairwise(ranks):
        assert min(higher) > max(lower)


def test_semantic_order_is_what_gos_library_says() -> None:
    ranks = [[SemVer.parse(text) for text in rank] for rank in RECORDED["semver"]]
    assert len(ranks) > 150
    for higher, lower in pairwise(ranks):
        assert min(higher) > max(lower)
    for rank in ranks:
        assert len(set(rank)) == 1


@pytest.mark.parametrize("text", RECORDED["refused"])
def test_what_gos_library_refuses_is_not_a_semantic_version(text: str) -> None:
    with pytest.raises(InvalidVersion):
        SemVer.parse(text)


@given(st.lists(our.semvers))
def test_prereleases_compare_identifier_by_identifier(versions: list[SemVer]) -> None:
    """The rule of the specification, written down the slow way."""

    def precedence(a: SemVer, b: SemVer) -> int:
        cores = [(v.major, v.minor, v.patch) for v in (a, b)]
        if cores[0] != cores[1]:
            return -1 if cores[0] < cores[1] else 1
        ours, theirs = (str(v).partition("+")[0].partition("-")[2].split(".") for v in (a, b))
        if ours == [""] or theirs == [""]:
            return (ours == [""]) - (theirs == [""])
        for one, other in zip(ours, theirs, strict=False):
            if one != other:
                if one.isdigit() and other.isdigit():
                    return int(one) - int(other)
                if one.isdigit() or other.isdigit():
                    return -1 if one.isdigit() else 1
                return -1 if one < other else 1
        return len(ours) - len(theirs)

    assert sorted(versions) == sorted(versions, key=cmp_to_key(precedence))


def test_a_leading_v_makes_no_difference() -> None:
    assert SemVer.parse("v1.2.0") == SemVer.parse("1.2.0")
    assert str(SemVer.parse("v1.2.0")) == "1.2.0"


def test_build_metadata_neither_orders_nor_distinguishes() -> None:
    one, other = SemVer.parse("1.0.0+a"), SemVer.parse("1.0.0+b")
    assert one == other
    assert not one < other
    assert (one.build, other.build) == ("a", "b")


@pytest.mark.parametrize(
    ("text", "completed"),
    [("2", "2.0.0"), ("3.4", "3.4.0"), ("v1", "1.0.0"), ("1.2.3-a", "1.2.3-a")],
)
def test_a_published_version_is_completed_with_zeros(text: str, completed: str) -> None:
    assert str(SemVer.complete(text)) == completed


@pytest.mark.parametrize(
    ("series", "inside", "outside"),
    [
        ("1", ["1.0.0", "1.99.0", "1.2.3-rc.1"], ["0.1.0", "2.1.0", "10.0.0", "11.0.0"]),
        ("v1.2", ["1.2.0", "1.2.30"], ["1.20.0", "1.1.2", "12.2.0"]),
    ],
)
def test_a_series_holds_what_begins_with_its_numbers(
    series: str, inside: list[str], outside: list[str]
) -> None:
    assert all(SemVer.parse(text) in Series.parse(series) for text in inside)
    assert not any(SemVer.parse(text) in Series.parse(series) for text in outside)


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (SemVer.parse, "1.2", "MAJOR.MINOR.PATCH"),
        (SemVer.parse, "1.2.3\n", "MAJOR.MINOR.PATCH"),
        (SemVer.parse, "1.2.٣", "MAJOR.MINOR.PATCH"),
        (SemVer.parse, "", "MAJOR.MINOR.PATCH"),
        (SemVer.parse, "1.2." + "3" * 5000, "MAJOR.MINOR.PATCH"),
        (SemVer.complete, "1.2-rc.1", "first one or two numbers"),
        (SemVer.complete, "9" * 5000, "first one or two numbers"),
        (KubeVersion.parse, "", "v2beta1"),
        (KubeVersion.parse, "example.com/v1", "v2beta1"),
        (KubeVersion.parse, "v1 v2", "v2beta1"),
        (Serial.parse, "0", "1, 2, 3"),
        (Serial.parse, "-1", "1, 2, 3"),
        (Serial.parse, "9" * 5000, "1, 2, 3"),
        (Series.parse, "1.2.3", "one or two numbers"),
        (Series.parse, "1." + "9" * 5000, "one or two numbers"),
        (Series.parse, "1.x", "one or two numbers"),
    ],
)
def test_what_is_not_a_version_is_quoted_with_what_was_expected(
    parse: Any, text: str, expected: str
) -> None:
    with pytest.raises(InvalidVersion) as caught:
        parse(text)
    assert str(caught.value).startswith('"' + text[:40].split("\n", maxsplit=1)[0])
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 250


def test_every_serial_can_be_written_and_read() -> None:
    largest = Serial(2**63 - 1)
    assert Serial.parse(str(largest)) == largest
    with pytest.raises(InvalidVersion):
        Serial(2**63)


def test_a_number_that_was_never_assigned_is_not_a_serial() -> None:
    with pytest.raises(InvalidVersion):
        Serial(0)
    with pytest.raises(InvalidVersion):
        Series(1, -1)


def test_versions_of_two_orders_cannot_be_compared() -> None:
    versions: list[Any] = [KubeVersion.parse("v1"), SemVer.parse("1.0.0"), Serial(1), Series(1)]
    for one in versions:
        for other in versions:
            if one is not other:
                assert one != other
                with pytest.raises(TypeError):
                    _ = one < other


@given(any_order.flatmap(lambda order: order))
def test_a_version_cannot_be_changed_and_survives_copying(version: Version) -> None:
    with pytest.raises(AttributeError):
        version._text = "other"
    with pytest.raises(AttributeError):
        del version._text
    assert copy.deepcopy(version) == version
    assert pickle.loads(pickle.dumps(version)) == version
