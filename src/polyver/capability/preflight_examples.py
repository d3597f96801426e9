"""Diffs of the examples in the report of a preflight."""

from __future__ import annotations

from difflib import unified_diff

from polyver.core.plain import ReadOnlyObject
from polyver.core.preflight import ChangeExample
from polyver.kube.objects import dump_yaml
from polyver.kube.objects.codec import is_larger

__all__ = ["example_diff", "object_label", "short_diff"]

_LINES, _CHARACTERS, _LINE = 30, 2_000, 200
"""The limits of a short diff: its lines, its characters, and the characters of one line."""
_LARGEST, _MOST_COMPARED = 100_000, 1_000
"""The maximum size of an object, in bytes of JSON and in lines of YAML, for which a short diff is
computed. A larger object gets a note instead, because the time for a diff grows with the square of
the number of lines.
"""


def example_diff(example: ChangeExample) -> list[str]:
    """Return the lines of a YAML diff between the example's object before and after the change."""
    label = object_label(example)
    before, after = (_lines(each) for each in (example.before, example.after))
    return [*unified_diff(before, after, label, label, lineterm="")]


def short_diff(example: ChangeExample) -> str:
    """Return the diff with at most 30 lines and 2,000 characters; a note replaces the rest."""
    too_large = "(the object is too large for a diff)"
    if any(is_larger(each, _LARGEST) for each in (example.before, example.after)):
        return too_large
    before, after = (_lines(each) for each in (example.before, example.after))
    if max(len(before), len(after)) > _MOST_COMPARED:
        return too_large
    lines = [*unified_diff(before, after, lineterm="")][2:]  # without the names of files
    kept = [each if len(each) <= _LINE else f"{each[:_LINE]}…" for each in lines[:_LINES]]
    while len("\n".join(kept)) > _CHARACTERS:
        kept.pop()
    if more := len(lines) - len(kept):
        kept.append("(1 more line)" if more == 1 else f"({more} more lines)")
    return "\n".join(kept)


def object_label(example: ChangeExample) -> str:
    """Return the label of an example's object for messages: `ConfigMap default/shop (v1)`."""
    _, kind, *named = example.identity
    obj = example.after or example.before or {}
    return f"{kind} {'/'.join(filter(None, named))} ({obj.get('apiVersion')})"


def _lines(obj: ReadOnlyObject | None) -> list[str]:
    return [] if obj is None else dump_yaml(obj).splitlines()
