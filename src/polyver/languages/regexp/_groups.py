"""Find the groups of a pattern in one pass over a string."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polyver.languages.regexp._automaton import ACCEPTED, Automaton, holds

__all__ = ["GroupFinder", "Match"]

Span = tuple[int, int]
_Marks = tuple[tuple[str, int], ...]
"""The positions at which groups began and ended so far, as a linked list."""


@dataclass(frozen=True, slots=True)
class Match:
    """The span of a match, the spans of its groups, and the numbers of named groups."""

    span: Span
    groups: Mapping[int, Span]
    names: Mapping[str, int]


class GroupFinder(Automaton):
    """An automaton that finds the span of a match and of its groups."""

    def find_groups(self, text: str, start: int) -> tuple[tuple[Span, dict[int, Span]] | None, int]:
        """Return the first match at or after a position, and the number of characters read."""
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
    # Only the last time counts, so that marks stay few.
    return (*(mark for mark in marks if mark[0] != what), (what, at))


def _places(marks: _Marks) -> dict[int, Span]:
    known = dict(marks)
    return {
        int(mark[1:]): (known[f"({mark[1:]}"], at) for mark, at in marks if mark.startswith(")")
    }
