"""A chart of cost against size, both in powers of ten, as an SVG that needs nothing else.

What costs the same at any size is a level line; what grows with it rises by a square for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from bench.rows import Curve, figure

__all__ = ["chart"]

WIDTH, HEIGHT = 960, 440
LEFT, TOP, BOTTOM = 76, 56, 52
LETTER = 7.0
"""Pixels for a letter of a name, so that all of it is inside."""
BETWEEN = 17
"""Pixels between two names, so that both can be read."""
SECONDS = {"µs": 1e-6, "ms": 1e-3, "s": 1.0}
STYLE = """\
    .paper { fill: #ffffff } .line { stroke: #e5e7eb } .text { fill: #374151 } .title { fill: #111827 }
    .c0 { color: #1d4ed8 } .c1 { color: #b45309 } .c2 { color: #047857 } .c3 { color: #a21caf }
    .c4 { color: #b91c1c } .c5 { color: #0e7490 } .c6 { color: #4d7c0f } .c7 { color: #57534e }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117 } .line { stroke: #30363d } .text { fill: #c9d1d9 } .title { fill: #f0f6fc }
      .c0 { color: #60a5fa } .c1 { color: #fbbf24 } .c2 { color: #34d399 } .c3 { color: #e879f9 }
      .c4 { color: #f87171 } .c5 { color: #22d3ee } .c6 { color: #a3e635 } .c7 { color: #d6d3d1 }
    }
    .curve { fill: none; stroke: currentColor; stroke-width: 2 } .dot, .name { fill: currentColor }
    .lead { fill: none; stroke: currentColor; stroke-dasharray: 1 3 }
    .goal { fill: none; stroke: #6b7280; stroke-width: 2 }"""  # noqa: E501


@dataclass(frozen=True, slots=True)
class _Scale:
    """From values to pixels, by powers of ten."""

    low: int
    high: int
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> _Scale:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return cls(low, max(high, low + 1), start, end)

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def powers(self) -> range:
        return range(self.low, self.high + 1)


def chart(curves: Sequence[Curve], *, title: str) -> str:
    """All curves in one chart; each is in a unit of time, and has its name at its end."""
    if not curves:
        raise ValueError("there is nothing to draw: no curve was measured")
    body = "\n".join(f"  {line}" for line in _parts(curves, title))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-labelledby="title" font-size="13" '
        "font-family=\"ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\">\n"
        f'  <title id="title">{escape(title)}</title>\n  <style>\n{STYLE}\n  </style>\n'
        f"{body}\n</svg>\n"
    )


def _parts(curves: Sequence[Curve], title: str) -> Iterator[str]:
    marks = [point for curve in curves for point in _marks(curve)]
    right = WIDTH - 40 - LETTER * max(len(_name(curve)) for curve in curves)
    across = _Scale.over([size for size, _ in marks], LEFT, right)
    up = _Scale.over([cost for _, cost in marks], HEIGHT - BOTTOM, TOP)
    yield f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="12"/>'
    yield f'<text class="title" x="{LEFT}" y="30" font-size="15">{escape(title)}</text>'
    yield from _axes(across, up)
    names = _apart([up.at(_cost(curve, curve.points[-1][1])) for curve in curves])
    for number, (curve, at) in enumerate(zip(curves, names, strict=True)):
        yield from _drawn(curve, f"c{number % 8}", across, up, at)
    for size, most, unit in sorted({(*each.goal, each.unit) for each in curves if each.goal}):
        x, y = across.at(size), up.at(most * SECONDS[unit])
        yield f'<circle class="goal" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
        told = f"goal: {figure(most, unit)}"
        yield f'<text class="text" x="{x + 10:.1f}" y="{y - 6:.1f}" font-size="12">{told}</text>'


def _marks(curve: Curve) -> Iterator[tuple[int, float]]:
    for size, cost in (*curve.points, *([curve.goal] if curve.goal else [])):
        yield size, _cost(curve, cost)


def _name(curve: Curve) -> str:
    return f"{curve.name} ({curve.sizes}): {figure(curve.points[-1][1], curve.unit)}"


def _cost(curve: Curve, number: float) -> float:
    return number * SECONDS[curve.unit]


def _axes(across: _Scale, up: _Scale) -> Iterator[str]:
    left, right, top, bottom = across.start, across.end, up.end, up.start
    for power in up.powers:
        y = up.at(10**power)
        yield f'<path class="line" d="M{left:.0f} {y:.1f}H{right:.0f}"/>'
        told = figure(float(10**power), "s")
        at = f'x="{left - 8:.0f}" y="{y + 4:.1f}"'
        yield f'<text class="text" {at} text-anchor="end">{told}</text>'
    for power in across.powers:
        x = across.at(10**power)
        yield f'<path class="line" d="M{x:.1f} {top:.0f}V{bottom:.0f}"/>'
        yield (
            f'<text class="text" x="{x:.1f}" y="{bottom + 20:.0f}" text-anchor="middle">'
            f"{10**power:,}</text>"
        )
    middle = (left + right) / 2
    yield (
        f'<text class="text" x="{middle:.0f}" y="{bottom + 40:.0f}" text-anchor="middle">'
        "how many there are</text>"
    )


def _drawn(curve: Curve, kind: str, across: _Scale, up: _Scale, name_at: float) -> Iterator[str]:
    places = [(across.at(size), up.at(_cost(curve, cost))) for size, cost in curve.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    yield f'<g class="{kind}">'
    yield f'  <path class="curve" d="M{path}"/>'
    for x, y in places:
        yield f'  <circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
    (x, y), edge = places[-1], across.end + 14
    yield f'  <path class="lead" d="M{x:.1f} {y:.1f}L{edge:.1f} {name_at:.1f}"/>'
    told = escape(_name(curve))
    yield f'  <text class="name" x="{edge + 4:.1f}" y="{name_at + 4:.1f}">{told}</text>'
    yield "</g>"


def _apart(places: Sequence[float]) -> list[float]:
    """The places of names, near the ends of their curves, and none upon another."""
    found = [0.0] * len(places)
    lowest = -math.inf
    for number in sorted(range(len(places)), key=places.__getitem__):
        lowest = found[number] = max(places[number], lowest + BETWEEN)
    over = max(0.0, lowest - (HEIGHT - BOTTOM))
    return [each - over for each in found]
