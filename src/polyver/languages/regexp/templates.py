"""Patterns that take a string apart into named groups, and put it together again.

This works if all text outside of the named groups is fixed. Parts with named groups may be
optional: such a part is written if one of its groups has a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from polyver.core import PolyverError
from polyver.languages.regexp._charsets import Charset
from polyver.languages.regexp._search import read_search
from polyver.languages.regexp._tree import (
    Assertion,
    Branch,
    Capture,
    Concatenation,
    RegexpNode,
    Repeat,
    SingleCharacter,
)
from polyver.languages.regexp.syntax import parse_groups

__all__ = ["StringTemplate", "UnfixedPattern", "read_template"]


class UnfixedPattern(PolyverError):
    """A pattern whose strings cannot be put together from its named groups."""

    def __init__(self, fact: str) -> None:
        hint = "put each part of the pattern that varies into a named group, such as (?P<name>.+)"
        super().__init__(f"the pattern {fact}", hint=hint)


@dataclass(frozen=True, slots=True)
class _Group:
    name: str


@dataclass(frozen=True, slots=True)
class _Optional:
    elements: tuple[_Element, ...]


_Element = str | _Group | _Optional
"""A part of a string: fixed text, a named group, or several parts that are all there or missing."""


class StringTemplate:
    """A pattern for whole strings, and the parts from which it puts a string together."""

    def __init__(self, pattern: str) -> None:
        self._tree, numbers = parse_groups(pattern)
        self._search = read_search(rf"\A(?:{pattern})\z")
        self._numbers = numbers
        names = {number: name for name, number in numbers.items()}
        self._elements = tuple(_elements(self._tree, names))
        self.names = tuple(_groups(self._elements))
        """The names of the groups, in the order in which they occur in strings."""
        if missing := numbers.keys() - {*self.names}:
            raise UnfixedPattern(f"has the group {min(missing)} inside of another group")

    def taken_apart(self, text: str) -> dict[str, str] | None:
        """Return the groups of a string; None if the string does not match.

        >>> read_template("(?P<host>[^:]+)(:(?P<port>[0-9]+))?").taken_apart("a:1")
        {'host': 'a', 'port': '1'}
        """
        found, _ = self._search.find(text)
        if found is None:
            return None
        spans = {name: found.groups.get(number) for name, number in self._numbers.items()}
        return {name: text[span[0] : span[1]] for name, span in spans.items() if span is not None}

    def put_together(self, groups: Mapping[str, str]) -> str | None:
        """Return the string with these groups.

        Return None if a group is missing, or if the string would not match the pattern.

        >>> read_template("(?P<host>[^:]+)(:(?P<port>[0-9]+))?").put_together({"host": "a"})
        'a'
        """
        text = _written(self._elements, groups)
        return text if text is not None and self._search.find(text)[0] is not None else None

    def examples(self) -> Iterator[str]:
        """Yield strings that match the pattern, for tests. Some may be missing."""
        for more in (True, False):
            text = _example(self._tree, more=more)
            if self._search.find(text)[0] is not None:
                yield text


@lru_cache(maxsize=1024)
def read_template(pattern: str) -> StringTemplate:
    """Compile a pattern to a template; raise an error if it cannot put strings together."""
    return StringTemplate(pattern)


def _elements(tree: RegexpNode, names: Mapping[int, str]) -> Iterator[_Element]:
    match tree:
        case Assertion():
            return
        case Concatenation(parts):
            for part in parts:
                yield from _elements(part, names)
        case Capture(_, number) if number in names:
            yield _Group(names[number])
        case Capture(part):
            yield from _elements(part, names)
        case SingleCharacter(chars):
            yield _only(chars)
        case Repeat():
            yield _optional(tree, names)
        case Branch():
            raise UnfixedPattern("has alternatives (|) that are not in a named group")


def _optional(tree: Repeat, names: Mapping[int, str]) -> _Optional:
    if (tree.least, tree.most) != (0, 1):
        raise UnfixedPattern("repeats a part that is not in a named group")
    inside = tuple(_elements(tree.part, names))
    if not any(isinstance(each, _Group) for each in inside):
        raise UnfixedPattern("has an optional part without a named group")
    return _Optional(inside)


def _only(chars: Charset) -> str:
    """Return the only character of a set; raise an error if the set has several characters."""
    if len(chars.ranges) == 1 and not chars.negated and not chars.properties:
        low, high = chars.ranges[0]
        char = chr(low)
        if low == high and not (chars.folds and char.lower() != char.upper()):
            return char
    raise UnfixedPattern("has a character that varies and is not in a named group")


def _groups(elements: tuple[_Element, ...]) -> Iterator[str]:
    for each in elements:
        match each:
            case _Group(name):
                yield name
            case _Optional(inside):
                yield from _groups(inside)


def _written(elements: tuple[_Element, ...], groups: Mapping[str, str]) -> str | None:
    text = ""
    for each in elements:
        match each:
            case str():
                part: str | None = each
            case _Group(name):
                part = groups.get(name)
            case _Optional(inside):
                is_there = any(name in groups for name in _groups(inside))
                part = _written(inside, groups) if is_there else ""
        if part is None:
            return None
        text += part
    return text


_COMMON = "a1bA-_./: "


def _example(tree: RegexpNode, *, more: bool) -> str:
    """Return a string that probably matches; with `more`, one with all optional parts."""
    match tree:
        case SingleCharacter(chars):
            first = chr(chars.ranges[0][0]) if chars.ranges else "a"
            return next((each for each in _COMMON if each in chars), first)
        case Concatenation(parts):
            return "".join(_example(part, more=more) for part in parts)
        case Branch(options):
            return _example(options[0 if more else -1], more=more)
        case Repeat(part, least, most):
            times = min(max(least, 1), 1 if most is None else most) if more else least
            return _example(part, more=more) * min(max(times, least), 100)
        case Capture(part):
            return _example(part, more=more)
    return ""
