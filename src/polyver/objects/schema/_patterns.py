"""Regular expressions as the real server understands them, matched in bounded time.

Its language is close to Python's, and differs where it hurts: `$` is the very end, `\\d` and `\\b`
know ASCII alone, flags may stand anywhere, there is no looking around. And its matching never
takes more than linear time, while Python's may take forever on a text that someone chose for it.
So a pattern is read here once; Python's own engine gets it if its work is bounded for the text at
hand, and a set of states that walks over the text otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from polyver.objects.schema._automaton import Automaton
from polyver.objects.schema._syntax import InvalidPattern, parse
from polyver.objects.schema._tree import Node

__all__ = ["InvalidPattern", "compile_pattern", "python_pattern"]

_MOST_STEPS = 200_000
"""What Python's engine may at worst need for a text: some milliseconds."""


class _Pattern:
    """One pattern, and what it costs."""

    def __init__(self, tree: Node) -> None:
        self._tree = tree
        source = tree.source()
        self._quick = re.compile(source) if source is not None else None
        self._automaton: Automaton | None = None
        self._longest = self._find_longest()
        """The length of texts up to which Python's engine needs few steps."""

    def matches(self, text: str) -> bool:
        if self._quick is not None and len(text) <= self._longest:
            return self._quick.search(text) is not None
        if self._automaton is None:
            self._automaton = Automaton(self._tree)
        return self._automaton.matches(text)

    def _find_longest(self) -> int:
        return max((2**size for size in range(20) if self._is_bounded(2**size)), default=-1)

    def _is_bounded(self, length: int) -> bool:
        """Whether Python's engine needs few steps; it also has to look for the beginning."""
        places = 1 if self._tree.is_anchored() else length + 1
        return self._tree.ways(length) * places <= _MOST_STEPS


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """What tells whether a text has the pattern somewhere in it.

    >>> compile_pattern("^(a|aa)+$")("a" * 5000 + "b")
    False
    >>> compile_pattern(r"(?i)^x\\d$")("X1")
    True
    """
    return _Pattern(parse(pattern)).matches


def python_pattern(pattern: str) -> str | None:
    """The same pattern for Python's `re.search`, if it has words for all of it.

    >>> python_pattern("a$")
    '(?:[a]\\\\Z)'
    """
    return parse(pattern).source()
