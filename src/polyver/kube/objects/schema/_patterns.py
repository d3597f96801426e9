"""Patterns of a schema that are expensive to match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from polyver.languages.regexp import InvalidPattern, read_pattern

__all__ = ["has_large_pattern"]

_MOST_STATES = 100


def has_large_pattern(schema: Mapping[str, Any]) -> bool:
    """Return True if the schema has a pattern that is large once its repeats are expanded."""
    return any(map(_is_large, _patterns(schema)))


def _patterns(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        found = value.get("pattern")
        if isinstance(found, str):
            yield found
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _patterns(each)


def _is_large(pattern: str) -> bool:
    try:
        return read_pattern(pattern).states > _MOST_STATES
    except InvalidPattern:
        return False
