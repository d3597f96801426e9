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

from polyver.languages.regexp._automaton import Automaton
from polyver.languages.regexp._find import Finder
from polyver.languages.regexp._tree import RegexpNode, longest_quick, states_of
from polyver.languages.regexp.syntax import InvalidPattern, parse
from polyver.languages.values.step_budget import spend

__all__ = ["CompiledPattern", "InvalidPattern", "compile_pattern", "python_pattern", "read_pattern"]

_STATES = 10
"""How many states of one character count as one step."""


class CompiledPattern:
    """One pattern, and what it costs."""

    def __init__(self, tree: RegexpNode) -> None:
        self._tree = tree
        source = tree.source()
        self._quick = re.compile(source) if source is not None else None
        self._automaton: Automaton | None = None
        self._finder: Finder | None = None
        self._longest = longest_quick(tree)
        """The length of texts up to which Python's engine needs few steps."""

    @property
    def states(self) -> int:
        """How large the pattern is when all its repeats are written out."""
        return states_of(self._tree)

    def matches(self, text: str) -> bool:
        """Whether a text has the pattern somewhere in it."""
        if self._quick is not None and len(text) <= self._longest:
            return self._quick.search(text) is not None
        if self._automaton is None:
            self._automaton = Automaton(self._tree)
        spend(len(text) * self._automaton.size // _STATES)
        return self._automaton.matches(text)

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Where the pattern is in a text first, from a place on."""
        if self._quick is not None and len(text) <= self._longest:
            found = self._quick.search(text, start)
            return None if found is None else found.span()
        if self._finder is None:
            self._finder = Finder(self._tree)
        spend((len(text) - start) * self._finder.size // _STATES)
        return self._finder.find(text, start)

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
def read_pattern(pattern: str) -> CompiledPattern:
    """A pattern that can also tell where it is.

    >>> read_pattern("a+?b*").find_all("aabb")
    ['a', 'abb']
    """
    return CompiledPattern(parse(pattern))


def python_pattern(pattern: str) -> str | None:
    """The same pattern for Python's `re.search`, if it has words for all of it.

    >>> python_pattern("a$")
    '(?:[a]\\\\Z)'
    """
    return parse(pattern).source()
