r"""Regular expressions of Go's package `regexp`, matched in linear time.

The syntax is close to Python's and differs in details: `$` is the end of the string, `\d` and `\b`
are ASCII only, flags may stand anywhere, and there is no lookaround. Go matches in linear time;
Python's `re` may take exponential time on a string that an attacker chose. So a pattern is parsed
here first. If Python's `re` needs only a limited number of steps for the pattern and the length of
a string, it searches the string. Otherwise, an automaton searches the string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from polyver.languages.regexp._automaton import Automaton, Finder
from polyver.languages.regexp._tree import RegexpNode, longest_quick, states_of
from polyver.languages.regexp.syntax import InvalidPattern, parse
from polyver.languages.values.step_budget import spend

__all__ = ["CompiledPattern", "InvalidPattern", "compile_pattern", "python_pattern", "read_pattern"]

_STATES = 10
"""The number of states that an automaton processes for one character in one step of the budget.

A search takes about `length of the string * states / _STATES` steps.
"""


class CompiledPattern:
    """A compiled pattern, which matches with Python's `re` or with an automaton."""

    def __init__(self, tree: RegexpNode) -> None:
        self._tree = tree
        source = tree.source()
        self._quick = re.compile(source) if source is not None else None
        self._automaton: Automaton | None = None
        self._finder: Finder | None = None
        self._longest = longest_quick(tree)
        """The maximum length of a string that Python's `re` searches; -1 if it searches none."""

    @property
    def states(self) -> int:
        """The number of states of the automaton."""
        return states_of(self._tree)

    def matches(self, text: str) -> bool:
        """Report whether the pattern matches anywhere in a string."""
        if self._quick is not None and len(text) <= self._longest:
            return self._quick.search(text) is not None
        if self._automaton is None:
            self._automaton = Automaton(self._tree)
        spend(len(text) * self._automaton.size // _STATES)
        return self._automaton.matches(text)

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Return the span of the first match at or after a position; None if there is none."""
        if self._quick is not None and len(text) <= self._longest:
            found = self._quick.search(text, start)
            return None if found is None else found.span()
        if self._finder is None:
            self._finder = Finder(self._tree)
        spend((len(text) - start) * self._finder.size // _STATES)
        return self._finder.find(text, start)

    def find_all(self, text: str, most: int = -1) -> list[str]:
        """Return the text of each match, at most `most` matches (-1: all).

        Matches do not overlap.
        """
        found: list[str] = []
        at, last = 0, -1
        while at <= len(text) and len(found) != most:
            span = self.find(text, at)
            if span is None:
                break
            # As in Go, ignore an empty match directly after another match.
            if span[1] > span[0] or span[0] != last:
                found.append(text[span[0] : span[1]])
            last = span[1]
            at = span[1] if span[1] > span[0] else span[1] + 1
        return found


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Build a function that reports whether the pattern matches anywhere in a string.

    >>> compile_pattern("^(a|aa)+$")("a" * 5000 + "b")
    False
    >>> compile_pattern(r"(?i)^x\\d$")("X1")
    True
    """
    return read_pattern(pattern).matches


@lru_cache(maxsize=4096)
def read_pattern(pattern: str) -> CompiledPattern:
    """Compile a pattern to an object that can also locate matches.

    >>> read_pattern("a+?b*").find_all("aabb")
    ['a', 'abb']
    """
    return CompiledPattern(parse(pattern))


def python_pattern(pattern: str) -> str | None:
    """Convert a pattern to the syntax of Python's `re`.

    Return None if `re` cannot express the pattern.

    >>> python_pattern("a$")
    '(?:[a]\\\\Z)'
    """
    return parse(pattern).source()
