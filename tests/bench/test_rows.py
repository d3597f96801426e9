"""Rows say what was measured, and whether a goal is met follows from that alone."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from bench.report import Conditions, Report, markdown, missed, read, written
from bench.rows import Curve, Gap, Row, cells, figure, print_rows
from hypothesis import given
from hypothesis import strategies as st
from msgspec import ValidationError

NUMBERS = st.floats(1e-3, 1e6)
ROUNDS = st.lists(NUMBERS, min_size=1, max_size=30).map(tuple)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30)


def beside(pairs: list[tuple[float, float]], **more: Any) -> Row:
    theirs, ours = zip(*pairs, strict=True)
    return Row(name="work", unit="ms", peer="peer", theirs=theirs, ours=ours, **more)


@given(pairs=PAIRS, goal=st.floats(0.1, 100), most=NUMBERS)
def test_a_goal_is_met_by_the_medians_or_not_at_all(
    pairs: list[tuple[float, float]], goal: float, most: float
) -> None:
    row = beside(pairs, goal=goal, most=most)
    theirs, ours = median(they for they, _ in pairs), median(we for _, we in pairs)
    assert row.met is (theirs / ours >= goal and ours <= most)


def test_one_of_two_goals_is_not_enough() -> None:
    assert beside([(8.0, 2.0)], goal=4, most=1).met is False
    assert beside([(8.0, 2.0)], goal=4, most=2).met is True
    assert beside([(8.0, 2.0)]).met is None


def test_where_more_is_better_less_than_the_goal_is_not_met() -> None:
    assert Row(name="made", unit="/s", ours=(40.0,), least=50).met is False
    assert Row(name="made", unit="/s", ours=(60.0,), least=50).met is True


@given(pairs=PAIRS)
def test_the_spread_lies_inside_of_all_rounds_and_around_the_middle(
    pairs: list[tuple[float, float]],
) -> None:
    low, high = beside(pairs).spread
    ratios = sorted(they / we for they, we in pairs)
    assert ratios[0] <= low <= median(ratios) <= high <= ratios[-1]
    if len(pairs) < 10:
        assert (low, high) == (ratios[0], ratios[-1])


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"ours": ()}, "not measured"),
        ({"ours": (1.0, math.nan)}, "not measured"),
        ({"ours": (0.0,)}, "not measured"),
        ({"goal": 4}, "the goal needs a peer"),
        ({"peer": "kube-apiserver"}, "a peer has as many rounds as we have"),
        ({"theirs": (1.0,)}, "a peer has as many rounds as we have"),
        ({"peer": "kube-apiserver", "theirs": (1.0, 2.0)}, "a peer has as many rounds as we have"),
        ({"unit": "parsecs"}, "parsecs is no unit here"),
    ],
)
def test_a_row_that_was_not_measured_is_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Row(**{"name": "work", "unit": "ms", "ours": (1.0,)} | wrong)


@pytest.mark.parametrize(
    ("number", "unit", "told"),
    [
        (0.5, "s", "500 ms"),
        (2300, "µs", "2.3 ms"),
        (0.000001, "s", "1 µs"),
        (90, "MB", "90 MB"),
        (1234567, "/s", "1,234,567/s"),
        (12.345, "×", "12.3×"),
    ],
)
def test_figures_are_told_in_the_unit_that_reads_best(number: float, unit: str, told: str) -> None:
    assert figure(number, unit) == told


def test_the_table_says_what_was_met_what_was_missed_and_what_was_not_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    quick = Row(name="get", unit="ms", peer="kube-apiserver", theirs=(1.7,), ours=(0.3,), goal=4)
    slow = Row(name="list", unit="ms", peer="kube-apiserver", theirs=(9.0,), ours=(3.0,), goal=4)
    print_rows([quick, slow, Gap("webhooks", "there is no Go")])
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["get", "kube-apiserver:", "1.7", "ms", "300", "µs", "5.67×", "≥", "4×", "less", "yes"],
        ["list", "kube-apiserver:", "9", "ms", "3", "ms", "3×", "≥", "4×", "less", "NO"],
        ["webhooks", "NOT", "MEASURED", "?"],
    ]
    report = Report(rows=(quick, slow), gaps=(Gap("webhooks", "there is no Go"),))
    assert missed(report) == [slow]
    page = markdown(report)
    assert "| list | kube-apiserver: 9 ms | 3 ms | 3× |  | ≥ 4× less | NO |" in page
    assert "- NOT MEASURED: webhooks: there is no Go" in page
    assert len({line.count("|") for line in page.splitlines() if line.startswith("|")}) == 1


ROWS = st.builds(
    lambda ours, most, note: Row(name="work", unit="µs", ours=ours, most=most, note=note),
    ROUNDS,
    st.none() | NUMBERS,
    st.text(),
)


@given(rows=st.lists(ROWS).map(tuple))
def test_what_is_kept_is_read_as_it_was(
    rows: tuple[Row, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    curve = Curve(name="c", unit="ms", sizes="releases", points=((10, 2.0),), goal=(10, 5.0))
    conditions = Conditions(python="CPython 3", cores=2, load=0.1, seconds=3.0)
    report = Report(conditions=conditions, rows=rows, gaps=(Gap("a", "b"),), curves=(curve,))
    path = tmp_path_factory.mktemp("kept") / "results.json"
    path.write_bytes(written(report))
    assert read(path) == report


def test_a_result_cannot_be_written_into_what_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"rows": [{"name": "get", "unit": "ms", "ours": [], "most": 1}]}')
    with pytest.raises(ValidationError, match="not measured"):
        read(path)
    path.write_text(
        '{"rows": [{"name": "get", "unit": "ms", "ours": [2], "most": 1, "met": true}]}'
    )
    assert cells(read(path).rows[0])[-1] == "NO"
