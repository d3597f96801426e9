"""Find a match and its groups in one pass over a string, and count the steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from polyver.languages.regexp._automaton import ACCEPTED, Automaton, holds
from polyver.languages.regexp._tree import longest_quick, repeats_nothing, states_of
from polyver.languages.regexp.syntax import parse_groups

__all__ = ["Match", "Search", "read_search"]

Span = tuple[int, int]
_Marks = tuple[tuple[str, int], ...]
"""Positions at which groups begin and end: `("(1", 4)` means that group 1 begins at position 4."""


@dataclass(frozen=True, slots=True)
class Match:
    """The span of a match, the spans of its groups by number, and the numbers of named groups."""

    span: Span
    groups: Mapping[int, Span]
    names: Mapping[str, int]


class GroupFinder(Automaton):
    """An automaton that finds the span of a match and of its groups."""

    def find_groups(self, text: str, start: int) -> tuple[tuple[Span, dict[int, Span]] | None, int]:
        """Return the first match at or after a position, and the number of characters read.

        A match is its span and the spans of its groups; None if nothing matches.
        """
        walks: dict[int, tuple[int, _Marks]] = {}
        found: tuple[Span, _Marks] | None = None
        at = start
        for at in range(start, len(text) + 1):
            after = text[at : at + 1]
            if found is None:
                walks.setdefault(self._start, (at, ()))
            reached = self._reach_all(walks, text[at - 1 : at] if at else "", after, at)
            walks = {}
            for state, (begin, marks) in reached.items():
                if state == ACCEPTED:
                    found = (begin, at), marks
                    break
                move = self._moves[state]
                if move is not None and after and after in move[0]:
                    walks.setdefault(move[1], (begin, marks))
            if found is not None and not walks:
                break
        walked = at - start + 1
        return None if found is None else (found[0], _places(found[1])), walked

    def _reach_all(
        self, walks: dict[int, tuple[int, _Marks]], before: str, after: str, at: int
    ) -> dict[int, tuple[int, _Marks]]:
        reached: dict[int, tuple[int, _Marks]] = {}
        for first, (begin, brought) in walks.items():
            waiting = [(first, brought)]
            while waiting:
                state, marks = waiting.pop()
                if state in reached:
                    continue
                reached[state] = begin, marks
                if state == ACCEPTED:
                    continue
                waiting += reversed(
                    [
                        (to, _marked(marks, what, at))
                        for what, to in self._free[state]
                        if not what or holds(what, before, after)
                    ]
                )
        return reached


def _marked(marks: _Marks, what: str, at: int) -> _Marks:
    if not what or what[0] not in "()":
        return marks
    # Only the last repeat of a group counts, so drop older marks.
    return (*(mark for mark in marks if mark[0] != what), (what, at))


def _places(marks: _Marks) -> dict[int, Span]:
    known = dict(marks)
    return {
        int(mark[1:]): (known[f"({mark[1:]}"], at) for mark, at in marks if mark.startswith(")")
    }


class Search:
    """A compiled pattern with its groups."""

    def __init__(self, pattern: str) -> None:
        self._tree, self._names = parse_groups(pattern)
        source = None if repeats_nothing(self._tree) else self._tree.source()
        self._quick = re.compile(source) if source is not None else None
        self._longest = longest_quick(self._tree)
        self._finder: GroupFinder | None = None
        self.states = states_of(self._tree)
        """The number of states of the automaton."""

    def worst(self, length: int, places: int) -> int:
        """Return the maximum number of steps of a search that begins at `places` positions.

        `length` is the length of the searched string.
        """
        if self._quick is not None and length <= self._longest:
            return int(self._tree.attempts(length)) * places
        return self.states * places

    def find(self, text: str, start: int = 0) -> tuple[Match | None, int]:
        """Return the first match at or after a position, and an upper bound of its steps.

        Instead of the match, return None if nothing matches.
        """
        if self._quick is None or len(text) > self._longest:
            return self._walk(text, start)
        found = self._quick.search(text, start)
        end = len(text) if found is None else found.start()
        steps = self.worst(len(text), end - start + 1)
        if found is None:
            return None, steps
        spans = {place: found.span(place) for place in range(1, self._quick.groups + 1)}
        groups = {place: span for place, span in spans.items() if span[0] >= 0}
        return Match(found.span(), groups, self._names), steps

    def _walk(self, text: str, start: int) -> tuple[Match | None, int]:
        if self._finder is None:
            self._finder = GroupFinder(self._tree)
        found, walked = self._finder.find_groups(text, start)
        match = None if found is None else Match(*found, self._names)
        return match, self.states * walked


@lru_cache(maxsize=1024)
def read_search(pattern: str) -> Search:
    """Compile a pattern for searches with groups.

    >>> read_search("(a+)(?P<end>b)?").find("xaab")[0]
    Match(span=(1, 4), groups={1: (1, 3), 2: (3, 4)}, names={'end': 2})
    """
    return Search(pattern)
