"""Values as Go prints them with `%v`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime

from polyver.languages.gotemplate._budget import RenderBudget
from polyver.languages.gotemplate._times import time_text
from polyver.languages.gotemplate._values import Version
from polyver.languages.values.strings import number_text

__all__ = ["float_text", "print_all", "print_lines", "printed"]


def printed(value: object, budget: RenderBudget, depth: int = 0) -> str:
    """Return a value as `%v` prints it.

    >>> from polyver.languages.gotemplate._budget import RenderLimits
    >>> printed({"b": [1.5, None], "a": True}, RenderBudget(RenderLimits()))
    'map[a:true b:[1.5 <nil>]]'
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        budget.dive(depth)
        return f"[{budget.joined(' ', (printed(each, budget, depth + 1) for each in value))}]"
    if isinstance(value, dict):
        budget.dive(depth)
        pairs = (f"{key}:{printed(value[key], budget, depth + 1)}" for key in sorted(value))
        return f"map[{budget.joined(' ', pairs)}]"
    return _plain(value)


def _plain(value: object) -> str:
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return float_text(value)
        case datetime():
            return time_text(value)
        case Version():
            return str(value)
    return int.__str__(value) if isinstance(value, int) else str(value)


def float_text(value: float) -> str:
    """Return a float with the fewest digits that identify it.

    >>> float_text(1e6), float_text(100000.0), float_text(-0.0), float_text(math.inf)
    ('1e+06', '100000', '-0', '+Inf')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0 and math.copysign(1, value) < 0:
        return "-0"
    return number_text(value)


def print_all(budget: RenderBudget, values: Sequence[object]) -> str:
    """Return values as one string, with a space between two that are not strings."""
    return budget.joined("", _spaced(budget, values))


def _spaced(budget: RenderBudget, values: Sequence[object]) -> Iterator[str]:
    for place, value in enumerate(values):
        if place and not isinstance(value, str) and not isinstance(values[place - 1], str):
            yield " "
        yield printed(value, budget)


def print_lines(budget: RenderBudget, values: Sequence[object]) -> str:
    """Return values separated by spaces, with a newline at the end."""
    return budget.joined(" ", (printed(value, budget) for value in values)) + "\n"
