"""Template functions for Go's regular expressions; a match takes bounded time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from polyver.languages.gotemplate._budget import RenderBudget
from polyver.languages.gotemplate._functions import FunctionTable
from polyver.languages.gotemplate._values import NilStrings, Strings, TemplateFailure
from polyver.languages.regexp import InvalidPattern, Match, Search, read_search

__all__ = ["REGEXES"]

REGEXES = FunctionTable("regular expressions")
_LONGEST = 1000
_SHARE = 16
"""The number of steps of a search that count as one step of the rendering."""
_TEXT = "string string"


class _Expression:
    """A regular expression; each search subtracts steps from the budget of the rendering."""

    def __init__(self, budget: RenderBudget, pattern: str) -> None:
        if len(pattern) > _LONGEST:
            raise TemplateFailure(f"a regular expression has more than {_LONGEST} characters")
        try:
            self._search: Search = read_search(pattern)
        except InvalidPattern as problem:
            raise TemplateFailure(str(problem)) from None
        self._budget = budget
        budget.spend(self._search.states // _SHARE)

    def find(self, text: str, at: int = 0) -> Match | None:
        """Return the first match at or after the position `at`; None if there is none.

        The steps of the search are taken from the budget in advance, at their maximum number. Steps
        that the search did not use are given back.
        """
        worst = self._search.worst(len(text), len(text) - at + 1)
        self._budget.spend(1 + worst // _SHARE)
        match, steps = self._search.find(text, at)
        self._budget.spend((min(steps, worst) - worst) // _SHARE)
        return match

    def spans(self, text: str, most: int = -1) -> Iterator[Match]:
        """Yield the first `most` matches in order, or all matches if `most` is -1.

        An empty match directly after another match is left out, as in Go.
        """
        at, last, found = 0, -1, 0
        while at <= len(text) and found != most:
            match = self.find(text, at)
            if match is None:
                return
            start, end = match.span
            if end > start or start != last:
                yield match
                found += 1
            last = end
            at = end if end > start else end + 1


@REGEXES.add("regexMatch", _TEXT, budgeted=True)
def _match(budget: RenderBudget, pattern: str, text: str) -> bool:
    if len(pattern) <= _LONGEST and not _is_valid(pattern):
        return False
    return _Expression(budget, pattern).find(text) is not None


def _is_valid(pattern: str) -> bool:
    try:
        read_search(pattern)
    except InvalidPattern:
        return False
    return True


@REGEXES.add("mustRegexMatch", _TEXT, budgeted=True)
def _must_match(budget: RenderBudget, pattern: str, text: str) -> bool:
    return _Expression(budget, pattern).find(text) is not None


@REGEXES.add("regexFind mustRegexFind", _TEXT, budgeted=True)
def _find(budget: RenderBudget, pattern: str, text: str) -> str:
    found = _Expression(budget, pattern).find(text)
    return text[slice(*found.span)] if found else ""


@REGEXES.add("regexFindAll mustRegexFindAll", f"{_TEXT} int", budgeted=True)
def _find_all(budget: RenderBudget, pattern: str, text: str, most: int) -> Strings:
    found = _Expression(budget, pattern).spans(text, most)
    return Strings(text[slice(*match.span)] for match in found) or NilStrings()


@REGEXES.add("regexReplaceAllLiteral mustRegexReplaceAllLiteral", f"{_TEXT} string", budgeted=True)
def _replace_literally(budget: RenderBudget, pattern: str, text: str, new: str) -> str:
    return _replaced(budget, pattern, text, lambda _: [new])


@REGEXES.add("regexReplaceAll mustRegexReplaceAll", f"{_TEXT} string", budgeted=True)
def _replace(budget: RenderBudget, pattern: str, text: str, new: str) -> str:
    return _replaced(budget, pattern, text, lambda match: _expanded(new, match, text))


def _replaced(
    budget: RenderBudget, pattern: str, text: str, made: Callable[[Match], Iterable[str]]
) -> str:
    return budget.joined("", _pieces(_Expression(budget, pattern).spans(text), text, made))


def _pieces(
    found: Iterator[Match], text: str, made: Callable[[Match], Iterable[str]]
) -> Iterator[str]:
    at = 0
    for match in found:
        yield text[at : match.span[0]]
        yield from made(match)
        at = match.span[1]
    yield text[at:]


_REFERENCE = re.compile(r"\$(?:\$|\{(\w+)\}|(\w+))", re.ASCII)


def _expanded(new: str, match: Match, text: str) -> Iterator[str]:
    """Yield the parts of a replacement; `$1` and `${name}` are replaced by groups of a match."""
    at = 0
    for found in _REFERENCE.finditer(new):
        yield new[at : found.start()]
        yield _referred(found, match, text)
        at = found.end()
    yield new[at:]


def _referred(found: re.Match[str], match: Match, text: str) -> str:
    name = found[1] or found[2]
    if name is None:
        return "$"
    group = int(name) if name.isdecimal() and len(name) < 5 else match.names.get(name, -1)
    span = match.groups.get(group) if group else match.span
    return text[slice(*span)] if span else ""


@REGEXES.add("regexSplit mustRegexSplit", f"{_TEXT} int", budgeted=True)
def _split(budget: RenderBudget, pattern: str, text: str, most: int) -> Strings:
    expression = _Expression(budget, pattern)
    if most == 0:
        return NilStrings()
    if pattern and not text:
        return Strings([""])
    parts: list[str] = []
    start = end = 0
    for match in expression.spans(text, most):
        if most > 0 and len(parts) == most - 1:
            break
        end = match.span[0]
        if match.span[1] != 0:
            parts.append(text[start:end])
        start = match.span[1]
    if end != len(text):
        parts.append(text[start:])
    return Strings(parts)


REGEXES.put(
    "regexQuoteMeta", "string", lambda text: re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)
)
