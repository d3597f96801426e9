"""Find strings whose parts are fields of their own in the other version, such as `hostPort`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from polyver.apis.suggesting._fields import SCALARS, SchemaField

__all__ = ["SplitPair", "find_splits"]

_SEPARATORS: Final = {"port": ":", "tag": ":", "version": ":", "name": "/"}
"""The usual separator before a part with this name. Without one, no split is suggested."""


@dataclass(frozen=True, slots=True)
class SplitPair:
    """A string, and the two fields that are its parts."""

    one: SchemaField
    into: tuple[SchemaField, SchemaField]
    separator: str


def find_splits(old: Iterable[SchemaField], new: Iterable[SchemaField]) -> Iterator[SplitPair]:
    """Yield the strings whose name consists of the names of two fields of the other version.

    Both fields must be in the object in which the string is.
    """
    parts = {(each.path[:-1], each.words): each for each in new if each.shape in SCALARS}
    for one in old:
        for count in range(1, len(one.words)):
            first = parts.get((one.path[:-1], one.words[:count]))
            second = parts.get((one.path[:-1], one.words[count:]))
            separator = _SEPARATORS.get(one.words[-1], "")
            if one.shape == "string" and first and second and separator:
                del parts[first.path[:-1], first.words], parts[second.path[:-1], second.words]
                yield SplitPair(one, (first, second), separator)
                break
