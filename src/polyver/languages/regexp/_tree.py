"""Syntax trees of regular expressions, and their conversion to patterns for Python's `re`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from polyver.languages.regexp._charsets import Charset

__all__ = [
    "Assertion",
    "Branch",
    "Capture",
    "Concatenation",
    "RegexpNode",
    "Repeat",
    "SingleCharacter",
    "longest_quick",
    "may_be_empty",
    "repeats_nothing",
    "states_of",
]


class RegexpNode:
    """A node of a syntax tree."""

    def source(self) -> str | None:
        """Write the node in the syntax of Python's `re`; return None if that is impossible."""
        raise NotImplementedError

    def attempts(self, length: int) -> float:  # noqa: ARG002 - used by subclasses
        """Return how many ways Python's `re` may try, at most, at one position of a string.

        `length` is the length of the string.
        """
        return 1

    def is_anchored(self) -> bool:
        """Report whether the node can match only at the beginning of a string."""
        return False


@dataclass(frozen=True, slots=True)
class SingleCharacter(RegexpNode):
    """One character."""

    chars: Charset

    def source(self) -> str | None:
        return self.chars.source()


@dataclass(frozen=True, slots=True)
class Assertion(RegexpNode):
    """A condition on a position, such as the beginning of the string or a word boundary."""

    name: str

    def source(self) -> str | None:
        return {
            "begin": r"\A",
            "end": r"\Z",
            "line-begin": "(?m:^)",
            "line-end": "(?m:$)",
            "word": r"(?a:\b)",
            "inside": r"(?!(?a:\b))",
        }[self.name]


@dataclass(frozen=True, slots=True)
class Concatenation(RegexpNode):
    """Parts in sequence."""

    parts: tuple[RegexpNode, ...]

    def source(self) -> str | None:
        return _joined("", self.parts)

    def attempts(self, length: int) -> float:
        return math.prod(part.attempts(length) for part in self.parts)

    def is_anchored(self) -> bool:
        return any(part == Assertion("begin") for part in self.parts[:1])


@dataclass(frozen=True, slots=True)
class Branch(RegexpNode):
    """Alternatives, such as `a|b`. The first alternative that matches is preferred."""

    options: tuple[RegexpNode, ...]

    def source(self) -> str | None:
        return _joined("|", self.options)

    def attempts(self, length: int) -> float:
        return sum(option.attempts(length) for option in self.options)


@dataclass(frozen=True, slots=True)
class Repeat(RegexpNode):
    """A repeated part; `most` is None if there is no upper bound."""

    part: RegexpNode
    least: int
    most: int | None
    lazy: bool = False
    """True if fewer repeats are preferred, as in `a*?`. This changes only the span of a match."""

    def source(self) -> str | None:
        inside = self.part.source()
        if inside is None:
            return None
        most = "" if self.most is None else self.most
        return f"(?:{inside}){{{self.least},{most}}}{'?' if self.lazy else ''}"

    def attempts(self, length: int) -> float:
        inside = self.part.attempts(length)
        if self.most is not None and self.most <= 1:
            return 1 + inside
        # If the part can match in several ways, a repeat may try all combinations of them.
        return length + 1 if inside == 1 else math.inf


@dataclass(frozen=True, slots=True)
class Capture(RegexpNode):
    """A capturing group."""

    part: RegexpNode
    number: int

    def source(self) -> str | None:
        inside = self.part.source()
        return None if inside is None else f"({inside})"

    def attempts(self, length: int) -> float:
        return self.part.attempts(length)

    def is_anchored(self) -> bool:
        return self.part.is_anchored()


_MOST_STEPS = 200_000
"""The maximum number of steps that Python's `re` may need for one string.

This number of steps takes some milliseconds.
"""


def longest_quick(tree: RegexpNode) -> int:
    """Return the maximum length of strings that Python's `re` searches with few steps.

    The result is a power of two, or -1 if even short strings need many steps.
    """
    return max((2**size for size in range(20) if _is_bounded(tree, 2**size)), default=-1)


def _is_bounded(tree: RegexpNode, length: int) -> bool:
    """Report whether Python's `re` needs at most `_MOST_STEPS` for a string of this length."""
    places = 1 if tree.is_anchored() else length + 1
    return tree.attempts(length) * places <= _MOST_STEPS


def may_be_empty(tree: RegexpNode) -> bool:
    """Report whether the tree can match the empty string."""
    match tree:
        case SingleCharacter():
            return False
        case Concatenation(parts):
            return all(map(may_be_empty, parts))
        case Branch(parts):
            return any(map(may_be_empty, parts))
        case Repeat(part, least):
            return least == 0 or may_be_empty(part)
        case Capture(part):
            return may_be_empty(part)
    return True


def repeats_nothing(tree: RegexpNode) -> bool:
    """Report whether the pattern repeats a part that may be empty, such as `(a*)*`.

    Python's `re` and Go find different groups for such patterns.
    """
    match tree:
        case Concatenation(parts) | Branch(parts):
            return any(map(repeats_nothing, parts))
        case Repeat(part):
            return may_be_empty(part) or repeats_nothing(part)
        case Capture(part):
            return repeats_nothing(part)
    return False


def states_of(tree: RegexpNode) -> int:
    """Return the number of states of the automaton."""
    match tree:
        case Concatenation(parts) | Branch(parts):
            return 1 + sum(map(states_of, parts))
        case Repeat(part, least, most):
            return 1 + (least + 1 if most is None else most) * (1 + states_of(part))
        case Capture(part):
            return 2 + states_of(part)
    return 1


def _joined(between: str, parts: tuple[RegexpNode, ...]) -> str | None:
    found = [part.source() for part in parts]
    known = [each for each in found if each is not None]
    return f"(?:{between.join(known)})" if len(known) == len(found) else None
