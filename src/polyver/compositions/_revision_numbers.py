"""Numbers of revisions: distinct, and the content of now has the highest.

Packages and compositions number their revisions alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from polyver.capability import Refusal
from polyver.core import Serial

__all__ = ["Numbered", "check_number", "distinct", "next_number", "number_of_now"]


@dataclass(frozen=True, slots=True)
class Numbered:
    """A revision, as far as numbers go."""

    name: str
    number: int


T = TypeVar("T", bound=Numbered)


def next_number(known: Iterable[Numbered]) -> int:
    """The number after all that were given."""
    highest = max((Serial(each.number) for each in known), default=None)
    return highest.number + 1 if highest is not None else 1


def distinct(known: Iterable[T]) -> dict[str, T]:
    """Revisions by name, with distinct numbers.

    Two can have the same one if two controllers ran for a moment; the first here keeps it.
    """
    found: dict[str, T] = {}
    numbers: set[int] = set()
    doubles = []
    for each in known:
        if each.number in numbers:
            doubles.append(each)
        else:
            numbers.add(each.number)
            found[each.name] = each
    for each in doubles:
        found[each.name] = replace(each, number=next_number(found.values()))
    return found


def number_of_now(there: Mapping[str, Numbered], name: str) -> int:
    """What the revision of the content of now is numbered: its own number, if no other is higher.

    >>> there = {"a": Numbered("a", 1), "b": Numbered("b", 2)}
    >>> number_of_now(there, "b"), number_of_now(there, "a"), number_of_now(there, "c")
    (2, 3, 3)
    """
    known = there.get(name)
    others = next_number(each for each in there.values() if each.name != name)
    if known is not None and Serial(known.number) >= Serial(others):
        return known.number
    return next_number(there.values())


def check_number(number: int, others: Iterable[Numbered]) -> Iterator[Refusal]:
    """Whether a new revision may have a number; `others` are those that there are."""
    taken = next((each.name for each in others if each.number == number), "")
    if taken:
        yield Refusal("VersionTaken", f"{taken} has the number {number}", at="spec.revision")
