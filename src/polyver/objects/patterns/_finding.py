"""Finding the place of a pattern in one walk over the text, with the choice that Go makes.

Of all matches the leftmost counts, and of these the one that a walk with second thoughts would
come to first; here all walks go on at once, the better ones first.
"""

from __future__ import annotations

from polyver.objects.patterns._automaton import holds
from polyver.objects.patterns._charsets import Charset
from polyver.objects.patterns._tree import Assertion, Branch, Node, Repeat, Sequence, Single

__all__ = ["Finder"]

_FOUND = -1


class Finder:
    """A pattern as numbered states with an order among the ways that lead on."""

    def __init__(self, tree: Node) -> None:
        self._moves: list[tuple[Charset, int] | None] = []
        self._free: list[list[tuple[str, int]]] = []
        self._start = self._build(tree, _FOUND)

    def _state(self) -> int:
        self._moves.append(None)
        self._free.append([])
        return len(self._moves) - 1

    def _build(self, node: Node, then: int) -> int:
        match node:
            case Single(chars):
                state = self._state()
                self._moves[state] = (chars, then)
                return state
            case Assertion(name):
                state = self._state()
                self._free[state] = [(name, then)]
                return state
            case Sequence(parts):
                for part in reversed(parts):
                    then = self._build(part, then)
                return then
            case Branch(options):
                state = self._state()
                self._free[state] = [("", self._build(each, then)) for each in options]
                return state
            case Repeat():
                return self._build_repeat(node, then)
        raise AssertionError(node)

    def _build_repeat(self, node: Repeat, then: int) -> int:
        end = then
        if node.most is None:
            then = self._state()
            self._choose(then, self._build(node.part, then), end, node)
        else:
            for _ in range(node.most - node.least):
                state = self._state()
                self._choose(state, self._build(node.part, then), end, node)
                then = state
        for _ in range(node.least):
            then = self._build(node.part, then)
        return then

    def _choose(self, state: int, inside: int, end: int, node: Repeat) -> None:
        ways = [("", inside), ("", end)]
        self._free[state] = ways[::-1] if node.lazy else ways

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Where the pattern is first, from a place on."""
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
                if state == _FOUND:
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
            if state == _FOUND:
                continue
            ways = (to for what, to in self._free[state] if not what or holds(what, before, after))
            waiting += reversed(list(ways))
