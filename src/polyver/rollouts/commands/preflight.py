"""Prints the result of a preflight to the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from polyver.cli.output import printable
from polyver.core.plain import ReadOnlyObject
from polyver.rollouts.reports import counts_text

__all__ = ["preflight_lines"]


def preflight_lines(data: ReadOnlyObject) -> Iterator[str]:
    """Yield the lines of a report on a preflight: counts, failures, and changes with examples."""
    yield counts_text(data)
    for failure in data.get("failures") or ():
        yield ""
        yield f"{failure['dependents']} would fail: {printable(failure['message'])}"
        yield f"  {_names(failure)}"
    for group in data.get("groups") or ():
        yield ""
        yield printable(group["change"])
        yield f"  {_names(group)}"
        if example := group.get("example"):
            yield f"  example: {printable(example['object'])} of {printable(example['dependent'])}"
            yield from (f"    {printable(line)}" for line in example["diff"].splitlines())


def _names(group: ReadOnlyObject) -> str:
    names = group.get("names") or ()
    shown = ", ".join(map(printable, names))
    more = group["dependents"] - len(names)
    return f"{shown} and {more} more" if more > 0 else shown
