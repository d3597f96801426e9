"""Nondeterministic automata that read a string once, so that matching takes linear time.

`Automaton` reports whether a pattern matches. `Finder` finds the span of a match. `Finder` chooses
the same match as Go: the leftmost match. If several matches begin at the same position, it chooses
the match that a backtracking search would find first. `Finder` advances all alternatives together,
the preferred alternatives first.
"""

from __future__ import annotations

from polyver.languages.regexp._charsets import Charset
from polyver.languages.regexp._tree import (
    Assertion,
    Branch,
    Capture,
    Concatenation,
    RegexpNode,
    Repeat,
    SingleCharacter,
    may_be_empty,
)

__all__ = ["ACCEPTED", "Automaton", "Finder", "holds"]

_MOST_KNOWN = 2000
_WORD = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")
ACCEPTED = -1
_PLAIN = ("", "begin", "end")


class Automaton:
    """A pattern as numbered states.

    Transitions between sets of states are computed once and cached.
    """

    def __init__(self, tree: RegexpNode) -> None:
        self._moves: list[tuple[Charset, int] | None] = []
        """For each state: the characters that it accepts, and the next state."""
        self._free: list[list[tuple[str, int]]] = []
        """For each state: the transitions that read no character, the preferred transitions first.

        A transition is a pair: the condition on the position, such as `end` ("" for none), and the
        next state.
        """
        self._start = self._build(tree, ACCEPTED)
        self._looks_back = any(what not in _PLAIN for each in self._free for what, _ in each)
        self._known: dict[tuple[frozenset[int], str | bool, str], frozenset[int]] = {}

    def _state(self) -> int:
        self._moves.append(None)
        self._free.append([])
        return len(self._moves) - 1

    def _build(self, node: RegexpNode, then: int) -> int:
        """Add the states for a node, and return the first of them.

        After a match of the node, they lead to the state `then`.
        """
        match node:
            case SingleCharacter(chars):
                state = self._state()
                self._moves[state] = (chars, then)
                return state
            case Assertion(name):
                state = self._state()
                self._free[state].append((name, then))
                return state
            case Concatenation(parts):
                for part in reversed(parts):
                    then = self._build(part, then)
                return then
            case Branch(options):
                state = self._state()
                self._free[state] += [("", self._build(each, then)) for each in options]
                return state
            case Repeat():
                return self._build_repeat(node, then)
            case Capture(part, number):
                return self._marked(
                    f"({number}", self._build(part, self._marked(f"){number}", then))
                )
        raise AssertionError(node)

    def _marked(self, mark: str, then: int) -> int:
        """Add a state for the beginning (`(1`) or the end (`)1`) of a group; it leads to `then`."""
        state = self._state()
        self._free[state].append((mark, then))
        return state

    def _build_repeat(self, node: Repeat, then: int) -> int:
        end, copies = then, node.least
        if node.most is None:
            then, copies = self._endless(node, end), max(node.least - 1, 0)
        else:
            for _ in range(node.most - node.least):
                state = self._state()
                self._choose(state, self._build(node.part, then), end, node)
                then = state
        for _ in range(copies):
            then = self._build(node.part, then)
        return then

    def _endless(self, node: Repeat, end: int) -> int:
        """Add the states of a repeat without an upper bound, such as `a*`.

        Return the first of them.
        """
        loop = self._state()
        inside = self._build(node.part, loop)
        self._choose(loop, inside, end, node)
        if node.least:
            return inside
        if not may_be_empty(node.part):
            return loop
        # A repeat that matches no character ends the loop, so the first repeat needs its own state.
        start = self._state()
        self._choose(start, inside, end, node)
        return start

    def _choose(self, state: int, inside: int, end: int, node: Repeat) -> None:
        transitions = [("", inside), ("", end)]
        self._free[state] += transitions[::-1] if node.lazy else transitions

    @property
    def size(self) -> int:
        """The number of states."""
        return len(self._moves)

    def matches(self, text: str) -> bool:
        """Report whether the pattern matches anywhere in a string."""
        states: frozenset[int] = frozenset()
        before = ""
        for char in text:
            states = self._next(states, before, char)
            if ACCEPTED in states:
                return True
            before = char
        return ACCEPTED in self._reached(states, before, "")

    def _next(self, states: frozenset[int], before: str, char: str) -> frozenset[int]:
        key = (states, before if self._looks_back else bool(before), char)
        known = self._known.get(key)
        if known is not None:
            return known
        reached = self._reached(states, before, char)
        if ACCEPTED in reached:
            return reached
        moves = (self._moves[state] for state in reached)
        after = frozenset(move[1] for move in moves if move is not None and char in move[0])
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = after
        return after

    def _reached(self, states: frozenset[int], before: str, after: str) -> frozenset[int]:
        """Return the given states, and all states to which they lead without reading a character.

        `before` and `after` are the characters around the position in the string.
        """
        found = {self._start, *states}
        waiting = list(found)
        while waiting:
            state = waiting.pop()
            for what, target in self._free[state] if state != ACCEPTED else ():
                if target not in found and (not what or holds(what, before, after)):
                    found.add(target)
                    waiting.append(target)
        return frozenset(found)


def holds(what: str, before: str, after: str) -> bool:
    """Report whether a position in a string meets the condition `what`, such as `line-end`.

    `before` and `after` are the characters around the position; "" at the ends of the string.
    """
    match what:
        case "begin":
            return not before
        case "end":
            return not after
        case "line-begin":
            return before in ("", "\n")
        case "line-end":
            return after in ("", "\n")
    if what[0] in "()":
        return True
    border = (before in _WORD) is not (after in _WORD)
    return border if what == "word" else not border


class Finder(Automaton):
    """An automaton that finds the span of a match.

    It tries preferred alternatives first, as Go does.
    """

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Return the span of the first match at or after a position; None if there is none."""
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
