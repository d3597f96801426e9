"""Regular expressions as trees, and what Python's own engine would make of them."""

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
    """A part of a pattern."""

    def source(self) -> str | None:
        """The same for Python's engine, if it has words for it."""
        raise NotImplementedError

    def attempts(self, length: int) -> float:  # noqa: ARG002 - what has no choice has no use for it
        """In how many ways Python's engine may at worst try it on a text."""
        return 1

    def is_anchored(self) -> bool:
        """Whether it can only begin where the text begins."""
        return False


@dataclass(frozen=True, slots=True)
class SingleCharacter(RegexpNode):
    """One character."""

    chars: Charset

    def source(self) -> str | None:
        return self.chars.source()


@dataclass(frozen=True, slots=True)
class Assertion(RegexpNode):
    """A place in the text rather than a character: its begin, a line's end, a word's border."""

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
    """One after the other."""

    parts: tuple[RegexpNode, ...]

    def source(self) -> str | None:
        return _joined("", self.parts)

    def attempts(self, length: int) -> float:
        return math.prod(part.attempts(length) for part in self.parts)

    def is_anchored(self) -> bool:
        return any(part == Assertion("begin") for part in self.parts[:1])


@dataclass(frozen=True, slots=True)
class Branch(RegexpNode):
    """One or the other."""

    options: tuple[RegexpNode, ...]

    def source(self) -> str | None:
        return _joined("|", self.options)

    def attempts(self, length: int) -> float:
        return sum(option.attempts(length) for option in self.options)


@dataclass(frozen=True, slots=True)
class Repeat(RegexpNode):
    """The same several times; `most` is None where there is no end."""

    part: RegexpNode
    least: int
    most: int | None
    lazy: bool = False
    """Whether fewer times come first, which matters for what is found, not for whether."""

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
        # A repeat of what can be tried in several ways may try all combinations of these.
        return length + 1 if inside == 1 else math.inf


@dataclass(frozen=True, slots=True)
class Capture(RegexpNode):
    """A part whose place is wanted, too."""

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
"""What Python's engine may at worst need for a text: some milliseconds."""


def longest_quick(tree: RegexpNode) -> int:
    """The length of texts up to which Python's engine needs few steps; -1 if there is none."""
    return max((2**size for size in range(20) if _is_bounded(tree, 2**size)), default=-1)


def _is_bounded(tree: RegexpNode, length: int) -> bool:
    """Whether Python's engine needs few steps; it also has to look for the beginning."""
    places = 1 if tree.is_anchored() else length + 1
    return tree.attempts(length) * places <= _MOST_STEPS


def may_be_empty(tree: RegexpNode) -> bool:
    """Whether there is a place at which it needs no character."""
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
    """Whether what may be empty is repeated, where Python's engine and Go's differ."""
    match tree:
        case Concatenation(parts) | Branch(parts):
            return any(map(repeats_nothing, parts))
        case Repeat(part):
            return may_be_empty(part) or repeats_nothing(part)
        case Capture(part):
            return repeats_nothing(part)
    return False


def states_of(tree: RegexpNode) -> int:
    """How many states a walk over a text has to keep in mind."""
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
