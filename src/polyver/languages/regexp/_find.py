"""Search for the span of a match in one pass over the string, with Go's choice of the match.

Of all matches the leftmost counts, and of these the one that a backtracking search would find
first. Here all alternatives advance together, the preferred ones first.
"""

from __future__ import annotations

from polyver.languages.regexp._automaton import ACCEPTED, Automaton, holds

__all__ = ["Finder"]


class Finder(Automaton):
    """An automaton that finds the span of a match; its states are in order of preference."""

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Return the span of the first match at or after a position."""
        walks: dict[int, int] = {}
        found: tuple[int, int] | None = None
        for at in range(start, len(text) + 1):
            before, after = text[at - 1 : at], text[at : at + 1]
            if found is None:
                walks.setdefault(self._start, at)
            reached: dict[int, int] = {}
            for state, begin in walks.items():
                self._reach(state, begin, before, after, reached)
            walks = {}
            for state, begin in reached.items():
                if state == ACCEPTED:
                    found = (begin, at)
                    break
                move = self._moves[state]
                if move is not None and after and after in move[0]:
                    walks.setdefault(move[1], begin)
            if found is not None and not walks:
                break
        return found

    def _reach(
        self, state: int, begin: int, before: str, after: str, reached: dict[int, int]
    ) -> None:
        waiting = [state]
        while waiting:
            state = waiting.pop()
            if state in reached:
                continue
            reached[state] = begin
            if state == ACCEPTED:
                continue
            transitions = (
                to for what, to in self._free[state] if not what or holds(what, before, after)
            )
            waiting += reversed(list(transitions))
