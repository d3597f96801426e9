"""Search for patterns with groups, and count the steps."""

from __future__ import annotations

import re
from functools import lru_cache

from polyver.languages.regexp._groups import GroupFinder, Match
from polyver.languages.regexp._tree import longest_quick, repeats_nothing, states_of
from polyver.languages.regexp.syntax import parse_groups

__all__ = ["Search", "read_search"]


class Search:
    """A compiled pattern with its groups."""

    def __init__(self, pattern: str) -> None:
        self._tree, self._names = parse_groups(pattern)
        source = None if repeats_nothing(self._tree) else self._tree.source()
        self._quick = re.compile(source) if source is not None else None
        self._longest = longest_quick(self._tree)
        self._finder: GroupFinder | None = None
        self.states = states_of(self._tree)
        """The size of the pattern with all repeats written out."""

    def worst(self, length: int, places: int) -> int:
        """Return the maximum number of steps of a search that begins at a number of positions."""
        if self._quick is not None and length <= self._longest:
            return int(self._tree.attempts(length)) * places
        return self.states * places

    def find(self, text: str, start: int = 0) -> tuple[Match | None, int]:
        """Return the first match at or after a position, and the maximum number of steps taken."""
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
