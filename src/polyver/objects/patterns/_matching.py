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

from polyver.objects.patterns._automaton import Automaton
from polyver.objects.patterns._finding import Finder
from polyver.objects.patterns._groups import GroupFinder, Match
from polyver.objects.patterns._syntax import InvalidPattern, parse, parse_groups
from polyver.objects.patterns._tree import Node

__all__ = [
    "InvalidPattern",
    "Match",
    "Pattern",
    "compile_pattern",
    "python_pattern",
    "read_pattern",
]

_MOST_STEPS = 200_000
"""What Python's engine may at worst need for a text: some milliseconds."""


class Pattern:
    """One pattern, and what it costs."""

    def __init__(self, text: str) -> None:
        self._text = text
        tree = parse(text)
        self._tree: Node = tree
        source = tree.source()
        self._quick = re.compile(source) if source is not None else None
        self._automaton: Automaton | None = None
        self._finder: Finder | None = None
        self._groups: _Groups | None = None
        self._longest = self._find_longest()
        """The length of texts up to which Python's engine needs few steps."""

    def matches(self, text: str) -> bool:
        """Whether a text has the pattern somewhere in it."""
        if self._quick is not None and len(text) <= self._longest:
            return self._quick.search(text) is not None
        if self._automaton is None:
            self._automaton = Automaton(self._tree)
        return self._automaton.matches(text)

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Where the pattern is in a text first, from a place on."""
        if self._quick is not None and len(text) <= self._longest:
            found = self._quick.search(text, start)
            return None if found is None else found.span()
        if self._finder is None:
            self._finder = Finder(self._tree)
        return self._finder.find(text, start)

    def find_groups(self, text: str, start: int = 0) -> Match | None:
        """Where the pattern is in a text first, from a place on, and where its groups are."""
        if self._groups is None:
            self._groups = _Groups(self._text)
        return self._groups.find(text, start, quick=len(text) <= self._longest)

    def find_all(self, text: str, most: int = -1) -> list[str]:
        """All places at which the pattern is, one after the other; as many as are wanted."""
        found: list[str] = []
        at, last = 0, -1
        while at <= len(text) and len(found) != most:
            span = self.find(text, at)
            if span is None:
                break
            # What is empty does not count right behind what was found before it.
            if span[1] > span[0] or span[0] != last:
                found.append(text[span[0] : span[1]])
            last = span[1]
            at = span[1] if span[1] > span[0] else span[1] + 1
        return found

    def _find_longest(self) -> int:
        return max((2**size for size in range(20) if self._is_bounded(2**size)), default=-1)

    def _is_bounded(self, length: int) -> bool:
        """Whether Python's engine needs few steps; it also has to look for the beginning."""
        places = 1 if self._tree.is_anchored() else length + 1
        return self._tree.ways(length) * places <= _MOST_STEPS


class _Groups:
    """A pattern that tells the places of its groups."""

    def __init__(self, text: str) -> None:
        self._tree, self._names = parse_groups(text)
        source = self._tree.source()
        self._quick = re.compile(source) if source is not None else None
        self._finder: GroupFinder | None = None

    def find(self, text: str, start: int, *, quick: bool) -> Match | None:
        if self._quick is not None and quick:
            found = self._quick.search(text, start)
            if found is None:
                return None
            spans = {place: found.span(place) for place in range(1, self._quick.groups + 1)}
            places = {place: span for place, span in spans.items() if span[0] >= 0}
            return Match(found.span(), places, self._names)
        if self._finder is None:
            self._finder = GroupFinder(self._tree)
        walked = self._finder.find_groups(text, start)
        return None if walked is None else Match(*walked, self._names)


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """What tells whether a text has the pattern somewhere in it.

    >>> compile_pattern("^(a|aa)+$")("a" * 5000 + "b")
    False
    >>> compile_pattern(r"(?i)^x\\d$")("X1")
    True
    """
    return read_pattern(pattern).matches


@lru_cache(maxsize=4096)
def read_pattern(pattern: str) -> Pattern:
    """A pattern that can also tell where it is.

    >>> read_pattern("a+?b*").find_all("aabb")
    ['a', 'abb']
    """
    return Pattern(pattern)


def python_pattern(pattern: str) -> str | None:
    """The same pattern for Python's `re.search`, if it has words for all of it.

    >>> python_pattern("a$")
    '(?:[a]\\\\Z)'
    """
    return parse(pattern).source()
