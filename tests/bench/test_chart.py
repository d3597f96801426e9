"""The chart is an image that says what was measured, wherever it is looked at."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from bench.chart import chart
from bench.rows import Curve

LEVEL = Curve(
    name="resolve <series>",
    unit="µs",
    sizes="releases",
    points=((10, 2.0), (1_000, 2.0), (100_000, 2.0)),
    goal=(1_000, 5.0),
)
STEEP = Curve(
    name="in step", unit="ms", sizes="things", points=((10, 1.0), (100, 10.0), (1000, 100.0))
)


def drawn(*curves: Curve) -> ET.Element:
    return ET.fromstring(chart(curves, title="Cost & size"))


def texts(image: ET.Element) -> list[str]:
    return [each.text or "" for each in image.iterfind(".//{*}text")]


def path_of(image: ET.Element, number: int) -> list[tuple[float, float]]:
    path = image.find(f".//{{*}}g[@class='c{number}']/{{*}}path[@class='curve']")
    assert path is not None
    numbers = [float(each) for each in re.findall(r"[\d.]+", path.get("d", ""))]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_curves_axes_and_goals_have_their_names() -> None:
    told = texts(drawn(LEVEL, STEEP))
    assert {"Cost & size", "how many there are", "goal: 5 µs"} < set(told)
    assert {"1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms"} < set(told)
    assert {"10", "100", "1,000", "10,000", "100,000"} < set(told)
    assert {"resolve <series> (releases): 2 µs", "in step (things): 100 ms"} < set(told)


def test_what_costs_the_same_at_any_size_is_level_and_what_grows_in_step_is_straight() -> None:
    image = drawn(LEVEL, STEEP)
    assert len({y for _, y in path_of(image, 0)}) == 1
    (x0, y0), (x1, y1), (x2, y2) = path_of(image, 1)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert y1 < y0, "more is higher"


def test_names_of_curves_that_end_together_can_all_be_read() -> None:
    image = drawn(*[LEVEL] * 8)
    names = image.iterfind(".//{*}text[@class='name']")
    places = sorted(float(each.get("y", "")) for each in names)
    assert all(after - before >= 16.9 for before, after in pairwise(places))
    assert places[0] > 0
    assert places[-1] < float(image.get("height", ""))


def test_the_chart_has_colours_for_the_dark() -> None:
    assert "prefers-color-scheme: dark" in chart([LEVEL], title="")


def test_a_chart_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        chart([], title="")
